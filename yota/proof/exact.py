"""Derivatives at 50 digits, computed once for each point, whichever partials are held against them."""

from __future__ import annotations

from typing import Any, NamedTuple

from yota.proof.places import Point, corners, spread, thresholds
from yota.proof.reach import DIGITS
from yota.rules.algebras import digits
from yota.rules.model import Rule
from yota.rules.registry import Registry
from yota.rules.sampling import statics
from yota.rules.trials import once

__all__ = ["Exact", "at", "places"]


class Exact(NamedTuple):
    """What holds at a point.

    Parameters
    ----------
    slope
        Derivative of the function.
    names
        Numbers that the operands and results stand for.
    """

    slope: Any
    names: dict[str, Any]


def at(rule: Rule, result: str, name: str, point: Point, registry: Registry) -> Exact:
    """The derivative of ``result`` by ``name``; to be called while `digits.LOCK` is held.

    Raises
    ------
    NotPreciseError
        If the function is known in double precision only.
    """
    # Wrong versions of a rule have its text, and so the same function.
    return once(
        registry,
        ("at", rule.source, rule.name, result, name, tuple(point.items())),
        lambda: _at(rule, result, name, point, registry),
    )


def _at(rule: Rule, result: str, name: str, point: Point, registry: Registry) -> Exact:
    mp = digits.context()
    with mp.workdps(DIGITS.get(rule.name, digits.DIGITS)):
        function = digits.primal(rule, registry, result)
        arguments = [value if isinstance(value, int) else mp.mpf(value) for value in point.values()]
        names: dict[str, Any] = {**statics(rule), **dict(zip(point, arguments, strict=True))}
        names |= {each: digits.primal(rule, registry, each)(*arguments) for each in rule.results}
        return Exact(digits.derivative(function, arguments, list(point).index(name)), names)


def places(rule: Rule, registry: Registry, count: int) -> list[Point]:
    """Points at which formulas are held against derivatives: over the domain, beside thresholds, and corners."""
    # Wrong versions compare with other numbers; the points of the right one serve them as well.
    return once(registry, ("places", rule.source, rule.name, count), lambda: _places(rule, registry, count))


def _places(rule: Rule, registry: Registry, count: int) -> list[Point]:
    plain = [point for point, is_plain in corners(rule, registry) if is_plain]
    return [*spread(rule, registry, count), *thresholds(rule, registry), *plain]
