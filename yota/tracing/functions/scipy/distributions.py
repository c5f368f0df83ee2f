"""Methods of SciPy's distributions, frozen or not, recorded as the NumPy functions they amount to."""

from __future__ import annotations

import functools
import itertools
import math
import sys
from collections.abc import Callable
from typing import Any

from yota.tracing.dispatch import concrete
from yota.tracing.functions.scipy import multivariate
from yota.tracing.functions.scipy.bounded import BOUNDED
from yota.tracing.functions.scipy.counts import DISCRETE
from yota.tracing.functions.scipy.family import Family
from yota.tracing.functions.scipy.unbounded import UNBOUNDED
from yota.tracing.intercept import on_traced
from yota.tracing.methods import is_traced
from yota.tracing.state import paused
from yota.tracing.trace import Trace
from yota.tracing.untyped import np

__all__ = ["replacements"]

CONTINUOUS = {**UNBOUNDED, **BOUNDED}

_MODULE = "scipy.stats._distn_infrastructure"


def _log_density(trace: Trace, family: Family, z: Any, shapes: tuple[Any, ...], scale: Any) -> Any:
    inside, safe = _support(family, z, shapes)
    found = family.logpdf(safe, *shapes)
    if scale is not None:
        found = found - np.log(scale)
    return found if inside is None else np.where(inside, found, np.where(np.isnan(z), np.nan, -np.inf))


def _density(trace: Trace, family: Family, z: Any, shapes: tuple[Any, ...], scale: Any) -> Any:
    return np.exp(_log_density(trace, family, z, shapes, scale))


def _distribution(which: str, below: float, above: float) -> Callable[..., Any]:
    """The form of ``cdf`` and the like, with its values on either side of the support."""

    def form(trace: Trace, family: Family, z: Any, shapes: tuple[Any, ...], scale: Any) -> Any:
        inside, safe = _support(family, z, shapes)
        found = _of(family, which)(safe, *shapes)
        if inside is None:
            return found
        outside = np.where(z <= family.low, below, np.where(np.isnan(z), np.nan, above))
        return np.where(inside, found, outside)

    return form


def _of(family: Family, which: str) -> Callable[..., Any]:
    written = getattr(family, which)
    if written is None:
        sides = (_of(family, "cdf"), _of(family, "sf"))
        near, far = sides if which == "logcdf" else sides[::-1]
        return lambda *args: _logarithm(near(*args), far(*args))
    return written  # type: ignore[no-any-return]


def _logarithm(near: Any, far: Any) -> Any:
    """log(near), where near + far = 1: by the smaller of both."""
    small = near < 0.5
    return np.where(small, np.log(np.where(small, near, 1.0)), np.log1p(-np.where(small, 0.0, far)))


def _support(family: Family, z: Any, shapes: tuple[Any, ...]) -> tuple[Any, Any]:
    """Whether ``z`` lies in the support, and ``z`` with another value where it does not; None for the whole line."""
    high = family.high(*shapes) if callable(family.high) else family.high
    if np.any(np.isinf(z._value())):
        # No slope is infinite times 0 there.
        inside = np.isfinite(z) & (z > family.low if family.open else z >= family.low)
    elif family.low == -math.inf and isinstance(high, float) and high == math.inf:
        return None, z
    else:
        inside = z > family.low if family.open else z >= family.low
    if not (isinstance(high, float) and high == math.inf):
        inside = np.logical_and(inside, z <= high)
    return inside, np.where(inside, z, 0.5)


def _quantile(trace: Trace, name: str, method: str, q: Any, shapes: tuple[Any, ...], loc: Any, scale: Any) -> Any:
    """Of a probability the value with so much below it, or above: at 0 and 1 the ends of the support."""
    family, q = CONTINUOUS[name], trace.traced(q)
    shapes = tuple(map(_positive, shapes))
    inverse = getattr(family, method)
    within = np.logical_and(q > 0, q < 1)
    found = inverse(np.where(within, q, 0.5), *shapes)
    high = family.high(*shapes) if callable(family.high) else family.high
    first, last = (family.low, high) if method == "ppf" else (high, family.low)
    end = np.where(q == 0, first, np.where(q == 1, last, np.nan))
    # Not a number, too, where a shape is not: the ends do not know it.
    found = np.where(within, found, np.where(np.isnan(found), found, end))
    return found * _positive(scale) + loc


_METHODS: dict[str, Callable[..., Any]] = {
    "logpdf": _log_density,
    "pdf": _density,
    "cdf": _distribution("cdf", 0.0, 1.0),
    "sf": _distribution("sf", 1.0, 0.0),
    "logcdf": _distribution("logcdf", -math.inf, 0.0),
    "logsf": _distribution("logsf", 0.0, -math.inf),
}


_INVERSE = ("ppf", "isf")


def _positive(value: Any) -> Any:
    """``value``, not a number where it is not positive: SciPy's answer to a scale of 0."""
    return value if not is_traced(value) and np.all(np.asarray(value) > 0) else np.where(value > 0, value, np.nan)


def _continuous(trace: Trace, name: str, method: str, x: Any, shapes: tuple[Any, ...], loc: Any, scale: Any) -> Any:
    plain_scale = not is_traced(scale) and np.ndim(scale) == 0 and scale == 1
    x = trace.traced(x)
    if method in _INVERSE:
        return _quantile(trace, name, method, x, shapes, loc, scale)
    z = x if not is_traced(loc) and np.ndim(loc) == 0 and loc == 0 else x - loc
    scale = None if plain_scale else _positive(scale)
    if scale is not None:
        z = z / scale
    return _METHODS[method](trace, CONTINUOUS[name], z, tuple(map(_positive, shapes)), scale)


def _discrete(trace: Trace, name: str, method: str, k: Any, shapes: tuple[Any, ...], loc: Any, scale: Any) -> Any:
    family = DISCRETE[name]
    given = trace.traced(k) - loc
    # Between whole numbers the probability is 0 and the distribution function level.
    z = np.floor(given)
    if method in ("pmf", "logpmf"):
        found = _log_density(trace, family, np.where((given == z) | np.isnan(given), given, -1.0), shapes, None)
        found = np.exp(found) if method == "pmf" else found
    elif name == "binom":
        # At the last value the second shape of the beta distribution would be 0.
        last = {"cdf": 1.0, "sf": 0.0, "logcdf": 0.0, "logsf": -np.inf}[method]
        inner = _METHODS[method](trace, family, np.minimum(z, shapes[0] - 1), shapes, None)
        found = np.where(z >= shapes[0], last, inner)
    else:
        found = _METHODS[method](trace, family, z, shapes, None)
    allowed = family.allowed(*shapes) if family.allowed is not None else True
    return found if not is_traced(allowed) and np.all(allowed) else np.where(allowed, found, np.nan)


@functools.cache
def _recording(base: Any, method: str) -> Any:
    original = getattr(base, method)
    forms, form = (DISCRETE, _discrete) if base.__name__ == "rv_discrete" else (CONTINUOUS, _continuous)

    def record(trace: Trace, self: Any, x: Any, *args: Any, **keywords: Any) -> Any:
        name = getattr(self, "name", None) or ""
        is_sum = name in forms and forms[name].cdf is None and method not in ("pmf", "logpmf")
        if name not in forms or type(self).__name__ != f"{name}_gen" or is_sum:
            return original(self, x, *args, **keywords)
        shapes, loc, scale = self._parse_args(*args, **keywords)
        return form(trace, name, method, x, tuple(shapes), loc, scale)

    return on_traced(original, record)


def _expect(
    trace: Trace,
    self: Any,
    func: Callable[[Any], Any] | None = None,
    args: tuple[Any, ...] = (),
    loc: Any = 0,
    scale: Any = 1,
    lb: Any = None,
    ub: Any = None,
    conditional: bool = False,
    **keywords: Any,
) -> Any:
    """The expected value, as SciPy splits the integral; where it is split has no derivative."""
    low, high = self._get_support(*args)
    lb = loc + low * scale if lb is None else lb
    ub = loc + high * scale if ub is None else ub
    place, (first, last) = concrete(trace, (*args, loc, scale)), concrete(trace, (lb, ub))
    with paused():
        below, above = self.cdf([first, last], *place)
        inner = self.ppf(below + (above - below) * np.array([0.05, 0.95]), *place)
    bounds = [lb, *(each for each in map(float, inner) if first < each < last), ub]
    quad = sys.modules["scipy.integrate"].quad

    def integrand(x: Any) -> Any:
        return (x if func is None else func(x)) * self.pdf(x, *args, loc=loc, scale=scale)

    found = sum(quad(integrand, *each, **keywords)[0] for each in itertools.pairwise(bounds))
    return found / (self.cdf(ub, *args, loc, scale) - self.cdf(lb, *args, loc, scale)) if conditional else found


@functools.cache
def _expecting(base: Any) -> Any:
    return on_traced(base.expect, _expect)


def replacements() -> list[tuple[Any, str, Any]]:
    """``(class, method, recording method)`` if scipy.stats is loaded."""
    module = sys.modules.get(_MODULE)
    if module is None or not hasattr(module, "rv_discrete"):
        return []
    found = [(module.rv_continuous, name, _recording(module.rv_continuous, name)) for name in (*_METHODS, *_INVERSE)]
    found.append((module.rv_continuous, "expect", _expecting(module.rv_continuous)))
    names = ["pmf", "logpmf", "cdf", "sf", "logcdf", "logsf"]
    found += [(module.rv_discrete, name, _recording(module.rv_discrete, name)) for name in names]
    return found + multivariate.replacements()
