"""Computes single elements of a tape's variables by going back through the ops that made them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from yota.emit.c.dialect import computed_in
from yota.ir.access_maps import carried_axis, viewed
from yota.ir.indexing import Index as ArrayIndex
from yota.ir.indexing import pattern_shape
from yota.ir.semantics import VIEWS, AccessMap
from yota.ir.tape import Op, Tape
from yota.ir.types import is_uniform
from yota.schedule.nests.index_patterns import gathered_extents, place
from yota.schedule.nests.linear_index import (
    Bounds,
    Linear,
    Point,
    UnreachableError,
    Values,
    by_place,
    flat,
    piece_of,
    pieces_at,
    reshaped,
    spread,
    within,
)

Request: TypeAlias = tuple[int, Point]
Made: TypeAlias = tuple[list[Request], Callable[[list[int]], int]]

_MOST_PICKED = 64
"""Elements that may be added by index arrays in straight code."""
_BOOLEAN = np.dtype(bool)


class Pull:
    """Elements at one kind of point.

    limit: how many values may be made.
    strides: strides of arrays that are not in C order, in elements.
    visited: variables that were gone through.
    folded: extents of the axes that sums were written out over.
    places: index arrays among the arguments, with the extents of the axes that they are places on.
    """

    def __init__(
        self,
        tape: Tape,
        definitions: dict[int, Op],
        leaves: frozenset[int],
        bounds: Bounds,
        limit: int,
        strides: Mapping[int, Sequence[int]] | None = None,
    ) -> None:
        self.tape, self.leaves, self.limit = tape, leaves, limit
        self.bounds = dict(bounds)
        self.values = Values()
        self.visited: dict[int, int] = {}
        self.folded: set[int] = set()
        self.places: dict[int, int] = {}
        self._uniform: dict[int, Any] = {}
        self._singles: dict[int, Mapping[tuple[int, ...], Sequence[int]] | None] = {}
        self._definitions, self._strides = definitions, strides or {}
        self._memo: dict[Request, int] = {}

    def at(self, variable: int, point: Point) -> int:
        """The value at ``point`` of ``variable``."""
        first = (variable, point)
        stack: list[tuple[Request, Made | None]] = [(first, None)]
        memo = self._memo
        while stack:
            request, made = stack.pop()
            if request in memo:
                continue
            if made is None:
                try:
                    made = self._made(*request)
                except UnreachableError as error:
                    error.variable = request[0]
                    raise
                missing = [each for each in made[0] if each not in memo]
                if missing:
                    stack.append((request, made))
                    stack.extend((each, None) for each in reversed(missing))
                    continue
            found = made[1]([memo[each] for each in made[0]])
            memo[request] = found
            self._remember(request[0], found)
            if len(self.values) > self.limit:
                raise UnreachableError
        return memo[first]

    def place(self, variable: int, point: Point) -> Linear:
        """Where in memory an element lies, from the first one."""
        if variable not in self._strides:
            return flat(point, self.tape.types[variable].shape)
        total = Linear(0)
        for each, step in zip(point, self._strides[variable], strict=True):
            total += each.scaled(step)
        return total

    def fold(self, name: str, found: Sequence[int], dtype: Any) -> int:
        """Several values reduced to one by the ufunc ``name``."""
        total = found[0]
        for each in found[1:]:
            total = self.values.apply(name, (total, each), dtype)
        return total

    def _remember(self, variable: int, number: int) -> None:
        if variable in self.leaves or variable in self.tape.constants:
            return
        self.visited[variable] = self.visited.get(variable, 0) + 1
        op = self._definitions[variable]
        if self.values[number].kind == "apply":
            if op.location is not None:
                self.values.places.setdefault(number, op.location)
            if variable in self.tape.names:
                self.values.hints.setdefault(number, self.tape.names[variable])

    def _made(self, variable: int, point: Point) -> Made:
        tape, values = self.tape, self.values
        type = tape.types[variable]
        number = self._same_everywhere(variable)
        if number is not None:
            return [], lambda _: values.literal(number, type.dtype)
        if variable in self.leaves:
            return [], lambda _: values.load(variable, self.place(variable, point), type.dtype)
        if variable in tape.constants:
            # A number, or an array of one number: other arrays are leaves.
            number = np.asarray(tape.constants[variable]).reshape(-1)[0]
            return [], lambda _: values.literal(number, type.dtype)
        op = self._definitions[variable]
        if op.access == AccessMap.POSITIONS:
            where = _position(op, point)
            return [], lambda _: values.position(where)
        shape = tape.types[op.operands[0]].shape if op.operands else ()
        if op.primitive.elementwise:
            return self._elementwise(op, point)
        if op.access == AccessMap.REDUCTION:
            return self._reduction(op, point, shape)
        looked = self._looked_at(op, point, shape)
        if looked is not None:
            return _same(op.operands[0], looked)
        put_together = {
            AccessMap.STACK: self._joined,
            AccessMap.CONCATENATE: self._joined,
            AccessMap.SCATTER: self._scatter,
            AccessMap.WRITE: self._setitem,
        }.get(op.access)
        if put_together is None:
            raise UnreachableError
        return put_together(op, point)

    def _same_everywhere(self, variable: int) -> Any:
        """The number that all elements of a constant array are; None if they differ, or if it is none."""
        if variable not in self.tape.constants or not self.tape.types[variable].shape:
            return None
        if variable not in self._uniform:
            value = np.asarray(self.tape.constants[variable])
            self._uniform[variable] = value.reshape(-1)[0] if is_uniform(value) else None
        return self._uniform[variable]

    def _looked_at(self, op: Op, point: Point, shape: tuple[int, ...]) -> Point | None:
        """The element of the first operand that a view has at ``point``; None for what is no view."""
        access = op.access
        if access == AccessMap.READ:
            return self.gathered(point, op.keyword("index"), op.operands[1:], shape)
        if access == AccessMap.RESHAPE:
            found = reshaped(point, self.tape.types[op.result].shape, shape, self.bounds)
            if found is None:
                raise UnreachableError
            return found
        return viewed(op, point, shape, Linear(0)) if access in VIEWS else None

    def gathered(self, point: Point, index: ArrayIndex, arrays: Sequence[int], shape: Sequence[int]) -> Point:
        """The element of an array of ``shape`` that a gather has at ``point``, or that a scatter adds it to."""
        shapes = [self.tape.types[each].shape for each in arrays]
        _, looked = place(point, index, shapes)
        extents = gathered_extents(index, shape)
        numbers = [self._number(*each) for each in zip(arrays, looked, extents, strict=True)]
        return place(point, index, shapes, numbers)[0]

    def _number(self, array: int, where: Point, extent: int) -> Linear:
        """An element of an index array as a position."""
        op = self._definitions.get(array)
        if op is not None and op.access == AccessMap.POSITIONS:
            return _position(op, where)
        if array not in self.tape.constants:
            type = self.tape.types[array]
            axis = -1 - self.values.load(array, self.place(array, where), type.dtype)
            self.bounds[axis] = 0, extent
            self.places[array] = extent
            return Linear(0, ((axis, 1),))
        known = np.asarray(self.tape.constants[array])
        offset = flat(where, known.shape)
        if not offset.terms or is_uniform(known):
            return Linear(int(known.reshape(-1)[offset.constant]))
        axis = -1 - self.values.load(array, offset, known.dtype)
        self.bounds[axis] = int(known.min()), int(known.max()) + 1
        return Linear(0, ((axis, 1),))

    def _elementwise(self, op: Op, point: Point) -> Made:
        tape, values = self.tape, self.values
        types = [tape.types[operand] for operand in op.operands]
        result = tape.types[op.result]
        requests = [(v, spread(point, type.shape)) for v, type in zip(op.operands, types, strict=True)]
        if op.semantics.casts:
            return requests, lambda found: values.cast(found[0], result.dtype)
        dtype = computed_in(op.name, types, result)

        def apply(found: list[int]) -> int:
            if op.semantics.chooses:
                operands = [values.cast(found[0], _BOOLEAN), *(values.cast(each, dtype) for each in found[1:])]
            elif op.semantics.component == "imag" and not types[0].is_complex:
                return values.literal(0, result.dtype)
            else:
                operands = [values.cast(each, dtype) for each in found]
            return values.apply(op.name, operands, result.dtype)

        return requests, apply

    def _reduction(self, op: Op, point: Point, shape: tuple[int, ...]) -> Made:
        over = op.keyword("axis")
        axes = [carried_axis(op, shape, (), axis) for axis in range(len(shape))]
        self.folded.update(shape[axis] for axis in over if shape[axis] != 1)
        requests = []
        for lanes in itertools.product(*(range(shape[axis]) for axis in over)):
            fixed = iter(lanes)
            inner = tuple(Linear(next(fixed)) if axis is None else point[axis] for axis in axes)
            requests.append((op.operands[0], inner))
        if not requests:
            raise UnreachableError
        dtype = self.tape.types[op.result].dtype
        return requests, lambda found: self.fold(
            op.semantics.fold, [self.values.cast(each, dtype) for each in found], dtype
        )

    def _converted(self, op: Op, variable: int, point: Point) -> Made:
        dtype = self.tape.types[op.result].dtype
        return [(variable, point)], lambda found: self.values.cast(found[0], dtype)

    def _joined(self, op: Op, point: Point) -> Made:
        axis, stacks = op.keyword("axis"), op.access == AccessMap.STACK
        lengths = (1 if stacks else self.tape.types[each].shape[axis] for each in op.operands)
        cuts = list(itertools.accumulate(lengths, initial=0))
        number = piece_of(point[axis], cuts, self.bounds)
        inner = () if stacks else (point[axis].shifted(-cuts[number]),)
        return self._converted(op, op.operands[number], (*point[:axis], *inner, *point[axis + 1 :]))

    def _scatter(self, op: Op, point: Point) -> Made:
        dtype = self.tape.types[op.result].dtype
        indices = op.keyword("indices")
        if len(op.operands) != len(indices):
            return self._picked(op, point)
        if op.result not in self._singles:
            self._singles[op.result] = by_place(indices)
        requests = []
        for number in pieces_at(point, self._singles[op.result], range(len(indices))):
            inner = within(point, indices[number], self.bounds)
            if inner is not None:
                piece = op.operands[number]
                requests.append((piece, spread(inner, self.tape.types[piece].shape)))
        return requests, lambda found: self._total(found, dtype)

    def _total(self, found: list[int], dtype: Any) -> int:
        if not found:
            return self.values.literal(0, dtype)
        return self.fold("add", [self.values.cast(each, dtype) for each in found], dtype)

    def _picked(self, op: Op, point: Point) -> Made:
        """An element of a sum by index arrays, if it is known which: all that is added to it."""
        (index,) = op.keyword("indices")
        piece, *arrays = op.operands
        known = [self.tape.constants.get(each) for each in arrays]
        shapes = [self.tape.types[each].shape for each in arrays]
        total = pattern_shape(index, shapes)
        if (
            any(each is None for each in known)
            or any(each.terms for each in point)
            or int(math.prod(total)) > _MOST_PICKED
        ):
            raise UnreachableError
        requests = []
        for lane in itertools.product(*map(range, total)):
            where = tuple(map(Linear, lane))
            if self.gathered(where, index, arrays, self.tape.types[op.result].shape) == point:
                requests.append((piece, spread(where, self.tape.types[piece].shape)))
        return requests, lambda found: self._total(found, self.tape.types[op.result].dtype)

    def _setitem(self, op: Op, point: Point) -> Made:
        target, value, *arrays = op.operands
        if arrays:
            raise UnreachableError
        inner = within(point, op.keyword("index"), self.bounds)
        if inner is None:
            return _same(target, point)
        return self._converted(op, value, spread(inner, self.tape.types[value].shape))


def _position(op: Op, point: Point) -> Linear:
    """The element of an op of positions."""
    found = Linear(op.keyword("start"))
    for each, step in zip(point, op.keyword("steps"), strict=True):
        found += each.scaled(step)
    return found


def _same(variable: int, point: Point) -> Made:
    return [(variable, point)], lambda found: found[0]
