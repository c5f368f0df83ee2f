"""Merges recordings that differ only in scalar constants, or in a few ops after a branch, into one tape with selects.

A constant becomes ``where(condition, a, b)`` of the conditions that the function branched on; ops of a branch become
arms, see `yota.run.arms`. Recordings show the dependence on conditions only for recorded combinations of
conditions. So a merged tape is used only for these. Its generated code returns the conditions with the results. The
first call with another combination records the function again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from yota.ir import catalog
from yota.ir.tape import Guard, Op, Tape, TapeBuilder
from yota.ir.types import TensorType
from yota.run.arms import TAKE_SELECTS, Alignment, Arms, constant_key, uses
from yota.run.machine.signals import StaleTape
from yota.tracing.record import Recording

_MOST_ROWS = 64
"""Largest number of recordings in one merged tape."""


class Combination(tuple[bool, ...]):
    """Values of the conditions of a merged tape."""

    __slots__ = ()


class Alone(tuple[bool, ...]):
    """Values of the conditions for which a tape of its own is recorded, since an arm that is not taken overflows."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class _Row:
    """One recording: the outcome of each guard, and the constants by the position (result, operand) of their use."""

    outcomes: tuple[bool, ...]
    constants: Mapping[tuple[int, int], Any]


@dataclass(frozen=True, slots=True)
class _Choice:
    """``yes`` if guard number ``guard`` is true, else ``no``; each is a constant or another choice."""

    guard: int
    yes: Any
    no: Any


@dataclass(frozen=True, slots=True, eq=False)
class Merged:
    """A merged tape of recordings of one function with the same ops.

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
    arms: Arms = field(default_factory=Arms)

    @classmethod
    def of(cls, recording: Recording) -> Merged | None:
        """The merge of one recording; None if no other can be merged with it."""
        tape = recording.tape
        conditions = [_is_condition(guard, tape.types[guard.variable]) for guard in tape.guards]
        if not conditions or not all(conditions) or recording.watched:
            return None
        constants = {use: tape.constants[operand] for _, use, operand in uses(tape)}
        return cls(recording, (_Row(tuple(bool(guard.expected) for guard in tape.guards), constants),))

    def joined(self, other: Recording) -> Merged | None:
        """The merge with another recording: unchanged if it agrees, None if it cannot be merged."""
        if not self._reads_alike(other):
            return None
        ours = self.recording.tape
        alignment = Alignment(ours, self.arms, self._outcomes(), other.tape)
        tape = alignment.tape()
        if tape is None:
            return None
        row = _Row(alignment.outcomes, alignment.constants)
        held = {id(each.code) for each in self.recording.ran}
        fresh = [each for each in other.ran if id(each.code) not in held]
        if not fresh and tape is ours and self._agrees(row):
            self.known.add(self._combination(row))
            return self
        if len(self.rows) >= _MOST_ROWS:
            return None
        rows = (*self.rows, row)
        first = self.rows[0].outcomes
        guards = tuple(place for place in range(len(first)) if any(r.outcomes[place] != first[place] for r in rows))
        choices = _choices(tape, rows, guards)
        if choices is None:
            return None
        recording = replace(self.recording, tape=tape, ran=(*self.recording.ran, *fresh))
        found = Merged(recording, rows, guards, choices, arms=alignment.arms)
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
                if (op.result, position) in choices:
                    builder.location = op.location
                    operands[position] = _emitted(builder, tape, choices[op.result, position], operand, made)
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
            if self.arms.curved and not all(np.isfinite(each).all() for each in outputs):
                raise StaleTape(first, Alone(found))
            return (outputs[0], *outputs[end:]) if len(outputs) > end else outputs[0]

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

    def _outcomes(self) -> list[bool | None]:
        """The outcome of each guard in all recordings; None if they differ."""
        several = (set(each) for each in zip(*(row.outcomes for row in self.rows), strict=True))
        return [each.pop() if len(each) == 1 else None for each in several]

    def _agrees(self, row: _Row) -> bool:
        """Whether the merged tape is correct for a recording."""
        outcomes = enumerate(zip(self.rows[0].outcomes, row.outcomes, strict=True))
        constants = self.recording.tape.constants
        return all(place in self.guards or one == other for place, (one, other) in outcomes) and all(
            constant_key(_chosen(self.choices.get(use, constants[operand]), row.outcomes))
            == constant_key(row.constants[use])
            for _, use, operand in uses(self.recording.tape)
            if use in row.constants
        )


def _choices(tape: Tape, rows: Sequence[_Row], guards: Sequence[int]) -> dict[tuple[int, int], _Choice] | None:
    """Selections that reproduce all ``rows``; None if some constant cannot be selected."""
    found: dict[tuple[int, int], _Choice] = {}
    ops, places = tape.ops, {use: place for place, use, _ in uses(tape)}
    for use in dict.fromkeys(use for row in rows for use in row.constants):
        cases = [(row.outcomes, row.constants[use]) for row in rows if use in row.constants]
        if len({constant_key(value) for _, value in cases}) == 1:
            continue
        if use not in places:
            return None  # The constant became an operand of the select of an arm.
        place = places[use]
        # The branch that chooses a constant is usually right before its use.
        before = [each for each in reversed(guards) if tape.guards[each].after <= place]
        choice = _fitted(cases, before) if _takes_selects(tape, ops[place], cases) else None
        if choice is None:
            return None
        found[use] = choice
    return found


def _is_condition(guard: Guard, type_: TensorType) -> bool:
    return guard.kind == "bool" and not guard.signs and type_.dtype == np.bool_ and not type_.shape


def _takes_selects(tape: Tape, op: Op, cases: Sequence[tuple[Any, Any]]) -> bool:
    """Whether an operand that is constant in some ``cases`` can become a select of constants."""
    # A factor that is constant zero gives derivative zero, but a computed zero times infinity gives NaN.
    fits = all(type(value) in (float, np.float64) and value != 0 and np.isfinite(value) for _, value in cases)
    others = [tape.types[each].dtype for each in op.operands]
    return fits and op.name in TAKE_SELECTS and all(dtype == np.float64 for dtype in others)


def _fitted(cases: Sequence[tuple[tuple[bool, ...], Any]], guards: Sequence[int]) -> Any:
    """A choice by the outcomes of ``guards``, in this order of preference, that fits all recordings, or None."""
    if len({constant_key(value) for _, value in cases}) == 1:
        return cases[0][1]
    splits = []
    for guard in guards:
        yes, no = ([case for case in cases if case[0][guard] is way] for way in (True, False))
        if yes and no:
            splits.append((guard, yes, no))
    if not splits:
        return None
    pure = (each for each in splits if all(len({constant_key(value) for _, value in side}) == 1 for side in each[1:]))
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
