"""The NumPy target: a tape becomes one Python function over NumPy arrays, or over Python floats."""

from __future__ import annotations

from yota.codegen import scalar, symbolic
from yota.codegen.contract import as_products
from yota.codegen.lower import Lowering
from yota.codegen.render import render
from yota.codegen.targets.base import Source
from yota.ir.tape import Tape
from yota.passes.fuse import fuse

__all__ = ["generate"]


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
    exact = _cone(tape) if strict else frozenset()
    tape = as_products(tape, exact)
    lowering = Lowering(tape, fuse(tape, exact), exact)
    plan = lowering.plan()
    text = render("numpy/module.py.jinja", plan=plan)
    return Source(text, plan.name, lowering.constants.objects, len(tape.guards))


def _cone(tape: Tape) -> frozenset[int]:
    """Variables on which the first output depends."""
    wanted = set(tape.outputs[:1])
    for op in reversed(tape.ops):
        if op.result in wanted:
            wanted.update(op.operands)
    return frozenset(wanted)
