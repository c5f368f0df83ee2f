"""Newton's method for what an equation of a rule defines, as primitives."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from yota.ir.primitive import Emitter
from yota.rules.algebras.emitted import Emitted, expand
from yota.rules.algebras.symbolic import slope_of
from yota.rules.inspection import Registered
from yota.rules.model import Call, Expression, Literal, Name, Rule

STEPS = 16
"""So many steps are taken; a start from which they do not lead to a root gives NaN."""
_STEP, _SLOPE = "last step", "slope before"
"""Stand for the last step, and the slope before it, among a rule's names, of which none has a space."""
_ULPS = 8
"""Twice the error, in units of the precision, that a root may have."""


def newton(rule: Rule, names: Mapping[str, Any], emitter: Emitter, registry: Registered) -> Any:
    """The root, from the rule's start; NaN where the last step is not small, or changes the slope too much.

    The error after a step is about the step times half of the relative change of the slope. At a multiple root, and
    where there is none, the slope changes as much as it is large, however small the steps are.
    """
    assert rule.start is not None
    assert rule.equation is not None
    result = rule.results[0]
    slope = slope_of(rule.equation, result, registry)
    step = Call("divide", (rule.equation, slope))

    def written(expression: Expression, root: Any, **others: Any) -> Any:
        return expand(expression, {**names, result: root, **others}, emitter, registry)

    # A number stays Python's, so that it takes the precision of the operands.
    before = root = moved = Emitted(emitter, registry).of(rule.start, names)
    for _ in range(STEPS):
        before, moved = root, written(step, root)
        root = written(Call("subtract", (Name(result), Name(_STEP))), root, **{_STEP: moved})
    precision = emitter.type(root).dtype
    eps = float(np.finfo(precision if precision.kind == "f" else np.float64).eps)
    return written(_settled(result, slope, eps), root, **{_STEP: moved, _SLOPE: written(slope, before)})


def _settled(result: str, slope: Expression, eps: float) -> Expression:
    step, root = (Call("absolute", (Name(name),)) for name in (_STEP, result))
    changed = Call("absolute", (Call("subtract", (slope, Name(_SLOPE))),))
    small = Call("less_equal", (step, Call("multiply", (Literal(math.sqrt(eps)), root))))
    least = Call("multiply", (Call("multiply", (Literal(_ULPS * eps), root)), Call("absolute", (slope,))))
    exact = Call("less_equal", (Call("multiply", (step, changed)), least))
    return Call("where", (Call("logical_and", (small, exact)), Name(result), Literal(math.nan)))
