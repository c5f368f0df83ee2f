"""The NumPy target: a tape becomes one Python function over NumPy arrays, or over Python floats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from yota.emit.python import scalar
from yota.emit.python.function_plan import FunctionPlan
from yota.emit.python.loop_functions import arranged
from yota.emit.python.lower import Lowering
from yota.emit.python.storage import Storage
from yota.emit.render import render
from yota.emit.targets.generated import FIXED, Opening, Source, work
from yota.ir.tape import Tape
from yota.optimize import interchange
from yota.optimize.blocked_chains import Blocks
from yota.optimize.polynomials import symbolic
from yota.optimize.rewrite import cone
from yota.schedule.blocked.fuse import fuse
from yota.schedule.blocked.units import Unit

_BLOCKS = Blocks(4096, 16384, 1 << 22)
"""Elements for which a loop does all trips at once."""


@dataclass(frozen=True, slots=True)
class Lowered:
    """What a tape became on its way to source.

    tape: the tape whose variables the lines of the plan compute.
    objects: what the source uses by name without spelling it out.
    units: what runs as one; empty for scalar code.
    storage: where arrays live; None for scalar code.
    """

    tape: Tape
    plan: FunctionPlan | scalar.ScalarPlan
    objects: Mapping[str, Any]
    units: tuple[Unit, ...] = ()
    storage: Storage | None = None


def generate(tape: Tape, *, strict: bool = False, values: int = 1, opening: Opening = FIXED) -> Source:
    """Source of a function that computes the outputs of a simplified tape, of which the first ``values`` are values."""
    if not strict:
        tape = interchange.run(tape, _BLOCKS, values=values)
    tape = symbolic.optimise(tape, strict=strict, values=values)
    if opening is FIXED and scalar.is_scalar(tape):
        return scalar.scalar_source(tape, strict=strict)
    found, plan = _arrays(tape, strict, opening)
    text = render("numpy/module.py.jinja", plan=plan)
    return Source(text, plan.name, found.objects, len(tape.guards), operations=work(found.units))


def plan(tape: Tape, *, strict: bool = False) -> FunctionPlan | scalar.ScalarPlan:
    """What the templates are given, to be looked at; the arguments are those of `generate`."""
    return lowered(tape, strict=strict).plan


def lowered(tape: Tape, *, strict: bool = False) -> Lowered:
    """The plan of a tape, with what it was made from; the arguments are those of `generate`."""
    tape = symbolic.optimise(tape, strict=strict)
    if scalar.is_scalar(tape):
        made = scalar.plan_scalar(tape, strict=strict)
        return Lowered(tape, made, made.constants)
    return _arrays(tape, strict)[0]


def _arrays(tape: Tape, strict: bool, opening: Opening = FIXED) -> tuple[Lowered, FunctionPlan]:
    exact = frozenset(cone(tape, tape.outputs[:1])) if strict else frozenset()
    tape = arranged(tape, exact)
    units = fuse(tape, exact)
    lowering = Lowering(tape, units, exact, opening=opening)
    plan = lowering.plan()
    return Lowered(tape, plan, lowering.constants.objects, units, lowering.storage), plan
