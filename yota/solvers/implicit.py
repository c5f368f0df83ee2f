"""What a solver finds as an op of the tape, with the derivative of the implicit function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from yota.errors import ArgumentError, DifferentiationError
from yota.ir.catalog import item_of, primitive
from yota.ir.infer import sample
from yota.ir.inputs import Input, Leaf
from yota.ir.tape import Op, Tape, TapeBuilder
from yota.ir.types import TensorType, type_of
from yota.optimize import dce
from yota.rules.registry import Registry
from yota.solvers.inner import Inner, Missing
from yota.tracing.current import current, paused
from yota.tracing.record import record
from yota.transform.batching.op_batching import batched
from yota.transform.reverse.backward import reverse, zeros_like
from yota.transform.reverse.unbroadcast import match

_FEW = 6
"""Rows of a matrix up to which each has code of its own."""


@dataclass(frozen=True, eq=False)
class Solution:
    """What one run of a solver gave.

    ended: how it ended, as whole numbers that code may decide by.
    """

    arrays: Sequence[Any]
    ended: Sequence[int]
    whole: Any


class Host:
    """A call of a solver, at each run of the tape.

    run: calls it, with the functions, their slopes and the values of further operands.
    chosen: which branch holds at the solution.
    """

    def __init__(self, name: str, inner: Inner, run: Callable[..., Solution]) -> None:
        self.name = self.__name__ = name
        self._inner, self._run = inner, run
        self.registry = None if inner.trace is None else inner.trace.registry
        self.types: tuple[TensorType, ...] = ()
        self.chosen = 0

    def __repr__(self) -> str:
        return f"<{self.name}>"

    def __reduce__(self) -> Any:
        """Refuse to be pickled, as part of a tape or of what was compiled.

        Raises
        ------
        ArgumentError
            In any case.
        """
        raise ArgumentError(
            f"{self.name} is on this tape, with functions of this process; pickle the derivative, such as "
            "yota.value_and_grad(f), which another process traces anew"
        )

    def on(self, target: Any) -> Host:
        """The call as it is in code for a target."""
        return self

    def solve(self, values: Sequence[Any] | None, others: Sequence[Any]) -> Solution:
        """Call the solver, where what its functions read has these values."""
        with paused():
            inner = self._inner
            called = [each.at(values) for each in inner.functions] + [each.at(values) for each in inner.slopes]
            return self._run(called, *others)

    def branch(self, solution: Solution, values: Sequence[Any]) -> int:
        """Which branch of the first function holds at the solution."""
        return 0

    def __call__(self, *operands: Any) -> tuple[Any, ...]:
        """The arrays, how it ended, and which branch holds at the solution: -1 for one that was not recorded."""
        count = len(self._inner.read)
        values, others = operands[:count], operands[count:]
        try:
            found = self.solve(values, others)
            results = (*found.arrays, *found.ended, self.branch(found, values))
        except Missing:
            results = ()
        if [np.shape(each) for each in results] != [type.shape for type in self.types]:
            return *(np.zeros(each.shape, each.dtype) for each in self.types[:-1]), -1
        return tuple(_cast(each, type) for each, type in zip(results, self.types, strict=True))

    def recorded(self, others: Sequence[Any]) -> tuple[Solution, list[Any]]:
        """Call the solver, and record that; what it gave, and the arrays as traced values."""
        trace = self._inner.trace
        assert trace is not None
        variables = [trace.lift(each) for each in others]
        found = self.solve(None, [trace.values[each] for each in variables])
        last = [*map(int, found.ended), self.branch(found, self._inner.values())]
        self.chosen = last[-1]
        results = (*(np.array(each) if np.ndim(each) else each for each in found.arrays), *last)
        self.types = tuple(map(type_of, results))
        operands = (*map(trace.lift, self._inner.read), *variables)
        traced = trace.record(primitive("solved"), operands, {"host": self}, results)
        for each, value in zip(traced[len(found.arrays) :], last, strict=True):
            trace.decide(trace.lift(each), "solver", value)
        self._inner.trace = None
        return found, list(traced[: len(found.arrays)])

    def adjoints(
        self,
        builder: TapeBuilder,
        registry: Registry,
        op: Op,
        adjoints: Mapping[int, int],
        active: set[int],
        reverse: Callable[..., Any],
    ) -> list[tuple[int, int]]:
        """Operands with their adjoints, appended to ``builder``; ``adjoints`` are those of results by number."""
        raise DifferentiationError(f"{self.name} has no derivative")


@dataclass(eq=False)
class Implicit:
    """An equation, and what else is computed at its solution.

    tape: takes the solution, what the functions of the solver read, and results of the solver; its first output is zero
        at the solution, the others are results of the solver.
    given: the operands, and then the results, by number, that the tape takes after the solution.
    results: the result that each further output is.
    elementwise: whether each element of the equation is for the element of the solution in its place.
    constant: results whose derivative is zero.
    solution: the result that is the solution.
    """

    tape: Tape
    given: Sequence[tuple[str, int]]
    results: Sequence[int] = ()
    elementwise: bool = False
    constant: frozenset[int] = frozenset()
    reasons: Mapping[int, str] = field(default_factory=dict)
    solution: int = 0

    def adjoints(
        self, name: str, builder: TapeBuilder, registry: Registry, op: Op, adjoints: Mapping[int, int], active: set[int]
    ) -> list[tuple[int, int]]:
        """See `Host.adjoints`."""
        for number in adjoints:
            if number != self.solution and number not in self.results and number not in self.constant:
                reason = self.reasons.get(number, f"result {number}")
                raise DifferentiationError(f"{name}: {reason} has no derivative; use the solution itself")
        solution = item_of(builder, op.result, self.solution)
        given = [solution]
        for kind, number in self.given:
            given.append(op.operands[number] if kind == "operand" else item_of(builder, op.result, number))
        inlined = emitted(builder, self.tape, given)
        names = [(given[1 + k], op.operands[n]) for k, (kind, n) in enumerate(self.given) if kind == "operand"]
        wrt = [each for each, _ in names if each in active]
        found: list[tuple[int, int]] = []
        seeds: dict[int, int] = {}
        for output, number in zip(inlined.outputs[1:], self.results, strict=True):
            if number in adjoints:
                _seed(builder, seeds, output, match(builder, adjoints[number], builder.types[output]))
        slope = adjoints.get(self.solution)
        if seeds:
            more, *rest = reverse(inlined, builder, seeds, [solution, *wrt], registry)
            found += [(each, total) for each, total in zip(wrt, rest, strict=True) if total is not None]
            if more is not None:
                slope = more if slope is None else builder.emit(primitive("add"), (slope, more))
        if slope is not None and wrt:
            weight = self._weight(name, builder, registry, inlined, given, slope)
            equation = inlined.outputs[0]
            rest = list(reverse(inlined, builder, {equation: weight}, wrt, registry))
            found += [(each, total) for each, total in zip(wrt, rest, strict=True) if total is not None]
        return [(each, match(builder, total, builder.types[each])) for each, total in found]

    def _weight(
        self, name: str, builder: TapeBuilder, registry: Registry, inlined: Tape, given: Sequence[int], slope: int
    ) -> int:
        """The adjoint of the equation: minus that of the solution, divided by the equation's derivative."""
        solution, equation = builder.types[given[0]], builder.types[inlined.outputs[0]]
        single = self.elementwise or solution.size == 1
        matrix = emitted(builder, jacobian(self.tape, registry, single=single, what=name), given).outputs[0]
        static = {"what": name, "elementwise": single}
        matrix = builder.emit(primitive("regular"), (matrix, inlined.outputs[0], given[0]), static)

        def divided(slope: Any, matrix: Any) -> Any:
            found = -slope / matrix if single else np.linalg.solve(matrix.T, np.reshape(-slope, (solution.size,)))
            return np.reshape(found, equation.shape).astype(equation.dtype)

        tape = taped(divided, [builder.types[slope], builder.types[matrix]], registry)
        return emitted(builder, tape, [slope, matrix]).outputs[0]


def jacobian(tape: Tape, registry: Registry, by: int = 0, *, single: bool = False, what: str = "") -> Tape:
    """The derivative of the first output by an input: its elements where ``single``, or a matrix.

    Raises DifferentiationError if a row is zero anywhere, and the output is the equation of ``what``.
    """
    tape = replace(tape, outputs=tape.outputs[:1], guards=())
    (output,), solution = tape.outputs, tape.inputs[by].variable
    size, type = tape.types[output].size, tape.types[output]
    builder = tape.builder()

    def row(seed: int) -> int:
        (found,) = reverse(tape, builder, {output: seed}, [solution], registry)
        if found is None and what:
            raise DifferentiationError(
                f"the result of {what} has no derivative: an equation of {tape.name} only jumps as the solution moves"
            )
        found = zeros_like(builder, solution) if found is None else match(builder, found, builder.types[solution])
        if single:
            return found
        return builder.emit(primitive("reshape"), (found,), {"shape": (builder.types[solution].size,)})

    if single:
        return dce.run(builder.finish([row(constant(builder, type, np.ones(type.shape)))]))
    if size <= _FEW:
        rows = [row(constant(builder, type, unit)) for unit in _units(type)]
        return dce.run(builder.finish([builder.emit(primitive("stack"), rows, {"axis": 0})]))
    seed = builder.input(TensorType(type.dtype, type.shape), len(tape.inputs), "seed")
    one = dce.run(builder.finish([row(seed)]))
    many = batched(one, [None] * len(tape.inputs) + [0], type.size, [0])
    last = many.inputs[-1].variable
    return replace(many, inputs=many.inputs[:-1], constants={**many.constants, last: np.stack(_units(type))})


def _units(type: TensorType) -> list[Any]:
    return list(np.eye(type.size, dtype=type.dtype).reshape(type.size, *type.shape))


def constant(builder: TapeBuilder, type: TensorType, value: Any) -> int:
    """A constant of a type, as a variable."""
    array = np.asarray(value, type.dtype)
    array.flags.writeable = False
    return builder.constant(array if type.shape else array[()].item() if type.weak else array[()])


def _seed(builder: TapeBuilder, seeds: dict[int, int], variable: int, slope: int) -> None:
    known = seeds.get(variable)
    seeds[variable] = slope if known is None else builder.emit(primitive("add"), (known, slope))


def emitted(builder: TapeBuilder, tape: Tape, given: Sequence[int]) -> Tape:
    """The ops of ``tape``, appended to ``builder`` for these variables; as a tape with the builder's variables."""
    known: dict[int, int] = {}
    first = len(builder.ops)
    for entry, variable in zip(tape.inputs, given, strict=True):
        known[entry.variable] = match(builder, variable, tape.types[entry.variable])
    for variable, value in tape.constants.items():
        known[variable] = builder.constant_of(value, tape.types[variable])
    for op in tape.ops:
        operands = [known[operand] for operand in op.operands]
        known[op.result] = builder.emit(op.primitive, operands, op.static, tape.types[op.result])
    return replace(
        builder.finish([known[each] for each in tape.outputs]), ops=tuple(builder.ops[first:]), inputs=(), guards=()
    )


def taped(function: Callable[..., Any], types: Sequence[TensorType], registry: Any) -> Tape:
    """A function of traced values of these types as a tape; it decides nothing by their numbers, which are samples."""
    leaves = [Leaf(sample(each), number, f"c{number}") for number, each in enumerate(types)]
    with np.errstate(all="ignore"):
        tape = record(function, leaves, tuple, registry=registry).tape
    inputs = tuple(Input(each.variable, number, each.name) for number, each in enumerate(tape.inputs))
    return replace(tape, inputs=inputs, statics=())


def played(tape: Tape, given: Sequence[Any]) -> list[Any]:
    """The outputs of ``tape`` for traced values of `taped`."""
    trace = current()
    assert trace is not None
    found = emitted(trace.builder, tape, [trace.lift(each) for each in given])
    return [trace.wrap(each, sample(found.types[each])) for each in found.outputs]


def _cast(value: Any, type: TensorType) -> Any:
    if type.weak:
        return type.dtype.type(value).item()
    return np.array(value, type.dtype) if type.shape else type.dtype.type(value)
