"""Newton's method for what an equation of a rule defines, as primitives."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from yota.ir.primitive import Emitter
from yota.rules.algebras.emitted import expand
from yota.rules.algebras.symbolic import slope_of
from yota.rules.inspection import Registered
from yota.rules.model import Call, Expression, Literal, Name, Rule

__all__ = ["STEPS", "newton"]

STEPS = 16
"""So many steps are taken; a start from which they do not lead to a root gives NaN."""
_STEP = "last step"
"""Stands for the step among a rule's names, of which none has a space."""


def newton(rule: Rule, names: Mapping[str, Any], emitter: Emitter, registry: Registered) -> Any:
    """The root, from the rule's start; NaN where the last step is not small.

    A step is small at the root of the machine's precision: the error that is left is about its square.
    """
    assert rule.start is not None
    assert rule.equation is not None
    result = rule.results[0]
    step = Call("divide", (rule.equation, slope_of(rule.equation, result, registry)))

    def written(expression: Expression, root: Any, moved: Any = None) -> Any:
        return expand(expression, {**names, result: root, _STEP: moved}, emitter, registry)

    root = written(rule.start, None)
    moved = root
    for _ in range(STEPS):
        moved = written(step, root)
        root = written(Call("subtract", (Name(result), Name(_STEP))), root, moved)
    precision = emitter.type(root).dtype
    near = float(np.sqrt(np.finfo(precision if precision.kind == "f" else np.float64).eps))
    return written(_settled(result, near), root, moved)


def _settled(result: str, near: float) -> Expression:
    least = Call("multiply", (Literal(near), Call("absolute", (Name(result),))))
    small = Call("less_equal", (Call("absolute", (Name(_STEP),)), least))
    return Call("where", (small, Name(result), Literal(math.nan)))
