"""Law: the numbers in a rule can be computed, and at once."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from yota.ir.catalog import primitive as built_in
from yota.rules.inspection import Inspection
from yota.rules.model import Call, Expression, Literal
from yota.rules.statics import arithmetic

__all__ = ["bounds"]

_EXPONENT = 1024


def bounds(case: Inspection) -> None:
    """Numbers can be computed: no overflow, no division by zero, no exponent beyond 1024."""
    for side in case.sides():
        _fold(case, side.expression)


def _fold(case: Inspection, expression: Expression) -> Any:
    """Value of a constant expression, or None."""
    if isinstance(expression, Literal):
        return expression.value
    if not isinstance(expression, Call):
        return None
    values = [_fold(case, argument) for argument in expression.arguments]
    for _, argument in expression.keywords:
        _fold(case, argument)
    if expression.function == "power" and len(values) == 2:
        _check_exponent(case, expression, values[1])
    numbers = [value for value in values if isinstance(value, (int, float, complex))]
    if len(numbers) < len(values) or not values or expression.keywords:
        return None
    try:
        with np.errstate(all="ignore"):
            found = arithmetic(expression.function, tuple(values))
            if found is NotImplemented:
                found = built_in(expression.function).function(*values).item()
        if isinstance(found, (int, float, complex)) and not math.isfinite(abs(found)) and _finite(values):
            raise OverflowError("the result is not finite")
    except (ArithmeticError, ValueError) as fault:
        raise case.fault(expression, f"this number cannot be computed: {fault}", write="oo, or a number") from None
    except (KeyError, TypeError, AttributeError):
        return None
    return found


def _finite(values: list[Any]) -> bool:
    return all(math.isfinite(abs(value)) for value in values)


def _check_exponent(case: Inspection, call: Call, exponent: Any) -> None:
    if isinstance(exponent, (int, float)) and abs(exponent) > _EXPONENT:
        raise case.fault(call, f"the exponent is larger than {_EXPONENT}", write="exp(p * log(x)), if that is meant")
