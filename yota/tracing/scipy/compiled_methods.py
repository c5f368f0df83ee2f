"""Methods of SciPy's distributions that are compiled code, or lose digits, by formulas and sums over nodes.

J. P. Nolan, Numerical calculation of stable densities and distribution functions, Communications in Statistics.
Stochastic Models 13 (1997).
"""

from __future__ import annotations

import functools
import math
import sys
from typing import Any

from yota.tracing.forms import Trace, concrete, np, original, records
from yota.tracing.scipy.distribution_formulas import CONTINUOUS, by_formula, special

_CONTINUOUS = "scipy.stats._continuous_distns"
_DISCRETE = "scipy.stats._discrete_distns"


def _von_mises(k: Any, x: Any) -> Any:
    """Fourier's series of the distribution function; from a concentration of 50 on SciPy's normal approximation."""
    turns = np.rint(x / (2 * math.pi))
    x = x - 2 * math.pi * turns
    order, small = np.arange(1.0, 72.0), np.minimum(k, 50.0)
    weights = special("ive")(order, small[..., None]) / special("i0e")(small)[..., None]
    series = 0.5 + x / (2 * math.pi) + np.sum(weights * np.sin(order * x[..., None]) / order, axis=-1) / math.pi
    large = special("ndtr")(math.sqrt(2 / math.pi) / special("i0e")(np.maximum(k, 50.0)) * np.sin(0.5 * x))
    return np.where(k < 50, series, large) + turns


by_formula("von_mises_cdf", _von_mises, "scipy.stats._stats")


@records(_DISCRETE, "_poisson_binom")
def _poisson_binom(trace: Trace, k: Any, args: Any, tp: Any) -> Any:
    """Products of polynomials, one for each trial; the trials are the first axis."""
    mass = np.ones((1, *np.shape(args)[1:]))
    for p in args:
        none = np.zeros((1, *np.shape(p)))
        mass = np.concatenate([mass * (1 - p), none]) + np.concatenate([none, mass * p])
    chosen = np.arange(len(args) + 1).reshape(-1, *[1] * np.ndim(k))
    chosen = chosen == k if tp == "pmf" else chosen <= k
    return np.sum(np.where(chosen, mass, 0.0), axis=0)


_OF_URNS = "noncentral hypergeometric distributions have no derivative by counts."


def _counts(trace: Trace, problem: str, *values: Any) -> list[Any]:
    return [np.asarray(trace.fixed(each, problem, "Pass whole numbers."), float) for each in values]


def _log_binomial(n: Any, k: Any) -> Any:
    """The logarithm of a binomial coefficient; minus infinity beside its range."""
    inside = (k >= 0) & (k <= n)
    k = np.where(inside, k, 0)
    gammaln = special("gammaln")
    return np.where(inside, gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1), -np.inf)


def _urn(self: Any, x: Any, first: Any, second: Any, drawn: Any, odds: Any) -> Any:
    """Probabilities of ``x`` among ``drawn`` being of the first kind."""
    known = _log_binomial(first, x) + _log_binomial(second, drawn - x)
    if self.name == "nchypergeom_fisher":
        each = np.arange(np.max(drawn, initial=0.0) + 1)
        first, second, drawn = first[..., None], second[..., None], drawn[..., None]
        logarithm = np.log(odds)
        weights = _log_binomial(first, each) + _log_binomial(second, drawn - each) + each * logarithm[..., None]
        return np.exp(known + x * logarithm - special("logsumexp")(weights, axis=-1))
    # Wallenius' integral over the logarithm of a time, at which so much is left: the trapezoidal rule.
    other = np.where(np.isfinite(known), drawn - x, 0.0)
    x = np.where(np.isfinite(known), x, 0.0)
    left = odds * (first - x) + (second - other)
    most = np.max(drawn, initial=0.0)
    step = 0.25 / math.sqrt(most + 1)
    place = np.arange(-42.0, math.log(most + 80 + 12 * math.sqrt(most)), step)
    time = np.exp(place)
    part = time / np.where(left == 0, 1.0, left)[..., None]
    power = special("xlogy")(x[..., None], -np.expm1(-odds[..., None] * part))
    power = power + special("xlogy")(other[..., None], -np.expm1(-part))
    return np.where(left == 0, 1.0, np.exp(known) * np.sum(np.exp(power - time + place), axis=-1) * step)


@records(_DISCRETE, "_nchypergeom_gen._pmf")
def _urn_mass(trace: Trace, self: Any, x: Any, M: Any, n: Any, N: Any, odds: Any) -> Any:
    x, M, n, N = _counts(trace, _OF_URNS, x, M, n, N)
    return _urn(self, x, n, M - n, N, trace.traced(odds))


@records(_DISCRETE, "_nchypergeom_gen._stats")
def _urn_moments(trace: Trace, self: Any, M: Any, n: Any, N: Any, odds: Any, **_: Any) -> Any:
    M, n, N = (each[..., None] for each in _counts(trace, _OF_URNS, M, n, N))
    each = np.arange(np.max(N, initial=0.0) + 1)
    mass = _urn(self, each, n, M - n, N, trace.traced(odds)[..., None])
    mean = np.sum(each * mass, axis=-1)
    return mean, np.sum((each - mean[..., None]) ** 2 * mass, axis=-1), None, None


@records(_CONTINUOUS, "genhyperbolic_gen._logpdf", "geninvgauss_gen._logpdf")
def _log_density(trace: Trace, self: Any, x: Any, *shapes: Any) -> Any:
    return CONTINUOUS[self.name]["logpdf"](trace.traced(x), *map(trace.traced, shapes))


records(_CONTINUOUS, "genhyperbolic_gen._pdf")(lambda *args: np.exp(_log_density(*args)))


@records(_CONTINUOUS, "genhyperbolic_gen._cdf", "geninvgauss_gen._cdf")
def _below(trace: Trace, self: Any, x: Any, *shapes: Any) -> Any:
    """The integral of the density, as of any other distribution."""
    return sys.modules["scipy.stats"].rv_continuous._cdf(self, x, *shapes)


@records(_CONTINUOUS, "genhyperbolic_gen._sf")
def _above(trace: Trace, self: Any, x: Any, p: Any, a: Any, b: Any) -> Any:
    """By symmetry the distribution function of the mirrored variable."""
    return _below(trace, self, -x, p, a, -b)


@records("scipy._lib.array_api_extra._lib._funcs", "_apply_where")
def _apply_where(trace: Trace, cond: Any, f1: Any, f2: Any, fill_value: Any, *args: Any, xp: Any) -> Any:
    """Both functions for all elements: where one is not chosen, of an element for which it is."""
    chosen = np.asarray(concrete(trace, cond))
    if not chosen.size:
        own = original(sys.modules["scipy._lib.array_api_extra._lib._funcs"]._apply_where)
        return own(cond, f1, f2, fill_value, *args, xp=xp)
    given = [trace.traced(each) for each in args]
    is_whole = bool(np.all(cond))
    is_mixed = not is_whole and bool(np.any(cond))
    sides: list[Any] = []
    kinds: list[Any] = []
    for function, mine, seen, is_used in ((f1, cond, chosen, is_whole or is_mixed), (f2, ~cond, ~chosen, not is_whole)):
        places = given if is_used else [np.ravel(each)[:0] for each in given]
        if is_mixed:
            some = tuple(each[0] for each in np.nonzero(seen))
            places = [np.where(mine, each, each._value()[some]) for each in given]
        found = fill_value if function is None else function(*map(np.ravel, places))
        kinds.append(getattr(found, "dtype", found))
        if is_used and function is not None:
            found = np.reshape(np.broadcast_to(found, (chosen.size,)), chosen.shape)
        if is_used:
            sides.append(found)
    result = np.where(cond, *sides) if is_mixed else np.broadcast_to(sides[0], chosen.shape)
    return result.astype(np.result_type(*kinds), copy=False)


@records(_CONTINUOUS, "powerlognorm_gen._ppf")
def _power_quantile(trace: Trace, self: Any, q: Any, c: Any, s: Any) -> Any:
    """Not by 1 - q, of which nothing is left for a small q."""
    return np.exp(-s * special("ndtri_exp")(np.log1p(-trace.traced(q)) / c))


@records(_CONTINUOUS, "wrapcauchy_gen._cdf")
def _wrapped_cauchy(trace: Trace, self: Any, x: Any, c: Any) -> Any:
    """From the middle, too: SciPy's formulas on both sides meet at poles of the tangent."""
    x, c = map(trace.traced, (x, c))
    rate, middle = (1 + c) / (1 - c), np.arctan(np.tan(0.5 * np.clip(x - math.pi, -2.0, 2.0)) * (1 - c) / (1 + c))
    side = np.where(x < math.pi, x, 2 * math.pi - x)
    is_near = np.abs(x - math.pi) < 1
    tail = np.arctan(rate * np.tan(0.5 * np.where(is_near, 1.0, side))) / math.pi
    return np.where(is_near, 0.5 + middle / math.pi, np.where(x < math.pi, tail, 1 - tail))


_NORMAL = np.arange(-9.0, 9.0, 0.09)
_CHI = np.arange(-40.0, 6.5, 0.1)


@records(_CONTINUOUS, "studentized_range_gen._cdf", "studentized_range_gen._pdf", named=True)
def _studentized(name: str, trace: Trace, self: Any, *given: Any) -> Any:
    """Sums over a normal variable, and over the logarithm of a deviation: the trapezoidal rule."""
    q, k, v = map(trace.traced, given)
    if not bool(np.all(v >= 1)):
        raise trace.unrecorded("scipy.stats.studentized_range with less than one degree of freedom", "Pass more.")
    q, k, v = (each[..., None, None] for each in np.broadcast_arrays(q, k, np.minimum(v, 1e14)))
    place = _CHI[:, None] / np.sqrt(v)
    weights = np.exp(-0.5 * v * (np.expm1(2 * place) - 2 * place))
    weights = weights / np.sum(weights, axis=-2, keepdims=True)
    wide = q * np.exp(place)
    normal = np.exp(-0.5 * _NORMAL * _NORMAL) * (0.09 / math.sqrt(2 * math.pi))
    between = special("ndtr")(_NORMAL + wide) - special("ndtr")(_NORMAL)
    between = np.where(between > 0, between, 1e-300)
    if name.endswith("pdf"):
        slope = np.exp(place - 0.5 * (_NORMAL + wide) ** 2) / math.sqrt(2 * math.pi)
        inner = k * (k - 1) * normal * slope * between ** (k - 2)
    else:
        inner = k * normal * between ** (k - 1)
    return np.sum(weights * inner, axis=(-2, -1))


@records(_CONTINUOUS, "ksone_gen._pdf")
def _smirnov_density(trace: Trace, self: Any, x: Any, n: Any) -> Any:
    """The derivative of Smirnov's sum, term by term."""
    (n,), x = _counts(trace, "scipy.stats.ksone has no derivative by its count.", n), trace.traced(x)[..., None]
    n = n[..., None]
    each = np.arange(np.max(n, initial=1.0))
    left = 1 - x - each / n
    among = (left > 0) & (each <= n)
    left, right = np.where(among, left, 0.5), x + each / n
    right = np.where(right > 0, right, 0.5)
    weights = np.exp(_log_binomial(n, np.minimum(each, n)) + (each - 1) * np.log(right) + (n - each) * np.log(left))
    slopes = 1 + x * ((each - 1) / right - (n - each) / left)
    return -np.sum(np.where(among, weights * slopes, 0.0), axis=-1)


@records(_CONTINUOUS, *(f"irwinhall_gen._{each}" for each in ("pdf", "cdf", "sf")), named=True)
def _irwin_hall(name: str, trace: Trace, self: Any, x: Any, n: Any) -> Any:
    """A cardinal spline, or its integral, at all places at once; SciPy evaluates one after another."""
    given, n = n, np.asarray(concrete(trace, n))
    bool(np.all(given == n))
    x, n = np.broadcast_arrays(trace.traced(x), n)
    found = np.full(np.shape(x), np.nan)
    for count in np.unique(n[np.isfinite(n)]):
        spline = self._cardbspl(count)
        spline = spline if name.endswith("pdf") else spline.antiderivative()
        found = np.where(n == count, spline(count - x if name.endswith("sf") else x), found)
    return found


_ANGLE = np.arange(-4.5, 4.5, 2.0**-6)
_TIME = np.arange(-4.5, 3.5, 2.0**-5)


@records(_CONTINUOUS, "landau_gen._pdf")
def _landau_density(trace: Trace, self: Any, x: Any) -> Any:
    """Landau's integral to the right, Nolan's to the left: the trapezoidal rule in double exponentials."""
    place = math.pi / 2 * trace.traced(x)[..., None] + math.log(math.pi / 2)
    far = place > 0.75
    turned = math.pi * np.sinh(_ANGLE)
    angle, other = math.pi / (1 + np.exp(-turned)), math.pi / (1 + np.exp(turned))
    weights = angle * other * np.cosh(_ANGLE) * 2.0**-6
    least = np.log(2 / math.pi * angle / np.sin(np.minimum(angle, other))) - angle / np.tan(angle)
    power = np.minimum(least - np.where(far, 0.0, place) + math.log(math.pi / 2), 700.0)
    near = 0.5 * np.sum(weights * np.exp(power - np.exp(np.minimum(power, 700.0))), axis=-1)
    # The time is so long that a unit of it is what the exponential decays in.
    scale = np.where(far, place, 0.75)
    unit = np.exp(_TIME - np.exp(-_TIME))
    time = unit / scale
    inner = np.exp(-time * np.log(time) - unit) * np.sin(math.pi * time)
    wide = np.sum(inner * unit * (1 + np.exp(-_TIME)), axis=-1) * 2.0**-5 / (2 * scale[..., 0])
    return np.where(far[..., 0], wide, near)


_CLOSE = 0.02
"""How near to 1 the first shape may be: the integrand is a step there, and SciPy takes 1 in its place nearby."""


@functools.cache
def _nodes(fine: int) -> tuple[Any, Any, Any]:
    """Logarithms of the variable from 0 to 1, of what it lacks to 1, and of the weights."""
    step = 2.0**-fine
    place = np.arange(-5.0, 5.0, step)
    turned = math.pi * np.sinh(place)
    below, above = -np.logaddexp(0, -turned), -np.logaddexp(0, turned)
    return below, above, below + above + np.log(math.pi * np.cosh(place) * step)


def _prepared(trace: Trace, self: Any, *given: Any) -> tuple[Any, ...]:
    """The side of a variable, how far out it is, both shapes on that side, the angle, and where SciPy takes 0."""
    x, a, b = np.broadcast_arrays(*map(trace.traced, given))
    if bool(np.any(np.abs(a - 1) < _CLOSE)):
        raise trace.refuse(
            "scipy.stats.levy_stable with a first shape of nearly 1 is not recorded.", "Use scipy.stats.cauchy for 1."
        )
    lean = np.tan(0.5 * math.pi * a)
    if self._parameterization() == "S0":
        x = x + b * lean
    side = np.where(x < 0, -1.0, 1.0)
    middle = np.abs(x) < self.piecewise_x_tol_near_zeta * a ** (1 / a)
    angle = side * np.arctan(b * lean) / a
    width = 0.5 * math.pi + angle
    if bool(np.any((width < 1e-9) | (math.pi - a * width < 1e-9))):
        # A part of the slope by the second shape is at one end of the integral.
        raise trace.refuse(
            "the light tail of scipy.stats.levy_stable with 1 or -1 as the second shape is not recorded.",
            "Leave its values out, or take a shape that is less by 1e-6.",
        )
    return side, np.where(middle, 1.0, np.abs(x)), a, angle, middle


def _exponents(x: Any, a: Any, angle: Any) -> tuple[Any, Any]:
    """Logarithms of what the exponential is of at the nodes, and of their weights."""
    # The steeper the integrand is, the more nodes there are.
    fine = max(5, int(np.max(np.ceil(np.log2(24 * a / np.abs(a - 1))))))
    low, high, weights = _nodes(fine)
    below, above = np.exp(low), np.exp(high)
    x, a, angle = (each[..., None] for each in (x, a, angle))
    width = 0.5 * math.pi + angle
    turn = a * width * below
    # Of nearly half a turn, and of a quarter, the rest keeps its digits.
    end = math.pi - a * width
    rest = end + a * width * above
    early = turn < 0.5 * math.pi
    sine = np.where(
        early,
        np.log(a * width * np.sinc(np.where(early, turn, 0.0) / math.pi)) + low,
        np.log(np.sin(np.where(early, 1.0, rest))),
    )
    cosine = np.log(width * np.sinc(width * above / math.pi)) + high
    other = np.log(np.maximum(np.sin(end + (a - 1) * width * above), 1e-300))
    power = (a * (np.log(x) + cosine - sine) + np.log(np.cos(a * angle))) / (a - 1) + other - cosine
    return np.minimum(power, 700.0), np.log(width) + weights


@records("scipy.stats._levy_stable", "levy_stable_gen._pdf")
def _stable_density(trace: Trace, self: Any, x: Any, alpha: Any, beta: Any) -> Any:
    _, x, a, angle, middle = _prepared(trace, self, x, alpha, beta)
    power, weights = _exponents(x, a, angle)
    found = a / (math.pi * np.abs(a - 1) * x) * np.sum(np.exp(power - np.exp(power) + weights), axis=-1)
    inner = special("gamma")(1 + 1 / a) * np.cos(angle) * np.cos(a * angle) ** (1 / a) / math.pi
    return np.where(middle, inner, found)


@records("scipy.stats._levy_stable", "levy_stable_gen._cdf")
def _stable_below(trace: Trace, self: Any, x: Any, alpha: Any, beta: Any) -> Any:
    side, x, a, angle, middle = _prepared(trace, self, x, alpha, beta)
    power, weights = _exponents(x, a, angle)
    part = np.sum(np.exp(weights - np.exp(power)), axis=-1) / math.pi
    found = np.where(a < 1, 0.5 - angle / math.pi + part, 1 - part)
    found = np.where(middle, 0.5 - angle / math.pi, found)
    return np.where(side < 0, 1 - found, found)
