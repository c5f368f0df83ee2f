"""The entries of a matrix of derivatives: scalar code, or a few products of arrays."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from yota.emit.python.scalar import is_scalar
from yota.errors import ArgumentError, DifferentiationError, YotaError
from yota.ir.tape import Op
from yota.optimize import pipeline
from yota.rules.registry import registry
from yota.run.arguments import Arguments
from yota.run.derivatives.compressed import compressed
from yota.run.derivatives.directions import row_by_row, stacked
from yota.run.derivatives.straight_line import Entries, largest, short_hessian, slope_of, sloped, straight_line
from yota.run.gradient_layout import Wanted
from yota.run.specialise import Instead, Target
from yota.tracing.record import Recording

_LONG = 512
"""Number of elements above which a few array operations are preferred to scalar code."""
_MOST_TOGETHER = 1 << 16
"""Smallest array size for which all rows of a Hessian are computed together."""
_UNROLLED = 2
"""Length ratio of scalar code that was expanded from array code."""
_FEW, _LONG_CODE = 16, 2000
"""Largest number of Hessian rows computed without its pattern, one by one or at once, for gradients of so many ops."""


def entries(
    recorded: Recording, leaf: int, arguments: Arguments, wanted: Wanted, target: Target
) -> tuple[Entries, Mapping[int, Any]]:
    """The entries as scalar code, or as a few array products, and the inputs that the pattern depends on."""
    tape = recorded.tape
    if _LONG < tape.types[tape.inputs[leaf].variable].size > len(tape):
        with contextlib.suppress(DifferentiationError, ArgumentError):
            return _compressed(recorded, leaf, arguments, wanted)
    size = tape.types[tape.inputs[leaf].variable].size
    if wanted.order == 2 and not wanted.sparse and target.effort == "quick":
        if _are_scalar([op for op in tape.ops if op.regions]) and size <= _LONG:
            return row_by_row(sloped(tape, leaf, registry()), leaf, wanted, registry()), {}
        value = pipeline.run(tape, inlined=False, once=True)
        scalar = is_scalar(value, inlined=False)
        slope = slope_of(value, leaf, registry()) if scalar else None
        found = None
        if slope is not None and (len(slope) <= _LONG_CODE or size > _FEW):
            found = short_hessian(slope, leaf, wanted, registry())
        fell_apart = scalar and len(value) > _UNROLLED * len(tape)
        if found is None and (fell_apart or not scalar) and 0 < size * largest(tape) <= _MOST_TOGETHER:
            with contextlib.suppress(YotaError):
                return stacked(tape, leaf, wanted, registry()), {}
        if found is None and slope is not None and size <= _LONG and target.name != "cuda":
            return row_by_row(slope, leaf, wanted, registry()), {}
        if found is None and (scalar or size <= _FEW):
            raise Instead(0 if scalar else largest(tape), recorded.ran)
    else:
        found = straight_line(tape, leaf, wanted, registry(), target)
    if found is not None:
        return found, {}
    try:
        return _compressed(recorded, leaf, arguments, wanted)
    except (DifferentiationError, ArgumentError):
        if wanted.sparse:
            raise
        raise Instead(largest(tape), recorded.ran) from None


def _compressed(
    recorded: Recording, leaf: int, arguments: Arguments, wanted: Wanted
) -> tuple[Entries, Mapping[int, Any]]:
    """The entries of array code; each call checks the inputs that the pattern depends on."""
    variables = [entry.variable for entry in recorded.tape.inputs]
    leaves = dict(zip(variables, (each.value for each in arguments.leaves), strict=False))
    values = {
        variable: value
        for variable, value in {**leaves, **recorded.captured}.items()
        if variable in recorded.captured or not recorded.tape.types[variable].differentiable
    }
    found, relied = compressed(recorded.tape, leaf, wanted, registry(), values)
    return found, {variables.index(variable): np.array(values[variable]) for variable in relied}


def _are_scalar(loops: Sequence[Op]) -> bool:
    """Whether there are loops, and their trips compute with numbers."""
    return bool(loops) and all(is_scalar(op.keyword("region").body, inlined=False) for op in loops)
