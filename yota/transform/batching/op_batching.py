"""Batching of a tape: each op gets one more axis, the first."""

from __future__ import annotations

import math
import string
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from yota.errors import ArgumentError, TracingError
from yota.ir.access_maps import letters
from yota.ir.catalog import primitive
from yota.ir.indexing import GATHER, NEWAXIS, Index, Slice, layout, pieces_of
from yota.ir.location import where
from yota.ir.semantics import CONTRACTIONS, JOINS, AccessMap
from yota.ir.tape import Guard, Op, Tape, TapeBuilder
from yota.ir.types import TensorType, TupleType
from yota.transform.batching.loop_batching import each_point, looped


def batched(tape: Tape, axes: Sequence[int | None], count: int, out_axes: Sequence[int | None]) -> Tape:
    """The tape for ``count`` points.

    tape: the tape for one point.
    axes: axis of the points in each input; None for shared inputs.
    out_axes: axis of the points in each output, negative from the end; None for shared outputs.
    Raises TracingError if a guard depends on the point and is of several numbers.
    """
    return Batching(tape, count).run(axes, out_axes)


class Batching:
    """A batched tape under construction."""

    def __init__(self, tape: Tape, count: int) -> None:
        self.tape, self.count = tape, count
        self.builder = TapeBuilder(tape.name)
        self.known: dict[int, int] = {}
        self.many: set[int] = set()
        self.loops: dict[int, tuple[int, ...]] = {}
        """Result variables of loops, and of ops with several results that a loop over points computes."""

    def run(self, axes: Sequence[int | None], out_axes: Sequence[int | None]) -> Tape:
        """Rewrite all ops. All points must branch as the recorded one did, which guards check."""
        tape, builder = self.tape, self.builder
        for entry, axis in zip(tape.inputs, axes, strict=True):
            type = tape.types[entry.variable]
            if axis is not None:
                self.many.add(entry.variable)
                type = TensorType(type.dtype, (*type.shape[:axis], self.count, *type.shape[axis:]))
            variable = builder.input(type, entry.argument, entry.name, entry.path)
            if axis:
                order = (axis, *range(axis), *range(axis + 1, type.ndim))
                variable = self.emit("transpose", (variable,), axes=order)
            self.known[entry.variable] = variable
        guards = list(tape.guards)
        for number, op in enumerate(tape.ops):
            # What follows may not compute for points that branch otherwise.
            while guards and guards[0].after <= number:
                self._guard(guards.pop(0))
            builder.location = op.location
            self._rewrite(op)
        for guard in guards:
            self._guard(guard)
        pairs = zip(tape.outputs, out_axes, strict=True)
        return builder.finish([self._output(variable, axis) for variable, axis in pairs])

    def _guard(self, guard: Guard) -> None:
        self.builder.location = guard.location
        if guard.variable in self.many:
            self.builder.guard(self._agreeing(guard), self.count, "points", signs=guard.signs)
        else:
            self.builder.guard(self.one(guard.variable), guard.expected, guard.kind, signs=guard.signs)

    def _agreeing(self, guard: Guard) -> int:
        """The number of points that branch as the recorded one did."""
        found, type = self.known[guard.variable], self.tape.types[guard.variable]
        if np.ndim(guard.expected) or type.shape or guard.expected != guard.expected:
            raise TracingError(
                f"{where(guard.location)}{self.tape.name} makes a decision of several numbers, or of NaN, for a point, "
                "which may differ between points; use np.where"
            )
        if guard.kind in ("bool", "hermitian") and type.dtype.kind != "b":
            found = self.emit("not_equal", (found, self.builder.constant(0)))
        elif guard.kind == "int" and type.dtype.kind == "f":
            found = self.emit("trunc", (found,))
        same = self.emit("equal", (found, self.builder.constant(guard.expected)))
        return self.emit("sum", (same,), axis=(0,), keepdims=False)

    def _output(self, variable: int, axis: int | None) -> int:
        if axis is None:
            if variable in self.many:
                raise ArgumentError(
                    f"out_axes=None is for results that all points share, and a result of {self.tape.name} differs"
                )
            return self.one(variable)
        found = self.as_many(variable)
        ndim = self.builder.types[found].ndim
        if not -ndim <= axis < ndim:
            raise ArgumentError(f"out_axes: a result of {self.tape.name} has {ndim} axes, and no axis {axis}")
        place = axis % ndim
        if place:
            return self.emit("transpose", (found,), axes=(*range(1, place + 1), 0, *range(place + 1, ndim)))
        return found

    def emit(self, name: str, operands: Sequence[int], **static: Any) -> int:
        """Append an op."""
        return self.builder.emit(primitive(name), operands, static)

    def one(self, variable: int) -> int:
        """The variable that replaces ``variable``, with or without the axis of points."""
        if variable not in self.known:
            self.known[variable] = self.builder.constant_of(self.tape.constants[variable], self.tape.types[variable])
        return self.known[variable]

    def as_many(self, variable: int, ndim: int | None = None) -> int:
        """A variable with the axis of points, and ``ndim`` further axes."""
        type, found = self.tape.types[variable], self.one(variable)
        ndim = type.ndim if ndim is None else ndim
        if variable not in self.many:
            shape = (self.count, *(1,) * (ndim - type.ndim), *type.shape)
            return self.emit("broadcast_to", (found,), shape=shape)
        if ndim > type.ndim:
            shape = (self.count, *(1,) * (ndim - type.ndim), *type.shape)
            return self.emit("reshape", (found,), shape=shape)
        return found

    def _rewrite(self, op: Op) -> None:
        if not any(operand in self.many for operand in op.operands):
            operands = [self.one(operand) for operand in op.operands]
            self.known[op.result] = self.builder.emit(op.primitive, operands, op.static, self.tape.types[op.result])
            self._name(op.result)
            return
        if op.regions:
            results = looped(self, op, batched)
            if results is not None:
                self.loops[op.result] = results
                self.many.add(op.result)
                return
        found = self._over_points(op)
        self.many.add(op.result)
        if found is None or not self._fits(found, self.tape.types[op.result]):
            found, *others = each_point(self, op)
            if isinstance(self.tape.types[op.result], TupleType):
                self.loops[op.result] = (found, *others)
                return
        self.known[op.result] = found
        self._name(op.result)

    def _fits(self, found: int, type: TensorType) -> bool:
        """Whether a variable, or each of several results, has one more axis than ``type``."""
        made = self.builder.types[found]
        if isinstance(type, TupleType):
            parts = made.parts if isinstance(made, TupleType) else ()
            return [part.shape for part in parts] == [(self.count, *part.shape) for part in type.parts]
        return made.shape == (self.count, *type.shape)

    def _name(self, variable: int) -> None:
        if variable in self.tape.names:
            self.builder.names.setdefault(self.known[variable], self.tape.names[variable])

    def _over_points(self, op: Op) -> int | None:
        if op.primitive.elementwise or op.primitive.several == "elementwise":
            type = self.tape.types[op.result]
            ndim = type.parts[0].ndim if isinstance(type, TupleType) else type.ndim
            return self.builder.emit(op.primitive, self.beside(op.operands, ndim), op.static)
        if op.operands and op.operands[0] in self.loops:
            return self.loops[op.operands[0]][int(op.keyword("index"))]
        if op.access == AccessMap.ITEM:
            return self.builder.emit(op.primitive, (self.one(op.operands[0]),), op.static)
        rule = _RULES.get(op.access) or _NAMED.get(op.name)
        if rule is not None:
            return rule(self, op)
        if op.semantics.batched:
            return self.builder.emit(op.primitive, [self.as_many(op.operands[0])], op.static)
        axis = op.keyword("axis")
        if op.access in _WHOLE or (isinstance(axis, int) and axis >= 0 and len(op.operands) == 1):
            return self.builder.emit(op.primitive, list(map(self.as_many, op.operands)), self.static(op))
        return None

    def beside(self, operands: Sequence[int], ndim: int) -> list[int]:
        """Operands that are broadcast together, with the axis of points before ``ndim`` axes."""
        return [self.as_many(each, ndim) if each in self.many else self.one(each) for each in operands]

    def static(self, op: Op) -> dict[str, Any]:
        """The static keywords of an access map, with the axis of points first."""
        ahead: dict[str, Callable[[Any], Any]] = {
            "axis": lambda axis: axis + 1 if isinstance(axis, int) else tuple(each + 1 for each in axis),
            "axes": lambda axes: (0, *(axis + 1 for axis in axes)),
            "shape": lambda shape: (self.count, *shape),
        }
        return {name: ahead[name](value) if name in ahead else value for name, value in op.static}


def _broadcast(batching: Batching, op: Op) -> int | None:
    operand = batching.as_many(op.operands[0], len(op.keyword("shape")))
    return batching.builder.emit(op.primitive, (operand,), batching.static(op))


def _getitem(batching: Batching, op: Op) -> int | None:
    source, *arrays = op.operands
    index, rank = op.keyword("index"), _rank(batching, arrays)
    front, _ = layout(index)
    if _has_masks(batching, arrays):
        return None
    if source in batching.many:
        index, given = _placed(batching, index, arrays)
        order = (0, *range(rank + 1, rank + 1 + front), *range(1, rank + 1)) if index[0] is GATHER else (0,)
    else:
        given = batching.beside(arrays, rank)
        order = (front, *range(front))
    found = batching.emit(op.name, (batching.one(source), *given), index=index)
    if order == tuple(range(len(order))):
        return found
    return batching.emit("transpose", (found,), axes=(*order, *range(len(order), batching.builder.types[found].ndim)))


def _setitem(batching: Batching, op: Op) -> int | None:
    source, value, *arrays = op.operands
    placed = _written(batching, op.keyword("index"), arrays)
    if placed is None:
        return None
    index, given, ndim = placed
    (written,) = batching.beside([value], ndim)
    return batching.emit(op.name, (batching.as_many(source), written, *given), index=index)


def _scatter(batching: Batching, op: Op) -> int | None:
    operands, indices = [], []
    for piece, arrays, index in pieces_of(op.operands, op.keyword("indices")):
        placed = _written(batching, index, arrays)
        if placed is None:
            return None
        indices.append(placed[0])
        operands += [batching.as_many(piece, placed[2]), *placed[1]]
    return batching.emit(op.name, operands, **{**batching.static(op), "indices": tuple(indices)})


def _written(batching: Batching, index: Index, arrays: Sequence[int]) -> tuple[Index, list[int], int] | None:
    """`_placed`, with the number of axes of the part for one point; None if it cannot be written for all at once."""
    if _has_masks(batching, arrays):
        return None
    placed, given = _placed(batching, index, arrays)
    if placed[0] is GATHER and layout(index)[0]:
        return None
    own = sum(isinstance(entry, Slice) or entry is NEWAXIS for entry in index)
    return placed, given, own + _rank(batching, arrays)


def _has_masks(batching: Batching, arrays: Sequence[int]) -> bool:
    return any(batching.tape.types[each].dtype.kind == "b" for each in arrays if each in batching.many)


def _rank(batching: Batching, arrays: Sequence[int]) -> int:
    """Number of axes of index arrays together."""
    return max((batching.tape.types[array].ndim for array in arrays), default=0)


def _placed(batching: Batching, index: Index, arrays: Sequence[int]) -> tuple[Index, list[int]]:
    """The index of a part for all points, with its arrays.

    The points are a slice if the axis of points comes first then. Otherwise their numbers are one more index array.
    """
    whole = Slice(0, batching.count)
    if batching.many.isdisjoint(arrays) and (not arrays or layout((whole, *index))[0] == layout(index)[0] + 1):
        return (whole, *index), [batching.one(each) for each in arrays]
    rank = _rank(batching, arrays)
    points = np.arange(batching.count).reshape(batching.count, *(1,) * rank)
    points.flags.writeable = False
    return (GATHER, *index), [batching.builder.constant(points), *batching.beside(arrays, rank)]


def _contraction(batching: Batching, op: Op) -> int | None:
    ndims = [batching.tape.types[operand].ndim for operand in op.operands]
    ndim = max(ndims)
    if op.access == AccessMap.MATMUL and min(ndims) > 1:
        return batching.builder.emit(op.primitive, batching.beside(op.operands, ndim))
    if op.access == AccessMap.MATMUL and ndim > 2:
        return None
    inputs, result = letters(op, ndims)
    free = next(letter for letter in string.ascii_letters[::-1] if letter not in "".join(inputs) + result)
    subscripts = [
        free + letters if operand in batching.many else letters
        for letters, operand in zip(inputs, op.operands, strict=True)
    ]
    operands = [batching.one(operand) for operand in op.operands]
    return batching.emit("einsum", operands, subscripts=f"{','.join(subscripts)}->{free}{result}")


def _solve(batching: Batching, op: Op) -> int | None:
    matrix, right = op.operands
    vector = batching.tape.types[right].ndim == 1
    b = batching.as_many(right)
    if vector:
        b = batching.emit("reshape", (b,), shape=(*batching.builder.types[b].shape, 1))
    found = batching.builder.emit(op.primitive, (batching.as_many(matrix), b), op.static)
    if vector:
        found = batching.emit("reshape", (found,), shape=batching.builder.types[found].shape[:-1])
    return found


def _linear(batching: Batching, op: Op) -> int | None:
    """A linear map, or a system of one matrix: the points are further right-hand sides."""
    place = op.primitive.name == "sparse_solve"
    others = [batching.one(each) for each in op.operands]
    right, ndim = op.operands[place], batching.tape.types[op.operands[place]].ndim
    if batching.many & {each for each in op.operands if each != right} or not 1 <= ndim <= 2:
        return None
    many = batching.as_many(right)
    shape = batching.builder.types[many].shape
    order = (*range(1, ndim + 1), 0)
    flat = batching.emit("transpose", (many,), axes=order)
    others[place] = batching.emit("reshape", (flat,), shape=(shape[1], math.prod(shape) // max(shape[1], 1)))
    found = batching.builder.emit(op.primitive, others, op.static)
    found = batching.emit("reshape", (found,), shape=tuple(shape[axis] for axis in order))
    return batching.emit("transpose", (found,), axes=(ndim, *range(ndim)))


def _hosted(batching: Batching, op: Op) -> int:
    """A function of another library, which its library batches."""
    axes = tuple(0 if operand in batching.many else None for operand in op.operands)
    operands = [batching.one(operand) for operand in op.operands]
    return batching.builder.emit(op.primitive, operands, {"host": op.keyword("host").over(axes)})


_RULES: dict[str, Callable[[Batching, Op], int | None]] = {
    AccessMap.BROADCAST: _broadcast,
    AccessMap.READ: _getitem,
    AccessMap.WRITE: _setitem,
    AccessMap.SCATTER: _scatter,
    **dict.fromkeys(CONTRACTIONS, _contraction),
}
_WHOLE = JOINS | {AccessMap.REDUCTION, AccessMap.RESHAPE, AccessMap.TRANSPOSE}
_NAMED: dict[str, Callable[[Batching, Op], int | None]] = {
    "hosted": _hosted,
    "hosted_vjp": _hosted,
    "solve": _solve,
    "sparse_solve": _linear,
    "linear_map": _linear,
}
