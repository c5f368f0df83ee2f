"""Implicit functions: adjoints by a linear system of the derivative of the equation that a result solves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from yota.errors import DifferentiationError
from yota.ir.catalog import item_of, primitive
from yota.ir.infer import sample
from yota.ir.inputs import Input, Leaf
from yota.ir.tape import Op, Tape, TapeBuilder
from yota.ir.types import TensorType
from yota.optimize import dce
from yota.rules.algebras.emitted import Static, expand
from yota.rules.language.model import Rule
from yota.rules.registry import Registry
from yota.tracing.record import record
from yota.transform.batching.op_batching import batched
from yota.transform.reverse.loop_adjoints import zeros_like
from yota.transform.reverse.unbroadcast import match

Reverse: TypeAlias = Callable[..., tuple["int | None", ...]]
"""`yota.transform.reverse.backward.reverse`, which calls what is here."""
_FEW = 6
"""Rows of a matrix up to which each has code of its own."""


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
        self,
        name: str,
        builder: TapeBuilder,
        registry: Registry,
        op: Op,
        adjoints: Mapping[int, int],
        active: set[int],
        reverse: Reverse,
    ) -> list[tuple[int, int]]:
        """Operands of ``op``, which gives the solution, with their adjoints; ``adjoints`` are those of its results."""
        for number in adjoints:
            if number != self.solution and number not in self.results and number not in self.constant:
                reason = self.reasons.get(number, f"result {number}")
                raise DifferentiationError(f"{name}: {reason} has no derivative; use the solution itself")
        solution = item_of(builder, op.result, self.solution) if op.primitive.several else op.result
        given = [solution]
        for kind, number in self.given:
            given.append(op.operands[number] if kind == "operand" else item_of(builder, op.result, number))
        inlined = emitted(builder, self.tape, given)
        # One variable may be several operands; `reverse` gives the whole adjoint of each.
        operands = dict.fromkeys(op.operands[number] for kind, number in self.given if kind == "operand")
        wrt = [each for each in operands if each in active]
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
            weight = self._weight(name, builder, registry, inlined, given, slope, reverse)
            equation = inlined.outputs[0]
            rest = list(reverse(inlined, builder, {equation: weight}, wrt, registry))
            found += [(each, total) for each, total in zip(wrt, rest, strict=True) if total is not None]
        return [(each, match(builder, total, builder.types[each])) for each, total in found]

    def _weight(
        self,
        name: str,
        builder: TapeBuilder,
        registry: Registry,
        inlined: Tape,
        given: Sequence[int],
        slope: int,
        reverse: Reverse,
    ) -> int:
        """The adjoint of the equation: minus that of the solution, divided by the equation's derivative."""
        solution, equation = builder.types[given[0]], builder.types[inlined.outputs[0]]
        single = self.elementwise or solution.size == 1
        matrix = emitted(builder, jacobian(self.tape, registry, reverse, single=single, what=name), given).outputs[0]
        static = {"what": name, "elementwise": single}
        matrix = builder.emit(primitive("regular"), (matrix, inlined.outputs[0], given[0]), static)

        def divided(slope: Any, matrix: Any) -> Any:
            found = -slope / matrix if single else np.linalg.solve(matrix.T, np.reshape(-slope, (solution.size,)))
            return np.reshape(found, equation.shape).astype(equation.dtype)

        tape = taped(divided, [builder.types[slope], builder.types[matrix]], registry)
        return emitted(builder, tape, [slope, matrix]).outputs[0]


def equation_adjoints(
    builder: TapeBuilder,
    registry: Registry,
    rule: Rule,
    op: Op,
    adjoints: Mapping[int, int],
    active: set[int],
    reverse: Reverse,
) -> list[tuple[int, int]]:
    """The adjoints of the operands of ``op``, whose result solves the equation of its rule; see `Implicit.adjoints`.

    Raises DifferentiationError for complex arrays: the equation may not be analytic.
    """
    assert rule.equation is not None
    name, types = rule.target or rule.name, [builder.types[each] for each in (op.result, *op.operands)]
    if any(each.is_complex for each in types):
        raise DifferentiationError(f"{name} has no derivative here: its @implicit rule is for real arrays")
    own = TapeBuilder(name)
    solution, *given = [own.input(each, number, "") for number, each in enumerate(types)]
    names: dict[str, Any] = {key: Static(value) for key, value in op.static}
    names |= dict(zip((each.name for each in rule.operands), given, strict=True)) | {rule.results[0]: solution}
    rest = expand(rule.equation, names, own, registry)
    if own.types[rest].size != types[0].size:
        raise DifferentiationError(
            f"the equation of {name} ({rule.file}:{rule.line}) has the shape {own.types[rest].shape}, and its result "
            f"{types[0].shape}: there are as many equations as unknowns"
        )
    implicit = Implicit(own.finish([rest]), [("operand", number) for number in range(len(given))])
    return implicit.adjoints(name, builder, registry, op, adjoints, active, reverse)


def jacobian(
    tape: Tape, registry: Registry, reverse: Reverse, by: int = 0, *, single: bool = False, what: str = ""
) -> Tape:
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
