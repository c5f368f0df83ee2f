"""Derivatives by differences, for functions that are known in double precision only."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from yota.rules.language.model import Domain, Rule
from yota.rules.laws.sampling import defaults

_STEPS = (4e-3, 2e-3, 1e-3)
"""Parts of the distance to the end of the domain, or to 0."""
_AGREEMENT = 1e-7
_ROUNDING = 2e-13
"""What the rounding of the function does to a difference with the shortest step."""
_WEIGHTS = ((-2, 1 / 12), (-1, -2 / 3), (1, 2 / 3), (2, -1 / 12))


_FIRST = 1 / 16
_MOST = 30
_TINY = tuple(2.0**-power for power in range(24, 30))


def noise(function: Callable[[float], float]) -> float:
    """How far apart rounding puts values of ``function`` near 0; a jump at 0 counts too.

    Over steps that are so short, a function is a straight line: half of a difference less the difference of half the
    step is what rounding made.
    """
    apart = [function(step) - function(-step) for step in _TINY]
    found = [abs(wide - 2 * narrow) for wide, narrow in itertools.pairwise(apart)]
    return max(float(np.median(found)), np.finfo(float).eps * abs(function(0.0)))


def slope_along(function: Callable[[float], float], rounding: float, rtol: float, atol: float) -> tuple[float, float]:
    """The derivative of ``function`` at 0, and an estimate of its error; the error is infinite where nothing is known.

    Central differences with ever shorter steps are extrapolated to the step 0. What the error of an extrapolation is,
    its distance from the two that it was made of tells; but none is better than the rounding of its values. It ends
    where the error is a tenth of what ``rtol`` and ``atol`` allow, or shorter steps only add rounding.

    C. J. F. Ridders, Accurate computation of F'(x) and F'(x)F''(x), Advances in Engineering Software 4(2), 1982;
    W. H. Press et al., Numerical Recipes, 3rd ed., section 5.7.
    """
    best, error = math.nan, math.inf
    row: list[float] = []
    for number in range(_MOST):
        step = _FIRST / 2**number
        above, row = row, [(function(step) - function(-step)) / (2 * step)]
        for order, coarser in enumerate(above, 1):
            finer = row[-1]
            row.append(finer + (finer - coarser) / (4.0**order - 1))
            estimate = max(abs(row[-1] - finer), abs(row[-1] - coarser)) + rounding / step
            # With long steps, differences may agree about a function that they do not resolve.
            if estimate <= error or abs(row[-1] - best) > 2 * (error + estimate):
                best, error = row[-1], estimate
        if error <= max(rounding / step, (atol + rtol * abs(best)) / 10):
            break
    return best, error


def slope(
    rule: Rule, result: str, name: str, point: Mapping[str, Any], function: Callable[..., Any]
) -> tuple[complex, float] | None:
    """Derivative of a result of ``function`` by an operand and its size, by differences of the fourth order.

    The size is at least a millionth of what the function would need to change by its own value. None if
    differences with other steps do not agree.

    B. Fornberg, Generation of finite difference formulas on arbitrarily spaced grids, Math. Comp. 51 (1988).
    """
    (domain,) = (each.domain or Domain("real") for each in rule.operands if each.name == name)
    middle = float(point[name])
    size = min(abs(middle) or 1.0, middle - domain.low, domain.high - middle)
    number = rule.results.index(result)

    def value(shift: float) -> complex:
        moved = {**point, name: middle + shift}
        given = [np.float64(each) if isinstance(each, float) else each for each in moved.values()]
        found = function(*given, **defaults(rule))
        return complex(found[number] if len(rule.results) > 1 else found)

    with np.errstate(all="ignore"):
        found = [
            sum(weight * value(step * size * place) for place, weight in _WEIGHTS) / (step * size) for step in _STEPS
        ]
        largest = max(abs(value(step * size)) for step in (0.0, *_STEPS))
    last = found[-1]
    if not math.isfinite(abs(last)):
        return None
    scale = max(abs(last), 1e-6 * largest / size)
    apart = _AGREEMENT * scale + _ROUNDING * largest / size
    return (last, scale) if all(abs(each - last) <= apart for each in found[:-1]) else None
