"""The NumPy target: a tape becomes one Python function over NumPy arrays, or over Python floats."""

from __future__ import annotations

from yota.codegen import scalar, symbolic
from yota.codegen.contract import as_products
from yota.codegen.lower import Lowering
from yota.codegen.plan import FunctionPlan
from yota.codegen.render import render
from yota.codegen.targets.base import Source
from yota.ir.tape import Tape
from yota.passes.fuse import fuse

__all__ = ["generate", "plan"]


def generate(tape: Tape, *, strict: bool = False) -> Source:
    """Source of a function that computes the tape's outputs from its inputs.

    Parameters
    ----------
    tape
        A simplified tape.
    strict
        Compute the first output exactly as NumPy does for the function that was traced.
    """
    tape = symbolic.optimise(tape, strict=strict)
    if scalar.is_scalar(tape):
        return scalar.scalar_source(tape, strict=strict)
    lowering = _lowering(tape, strict)
    made = lowering.plan()
    text = render("numpy/module.py.jinja", plan=made)
    return Source(text, made.name, lowering.constants.objects, len(tape.guards))


def plan(tape: Tape, *, strict: bool = False) -> FunctionPlan | scalar.ScalarPlan:
    """What the templates are given, to be looked at; the arguments are those of `generate`."""
    tape = symbolic.optimise(tape, strict=strict)
    return scalar.plan_scalar(tape, strict=strict) if scalar.is_scalar(tape) else _lowering(tape, strict).plan()


def _lowering(tape: Tape, strict: bool) -> Lowering:
    exact = _cone(tape) if strict else frozenset()
    tape = as_products(tape, exact)
    return Lowering(tape, fuse(tape, exact), exact)


def _cone(tape: Tape) -> frozenset[int]:
    """Variables on which the first output depends."""
    wanted = set(tape.outputs[:1])
    for op in reversed(tape.ops):
        if op.result in wanted:
            wanted.update(op.operands)
    return frozenset(wanted)
