"""Noncentral distributions as mixtures of central ones, which have derivatives by all of their parameters.

N. L. Johnson, S. Kotz, N. Balakrishnan, Continuous Univariate Distributions, vol. 2 (2nd ed., 1995), chapters 29 to 31.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from typing import Any

from yota.tracing.forms import Trace, is_tracer, np, records
from yota.tracing.implementations import FORMS
from yota.tracing.scipy.distribution_formulas import OWN, beta_density, by_formula, special

_DIGITS = 2.0**30
"""To which part of it a quantile is cut before the steps whose derivative is recorded."""


def _values(x: Any) -> Any:
    return np.asarray(x._value() if is_tracer(x) else x)


def _counts(rate: Any, *centres: Any) -> Any:
    """The numbers whose Poisson weights count, as a column before all axes; for other rates, a guard says so."""
    if not np.size(rate):
        return np.zeros((1,) * (1 + np.ndim(rate)))
    least = min(float(np.min(_values(each))) for each in (rate, *centres))
    most = max(float(np.max(_values(each))) for each in (rate, *centres))
    first = max(0, math.floor(0.5 * least - 15 * math.sqrt(least) - 20))
    last = math.ceil(2 * most + 15 * math.sqrt(most) + 40)
    if not bool(np.all((rate >= 0.5 * least) & (rate <= 2 * most))):
        raise ValueError("a noncentrality is not a number")
    counts = np.arange(first, last + 1.0)
    return np.reshape(counts, (-1,) + (1,) * np.ndim(rate))


def _poisson(counts: Any, rate: Any, more: float = 0.0) -> Any:
    """``rate**counts * exp(-rate) / gamma(counts + 1 + more)``."""
    scale = special("gammaln")(counts + 1 + more)
    if not bool(np.any(rate == 0)):
        return np.exp(special("xlogy")(counts, rate) - rate - scale)
    # At a rate of 0 the slope of a logarithm is infinite.
    near = rate < 1
    low, high = np.where(near, rate, 0.5), np.where(near, 1.0, rate)
    return np.where(near, low**counts * np.exp(-low - scale), np.exp(counts * np.log(high) - high - scale))


def _mixed(rate: Any, term: Callable[[Any], Any], *centres: Any) -> Any:
    """The sum over all numbers of their Poisson weights times ``term``."""
    arrays = np.broadcast_arrays(rate, *centres)
    counts = _counts(*arrays)
    return np.sum(_poisson(counts, arrays[0]) * term(counts), axis=0)


def _chi_square(x: Any, v: Any) -> Any:
    logarithm = special("xlogy")(0.5 * v - 1, x) - 0.5 * x - special("gammaln")(0.5 * v) - 0.5 * math.log(2) * v
    return np.exp(logarithm)


def _peak(x: Any, c: Any) -> Any:
    """The number of the largest term, short of where all terms vanish."""
    return np.minimum(0.5 * np.sqrt(c * x), 0.5 * c + 20 * np.sqrt(c))


def _ncx2_pdf(x: Any, v: Any, c: Any) -> Any:
    return _mixed(0.5 * c, lambda j: _chi_square(x, v + 2 * j), _peak(x, c))


def _chndtr(x: Any, v: Any, c: Any) -> Any:
    return _mixed(0.5 * c, lambda j: special("gammainc")(0.5 * v + j, 0.5 * x), 0.0 * x * v)


def _ncx2_sf(x: Any, v: Any, c: Any) -> Any:
    return _mixed(0.5 * c, lambda j: special("gammaincc")(0.5 * v + j, 0.5 * x), _peak(x, c), 0.0 * v)


NONCENTRAL: dict[str, Callable[..., Any]] = {
    "logpdf": lambda x, v, c: np.log(_ncx2_pdf(x, v, c)),
    "pdf": _ncx2_pdf,
    "cdf": _chndtr,
    "sf": _ncx2_sf,
}
"""The noncentral chi-square distribution, by the names of SciPy's methods."""


def _ncf_pdf(x: Any, a: Any, b: Any, c: Any) -> Any:
    y, slope = a * x / (a * x + b), a * b / np.square(a * x + b)
    return slope * _mixed(0.5 * c, lambda j: beta_density(0.5 * a + j, 0.5 * b, y), 0.5 * c * y)


def _ncfdtr(a: Any, b: Any, c: Any, x: Any) -> Any:
    y = a * x / (a * x + b)
    return _mixed(0.5 * c, lambda j: special("betainc")(0.5 * a + j, 0.5 * b, y), 0.5 * c * y)


def _ncf_sf(x: Any, a: Any, b: Any, c: Any) -> Any:
    y = a * x / (a * x + b)
    return _mixed(0.5 * c, lambda j: special("betaincc")(0.5 * a + j, 0.5 * b, y), 0.5 * c * y)


def _student(c: Any, t: Any, v: Any, term: Callable[[Any, Any, Any], Any]) -> Any:
    """Half of the sum over both kinds of weights, for a positive ``t``."""
    share = t * t / (v + t * t)
    arrays = np.broadcast_arrays(0.5 * c * c, share)
    rate, y = arrays
    counts = _counts(rate)
    odd = c / math.sqrt(2) * _poisson(counts, rate, 0.5)
    sums = _poisson(counts, rate) * term(counts + 0.5, 0.5 * v, y) + odd * term(counts + 1, 0.5 * v, y)
    return 0.5 * np.sum(sums, axis=0)


def _nct_pdf(t: Any, v: Any, c: Any) -> Any:
    sign = np.where(t < 0, -1.0, 1.0)
    far = np.where(t == 0, 1.0, sign * t)
    slope = 2 * v * far / np.square(v + far * far)
    middle = np.exp(
        special("gammaln")(0.5 * v + 0.5) - special("gammaln")(0.5 * v) - 0.5 * np.log(math.pi * v) - 0.5 * c * c
    )
    return np.where(t == 0, middle, slope * _student(sign * c, far, v, beta_density))


def _student_below(t: Any, v: Any, c: Any) -> Any:
    sign = np.where(t < 0, -1.0, 1.0)
    beyond = _student(sign * c, sign * t, v, special("betainc"))
    return np.where(t < 0, special("ndtr")(-c) - beyond, special("ndtr")(-c) + beyond)


_INVERSES: dict[str, tuple[Callable[..., Any], Callable[..., Any], int]] = {
    "_ncx2_isf": (_ncx2_sf, _ncx2_pdf, -1),
    "chndtrix": (_chndtr, _ncx2_pdf, 1),
    "_ncf_isf": (_ncf_sf, _ncf_pdf, -1),
    "ncfdtri": (lambda x, a, b, c: _ncfdtr(a, b, c, x), _ncf_pdf, 1),
    "nctdtrit": (_student_below, _nct_pdf, 1),
}
"""Inverses: the function, its density, and the sign of its slope."""


@records(OWN, "_ncx2_isf", "_ncf_isf", named=True)
@records("scipy.special", "chndtrix", "ncfdtri", "nctdtrit", named=True)
def _quantile(name: str, trace: Trace, *args: Any) -> Any:
    """An inverse: the function's own value without a derivative, and two Newton steps that have one."""
    below, density, side = _INVERSES[name]
    # Two of them take the probability last.
    p, *shapes = map(trace.traced, (args[-1], *args[:-1]) if name in ("ncfdtri", "nctdtrit") else args)
    x = trace.ruled(name, *args)
    grid = np.exp2(np.floor(np.log2(_DIGITS / np.maximum(np.abs(_values(x)), 1e-300))))
    x = np.rint(x * grid) / grid
    for _ in range(2):
        x = x - side * (below(x, *shapes) - p) / density(x, *shapes)
    return x


_NCT: dict[str, Callable[..., Any]] = {
    "_nct_pdf": _nct_pdf,
    "_nct_sf": lambda t, v, c: _student_below(-t, v, -c),
    "nctdtr": lambda v, c, t: _student_below(t, v, c),
}
_PARAMETERS: dict[str, tuple[Callable[..., Any], int]] = {
    "chndtridf": (_chndtr, 1),
    "nctdtridf": (_NCT["nctdtr"], 0),
    "nctdtrinc": (_NCT["nctdtr"], 1),
}
"""Inverses by a parameter: the function, and the place of the parameter."""


@records("scipy.special", *_PARAMETERS, named=True)
def _parameter(name: str, trace: Trace, *args: Any) -> Any:
    """An inverse by a parameter: the function's own value, with the derivative of a root of the equation near it."""
    below, place = _PARAMETERS[name]
    args = tuple(np.broadcast_arrays(*map(trace.traced, args)))
    start = trace.still(trace.ruled(name, *args))
    newton = importlib.import_module("scipy.optimize").newton

    def equation(y: Any) -> Any:
        return below(*args[:place], y, *args[place + 1 :]) - args[place]

    root = newton(equation, start, tol=1e-10)
    return start + (root - trace.still(root))


for _name, _formula in {
    **_NCT,
    **{each.__name__: each for each in (_ncx2_pdf, _ncx2_sf, _ncf_pdf, _ncf_sf)},
    "chndtr": _chndtr,
    "ncfdtr": _ncfdtr,
}.items():
    by_formula(_name, _formula, OWN if _name.startswith("_") else "scipy.special")


@records(OWN, "_nct_isf")
def _nct_isf(trace: Trace, *args: Any) -> Any:
    p, v, c = args
    return -FORMS["scipy.special", "nctdtrit"](trace, v, -c, p)
