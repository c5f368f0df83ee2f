"""Calls of the methods of SciPy's distributions, with the shapes that the documentation of each shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.survey.calls import Call
from benchmarks.survey.public import resolved

__all__ = ["methods"]

_PLACE, _SIZE = 0.125, 1.25
_OF_POINTS = ("pdf", "logpdf", "cdf", "logcdf", "sf", "logsf")
_OF_COUNTS = ("pmf", "logpmf", "cdf", "logcdf", "sf", "logsf")
_OF_PARTS = ("ppf", "isf")
_OF_PARAMETERS = ("mean", "var", "std", "median", "entropy", "support")


def methods(name: str) -> list[Call]:
    """A call of each method of a distribution; none for anything else."""
    if not name.startswith("scipy.stats."):
        return []
    from scipy import stats

    distribution = resolved(name)
    if not isinstance(distribution, (stats.rv_continuous, stats.rv_discrete)):
        return []
    try:
        shapes = _shapes(name)
        return list(_calls(name, distribution, shapes))
    except (KeyError, ValueError, TypeError):
        return []


def _shapes(name: str) -> tuple[Any, ...]:
    from scipy.stats._distr_params import distcont, distdiscrete

    found: dict[str, tuple[Any, ...]] = {}
    for each, shapes in [*distcont, *distdiscrete]:
        found.setdefault(each if isinstance(each, str) else "", tuple(shapes))
    return found[name.rpartition(".")[2]]


def _calls(name: str, distribution: Any, shapes: tuple[Any, ...]) -> Iterator[Call]:
    continuous = hasattr(distribution, "pdf")
    given: dict[str, Any] = {f"a{number}": float(each) for number, each in enumerate(shapes)}
    # Whole numbers among the shapes stay so.
    whole = {key: each for key, each in zip(given, shapes, strict=True) if not continuous and float(each).is_integer()}
    given = {key: each for key, each in given.items() if key not in whole}
    if continuous:
        given |= {"loc": _PLACE, "scale": _SIZE}
    names = [
        *(f"a{number}" for number in range(len(shapes))),
        *(("loc", "scale") if continuous else ()),
    ]
    parameters = ", ".join(names)
    ends = np.array([0.2, 0.5, 0.8])
    places = distribution.ppf(ends, *shapes, *((_PLACE, _SIZE) if continuous else ()))

    def call(method: str, arguments: str, more: dict[str, Any], fixed: dict[str, Any]) -> Call:
        return Call(
            f"{name}.{method}",
            f"{name}.{method}({arguments})",
            more | given,
            whole | fixed,
        )

    points = {"x": places} if continuous else {}
    counts = {} if continuous else {"x": places}
    for method in _OF_POINTS if continuous else _OF_COUNTS:
        yield call(method, f"x, {parameters}", points, counts)
    for method in _OF_PARTS if continuous else ():
        yield call(method, f"q, {parameters}", {"q": ends}, {})
    if not given:
        return
    for method in _OF_PARAMETERS:
        yield call(method, parameters, {}, {})
    yield call("stats", f"{parameters}, moments='mvsk'", {}, {})
    yield call("moment", f"2, {parameters}", {}, {})
    yield call("interval", f"0.9, {parameters}", {}, {})
    if continuous:
        yield call("nnlf", f"({parameters},), x", points, {})
        inner = ", ".join(f"a{number}" for number in range(len(shapes)))
        yield call(
            "expect",
            f"lambda each: each, ({inner}{',' if inner else ''}), loc=loc, scale=scale",
            {},
            {},
        )
