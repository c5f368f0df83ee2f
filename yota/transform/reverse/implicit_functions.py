"""Implicit functions: adjoints by a linear system of the derivative of the equation that a result solves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from yota.errors import DifferentiationError
from yota.ir.catalog import item_of, primitive
from yota.ir.tape import Tape, TapeBuilder
from yota.rules.algebras.emitted import Static, expand
from yota.rules.language.model import Rule
from yota.transform.reverse.equation_systems import divided
from yota.transform.reverse.tape_parts import Reversal, emitted, match


@dataclass(eq=False)
class Implicit:
    """An equation, and what else is computed at its solution.

    tape: takes the solution, what the functions of the solver read, and results of the solver; its first output is zero
        at the solution, the others are results of the solver.
    given: what the tape takes after the solution: operands and results by number, and variables of the builder.
    results: the result that each further output is.
    elementwise: whether each element of the equation is for the element of the solution in its place.
    constant: results whose derivative is zero.
    solution: the result that is the solution.
    solve: how the adjoint's linear system is solved: ``"dense"``, ``"sparse"`` or ``"gmres"``; empty for what suits the
        pattern and the size of the matrix.
    """

    tape: Tape
    given: Sequence[tuple[str, int]]
    results: Sequence[int] = ()
    elementwise: bool = False
    constant: frozenset[int] = frozenset()
    reasons: Mapping[int, str] = field(default_factory=dict)
    solution: int = 0
    solve: str = ""

    def adjoints(self, name: str, at: Reversal) -> list[tuple[int, int]]:
        """Operands of the op, which gives the solution, with their adjoints."""
        builder, op, adjoints = at.builder, at.op, at.adjoints
        for number in adjoints:
            if number != self.solution and number not in self.results and number not in self.constant:
                reason = self.reasons.get(number, f"result {number}")
                raise DifferentiationError(f"{name}: {reason} has no derivative; use the solution itself")
        solution = item_of(builder, op.result, self.solution) if op.primitive.several else op.result
        given = [solution]
        for kind, number in self.given:
            result = item_of(builder, op.result, number) if kind == "result" else number
            given.append(op.operands[number] if kind == "operand" else result)
        inlined = emitted(builder, self.tape, given)
        # One variable may be several operands; `reverse` gives the whole adjoint of each.
        operands = dict.fromkeys(op.operands[number] for kind, number in self.given if kind == "operand")
        wrt = [each for each in operands if each in at.active]
        found: list[tuple[int, int]] = []
        seeds: dict[int, int] = {}
        for output, number in zip(inlined.outputs[1:], self.results, strict=True):
            if number in adjoints:
                _seed(builder, seeds, output, match(builder, adjoints[number], builder.types[output]))
        slope = adjoints.get(self.solution)
        if seeds:
            more, *rest = at.reverse(inlined, builder, seeds, [solution, *wrt], at.registry)
            found += [(each, total) for each, total in zip(wrt, rest, strict=True) if total is not None]
            if more is not None:
                slope = more if slope is None else builder.emit(primitive("add"), (slope, more))
        if slope is not None and wrt:
            equation = inlined.outputs[0]
            weight = divided(name, at, self.tape, given, equation, slope, self.solve, self.elementwise)
            rest = list(at.reverse(inlined, builder, {equation: weight}, wrt, at.registry))
            if not any(total is not None for total in rest):
                # The solution stays where it is, if it is a regular one: the check is part of the zero.
                rest[0] = _nothing(builder, weight, wrt[0])
            found += [(each, total) for each, total in zip(wrt, rest, strict=True) if total is not None]
        return [(each, match(builder, total, builder.types[each])) for each, total in found]


def equation_adjoints(rule: Rule, at: Reversal) -> list[tuple[int, int]]:
    """The adjoints of the operands of an op whose result solves the equation of its rule; see `Implicit.adjoints`."""
    assert rule.equation is not None
    name, op = rule.target or rule.name, at.op
    types = [at.builder.types[each] for each in (op.result, *op.operands)]
    if any(each.is_complex for each in types):
        raise DifferentiationError(f"{name} has no derivative here: its @implicit rule is for real arrays")
    own = TapeBuilder(name)
    solution, *given = [own.input(each, number, "") for number, each in enumerate(types)]
    names: dict[str, Any] = {key: Static(value) for key, value in op.static}
    names |= dict(zip((each.name for each in rule.operands), given, strict=True)) | {rule.results[0]: solution}
    rest = expand(rule.equation, names, own, at.registry)
    if own.types[rest].size != types[0].size:
        raise DifferentiationError(
            f"the equation of {name} ({rule.file}:{rule.line}) has the shape {own.types[rest].shape}, and its result "
            f"{types[0].shape}: there are as many equations as unknowns"
        )
    places = [("operand", number) for number in range(len(given))]
    return Implicit(own.finish([rest]), places, solve=rule.solve).adjoints(name, at)


def _nothing(builder: TapeBuilder, weight: int, variable: int) -> int:
    """Zeros like ``variable`` that depend on ``weight``."""
    axes = tuple(range(builder.types[weight].ndim))
    total = builder.emit(primitive("sum"), (weight,), {"axis": axes, "keepdims": False}) if axes else weight
    zero = builder.emit(primitive("multiply"), (total, builder.constant(0.0)))
    return builder.emit(primitive("broadcast_to"), (zero,), {"shape": builder.types[variable].shape})


def _seed(builder: TapeBuilder, seeds: dict[int, int], variable: int, slope: int) -> None:
    known = seeds.get(variable)
    seeds[variable] = slope if known is None else builder.emit(primitive("add"), (known, slope))
