"""Merges recordings that differ only in scalar constants into one tape that selects the constants.

A constant becomes ``where(condition, a, b)`` of the conditions that the function branched on. Recordings show the
dependence of a constant on conditions only for recorded combinations of conditions. So a merged tape is used only
for these. Its generated code returns the conditions with the results. The first call with another combination
records the function again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from yota.ir import catalog
from yota.ir.tape import Guard, Op, Tape, TapeBuilder
from yota.ir.types import TensorType
from yota.runtime.signals import StaleTape
from yota.tracing.record import Recording

_MOST_ROWS = 64
"""Largest number of recordings in one merged tape."""
_TAKE_SELECTS = frozenset(
    ("add", "subtract", "multiply", "divide", "negative", "greater", "greater_equal", "less", "less_equal")
)
"""Primitives for which a constant operand may become a select of constants."""


class Combination(tuple[bool, ...]):
    """Values of the conditions of a merged tape."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class _Row:
    """One recording: the outcome of each guard, and the constants in order of use."""

    outcomes: tuple[bool, ...]
    constants: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class _Choice:
    """``yes`` if guard number ``guard`` is true, else ``no``; each is a constant or another choice."""

    guard: int
    yes: Any
    no: Any


@dataclass(frozen=True, slots=True, eq=False)
class Merged:
    """A merged tape of recordings of one function with the same ops.

    recording: the first recording.
    rows: the guards and constants of each recording.
    guards: numbers of the guards with different outcomes.
    choices: the selected constants, by positions of op and operand.
    known: the combinations of guard outcomes that a recording has confirmed.
    """

    recording: Recording
    rows: tuple[_Row, ...]
    guards: tuple[int, ...] = ()
    choices: Mapping[tuple[int, int], _Choice] = field(default_factory=dict)
    known: set[tuple[bool, ...]] = field(default_factory=set)

    @classmethod
    def of(cls, recording: Recording) -> Merged | None:
        """The merge of one recording; None if no other can be merged with it."""
        tape = recording.tape
        conditions = [_is_condition(guard, tape.types[guard.variable]) for guard in tape.guards]
        row = _aligned(tape, tape) if conditions and all(conditions) and not recording.watched else None
        return None if row is None else cls(recording, (row,))

    def joined(self, other: Recording) -> Merged | None:
        """The merge with another recording: unchanged if it agrees, None if its ops or arrays differ."""
        row = _aligned(self.recording.tape, other.tape) if self._reads_alike(other) else None
        if row is None:
            return None
        held = {id(each.code) for each in self.recording.ran}
        fresh = [each for each in other.ran if id(each.code) not in held]
        if not fresh and self._agrees(row):
            self.known.add(self._combination(row))
            return self
        if len(self.rows) >= _MOST_ROWS:
            return None
        rows = (*self.rows, row)
        first = self.rows[0].outcomes
        guards = tuple(place for place in range(len(first)) if any(r.outcomes[place] != first[place] for r in rows))
        choices = _choices(self.recording.tape, rows, guards)
        if choices is None:
            return None
        recording = replace(self.recording, ran=(*self.recording.ran, *fresh))
        found = Merged(recording, rows, guards, choices)
        found.known.update(map(found._combination, rows))
        return found

    def merged(self) -> Recording:
        """The recording with selects for differing constants, and with the guards of the last recording."""
        tape, choices = self.recording.tape, self.choices
        builder = tape.builder()
        builder.ops = []
        inserted, made = [0], dict[Any, int]()
        for place, op in enumerate(tape.ops):
            operands = list(op.operands)
            for position, operand in enumerate(op.operands):
                if (place, position) in choices:
                    builder.location = op.location
                    operands[position] = _emitted(builder, tape, choices[place, position], operand, made)
            builder.ops.append(replace(op, operands=tuple(operands)))
            inserted.append(len(builder.ops) - place - 1)
        builder.guards = [
            replace(guard, expected=outcome, after=guard.after + inserted[guard.after])
            for guard, outcome in zip(tape.guards, self.rows[-1].outcomes, strict=True)
        ]
        return replace(self.recording, tape=builder.finish(tape.outputs))

    def unguarded(self, tape: Tape) -> Tape:
        """``tape`` with the conditions as outputs after the value, in place of their guards."""
        value, *adjoints = tape.outputs
        conditions = [tape.guards[place].variable for place in self.guards]
        left = tuple(guard for place, guard in enumerate(tape.guards) if place not in self.guards)
        return replace(tape, outputs=(value, *conditions, *adjoints), guards=left)

    def checked(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """The generated function of an `unguarded` tape, which checks that its conditions are a known combination."""
        end, known, first = len(self.guards) + 1, self.known, self.guards[0]
        left = [place for place in range(len(self.recording.tape.guards)) if place not in self.guards]

        def checked(*inputs: Any) -> Any:
            try:
                outputs = call(*inputs)
            except StaleTape as signal:
                raise StaleTape(left[signal.index], signal.value) from None
            found = tuple(map(bool, outputs[1:end]))
            if found not in known:
                raise StaleTape(first, Combination(found))
            return (outputs[0], *outputs[end:])

        return checked

    def _reads_alike(self, other: Recording) -> bool:
        """Whether both recordings read the same captured arrays in the same way."""
        ours = self.recording
        captured = [*ours.captured.values()], [*other.captured.values()]
        return (
            not other.watched
            and not ours.outer
            and not other.outer
            and len(captured[0]) == len(captured[1])
            and all(one is another for one, another in zip(*captured, strict=True))
            and dict(ours.uses) == dict(other.uses)
            and ours.calls.keys() == other.calls.keys()
        )

    def _combination(self, row: _Row) -> tuple[bool, ...]:
        return tuple(row.outcomes[place] for place in self.guards)

    def _agrees(self, row: _Row) -> bool:
        """Whether the merged tape is correct for a recording."""
        first = self.rows[0]
        outcomes = enumerate(zip(first.outcomes, row.outcomes, strict=True))
        uses = zip(_uses(self.recording.tape), first.constants, row.constants, strict=True)
        return all(place in self.guards or one == other for place, (one, other) in outcomes) and all(
            _key(_chosen(self.choices.get(use, known), row.outcomes)) == _key(value) for use, known, value in uses
        )


def _choices(tape: Tape, rows: Sequence[_Row], guards: Sequence[int]) -> dict[tuple[int, int], _Choice] | None:
    """Selections that reproduce all ``rows``; None if some constant cannot be selected."""
    found: dict[tuple[int, int], _Choice] = {}
    for number, (place, position) in enumerate(_uses(tape)):
        cases = [(row.outcomes, row.constants[number]) for row in rows]
        if len({_key(value) for _, value in cases}) == 1:
            continue
        # The branch that chooses a constant is usually right before its use.
        before = [each for each in reversed(guards) if tape.guards[each].after <= place]
        choice = _fitted(cases, before) if _takes_selects(tape, tape.ops[place], cases) else None
        if choice is None:
            return None
        found[place, position] = choice
    return found


def _is_condition(guard: Guard, type_: TensorType) -> bool:
    return guard.kind == "bool" and not guard.signs and type_.dtype == np.bool_ and not type_.shape


def _uses(tape: Tape) -> list[tuple[int, int]]:
    """Positions (op, operand) at which scalar constants are operands."""
    return [
        (place, position)
        for place, op in enumerate(tape.ops)
        for position, operand in enumerate(op.operands)
        if operand in tape.constants and not isinstance(tape.constants[operand], np.ndarray)
    ]


def _partners(ours: Tape, theirs: Tape) -> dict[int, int] | None:
    """The inputs of ``theirs`` by those of ``ours``; None if the inputs or lengths of the tapes differ."""
    several = [(ours.inputs, theirs.inputs), (ours.ops, theirs.ops), (ours.guards, theirs.guards)]
    if any(len(one) != len(other) for one, other in [*several, (ours.outputs, theirs.outputs)]):
        return None
    inputs = [*zip(ours.inputs, theirs.inputs, strict=True)]
    same = all((mine.argument, mine.path) == (its.argument, its.path) for mine, its in inputs)
    return {mine.variable: its.variable for mine, its in inputs} if same else None


def _aligned(ours: Tape, theirs: Tape) -> _Row | None:
    """The guards and constants of ``theirs``, if it equals ``ours`` apart from these."""
    partner = _partners(ours, theirs)
    if partner is None or any(ours.types[one] != theirs.types[other] for one, other in partner.items()):
        return None
    constants: list[Any] = []

    def alike(one: int, other: int, *, exactly: bool = True) -> bool:
        if one not in ours.constants or other not in theirs.constants:
            return partner.get(one) == other
        value, another = ours.constants[one], theirs.constants[other]
        if isinstance(value, np.ndarray) or exactly:
            return bool(_key(value) == _key(another))
        constants.append(another)
        return type(value) is type(another)

    for op, its_op in zip(ours.ops, theirs.ops, strict=True):
        if not _same_op(op, its_op) or ours.types[op.result] != theirs.types[its_op.result]:
            return None
        if not all(alike(one, other, exactly=False) for one, other in zip(op.operands, its_op.operands, strict=True)):
            return None
        partner[op.result] = its_op.result
    for guard, its_guard in zip(ours.guards, theirs.guards, strict=True):
        kinds = (guard.kind, guard.after, guard.signs) == (its_guard.kind, its_guard.after, its_guard.signs)
        if not kinds or not alike(guard.variable, its_guard.variable):
            return None
    if not all(map(alike, ours.outputs, theirs.outputs)):
        return None
    return _Row(tuple(bool(guard.expected) for guard in theirs.guards), tuple(constants))


def _same_op(one: Op, other: Op) -> bool:
    return one.primitive is other.primitive and one.static == other.static and len(one.operands) == len(other.operands)


def _key(value: Any) -> Any:
    """A key of a constant that distinguishes -0.0 from 0.0; all NaNs have the same key."""
    if isinstance(value, np.ndarray):
        return value.dtype, value.shape, value.tobytes()
    return type(value), repr(value)


def _takes_selects(tape: Tape, op: Op, cases: Sequence[tuple[Any, Any]]) -> bool:
    """Whether an operand that is constant in some ``cases`` can become a select of constants."""
    # A factor that is constant zero gives derivative zero, but a computed zero times infinity gives NaN.
    fits = all(type(value) in (float, np.float64) and value != 0 and np.isfinite(value) for _, value in cases)
    others = [tape.types[each].dtype for each in op.operands]
    return fits and op.name in _TAKE_SELECTS and all(dtype == np.float64 for dtype in others)


def _fitted(cases: Sequence[tuple[tuple[bool, ...], Any]], guards: Sequence[int]) -> Any:
    """A choice by the outcomes of ``guards``, in this order of preference, that fits all recordings, or None."""
    if len({_key(value) for _, value in cases}) == 1:
        return cases[0][1]
    splits = []
    for guard in guards:
        yes, no = ([case for case in cases if case[0][guard] is way] for way in (True, False))
        if yes and no:
            splits.append((guard, yes, no))
    if not splits:
        return None
    pure = (each for each in splits if all(len({_key(value) for _, value in side}) == 1 for side in each[1:]))
    guard, yes, no = next(pure, splits[0])
    arms = _fitted(yes, guards), _fitted(no, guards)
    return None if None in arms else _Choice(guard, *arms)


def _chosen(choice: Any, outcomes: Sequence[bool]) -> Any:
    while isinstance(choice, _Choice):
        choice = choice.yes if outcomes[choice.guard] else choice.no
    return choice


def _emitted(builder: TapeBuilder, tape: Tape, choice: Any, operand: int, made: dict[Any, int]) -> int:
    """The variable of a choice that replaces the constant ``operand``."""
    if not isinstance(choice, _Choice):
        return builder.constant(choice)
    key = repr(choice)
    if key not in made:
        arms = [_emitted(builder, tape, arm, operand, made) for arm in (choice.yes, choice.no)]
        operands = (tape.guards[choice.guard].variable, *arms)
        made[key] = builder.emit(catalog.primitive("where"), operands, type=tape.types[operand])
    return made[key]
