"""Derivatives by differences, where these tell anything: for functions that are known in double precision only."""

from __future__ import annotations

import math

import numpy as np

from yota.proof.places import Point
from yota.rules.model import Domain, Rule
from yota.rules.registry import Registry
from yota.rules.sampling import statics

__all__ = ["slope"]

_STEPS = (4e-3, 2e-3, 1e-3)
"""Parts of the distance to the end of the domain, or to 0."""
_AGREEMENT = 1e-7
_ROUNDING = 2e-13
"""What the rounding of the function does to a difference with the shortest step."""
_WEIGHTS = ((-2, 1 / 12), (-1, -2 / 3), (1, 2 / 3), (2, -1 / 12))


def slope(rule: Rule, result: str, name: str, point: Point, registry: Registry) -> tuple[complex, float] | None:
    """Derivative of a result by an operand and its size, by differences of the fourth order.

    The size is at least a millionth of what the function would need to change by its own value. None if
    differences with other steps do not agree.

    B. Fornberg, Generation of finite difference formulas on arbitrarily spaced grids, Math. Comp. 51 (1988).
    """
    (domain,) = (each.domain or Domain("real") for each in rule.operands if each.name == name)
    middle = float(point[name])
    size = min(abs(middle) or 1.0, middle - domain.low, domain.high - middle)
    keywords = {key: value.value for key, value in statics(rule).items()}
    number, function = rule.results.index(result), registry.primitive(rule.name).function

    def value(shift: float) -> complex:
        moved = {**point, name: middle + shift}
        given = [np.float64(each) if isinstance(each, float) else each for each in moved.values()]
        found = function(*given, **keywords)
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
