"""Methods of SciPy's distributions, frozen or not, recorded as the NumPy functions they amount to."""

from __future__ import annotations

import functools
import itertools
import math
import sys
from collections.abc import Callable
from typing import Any

from yota.tracing.array_protocols import source_form
from yota.tracing.forms import Trace, concrete, is_traced, np, original, paused, records
from yota.tracing.scipy.distribution_formulas import CONTINUOUS, DISCRETE, OPEN, SIGNED

_MODULE = "scipy.stats._distn_infrastructure"
_INVERSE = ("ppf", "isf")
_OUTSIDE = {"cdf": (0.0, 1.0), "sf": (1.0, 0.0), "logcdf": (-math.inf, 0.0), "logsf": (0.0, -math.inf)}
"""Values of distribution functions below and above the support."""
_METHODS = {"rv_continuous": ("logpdf", "pdf", *_INVERSE, *_OUTSIDE), "rv_discrete": ("logpmf", "pmf", *_OUTSIDE)}
_SUMS = ("betabinom", "logser")
"""Discrete distributions whose distribution functions SciPy sums up."""


def _formula(self: Any, method: str) -> Callable[..., Any]:
    """A method of a distribution with location 0 and scale 1, inside of its support."""
    written = {**DISCRETE, **CONTINUOUS}[self.name].get(method)
    if written is not None:
        return written
    own, module = getattr(type(self), f"_{method}"), sys.modules[_MODULE]
    bases = (module.rv_continuous, module.rv_discrete)
    if method in ("logcdf", "logsf") and own in (getattr(base, f"_{method}") for base in bases):
        sides = _formula(self, "cdf"), _formula(self, "sf")
        near, far = sides if method == "logcdf" else sides[::-1]
        return lambda *args: _logarithm(near(*args), far(*args))
    return functools.partial(own, self)


def _logarithm(near: Any, far: Any) -> Any:
    """log(near), where near + far = 1: by the smaller of both."""
    small = near < 0.5
    return np.where(small, np.log(np.where(small, near, 1.0)), np.log1p(-np.where(small, 0.0, far)))


def _log_density(self: Any, method: str, z: Any, shapes: tuple[Any, ...], scale: Any = None) -> Any:
    inside, safe = _support(self, z, shapes)
    found = _formula(self, method)(safe, *shapes)
    if scale is not None:
        found = found - np.log(scale)
    return found if inside is None else np.where(inside, found, np.where(np.isnan(z), np.nan, -np.inf))


def _distribution(self: Any, method: str, z: Any, shapes: tuple[Any, ...]) -> Any:
    inside, safe = _support(self, z, shapes)
    found = _formula(self, method)(safe, *shapes)
    if inside is None:
        return found
    below, above = _OUTSIDE[method]
    low, _ = self._get_support(*shapes)
    return np.where(inside, found, np.where(z <= low, below, np.where(np.isnan(z), np.nan, above)))


def _support(self: Any, z: Any, shapes: tuple[Any, ...]) -> tuple[Any, Any]:
    """Whether ``z`` lies in the support, and ``z`` with another value where it does not; None for the whole line."""
    low, high = self._get_support(*shapes)
    is_bounded = is_traced(high) or np.all(np.isfinite(high))
    if np.any(np.isinf(z._value())):
        # No slope is infinite times 0 there.
        inside = np.isfinite(z) & (z > low if self.name in OPEN else z >= low)
    elif low == -math.inf and not is_bounded:
        return None, z
    else:
        inside = z > low if self.name in OPEN else z >= low
    if is_bounded:
        inside = np.logical_and(inside, z <= high)
    return inside, np.where(inside, z, 0.5)


def _quantile(self: Any, method: str, q: Any, shapes: tuple[Any, ...], loc: Any, scale: Any) -> Any:
    """Of a probability the value with so much below it, or above: at 0 and 1 the ends of the support."""
    within = np.logical_and(q > 0, q < 1)
    found = _formula(self, method)(np.where(within, q, 0.5), *shapes)
    ends = self._get_support(*shapes)
    first, last = ends if method == "ppf" else ends[::-1]
    end = np.where(q == 0, first, np.where(q == 1, last, np.nan))
    # Not a number, too, where a shape is not: the ends do not know it.
    found = np.where(within, found, np.where(np.isnan(found), found, end))
    return found * _positive(scale) + loc


def _positive(value: Any) -> Any:
    """``value``, not a number where it is not positive: SciPy's answer to a scale of 0."""
    return value if not is_traced(value) and np.all(np.asarray(value) > 0) else np.where(value > 0, value, np.nan)


def _continuous(trace: Trace, self: Any, method: str, x: Any, shapes: tuple[Any, ...], loc: Any, scale: Any) -> Any:
    plain_scale = not is_traced(scale) and np.ndim(scale) == 0 and scale == 1
    x, shapes = trace.traced(x), shapes if self.name in SIGNED else tuple(map(_positive, shapes))
    if method in _INVERSE:
        return _quantile(self, method, x, shapes, loc, scale)
    z = x if not is_traced(loc) and np.ndim(loc) == 0 and loc == 0 else x - loc
    scale = None if plain_scale else _positive(scale)
    if scale is not None:
        z = z / scale
    if method in _OUTSIDE:
        return _distribution(self, method, z, shapes)
    found = _log_density(self, "logpdf", z, shapes, scale)
    return np.exp(found) if method == "pdf" else found


def _discrete(trace: Trace, self: Any, method: str, k: Any, shapes: tuple[Any, ...], loc: Any, scale: Any) -> Any:
    given = trace.traced(k) - loc
    # Between whole numbers the probability is 0 and the distribution function level.
    z = np.floor(given)
    if method in ("pmf", "logpmf"):
        found = _log_density(self, "logpmf", np.where((given == z) | np.isnan(given), given, -1.0), shapes)
        found = np.exp(found) if method == "pmf" else found
    elif self.name == "binom":
        # At the last value the second shape of the beta distribution would be 0.
        inner = _distribution(self, method, np.minimum(z, shapes[0] - 1), shapes)
        found = np.where(z >= shapes[0], _OUTSIDE[method][1], inner)
    else:
        found = _distribution(self, method, z, shapes)
    allowed = self._argcheck(*shapes)
    return found if not is_traced(allowed) and np.all(allowed) else np.where(allowed, found, np.nan)


@records(_MODULE, *(f"{base}.{each}" for base, names in _METHODS.items() for each in names), named=True)
def _recorded(path: str, trace: Trace, self: Any, *args: Any, **keywords: Any) -> Any:
    """The form of a method of a distribution."""
    base, _, method = path.partition(".")
    point = "q" if method in ("ppf", "isf") else "k" if base == "rv_discrete" else "x"
    if not args and point in keywords:
        args = (keywords.pop(point),)
    forms, form = (DISCRETE, _discrete) if base == "rv_discrete" else (CONTINUOUS, _continuous)
    name = getattr(self, "name", None) or ""
    is_sum = name in _SUMS and method in _OUTSIDE
    if name not in forms or type(self).__name__ != f"{name}_gen" or is_sum or not args:
        own = original(getattr(getattr(sys.modules[_MODULE], base), method))
        return (source_form(own) if trace.deep else own)(self, *args, **keywords)
    shapes, loc, scale = self._parse_args(*args[1:], **keywords)
    return form(trace, self, method, args[0], tuple(shapes), loc, scale)


@records(_MODULE, "rv_discrete._ppf")
def _step(trace: Trace, self: Any, q: Any, *shapes: Any) -> Any:
    """The smallest whole number at which a distribution function reaches ``q``: that it does is a guard."""
    if not isinstance(self, sys.modules[_MODULE].rv_discrete):
        return self._ppfvec(q, *shapes)  # continuous distributions inherit the same function
    places = concrete(trace, (q, *shapes))
    with paused():
        found = self._ppfvec(*places)
    bool(np.all((self._cdf(found, *shapes) >= q) & (self._cdf(found - 1, *shapes) < q)))
    return found


@records(_MODULE, "rv_continuous.expect")
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
