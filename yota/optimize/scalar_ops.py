"""How each primitive acts on arrays of scalar variables, element by element."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

import numpy as np

from yota.ir.access_maps import letters, pieces
from yota.ir.indexing import pieces_of, to_numpy
from yota.ir.semantics import CONTRACTIONS, MOVES, AccessMap
from yota.ir.tape import Op
from yota.ir.types import TensorType
from yota.optimize.unroll import FUNCTIONS, LARGEST_SOURCE, Elements, Unrolling, Unsuitable

_LARGEST_MOVED = 65536


def unroll(unrolling: Unrolling, op: Op) -> None:
    """Unroll one op of the tape that is read."""
    unrolling.builder.location = op.location
    type = unrolling.tape.types[op.result]
    if op.primitive.elementwise and not type.shape:
        # What a long scalar tape consists of: no arrays of one handle are made.
        operands = [unrolling.scalar(each) for each in op.operands]
        unrolling.bind(op.result, unrolling.apply(op, None, operands, type))
        return
    if op.primitive.elementwise:
        found = _elementwise(unrolling, op, type)
    else:
        rule = _UNROLLED.get(op.access) or FUNCTIONS.get(op.name)
        if rule is None:
            raise Unsuitable
        found = rule(unrolling, op, type)
    unrolling.settle(op, found)


def _elementwise(unrolling: Unrolling, op: Op, type: TensorType) -> Elements:
    unrolling.require(type.size)
    operands = [
        unrolling.variables(np.broadcast_to(unrolling.elements(operand), type.shape)) for operand in op.operands
    ]
    element = TensorType(type.dtype, (), type.weak)
    found = [unrolling.apply(op, None, each, element) for each in zip(*operands, strict=True)]
    return np.array(found, np.int64).reshape(type.shape)


def _move(unrolling: Unrolling, op: Op, type: TensorType) -> Elements:
    """NumPy's own function moves the handles; index arrays are constants."""
    gathers = [unrolling.tape.constants.get(op.operands[each]) for _, arrays, _ in pieces(op) for each in arrays]
    if any(each is None for each in gathers):
        raise Unsuitable
    moved = op.operands[: len(op.operands) - len(gathers)]
    if type.size > _LARGEST_MOVED:
        raise Unsuitable
    handles = [cast(unrolling, op, operand, type) for operand in moved]
    return np.asarray(op.primitive.function(*handles, *gathers, **dict(op.static)))


def cast(unrolling: Unrolling, op: Op, variable: int, type: TensorType) -> Elements:
    """Handles of the elements of an operand, in the dtype of ``type``."""
    found = unrolling.elements(variable)
    if unrolling.tape.types[variable].dtype == type.dtype:
        return found
    element, converted = TensorType(type.dtype), []
    for each in unrolling.variables(found):
        value = unrolling.builder.constants.get(each)
        if value is not None:
            converted.append(unrolling.constant(type.dtype.type(value)))
        else:
            unrolling.require(1)
            converted.append(unrolling.emit("astype", (each,), {"dtype": type.dtype}, element))
    return np.array(converted, np.int64).reshape(found.shape)


def _item(unrolling: Unrolling, op: Op, type: TensorType) -> Elements:
    return np.asarray(unrolling.elements(op.operands[0])[op.keyword("index")])


def _scatter(unrolling: Unrolling, op: Op, type: TensorType) -> Elements:
    if type.size > LARGEST_SOURCE:
        raise Unsuitable
    zero = unrolling.constant(type.dtype.type(0))
    found = np.full(type.shape, zero, np.int64)
    flat = found.reshape(-1)
    numbers = np.arange(type.size).reshape(type.shape) if type.size <= _LARGEST_MOVED else None
    element = TensorType(type.dtype)
    for piece, variables, index in pieces_of(op.operands, op.keyword("indices")):
        arrays = [unrolling.tape.constants.get(each) for each in variables]
        if any(array is None for array in arrays) or unrolling.tape.types[piece].dtype != type.dtype:
            raise Unsuitable
        if numbers is not None:
            places = np.asarray(numbers[to_numpy(index, arrays)])
        elif len(place := [entry for entry in index if isinstance(entry, int)]) == len(index):
            places = np.array(np.ravel_multi_index(tuple(place), type.shape))
        else:
            raise Unsuitable
        handles = np.broadcast_to(unrolling.elements(piece), places.shape).ravel().tolist()
        for at, handle in zip(places.ravel().tolist(), handles, strict=True):
            before = int(flat[at])
            if before == zero:
                flat[at] = handle
            else:
                pair = unrolling.variables(np.array([before, handle]))
                flat[at] = unrolling.apply(op, "add", pair, element)
    return found


def _reduce(unrolling: Unrolling, op: Op, type: TensorType) -> Elements:
    (operand,) = op.operands
    if unrolling.tape.types[operand].dtype != type.dtype:
        raise Unsuitable
    elements, axes = unrolling.elements(operand), op.keyword("axis")
    order = [axis for axis in range(elements.ndim) if axis not in axes]
    unrolling.require(elements.size)
    count = math.prod(elements.shape[axis] for axis in axes)
    kept = math.prod(elements.shape[axis] for axis in order)
    rows = [unrolling.variables(row) for row in elements.transpose(*order, *axes).reshape(kept, count)]
    element, name = TensorType(type.dtype), op.semantics.fold
    if count:
        found = [_folded(unrolling, op, name, row, element) for row in rows]
    elif (neutral := getattr(np, name).identity) is None:
        raise Unsuitable
    else:
        found = [unrolling.constant(type.dtype.type(neutral)) for _ in rows]
    return np.array(found, np.int64).reshape(type.shape)


def _folded(unrolling: Unrolling, op: Op, name: str, row: Sequence[int], element: TensorType) -> int:
    """One value from many; long sums in eight strands, as NumPy adds, so that they are as accurate."""
    if name == "add" and len(row) >= 8:
        return _strands(unrolling, op, row, element)
    return _sequential(unrolling, op, name, row, element)


def _strands(unrolling: Unrolling, op: Op, row: Sequence[int], element: TensorType) -> int:
    if len(row) > 128:
        half = len(row) // 2
        half -= half % 8
        pair = [_strands(unrolling, op, part, element) for part in (row[:half], row[half:])]
        return unrolling.apply(op, "add", pair, element)
    whole = len(row) - len(row) % 8
    level = [_sequential(unrolling, op, "add", row[start:whole:8], element) for start in range(8)]
    while len(level) > 1:
        level = [unrolling.apply(op, "add", pair, element) for pair in zip(level[::2], level[1::2], strict=True)]
    return _sequential(unrolling, op, "add", [level[0], *row[whole:]], element)


def _sequential(unrolling: Unrolling, op: Op, name: str, row: Sequence[int], element: TensorType) -> int:
    return functools.reduce(lambda total, each: unrolling.apply(op, name, (total, each), element), row)


def _cumulate(unrolling: Unrolling, op: Op, type: TensorType) -> Elements:
    (operand,) = op.operands
    if unrolling.tape.types[operand].dtype != type.dtype:
        raise Unsuitable
    moved = np.moveaxis(unrolling.elements(operand), op.keyword("axis"), -1)
    unrolling.require(moved.size)
    found, element = np.empty(moved.shape, np.int64), TensorType(type.dtype)
    for place in np.ndindex(moved.shape[:-1]):
        row = unrolling.variables(moved[place])
        for position, variable in enumerate(row[1:], start=1):
            row[position] = unrolling.apply(op, op.semantics.fold, (row[position - 1], variable), element)
        found[place] = row
    return np.moveaxis(found, -1, op.keyword("axis"))


def _contract(unrolling: Unrolling, op: Op, type: TensorType) -> Elements:
    """Sums of products over the letters that the result lacks."""
    operands = [cast(unrolling, op, operand, type) for operand in op.operands]
    terms, output = letters(op, [each.ndim for each in operands])
    if op.access == AccessMap.MATMUL and max(each.ndim for each in operands) > 2:
        raise Unsuitable  # many products of matrices
    extents: dict[str, int] = {}
    for term, array in zip(terms, operands, strict=True):
        extents.update(zip(term, array.shape, strict=True))
    summed = [letter for letter in extents if letter not in output]
    unrolling.require(math.prod(extents.values()))
    element = TensorType(type.dtype)
    found = np.empty(type.shape, np.int64)
    for place in np.ndindex(*type.shape):
        at = dict(zip(output, place, strict=True))
        row = []
        for inner in np.ndindex(*(extents[letter] for letter in summed)):
            at.update(zip(summed, inner, strict=True))
            handles = [array[tuple(at[x] for x in term)] for term, array in zip(terms, operands, strict=True)]
            row.append(_sequential(unrolling, op, "multiply", unrolling.variables(np.array(handles)), element))
        if not row:
            raise Unsuitable
        found[place] = _folded(unrolling, op, "add", row, element)
    return found


_UNROLLED: dict[str, Callable[[Unrolling, Op, TensorType], Elements]] = {
    **dict.fromkeys(MOVES, _move),
    AccessMap.ITEM: _item,
    AccessMap.SCATTER: _scatter,
    AccessMap.REDUCTION: _reduce,
    AccessMap.SCAN: _cumulate,
    **dict.fromkeys(CONTRACTIONS, _contract),
}
