"""Dependence of the elements of an op's result on the elements of an operand, and values that it takes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from yota.ir.access_maps import letters, pieces
from yota.ir.indexing import to_numpy
from yota.ir.semantics import CONTRACTIONS, MOVES, AccessMap
from yota.ir.tape import Op, Tape
from yota.ir.types import TupleType


class Known(Mapping[int, Any]):
    """Values by variable.

    relied: inputs that affected any requested value.
    """

    def __init__(self, tape: Tape, values: Mapping[int, Any]) -> None:
        self.relied: set[int] = set()
        self._values = {**tape.constants, **values}
        self._sources: dict[int, frozenset[int]] = dict.fromkeys(tape.constants, frozenset())
        self._sources.update({variable: frozenset({variable}) for variable in values})
        self._definitions = tape.definitions()
        for op in tape.ops:
            if all(operand in self._sources for operand in op.operands):
                self._sources[op.result] = frozenset().union(*(self._sources[operand] for operand in op.operands))

    def __contains__(self, variable: object) -> bool:
        return variable in self._sources

    def __iter__(self) -> Iterator[int]:
        return iter(self._sources)

    def __len__(self) -> int:
        return len(self._sources)

    def __getitem__(self, variable: int) -> Any:
        self.rely(variable)
        return self.peek(variable)

    def rely(self, variable: int) -> None:
        """Add the inputs that a value depends on to `relied`."""
        self.relied |= self._sources[variable]

    def is_constant(self, variable: int) -> bool:
        """Whether a value is known, and depends on no input."""
        return variable in self and not self._sources[variable]

    def peek(self, variable: int) -> Any:
        """A value whose use is not recorded in `relied`."""
        if variable not in self._values:
            op = self._definitions[variable]
            operands = [self.peek(operand) for operand in op.operands]
            self._values[variable] = op.primitive.function(*operands, **dict(op.static))
        return self._values[variable]


Positions: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"

_MOST_PAIRS = 20_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Each element of the result depends on the operand elements of one group.

    inner: the group of each operand element, -1 for unread elements; None if each element is a group of its own.
    outer: the group on which each result element depends, -1 for none; None if each result element has its own group.
    """

    inner: Positions | None
    outer: Positions | None
    count: int


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Result element ``results[k]`` depends on operand element ``operands[k]``."""

    results: Positions
    operands: Positions


Link: TypeAlias = Groups | Pairs


def link(tape: Tape, op: Op, position: int, known: Known) -> Link:
    """The dependence of the result of ``op`` on its operand at ``position``, as a superset of the true one."""
    size = tape.types[op.operands[position]].size
    if op.primitive.elementwise or op.primitive.several == "elementwise":
        return _broadcast(tape, op, position)
    access = op.access
    if access == AccessMap.ITEM:
        return _item(tape, op)
    if access in MOVES:
        return _moved(tape, op, position, known)
    if access in (AccessMap.SCATTER, AccessMap.DEPOSIT):
        return _scattered(tape, op, position, known)
    if access == AccessMap.REDUCTION:
        over = op.keyword("axis")
        axes = range(tape.types[op.operands[0]].ndim) if over is None else over
        return _reduced(tape, op, axes)
    if access in CONTRACTIONS:
        return _product(tape, op, position, known)
    shape = tape.types[op.operands[position]].shape
    if access in (AccessMap.SCAN, AccessMap.LINE) and isinstance(op.keyword("axis"), int):
        axis = op.keyword("axis") % len(shape)
        return _groups_by_position(tape, op, position, [each for each in range(len(shape)) if each != axis])
    if access == AccessMap.MATRIX and len(shape) > 2 and tape.types[op.result].shape[: len(shape) - 2] == shape[:-2]:
        return _groups_by_position(tape, op, position, range(len(shape) - 2))
    return _all(tape, op, size)


def _all(tape: Tape, op: Op, size: int) -> Groups:
    """Every element depends on every element."""
    return Groups(np.zeros(size, np.int64), np.zeros(tape.types[op.result].size, np.int64), 1)


def _numbered(shape: Sequence[int]) -> Positions:
    return np.arange(math.prod(shape)).reshape(shape)


def _broadcast(tape: Tape, op: Op, position: int) -> Groups:
    type, result = tape.types[op.operands[position]], tape.types[op.result]
    if result.shape == type.shape:
        return Groups(None, None, type.size)
    parts = result.parts if isinstance(result, TupleType) else (result,)
    outer = [np.broadcast_to(_numbered(type.shape), part.shape).ravel() for part in parts]
    return Groups(None, np.concatenate(outer), type.size)


def _item(tape: Tape, op: Op) -> Groups:
    """One of several results, which are consecutive."""
    several, number = tape.types[op.operands[0]], op.keyword("index")
    assert isinstance(several, TupleType)
    first = sum(part.size for part in several.parts[:number])
    return Groups(None, np.arange(first, first + several.parts[number].size), several.size)


def _moved(tape: Tape, op: Op, position: int, known: Known) -> Link:
    """Evaluate the function on element numbers to see where elements move."""
    size = tape.types[op.operands[position]].size
    indices = {each for _, arrays, _ in pieces(op) for each in arrays}
    if any(op.operands[each] not in known for each in indices):
        return _all(tape, op, size)
    operands: list[Any] = []
    for number, operand in enumerate(op.operands):
        shape = tape.types[operand].shape
        if number == position:
            operands.append(_numbered(shape) + 1)
        else:
            operands.append(known[operand] if number in indices else np.zeros(shape, np.int64))
    found = op.primitive.function(*operands, **dict(op.static))
    return Groups(None, np.asarray(found, np.int64).ravel() - 1, size)


def _scattered(tape: Tape, op: Op, position: int, known: Known) -> Link:
    """The elements of a piece are added at its indices."""
    result, size = tape.types[op.result], tape.types[op.operands[position]].size
    for piece, arrays, index in pieces(op):
        places = [op.operands[each] for each in arrays]
        if position == piece and all(place in known for place in places):
            where = _numbered(result.shape)[to_numpy(index, [known[place] for place in places])]
            own = np.broadcast_to(_numbered(tape.types[op.operands[position]].shape), where.shape)
            return Pairs(np.ravel(where), np.ravel(own))
    if position == 0 and op.access == AccessMap.DEPOSIT:
        return Groups(None, None, size)
    return _all(tape, op, size)


def _reduced(tape: Tape, op: Op, axes: Sequence[int]) -> Groups:
    shape = tape.types[op.operands[0]].shape
    over = {axis % len(shape) for axis in axes}
    kept = [1 if axis in over else extent for axis, extent in enumerate(shape)]
    return Groups(np.broadcast_to(_numbered(kept), shape).ravel(), None, math.prod(kept))


def _groups_by_position(tape: Tape, op: Op, position: int, axes: Sequence[int]) -> Groups:
    """Elements with equal positions along ``axes``, of operand and result, form a group."""
    shapes = [tape.types[op.operands[position]].shape, tape.types[op.result].shape]
    extents = [shapes[0][axis] for axis in axes]
    groups = []
    for shape in shapes:
        spread = [extent if axis in axes else 1 for axis, extent in enumerate(shape)]
        groups.append(np.broadcast_to(_numbered(extents).reshape(spread), shape).ravel())
    return Groups(groups[0], groups[1], math.prod(extents))


def _product(tape: Tape, op: Op, position: int, known: Known) -> Link:
    """Contractions: contracted elements form a group; a known factor with zeros restricts it."""
    terms, result = _letters(tape, op)
    shapes = [tape.types[operand].shape for operand in op.operands]
    extents: dict[str, int] = {}
    for axes, shape in zip(terms, shapes, strict=True):
        extents.update(zip(axes, shape, strict=True))
    own = terms[position]
    others = [number for number in range(len(terms)) if number != position and op.operands[number] in known]
    if len(terms) == 2 and others and not np.all(known.peek(op.operands[others[0]])):
        found = _pairs(np.asarray(known[op.operands[others[0]]]), terms[others[0]], own, result, extents)
        if found is not None:
            return found
    shared = "".join(sorted(set(own) & set(result)))
    inner = _labels(own, shared, extents)
    return Groups(inner, _labels(result, shared, extents), math.prod(extents[letter] for letter in shared))


def _letters(tape: Tape, op: Op) -> tuple[list[str], str]:
    """The letters of the axes of each operand and of the result; a broadcast axis has its own letter."""
    shapes = [tape.types[operand].shape for operand in op.operands]
    terms, result = letters(op, [len(shape) for shape in shapes])
    wide = dict(zip(result, tape.types[op.result].shape, strict=True))
    spare = map(chr, itertools.count(ord("\u0391")))
    found = [
        "".join(
            each if wide.get(each, extent) == extent else next(spare) for each, extent in zip(own, shape, strict=True)
        )
        for own, shape in zip(terms, shapes, strict=True)
    ]
    return found, result


def _labels(letters: str, shared: str, extents: Mapping[str, int]) -> Positions:
    """Position of each element of an array along the ``shared`` axes; -1 off the diagonal of a repeated letter."""
    shape = [extents[letter] for letter in letters]
    places: dict[str, Any] = {}
    whole = np.ones(shape, bool)
    for axis, letter in enumerate(letters):
        own = np.arange(shape[axis]).reshape([-1 if each == axis else 1 for each in range(len(shape))])
        if letter in places:
            whole &= own == places[letter]
        places.setdefault(letter, own)
    label = np.zeros(shape, np.int64)
    for letter in shared:
        label = label * extents[letter] + places[letter]
    return np.where(whole, label, -1).ravel()


def _pairs(factor: Any, letters: str, own: str, result: str, extents: Mapping[str, int]) -> Pairs | None:
    """Dependence on the operand through the nonzero elements of a known factor; None if there are too many."""
    filled = np.nonzero(factor)
    rest = "".join(sorted({*own, *result} - set(letters)))
    many = math.prod(extents[letter] for letter in rest)
    if len(set(letters)) < len(letters) or len(filled[0]) * many > _MOST_PAIRS:
        return None
    grid = np.indices([extents[letter] for letter in rest]).reshape(len(rest), 1, many)
    places = {letter: each[:, None] for letter, each in zip(letters, filled, strict=True)}
    places.update(zip(rest, grid, strict=True))
    sides = []
    for side in (result, own):
        number: Any = np.zeros((len(filled[0]), many), np.int64)
        for letter in side:
            number = number * extents[letter] + places[letter]
        sides.append(np.ravel(number))
    return Pairs(sides[0], sides[1])
