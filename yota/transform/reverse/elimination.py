"""Jacobians of scalar tapes, entry by entry: variables are eliminated from the graph of partials, in the best order.

Each op is a vertex, each partial an edge. To eliminate a vertex is to connect what it is computed from with what is
computed from it: the chain rule. From the inputs on that is forward mode, from the outputs on reverse mode, and any
other order is right too. A. Griewank and A. Walther, "Evaluating Derivatives" (2nd ed., 2008), chapter 9.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from yota.ir.catalog import primitive
from yota.ir.tape import Op, Tape, TapeBuilder
from yota.rules.registry import Registry
from yota.transform.reverse.instantiate import contribution, partial
from yota.transform.reverse.masking import choice

ALONG = 0
"""The column of derivatives along a direction: no variable has this number."""
_MOST_OPERATIONS = 200_000
_W = TypeVar("_W")


def partials(
    builder: TapeBuilder,
    tape: Tape,
    outputs: Sequence[int],
    columns: Iterable[int],
    registry: Registry,
    direction: Mapping[int, int] | None = None,
    symmetric: Mapping[int, int] | None = None,
) -> Partials | None:
    """The partials of all ops between ``columns`` and ``outputs``, all scalars, on ``builder``, which holds ``tape``.

    With ``direction``, a variable for each of ``columns``, there is one column, `ALONG`, of derivatives along it. With
    ``symmetric``, the number of each column, only entries on the diagonal and above it are computed.

    None where the derivative is no product of numbers: of ops on complex numbers that are not holomorphic.
    """
    edges = _edges(builder, tape, outputs, frozenset(columns), registry)
    if edges is None:
        return None
    for column, component in (direction or {}).items():
        weight = _constant(builder, component)
        edges[column] = {} if weight is None else {ALONG: weight}
    return Partials(builder, registry, edges, len(outputs), symmetric or {})


class Partials:
    """The graph of partials of a tape.

    orders: in which variables may be eliminated: ``"forward"`` from the inputs on, ``"reverse"`` from the outputs on,
        ``"cheapest"`` with the variable first that takes the fewest products at that moment.
    vertices: number of variables to eliminate.
    """

    orders = ("forward", "reverse", "cheapest")

    def __init__(
        self,
        builder: TapeBuilder,
        registry: Registry,
        edges: Mapping[int, Mapping[int, _Weight]],
        count: int,
        numbers: Mapping[int, int],
    ) -> None:
        self._builder, self._registry, self._edges, self._count = builder, registry, edges, count
        self._numbers = numbers
        inner = sorted(vertex for vertex in edges if vertex >= 0)
        self.vertices = len(inner)
        self._orders = {"forward": inner, "reverse": inner[::-1], "cheapest": None}

    def work(self, order: str, most: int = _MOST_OPERATIONS) -> int:
        """Number of operations that an order takes; more than ``most`` are not counted."""
        kinds = {
            vertex: {other: each.kind(self._builder) for other, each in row.items()}
            for vertex, row in self._edges.items()
        }
        algebra = _Counting(most)
        with suppress(_TooMany):
            _Elimination(kinds, algebra, self._numbers).run(self._orders[order])
        return algebra.count

    def entries(self, order: str, most: int = _MOST_OPERATIONS) -> list[dict[int, int]] | None:
        """Eliminate all variables between; for each output its nonzero columns; None above ``most`` operations."""
        emitting = _Emitting(self._builder, self._registry, most)
        try:
            found = _Elimination(self._edges, emitting, self._numbers).run(self._orders[order])
        except _TooMany:
            return None
        self._builder.location = None
        return [
            {column: emitting.value(weight) for column, weight in found[-1 - number].items()}
            for number in range(self._count)
        ]


class _TooMany(Exception):
    """There are too many operations."""


@dataclass(frozen=True, slots=True)
class _Weight:
    """An edge: a sign, times a variable, or times what an adjoint rule does; neither is 1."""

    sign: int = 1
    variable: int | None = None
    rule: tuple[Op, int] | None = None

    def kind(self, builder: TapeBuilder) -> int:
        """0 for 1 and -1, 1 for other constants, 2 for the rest."""
        if self.rule is not None:
            return 2
        return 0 if self.variable is None else 1 if self.variable in builder.constants else 2


def _edges(
    builder: TapeBuilder, tape: Tape, outputs: Sequence[int], columns: frozenset[int], registry: Registry
) -> dict[int, dict[int, _Weight]] | None:
    """The graph of partials between ``columns`` and ``outputs``, which are the vertices -1, -2 and so on."""
    active = set(columns)
    for op in tape.ops:
        if tape.types[op.result].differentiable and not active.isdisjoint(op.operands):
            active.add(op.result)
    needed = {variable for variable in outputs if variable in active}
    edges: dict[int, dict[int, _Weight]] = {}
    for op in reversed(tape.ops):
        if op.result in needed and op.result not in columns:
            needed.update(operand for operand in op.operands if operand in active)
    for op in tape.ops:
        if op.result in needed and op.result not in columns:
            builder.location = op.location
            row = _row(builder, tape, op, active, registry)
            if row is None:
                return None
            edges[op.result] = row
    for number, variable in enumerate(outputs):
        edges[-1 - number] = {variable: _Weight()} if variable in active else {}
    return edges


def _row(builder: TapeBuilder, tape: Tape, op: Op, active: set[int], registry: Registry) -> dict[int, _Weight] | None:
    """The partials of one op by its operands."""
    row: dict[int, _Weight] = {}
    algebra = _Emitting(builder, registry)
    for position, operand in enumerate(op.operands):
        if operand not in active:
            continue
        found = partial(builder, registry, op, position)
        if tape.types[operand].is_complex and not (found is not None and _is_holomorphic(tape, op)):
            return None
        # An adjoint by a real number is real, and what it is the adjoint of need not be.
        if found is None and any(tape.types[each].is_complex for each in tape.outputs):
            return None
        weight = _Weight(rule=(op, position)) if found is None else _constant(builder, found)
        if weight is not None:
            row[operand] = algebra.plus(row[operand], weight) if operand in row else weight
    return row


def _is_holomorphic(tape: Tape, op: Op) -> bool:
    return tape.types[op.result].is_complex and op.name != "sign"


def _constant(builder: TapeBuilder, variable: int) -> _Weight | None:
    """A partial as a weight; None for 0."""
    value = builder.constants.get(variable)
    if isinstance(value, (bool, int, float)):
        if value == 0:
            return None
        if abs(value) == 1:
            return _Weight(1 if value > 0 else -1)
    return _Weight(1, variable)


class _Algebra(Protocol[_W]):
    """Products and sums of edges."""

    def times(self, left: _W, right: _W) -> _W: ...

    def plus(self, left: _W, right: _W) -> _W: ...


class _Counting:
    """Edges of which only the kind is known; counts the operations that they would take."""

    def __init__(self, most: int) -> None:
        self.count, self.most = 0, most

    def times(self, left: int, right: int) -> int:
        self.count += left + right > 2
        if self.count > self.most:
            raise _TooMany
        return max(left, right)

    def plus(self, left: int, right: int) -> int:
        self.count += max(left, right) > 1
        return max(left, right, 1)


class _Emitting:
    """Edges whose products and sums go onto a tape."""

    def __init__(self, builder: TapeBuilder, registry: Registry, most: int = _MOST_OPERATIONS) -> None:
        self.builder, self.registry, self.longest = builder, registry, len(builder.ops) + most

    def times(self, left: _Weight, right: _Weight) -> _Weight:
        if len(self.builder.ops) > self.longest:
            raise _TooMany
        if right.rule is not None:
            left, right = right, left
        if left.rule is not None:
            op, position = left.rule
            found = contribution(self.builder, self.registry, op, position, {0: self.value(right)})
            return _Weight(left.sign, self.builder.constant(0.0) if found is None else found)
        sign = left.sign * right.sign
        if left.variable is None or right.variable is None:
            return _Weight(sign, right.variable if left.variable is None else left.variable)
        for one, other in ((left.variable, right.variable), (right.variable, left.variable)):
            chosen = choice(self.builder, one)
            if chosen is not None:
                found = self.builder.emit(primitive("multiply"), (chosen.inner, other))
                return _Weight(sign, chosen.of(self.builder, found))
        return _Weight(sign, self.builder.emit(primitive("multiply"), (left.variable, right.variable)))

    def plus(self, left: _Weight, right: _Weight) -> _Weight:
        if left.sign == right.sign:
            operands = (self._unsigned(left), self._unsigned(right))
            return _Weight(left.sign, self.builder.emit(primitive("add"), operands))
        if left.sign < 0:
            left, right = right, left
        return _Weight(1, self.builder.emit(primitive("subtract"), (self._unsigned(left), self._unsigned(right))))

    def value(self, weight: _Weight) -> int:
        if weight.variable is None and weight.rule is None:
            return self.builder.constant(float(weight.sign))
        found = self._unsigned(weight)
        return found if weight.sign > 0 else self.builder.emit(primitive("negative"), (found,))

    def _unsigned(self, weight: _Weight) -> int:
        if weight.rule is not None:
            found = self.times(_Weight(rule=weight.rule), _Weight()).variable
            assert found is not None
            return found
        return self.builder.constant(1.0) if weight.variable is None else weight.variable


class _Elimination(Generic[_W]):
    """A graph of which one inner vertex after the other is eliminated.

    Where columns have ``numbers``, entries of an output by a column before its own are left out.
    """

    def __init__(
        self, edges: Mapping[int, Mapping[int, _W]], algebra: _Algebra[_W], numbers: Mapping[int, int]
    ) -> None:
        self.numbers = numbers
        self.edges = {vertex: dict(row) for vertex, row in edges.items()}
        self.algebra = algebra
        # Unlike sets, dicts keep their order: what is generated is deterministic.
        self.users: dict[int, dict[int, None]] = {}
        for vertex, row in self.edges.items():
            for other in row:
                self.users.setdefault(other, {})[vertex] = None

    def run(self, order: Sequence[int] | None) -> dict[int, dict[int, _W]]:
        """Eliminate in ``order``, or, without one, the cheapest vertex first; the edges that are left."""
        for vertex in self._cheapest() if order is None else order:
            self._eliminate(vertex)
        return self.edges

    def _eliminate(self, vertex: int) -> None:
        row = self.edges.pop(vertex)
        for user in self.users.pop(vertex, ()):
            target = self.edges[user]
            weight = target.pop(vertex)
            for other, inner in row.items():
                if user < 0 and self.numbers.get(other, -user) < -1 - user:
                    continue
                product = self.algebra.times(weight, inner)
                target[other] = self.algebra.plus(target[other], product) if other in target else product
                self.users[other][user] = None
        for other in row:
            del self.users[other][vertex]

    def _cheapest(self) -> Iterable[int]:
        """Markowitz's order: by the number of products that each vertex takes now."""
        queue = [(self._price(vertex), vertex) for vertex in self.edges if vertex >= 0]
        heapq.heapify(queue)
        while queue:
            price, vertex = heapq.heappop(queue)
            if vertex not in self.edges:
                continue
            found = self._price(vertex)
            if found > price:
                heapq.heappush(queue, (found, vertex))
                continue
            near = [each for each in (*self.edges[vertex], *self.users.get(vertex, ())) if each in self.edges]
            yield vertex
            for each in near:
                if each >= 0:
                    heapq.heappush(queue, (self._price(each), each))

    def _price(self, vertex: int) -> int:
        return len(self.edges[vertex]) * len(self.users.get(vertex, ()))
