"""Hypergeometric functions by their parameters: Euler's integrals by a double exponential rule, and power series.

NIST Handbook of Mathematical Functions, 13.4.1, 13.4.4 and 15.6.1. H. Takahasi, M. Mori, Double exponential formulas
for numerical integration, Publ. RIMS 9 (1974).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from yota.tracing.forms import Trace, is_tracer, np, records
from yota.tracing.scipy.distribution_formulas import special

_FINEST = 12
_LEAST = 0.05
"""With exponents that are nearer to -1, a part of the integral is beyond the nodes."""


@functools.cache
def _nodes(fine: int) -> tuple[Any, Any]:
    """The new variable at the nodes, and the logarithms of the weights."""
    step = 2.0**-fine
    place = np.arange(-6.5, 6.5, step)
    return np.pi / 2 * np.sinh(place), np.log(np.pi / 2 * np.cosh(place) * step)


def _fineness(*given: Any) -> int:
    """The larger the parameters are, the narrower is the peak of the integrand."""
    return max(5, int(np.max(np.ceil(np.log2(5 * np.sqrt(1 + sum(map(np.abs, given))))))))


def _between(fine: int, first: Any, second: Any, logarithm: Callable[[Any, Any], Any]) -> Any:
    """The mean of the exponential of ``logarithm(x, 1 - x)`` over the beta distribution."""
    turned, weights = _nodes(fine)
    below, above = -np.logaddexp(0, -2 * turned), -np.logaddexp(0, 2 * turned)
    density = first * below + second * above + weights - special("betaln")(first, second)
    found = np.sum(np.exp(density + logarithm(np.exp(below), np.exp(above))), axis=-1)
    return found / np.sum(np.exp(density), axis=-1)


def _gauss(a: Any, b: Any, c: Any, z: Any) -> Any:
    a, b = (a, b) if _is_between(b, c) else (b, a)
    if not (_is_between(b, c) and bool(np.all(z.real < 1))):
        return None
    fine = _fineness(a, b, c)
    a, b, c, z = (each[..., None] for each in (a, b, c, z))
    return None if fine > _FINEST else _between(fine, b, c - b, lambda x, y: -a * np.log(y + (1 - z) * x))


def _kummer(a: Any, b: Any, z: Any) -> Any:
    if not _is_between(a, b):
        return None
    fine = _fineness(a, b, z)
    a, b, z = (each[..., None] for each in (a, b, z))
    return None if fine > _FINEST else _between(fine, a, b - a, lambda x, y: z * x)


def _tricomi(a: Any, b: Any, z: Any) -> Any:
    if not (bool(np.all(a > 2 * _LEAST)) and bool(np.all(z > 0))):
        return None
    fine = _fineness(a, b, z)
    if fine > _FINEST:
        return None
    turned, weights = _nodes(fine)
    a, b, z = (each[..., None] for each in (a, b, z))
    exponent = a * turned - z * np.exp(turned) + (b - a - 1) * np.logaddexp(0, turned) + weights
    return np.sum(np.exp(exponent - special("gammaln")(a)), axis=-1)


def _limit(b: Any, z: Any) -> Any:
    """By Bessel functions, of one sign of the argument."""
    if z.dtype.kind == "c":
        return None
    negative = bool(np.all(z < 0))
    if not (negative or bool(np.all(z > 0))):
        return None
    root = np.sqrt(-z if negative else z)
    return special("gamma")(b) * root ** (1 - b) * special("jv" if negative else "iv")(b - 1, 2 * root)


def _is_between(value: Any, high: Any) -> bool:
    return bool(np.all((value > _LEAST) & (high - value > _LEAST)))


def _polynomial(upper: tuple[Any, ...], lower: tuple[Any, ...], z: Any) -> Any:
    """The sum that ends, if a parameter is a whole number that is not positive; else None."""
    ends = [-each for each in upper if not is_tracer(each) and np.ndim(each) == 0 and each <= 0 and each == int(each)]
    if not ends:
        return None
    total = term = 1.0
    for count in range(int(min(ends))):
        for each in upper:
            term = term * (each + count)
        for each in (*lower, 1):
            term = term / (each + count)
        term = term * z
        total = total + term
    return total


def _power(upper: tuple[Any, ...], lower: tuple[Any, ...], z: Any) -> Any:
    """The power series, where it ends soon and its terms do not cancel; else None."""
    if len(upper) > len(lower) and not bool(np.all(np.abs(z) < 0.9)):
        return None
    counts = np.arange(400.0)
    ratio = z[..., None] / (counts + 1)
    for each in upper:
        ratio = ratio * (each[..., None] + counts)
    for each in lower:
        ratio = ratio / (each[..., None] + counts)
    terms = np.cumprod(ratio, axis=-1)
    total, size = 1 + np.sum(terms, axis=-1), 1 + np.sum(np.abs(terms), axis=-1)
    settled = (np.abs(terms[..., -1]) <= 1e-16 * size) & (size <= 1e3 * np.abs(total)) & np.isfinite(size)
    return total if bool(np.all(settled)) else None


_FORMS: dict[str, tuple[Callable[..., Any], int]] = {
    "hyp2f1": (_gauss, 2),
    "hyp1f1": (_kummer, 1),
    "hyperu": (_tricomi, 0),
    "hyp0f1": (_limit, 0),
}
"""Integrals by the parameters, and how many of these the power series has in the numerator."""


@records("scipy.special", *_FORMS, named=True)
def _recorded(name: str, trace: Trace, *args: Any, **keywords: Any) -> Any:
    """By the parameters as an integral or a sum if there is one; else by the rule, which says why not."""
    form, many = _FORMS[name]
    found = None
    if not keywords and any(map(trace.varies, args[:-1])):
        found = _polynomial(args[:many], args[many:-1], args[-1]) if many else None
        given = map(trace.traced, args)
        traced = tuple(each if each.dtype.kind == "c" else each.astype(float, copy=False) for each in given)
        found = form(*traced) if found is None else found
        if found is None and name != "hyperu":
            found = _power(traced[:many], traced[many:-1], traced[-1])
    return trace.ruled(name, *args, **keywords) if found is None else found


@records("scipy.special", "wright_bessel", "log_wright_bessel", named=True)
def _wright(name: str, trace: Trace, *args: Any) -> Any:
    """By the parameters as the power series, of one sign: NIST Handbook of Mathematical Functions, 10.46."""
    if any(map(trace.varies, args[:2])):
        a, b, x = (trace.traced(each).astype(float, copy=False) for each in args)
        counts = np.arange(200.0)
        height = special("xlogy")(counts, x[..., None]) - special("gammaln")(counts + 1)
        terms = np.exp(height) * special("rgamma")(a[..., None] * counts + b[..., None])
        total = np.sum(terms, axis=-1)
        if bool(np.all((x >= 0) & (terms[..., -1] <= 1e-16 * total) & np.isfinite(total))):
            return np.log(total) if name.startswith("log") else total
    return trace.ruled(name, *args)
