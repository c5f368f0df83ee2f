"""Arrays as arrays of scalar variables: how each primitive acts on the elements one by one."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from yota.ir.indexing import GATHER, to_numpy
from yota.ir.tape import Op, Tape
from yota.ir.types import TensorType
from yota.passes.rewrite import Rewriting

__all__ = ["MOVES", "Elements", "Unrolling", "Unsuitable"]

Elements: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"
"""Handles of an array's elements: a variable's number, or a negative number for an element not read yet."""

MOVES = frozenset({"reshape", "transpose", "broadcast_to", "concatenate", "stack", "getitem", "setitem"})
"""Primitives that only move elements: NumPy's own functions do it on the handles."""

_LARGEST_SOURCE = 1 << 20
_LARGEST_MOVED = 65536


class Unsuitable(Exception):
    """The tape does not fall apart into few scalars."""


class Unrolling(Rewriting):
    """A tape under reconstruction as scalar ops.

    Parameters
    ----------
    tape
        The tape that is read.
    limit
        Number of scalar ops beyond which it is given up.
    """

    def __init__(self, tape: Tape, limit: int) -> None:
        super().__init__(tape)
        self._limit = limit
        self._elements: dict[int, Elements] = {}
        self._starts: list[int] = [0]
        self._sources: list[int] = []
        self._read: dict[int, int] = {}
        self.zeros: set[int] = set()

    def elements(self, variable: int) -> Elements:
        """Handles of the elements of a variable of the tape that is read."""
        found = self._elements.get(variable)
        if found is None:
            found = self._elements[variable] = self._source(variable)
        return found

    def _source(self, variable: int) -> Elements:
        """Handles for an input or a constant: nothing is read before it is used."""
        type = self.tape.types[variable]
        if not type.shape:
            return np.array(self[variable], np.int64)
        if type.size > _LARGEST_SOURCE:
            raise Unsuitable
        start = self._starts[-1]
        self._starts.append(start + type.size)
        self._sources.append(variable)
        return -1 - (start + np.arange(type.size, dtype=np.int64)).reshape(type.shape)

    def variables(self, elements: Elements) -> list[int]:
        """Variables of elements, in C order; those not read before are read now."""
        return [handle if handle >= 0 else self._element(handle) for handle in elements.ravel().tolist()]

    def _element(self, handle: int) -> int:
        found = self._read.get(handle)
        if found is None:
            self._count()
            found = self._read[handle] = self._fetch(-1 - handle)
        return found

    def _fetch(self, position: int) -> int:
        number = bisect.bisect_right(self._starts, position) - 1
        source = self._sources[number]
        type = self.tape.types[source]
        where = np.unravel_index(position - self._starts[number], type.shape)
        index = tuple(int(entry) for entry in where)
        if source in self.tape.constants:
            return self._constant(np.asarray(self.tape.constants[source])[index])
        return self.emit("getitem", (self[source],), {"index": index}, TensorType(type.dtype))

    def _constant(self, value: Any) -> int:
        found = self.builder.constant(value)
        if value == 0 and not np.signbit(value):
            self.zeros.add(found)
        return found

    def scalar(self, variable: int) -> int:
        """The variable of a 0-d value."""
        if self.tape.types[variable].shape:
            raise Unsuitable
        found = self.mapping.get(variable)
        if found is None:
            (found,) = self.variables(self.elements(variable))
            self.bind(variable, found)
        return found

    def _count(self, number: int = 1) -> None:
        self._limit -= number
        if self._limit < 0:
            raise Unsuitable

    def apply(self, op: Op, name: str | None, operands: Sequence[int], type: TensorType) -> int:
        """One scalar op."""
        self._count()
        return self.emit(op.primitive if name is None else name, operands, op.static if name is None else (), type)

    def add(self, op: Op) -> None:
        """Unroll one op of the tape that is read."""
        self.builder.location = op.location
        type = self.tape.types[op.result]
        if op.primitive.elementwise:
            found = _elementwise(self, op, type)
        elif op.name in MOVES:
            found = _move(self, op, type)
        elif op.name in _UNROLLED:
            found = _UNROLLED[op.name](self, op, type)
        else:
            raise Unsuitable
        if found.shape != type.shape:
            raise Unsuitable
        self._elements[op.result] = found
        if not type.shape and (handle := int(found)) >= 0:
            self.bind(op.result, handle)


def _elementwise(unrolling: Unrolling, op: Op, type: TensorType) -> Elements:
    unrolling._count(type.size)
    unrolling._limit += type.size
    operands = [
        unrolling.variables(np.broadcast_to(unrolling.elements(operand), type.shape)) for operand in op.operands
    ]
    element = TensorType(type.dtype, (), type.weak)
    found = [unrolling.apply(op, None, each, element) for each in zip(*operands, strict=True)]
    return np.array(found, np.int64).reshape(type.shape)


def _move(unrolling: Unrolling, op: Op, type: TensorType) -> Elements:
    gathers = _gathers(unrolling, op)
    moved = op.operands[: len(op.operands) - len(gathers)]
    if type.size > _LARGEST_MOVED or any(
        unrolling.tape.types[operand].dtype != type.dtype for operand in moved
    ):
        raise Unsuitable
    handles = [unrolling.elements(operand) for operand in moved]
    return np.asarray(op.primitive.function(*handles, *gathers, **dict(op.static)))


def _gathers(unrolling: Unrolling, op: Op) -> list[Any]:
    """Constant index arrays of an indexed read or write."""
    if op.name not in ("getitem", "setitem"):
        return []
    count = sum(entry is GATHER for entry in op.keyword("index"))
    arrays = op.operands[len(op.operands) - count :] if count else ()
    if any(operand not in unrolling.tape.constants for operand in arrays):
        raise Unsuitable
    return [unrolling.tape.constants[operand] for operand in arrays]


def _scatter(unrolling: Unrolling, op: Op, type: TensorType) -> Elements:
    if type.size > _LARGEST_SOURCE:
        raise Unsuitable
    zero = unrolling._constant(type.dtype.type(0))
    found = np.full(type.shape, zero, np.int64)
    flat = found.reshape(-1)
    numbers = np.arange(type.size).reshape(type.shape) if type.size <= _LARGEST_MOVED else None
    rest = iter(op.operands)
    element = TensorType(type.dtype)
    for index in op.keyword("indices"):
        piece = next(rest)
        arrays = [unrolling.tape.constants.get(next(rest)) for entry in index if entry is GATHER]
        if any(array is None for array in arrays) or unrolling.tape.types[piece].dtype != type.dtype:
            raise Unsuitable
        if numbers is not None:
            places = np.asarray(numbers[to_numpy(index, arrays)])
        elif all(isinstance(entry, int) for entry in index):
            places = np.array(np.ravel_multi_index(index, type.shape))
        else:
            raise Unsuitable
        handles = np.broadcast_to(unrolling.elements(piece), places.shape).ravel().tolist()
        for place, handle in zip(places.ravel().tolist(), handles, strict=True):
            before = int(flat[place])
            if before == zero:
                flat[place] = handle
            else:
                pair = unrolling.variables(np.array([before, handle]))
                flat[place] = unrolling.apply(op, "add", pair, element)
    return found


def _reduced(unrolling: Unrolling, op: Op) -> list[list[int]]:
    """Variables of the elements that each element of a reduction's result is made from."""
    (operand,) = op.operands
    if unrolling.tape.types[operand].dtype != unrolling.tape.types[op.result].dtype:
        raise Unsuitable
    elements = unrolling.elements(operand)
    axes = op.keyword("axis")
    order = [axis for axis in range(elements.ndim) if axis not in axes]
    unrolling._count(elements.size)
    unrolling._limit += elements.size
    count = math.prod(elements.shape[axis] for axis in axes)
    rows = elements.transpose(*order, *axes).reshape(-1, count)
    return [unrolling.variables(row) for row in rows]


def _chain(name: str, neutral: float | None) -> Callable[[Unrolling, Op, TensorType], Elements]:
    def reduce(unrolling: Unrolling, op: Op, type: TensorType) -> Elements:
        element = TensorType(type.dtype)
        found = []
        for row in _reduced(unrolling, op):
            if not row and neutral is None:
                raise Unsuitable
            found.append(
                _folded(unrolling, op, name, row, element)
                if row
                else unrolling._constant(type.dtype.type(neutral))
            )
        return np.array(found, np.int64).reshape(type.shape)

    return reduce


def _folded(unrolling: Unrolling, op: Op, name: str, row: Sequence[int], element: TensorType) -> int:
    """One value from many; long sums in eight strands, as NumPy adds, so that they are as accurate."""
    if name == "add" and len(row) >= 8:
        return _strands(unrolling, op, row, element)
    total = row[0]
    for variable in row[1:]:
        total = unrolling.apply(op, name, (total, variable), element)
    return total


def _strands(unrolling: Unrolling, op: Op, row: Sequence[int], element: TensorType) -> int:
    if len(row) > 128:
        half = len(row) // 2
        half -= half % 8
        return unrolling.apply(
            op,
            "add",
            (_strands(unrolling, op, row[:half], element), _strands(unrolling, op, row[half:], element)),
            element,
        )
    whole = len(row) - len(row) % 8
    level = [_sequential(unrolling, op, row[start:whole:8], element) for start in range(8)]
    while len(level) > 1:
        level = [unrolling.apply(op, "add", pair, element) for pair in zip(level[::2], level[1::2], strict=True)]
    return _sequential(unrolling, op, [level[0], *row[whole:]], element)


def _sequential(unrolling: Unrolling, op: Op, row: Sequence[int], element: TensorType) -> int:
    total = row[0]
    for variable in row[1:]:
        total = unrolling.apply(op, "add", (total, variable), element)
    return total


def _cumulate(name: str) -> Callable[[Unrolling, Op, TensorType], Elements]:
    def cumulate(unrolling: Unrolling, op: Op, type: TensorType) -> Elements:
        (operand,) = op.operands
        if unrolling.tape.types[operand].dtype != type.dtype:
            raise Unsuitable
        moved = np.moveaxis(unrolling.elements(operand), op.keyword("axis"), -1)
        unrolling._count(moved.size)
        found = np.empty(moved.shape, np.int64)
        for place in np.ndindex(moved.shape[:-1]):
            row = unrolling.variables(moved[place])
            for position, variable in enumerate(row[1:], start=1):
                row[position] = unrolling.apply(op, name, (row[position - 1], variable), TensorType(type.dtype))
            found[place] = row
        return np.moveaxis(found, -1, op.keyword("axis"))

    return cumulate


def _matmul(unrolling: Unrolling, op: Op, type: TensorType) -> Elements:
    left, right = (unrolling.elements(operand) for operand in op.operands)
    letters = {(1, 1): "i,i->", (2, 1): "ij,j->i", (1, 2): "i,ij->j", (2, 2): "ij,jk->ik"}
    subscripts = letters.get((left.ndim, right.ndim))
    if subscripts is None:
        raise Unsuitable
    return _contract(unrolling, op, type, subscripts)


def _einsum(unrolling: Unrolling, op: Op, type: TensorType) -> Elements:
    return _contract(unrolling, op, type, op.keyword("subscripts"))


def _contract(unrolling: Unrolling, op: Op, type: TensorType, subscripts: str) -> Elements:
    """Sums of products over the letters that the result lacks."""
    if any(unrolling.tape.types[operand].dtype != type.dtype for operand in op.operands):
        raise Unsuitable
    operands = [unrolling.elements(operand) for operand in op.operands]
    inputs, output = subscripts.replace(" ", "").split("->")
    terms = inputs.split(",")
    extents = {
        letter: n for term, array in zip(terms, operands, strict=True) for letter, n in zip(term, array.shape, strict=True)
    }
    summed = [letter for letter in extents if letter not in output]
    unrolling._count(math.prod(extents.values()))
    unrolling._limit += math.prod(extents.values())
    element = TensorType(type.dtype)
    found = np.empty(type.shape, np.int64)
    for place in np.ndindex(*type.shape):
        at = dict(zip(output, place, strict=True))
        row = []
        for inner in np.ndindex(*(extents[letter] for letter in summed)):
            at.update(zip(summed, inner, strict=True))
            handles = [array[tuple(at[x] for x in term)] for term, array in zip(terms, operands, strict=True)]
            row.append(_product(unrolling, op, unrolling.variables(np.array(handles)), element))
        if not row:
            raise Unsuitable
        found[place] = _folded(unrolling, op, "add", row, element)
    return found


def _product(unrolling: Unrolling, op: Op, factors: Iterable[int], element: TensorType) -> int:
    first, *rest = factors
    for factor in rest:
        first = unrolling.apply(op, "multiply", (first, factor), element)
    return first


_UNROLLED: dict[str, Callable[[Unrolling, Op, TensorType], Elements]] = {
    "scatter": _scatter,
    "sum": _chain("add", 0.0),
    "prod": _chain("multiply", 1.0),
    "max": _chain("maximum", None),
    "min": _chain("minimum", None),
    "cumsum": _cumulate("add"),
    "cumprod": _cumulate("multiply"),
    "matmul": _matmul,
    "einsum": _einsum,
}
