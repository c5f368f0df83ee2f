"""Aligns a recording with a tape that stands for other recordings of the same function.

A branch that runs a few other arithmetic ops becomes two arms. The aligned tape computes both, and selects between
their results where they are used.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from yota.ir import catalog
from yota.ir.tape import Guard, Op, Tape
from yota.ir.types import TensorType

_COMPARISONS = ("greater", "greater_equal", "less", "less_equal")
TAKE_SELECTS = {
    **dict.fromkeys(("multiply", "divide", "negative", *_COMPARISONS), False),
    **dict.fromkeys(("add", "subtract"), True),
}
"""Primitives for which a constant operand may become a select; whether the constant may be 0."""
_IN_ARMS = {
    **dict.fromkeys(("add", "subtract", "negative", "positive", "getitem"), False),
    **dict.fromkeys(("multiply", "square", "power", "absolute", "sin", "cos", "tanh", "arctan"), True),
}
"""Primitives in arms, which have values and partials for finite operands; whether these may overflow."""
_EXPONENTS = (2, 3)
_POWER, _WHERE = catalog.primitive("power"), catalog.primitive("where")
_MOST_OPS, _MOST_ELEMENTS = 12, 64
"""Largest number of ops in the two arms of a branch, and of elements in a result."""
_ALIKE_AFTER = 4
"""Number of ops after the arms that must be equal."""


class Select(NamedTuple):
    """``yes`` if guard number ``guard`` is true, else ``no``."""

    guard: int
    yes: int
    no: int


@dataclass(frozen=True, slots=True)
class Arms:
    """The branches of a tape that became selects: the arm of each op in one, and the selects, by result."""

    ops: Mapping[int, tuple[int, bool]] = field(default_factory=dict)
    selects: Mapping[int, Select] = field(default_factory=dict)
    curved: bool = False
    """Whether an arm has a partial that overflows for some operands."""


class Alignment:
    """Walks a tape and a recording side by side.

    ours, arms: the tape, and its branches that became selects.
    known: the outcome of each guard in all recordings that the tape stands for; None if they differ.
    theirs: the tape of the recording.
    constants: the scalar constants of the recording, by the position (result, operand) of their use in `tape`.
    """

    def __init__(self, ours: Tape, arms: Arms, known: Sequence[bool | None], theirs: Tape) -> None:
        self.ours, self.theirs = ours, theirs
        self.constants: dict[tuple[int, int], Any] = {}
        self.outcomes = tuple(bool(guard.expected) for guard in theirs.guards)
        self._known = known
        self._arms, self._selects, self._curved = dict(arms.ops), dict(arms.selects), arms.curved
        self._partner: dict[int, int] = {}
        self._back: dict[int, int] = {}
        self._builder = ours.builder()
        self._builder.ops = []
        self._guards: list[Guard] = []
        self._made: dict[tuple[int, int], int] = {}

    @property
    def arms(self) -> Arms:
        """The branches of `tape` that became selects."""
        return Arms(self._arms, self._selects, self._curved)

    def tape(self) -> Tape | None:
        """``ours``, with further arms if branches ran other ops; None if it cannot stand for the recording."""
        if not self._has_same_frame() or not self._walk():
            return None
        outputs = []
        for one, other in zip(self.ours.outputs, self.theirs.outputs, strict=True):
            found = one if self._agrees(one, other) else self._select(None, one, other)
            if found is None:
                return None
            outputs.append(found)
        self._builder.guards = self._guards
        return self._builder.finish(outputs) if len(self._builder.ops) > len(self.ours.ops) else self.ours

    def _has_same_frame(self) -> bool:
        """Whether inputs, and numbers of guards and outputs, are the same."""
        ours, theirs = self.ours, self.theirs
        several = (ours.inputs, theirs.inputs), (ours.guards, theirs.guards), (ours.outputs, theirs.outputs)
        if any(len(one) != len(other) for one, other in several):
            return False
        for mine, its in zip(ours.inputs, theirs.inputs, strict=True):
            same = (mine.argument, mine.path) == (its.argument, its.path)
            if not same or ours.types[mine.variable] != theirs.types[its.variable]:
                return False
            self._pair(mine.variable, its.variable)
        return True

    def _walk(self) -> bool:
        place = other = 0
        ops, theirs = self.ours.ops, self.theirs.ops
        while self._passes_guards(place, other):
            op = ops[place] if place < len(ops) else None
            if op is not None and not self._is_reached(op):
                self._builder.ops.append(op)
                place += 1
            elif op is not None and op.result in self._selects:
                self._builder.ops.append(op)
                partner = self._partner.get(self._chosen(op.result))
                if partner is not None:
                    self._partner[op.result] = partner
                    self._back[partner] = op.result
                place += 1
            elif op is None and other == len(theirs):
                return True
            elif op is not None and other < len(theirs) and self._is_same(op, theirs[other]):
                if not self._match(op, theirs[other]):
                    return False
                place, other = place + 1, other + 1
            else:
                found = self._rejoins(place, other)
                if found is None or not self._branch(place, other, *found):
                    return False
                place, other = place + found[0], other + found[1]
        return False

    def _passes_guards(self, place: int, other: int) -> bool:
        """Pass the guards before op number ``place``; whether they are the same."""
        while len(self._guards) < len(self.ours.guards):
            guard, its = self.ours.guards[len(self._guards)], self.theirs.guards[len(self._guards)]
            if guard.after != place:
                break
            same = (guard.kind, guard.signs, its.after) == (its.kind, its.signs, other)
            if not same or not self._agrees(guard.variable, its.variable):
                return False
            self._guards.append(replace(guard, after=len(self._builder.ops)))
        return True

    def _is_reached(self, op: Op) -> bool:
        arm = self._arms.get(op.result)
        return arm is None or self.outcomes[arm[0]] is arm[1]

    def _chosen(self, variable: int) -> int:
        """The variable that a select has the value of in the recording."""
        while variable in self._selects:
            select = self._selects[variable]
            variable = select.yes if self.outcomes[select.guard] else select.no
        return variable

    def _pair(self, one: int, other: int) -> None:
        self._partner[one] = other
        self._back.setdefault(other, one)

    def _is_same(self, op: Op, its: Op) -> bool:
        same = op.primitive is its.primitive and op.static == its.static and len(op.operands) == len(its.operands)
        return same and self.ours.types[op.result] == self.theirs.types[its.result]

    def _agrees(self, one: int, other: int) -> bool:
        """Whether a variable has the value of one of the recording."""
        one = self._chosen(one)
        constants, others = self._builder.constants, self.theirs.constants
        if one in constants and other in others:
            return bool(constant_key(constants[one]) == constant_key(others[other]))
        return self._partner.get(one) == other

    def _match(self, op: Op, its: Op) -> bool:
        """Add an op that both have, with selects for operands that differ."""
        operands = list(op.operands)
        for position, (one, other) in enumerate(zip(op.operands, its.operands, strict=True)):
            if _is_scalar(self.ours, one) and _is_scalar(self.theirs, other):
                value = self.theirs.constants[other]
                if type(value) is not type(self.ours.constants[one]):
                    return False
                self.constants[op.result, position] = value
            elif not self._agrees(one, other):
                found = self._select(op, one, other)
                if found is None:
                    return False
                operands[position] = found
        self._builder.ops.append(replace(op, operands=tuple(operands)))
        self._pair(op.result, its.result)
        return True

    def _turned(self) -> Iterator[int]:
        for number in reversed(range(len(self._guards))):
            if self._known[number] is (not self.outcomes[number]):
                yield number

    def _select(self, op: Op | None, one: int, other: int) -> int | None:
        """A select between a variable and one of the recording, as an operand of ``op``."""
        if (one, other) in self._made:
            return self._made[one, other]
        types, constants = self._builder.types, self._builder.constants
        old = self._typed(constants, one, self.theirs.types[other], one)
        new = self._typed(self.theirs.constants, other, types[one], self._back.get(other))
        if old is None or new is None or types[old] != types[new]:
            return None
        turned = list(self._turned())
        named = [self._arms[each][0] for each in (old, new) if each in self._arms]
        guard = next((each for each in (*named, *turned) if each in turned), None)
        if guard is None or not (self._takes(op, old) and self._takes(op, new)):
            return None
        yes, no = (new, old) if self.outcomes[guard] else (old, new)
        condition = self.ours.guards[guard]
        self._builder.location = condition.location
        made = self._builder.emit(_WHERE, (condition.variable, yes, no), type=types[old])
        self._made[one, other], self._selects[made] = made, Select(guard, yes, no)
        self._partner[made] = other
        self._back[other] = made
        return made

    def _typed(
        self, constants: Mapping[int, Any], variable: int, type: TensorType, otherwise: int | None
    ) -> int | None:
        """A scalar constant with ``type``; None for an array, ``otherwise`` for what is no constant."""
        if variable not in constants:
            return otherwise
        value = constants[variable]
        return None if isinstance(value, np.ndarray) else self._builder.constant_of(value, type)

    def _takes(self, op: Op | None, variable: int) -> bool:
        """Whether a variable may be selected as an operand of ``op``: a constant changes what is differentiated."""
        constants = self._builder.constants
        if variable not in constants:
            return True
        value = constants[variable]
        takes_zero = None if op is None else TAKE_SELECTS.get(op.name)
        if takes_zero is None or type(value) not in (float, np.float64):
            return False
        return bool(np.isfinite(value)) and (value != 0 or takes_zero)

    def _rejoins(self, place: int, other: int) -> tuple[int, int] | None:
        """The least numbers of ops in the arms of a branch, after which both go on alike to the next branch."""
        ours = [op for op in self._ahead(self.ours, place) if op.result not in self._selects and self._is_reached(op)]
        theirs = self._ahead(self.theirs, other)
        more = len(theirs) - len(ours)
        for count in range(max(0, -more), min(len(ours), (_MOST_OPS - more) // 2) + 1):
            if all(map(self._is_same, ours[count:][:_ALIKE_AFTER], theirs[count + more :])):
                return count, count + more
        return None

    def _ahead(self, tape: Tape, place: int) -> tuple[Op, ...]:
        """The ops up to the next branch."""
        following = tape.guards[len(self._guards) :]
        return tape.ops[place : following[0].after if following else None]

    def _branch(self, place: int, other: int, count: int, others: int) -> bool:
        """Add the arms of a branch: ``count`` ops of ours, and ``others`` of the recording."""
        guard = next(self._turned(), None)
        theirs = self.theirs
        mine, its = self.ours.ops[place : place + count], theirs.ops[other : other + others]
        inside = any(place < each.after < place + count for each in self.ours.guards)
        inside = inside or any(other < each.after < other + others for each in theirs.guards)
        arithmetic = all(
            self._is_arithmetic(op, tape) for ops, tape in ((mine, self.ours), (its, theirs)) for op in ops
        )
        if guard is None or inside or not arithmetic:
            return False
        if any(
            each.result in self._arms or each.result in self._selects for each in self.ours.ops[place:][: count + 1]
        ):
            return False
        for op in mine:
            self._builder.ops.append(op)
            self._arms[op.result] = guard, not self.outcomes[guard]
        for op in its:
            taken = (
                self._typed(theirs.constants, each, theirs.types[each], self._back.get(each)) for each in op.operands
            )
            operands = [each for each in taken if each is not None]
            if len(operands) < len(op.operands):
                return False
            self._builder.location = op.location
            made = self._builder.emit(op.primitive, operands, op.static, theirs.types[op.result])
            self._arms[made] = guard, self.outcomes[guard]
            self._pair(made, op.result)
            for position, each in enumerate(op.operands):
                if each in theirs.constants:
                    self.constants[made, position] = theirs.constants[each]
        return True

    def _is_arithmetic(self, op: Op, tape: Tape) -> bool:
        """Whether an op may be computed though its arm is not taken."""
        type = tape.types[op.result]
        if type.dtype != np.float64 or math.prod(type.shape) > _MOST_ELEMENTS:
            return False
        is_curved = _IN_ARMS.get(op.name)
        if is_curved is None or (op.primitive is _POWER and tape.constants.get(op.operands[1]) not in _EXPONENTS):
            return False
        self._curved |= is_curved
        return True


def uses(tape: Tape) -> list[tuple[int, tuple[int, int], int]]:
    """Uses of scalar constants as operands: the place of the op, the position (result, operand), and the constant."""
    return [
        (place, (op.result, position), operand)
        for place, op in enumerate(tape.ops)
        for position, operand in enumerate(op.operands)
        if _is_scalar(tape, operand)
    ]


def constant_key(value: Any) -> Any:
    """A key of a constant that distinguishes -0.0 from 0.0; all NaNs have the same key."""
    if isinstance(value, np.ndarray):
        return value.dtype, value.shape, value.tobytes()
    return type(value), repr(value)


def _is_scalar(tape: Tape, variable: int) -> bool:
    return variable in tape.constants and not isinstance(tape.constants[variable], np.ndarray)
