"""Distributions and their moments by SciPy's own formulas, or by others where those cost more or lose digits."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from yota.tracing.forms import Trace, np, records
from yota.tracing.scipy.special import scipy_special, whole

_Formulas = Mapping[str, Callable[..., Any]]


def special(name: str) -> Any:
    """A function of scipy.special."""
    return getattr(scipy_special(), name)


def _log1mexp(x: Any) -> Any:
    """log(1 - exp(-x)) for x > 0, by the form that keeps its digits (Maechler 2012)."""
    near = x < math.log(2)
    return np.where(
        near, np.log(-np.expm1(-np.where(near, x, 1.0))), np.log1p(-np.exp(-np.where(near, math.log(2), x)))
    )


def _odds(p: Any) -> Any:
    return p / (1 - p)


def log_normal(z: Any) -> Any:
    """The logarithm of the normal density."""
    return -0.5 * z * z - 0.5 * math.log(2 * math.pi)


def _laplace(z: Any) -> Any:
    # The slope of the absolute value is 0 at 0, and the density is not.
    tail = 0.5 * np.exp(np.where(z > 0, -z, z))
    return np.where(z > 0, 1 - tail, tail)


def _laplace_log(z: Any) -> Any:
    """Logarithm of the distribution function, on each side by the form that keeps its digits."""
    left = np.where(z > 0, 0.0, z)
    return np.where(z > 0, np.log1p(-0.5 * np.exp(-np.abs(z))), left - math.log(2))


def _generalized(z: Any, b: Any) -> Any:
    """The generalized normal distribution function; its slope is the density where two sides meet too."""
    tail = 0.5 * special("gammaincc")(1 / b, np.where(z == 0, 1.0, np.abs(z)) ** b)
    return np.where(z == 0, 0.5 + 0.5 * z * b * special("rgamma")(1 / b), np.where(z > 0, 1 - tail, tail))


def _generalized_quantile(q: Any, b: Any) -> Any:
    tail = np.where(q == 0.5, 0.5, 2 * np.where(q > 0.5, 1 - q, q))
    far = special("gammainccinv")(1 / b, tail) ** (1 / b)
    middle = 2 * (q - 0.5) / (b * special("rgamma")(1 / b))
    return np.where(q == 0.5, middle, np.where(q > 0.5, far, -far))


def _hyperbolic(z: Any, p: Any, a: Any, b: Any) -> Any:
    root, level = np.hypot(1.0, z), np.sqrt((a - b) * (a + b))
    kve = special("kve")
    constant = p * np.log(level) - 0.5 * math.log(2 * math.pi) - (p - 0.5) * np.log(a) - np.log(kve(p, level)) + level
    return constant + b * z - a * root + np.log(kve(p - 0.5, a * root)) + (p - 0.5) * np.log(root)


CONTINUOUS: dict[str, _Formulas] = {
    **{name: {} for name in "beta chi chi2 erlang gamma gumbel_l gumbel_r halfcauchy".split()},
    **{name: {} for name in "invgamma maxwell rayleigh weibull_min".split()},
    "cauchy": {"logpdf": lambda z: -math.log(math.pi) - 2 * np.log(np.hypot(1.0, z))},
    "expon": {"logcdf": _log1mexp},
    # SciPy's forms by fdtr cost more derivatives, and its isf has few digits of a small probability.
    "f": {
        "cdf": lambda z, n, m: special("betainc")(0.5 * n, 0.5 * m, n * z / (m + n * z)),
        "sf": lambda z, n, m: special("betainc")(0.5 * m, 0.5 * n, m / (m + n * z)),
        "ppf": lambda q, n, m: _odds(special("betaincinv")(0.5 * n, 0.5 * m, q)) * m / n,
        "isf": lambda q, n, m: m / n / _odds(special("betaincinv")(0.5 * m, 0.5 * n, q)),
    },
    "genhyperbolic": {"logpdf": _hyperbolic},
    "geninvgauss": {
        "logpdf": lambda z, p, b: (
            (p - 1) * np.log(z) - 0.5 * b * np.square(z - 1) / z - math.log(2) - np.log(special("kve")(p, b))
        )
    },
    "gennorm": {
        "cdf": _generalized,
        "sf": lambda z, b: _generalized(-z, b),
        "ppf": _generalized_quantile,
        "isf": lambda q, b: -_generalized_quantile(q, b),
    },
    "halfnorm": {"logpdf": lambda z: log_normal(z) + math.log(2)},
    "laplace": {
        "logpdf": lambda z: -np.abs(z) - math.log(2),
        "cdf": _laplace,
        "sf": lambda z: _laplace(-z),
        "logcdf": _laplace_log,
        "logsf": lambda z: _laplace_log(-z),
    },
    "logistic": {"logpdf": lambda z: special("log_expit")(z) + special("log_expit")(-z)},
    "lognorm": {"logpdf": lambda z, s: log_normal(np.log(z) / s) - np.log(s * z)},
    "norm": {"logpdf": log_normal},
    "pareto": {
        "logpdf": lambda z, b: np.log(b) - (b + 1) * np.log(z),
        "cdf": lambda z, b: -np.expm1(-b * np.log(z)),
        "logsf": lambda z, b: -b * np.log(z),
        "ppf": lambda q, b: np.exp(-np.log1p(-q) / b),
    },
    "powerlaw": {"isf": lambda q, a: np.exp(np.log1p(-q) / a)},
    "t": {
        "logpdf": lambda z, v: (
            -special("betaln")(0.5 * v, 0.5) - 0.5 * np.log(v) - (0.5 * v + 0.5) * np.log1p(z * z / v)
        )
    },
    "uniform": {"logpdf": lambda z: 0.0 * z},
}
"""By the names of SciPy's distributions and methods, of the standard variable and the shapes.

A method that is left out is SciPy's private one.
"""
SIGNED = ("genhyperbolic", "geninvgauss")
"""Distributions whose shapes may be negative."""
OPEN = ("geninvgauss", "invgamma", "lognorm")
"""Distributions whose support does not include its lower end."""

DISCRETE: dict[str, _Formulas] = {
    **{name: {} for name in "betabinom binom geom nbinom poisson".split()},
    "bernoulli": {
        "cdf": lambda k, p: np.where(k < 1, 1 - p, 1.0),
        "sf": lambda k, p: np.where(k < 1, p, 0.0),
        "logcdf": lambda k, p: np.where(k < 1, np.log1p(-p), 0.0),
        "logsf": lambda k, p: np.where(k < 1, np.log(p), -np.inf),
    },
    "logser": {"logpmf": lambda k, p: k * np.log(p) - np.log(k) - np.log(-np.log1p(-p))},
    "planck": {"logpmf": lambda k, rate: np.log(-np.expm1(-rate)) - rate * k},
}
"""The same of whole numbers."""


OWN = "scipy.special._ufuncs"


def by_formula(name: str, formula: Callable[..., Any], module: str = OWN) -> None:
    """Record a function as a formula of its arguments."""
    records(module, name)(lambda trace, *args: formula(*map(trace.traced, args)))


def _central(name: str, raw: Any, excess: float) -> None:
    """Mean, variance, skewness and kurtosis, less its ``excess``, from the first four moments about 0."""

    def skewness(*args: Any) -> Any:
        one, two, three, _ = raw(*args)
        return (three - 3 * one * two + 2 * one**3) / (two - one * one) ** 1.5

    def kurtosis(*args: Any) -> Any:
        one, two, three, four = raw(*args)
        return (four - 4 * one * three + 6 * one * one * two - 3 * one**4) / (two - one * one) ** 2 - excess

    by_formula(f"{name}_mean", lambda *args: raw(*args)[0])
    by_formula(f"{name}_variance", lambda *args: raw(*args)[1] - raw(*args)[0] ** 2)
    by_formula(f"{name}_skewness", skewness)
    by_formula(f"{name}_kurtosis_excess", kurtosis)


def _noncentral_t(v: Any, c: Any) -> tuple[Any, ...]:
    def odd(order: int) -> Any:
        gammaln = special("gammaln")
        return np.exp(0.5 * order * np.log(0.5 * v) + gammaln(0.5 * (v - order)) - gammaln(0.5 * v))

    four = v * v / ((v - 2) * (v - 4)) * (c**4 + 6 * c * c + 3)
    return c * odd(1), (1 + c * c) * v / (v - 2), (c**3 + 3 * c) * odd(3), four


def _noncentral_f(a: Any, b: Any, c: Any) -> tuple[Any, ...]:
    # Moments of the noncentral chi-square distribution, from its cumulants.
    one, two, three, four = a + c, 2 * (a + 2 * c), 8 * (a + 3 * c), 48 * (a + 4 * c)
    moments = (
        one,
        two + one * one,
        three + 3 * two * one + one**3,
        four + 4 * three * one + 3 * two * two + 6 * two * one * one + one**4,
    )
    found, factor = [], 1.0
    for order, each in enumerate(moments, 1):
        factor = factor * b / (a * (b - 2 * order))
        found.append(each * factor)
    return tuple(found)


_central("_nct", _noncentral_t, 3.0)
_central("_ncf", _noncentral_f, 0.0)  # whatever its name says
by_formula("_nbinom_mean", lambda n, p: n * (1 - p) / p)
by_formula("_nbinom_variance", lambda n, p: n * (1 - p) / (p * p))
by_formula("_nbinom_skewness", lambda n, p: (2 - p) / np.sqrt(n * (1 - p)))
by_formula("_nbinom_kurtosis_excess", lambda n, p: (p * p - 6 * p + 6) / (n * (1 - p)))


by_formula(
    "_nbinom_pmf",
    lambda k, n, p: np.exp(n * np.log(p) + special("xlog1py")(k, -p) - special("betaln")(n, k + 1) - np.log(n + k)),
)


def _binomial(k: Any, n: Any, p: Any) -> Any:
    weights = special("xlogy")(k, p) + special("xlog1py")(n - k, -p)
    return np.exp(weights - special("betaln")(k + 1, n - k + 1) - np.log(n + 1))


by_formula("_binom_pmf", _binomial)
for _name, _function in (("_binom_cdf", "betaincc"), ("_binom_sf", "betainc")):
    by_formula(_name, lambda k, n, p, name=_function: special(name)(np.floor(k) + 1, n - np.floor(k), p))
for _name, _function in (("_nbinom_cdf", "betainc"), ("_nbinom_sf", "betaincc")):
    by_formula(_name, lambda k, n, p, name=_function: special(name)(n, np.floor(k) + 1, p))


def beta_density(a: Any, b: Any, x: Any) -> Any:
    """The density of the beta distribution."""
    return np.exp(special("xlogy")(a - 1, x) + special("xlog1py")(b - 1, -x) - special("betaln")(a, b))


by_formula("_beta_pdf", lambda x, a, b: beta_density(a, b, x))
by_formula("_beta_ppf", lambda p, a, b: special("betaincinv")(a, b, p))


def _cotangent(p: Any) -> Any:
    """The cotangent of ``pi * p``; near the ends of 0 to 1 the tangent of the distance from there keeps its digits."""
    return 1 / np.tan(math.pi * np.where(p > 0.5, p - 1, p))


by_formula("_cauchy_ppf", lambda p, m, s: m - s * _cotangent(p))
by_formula("_cauchy_isf", lambda p, m, s: m + s * _cotangent(p))

_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
_TERMS, _MOST_TERMS = 12, 384


@records("scipy.special", "zeta")
def _zeta(trace: Trace, *args: Any, **keywords: Any) -> Any:
    """Hurwitz's zeta function, by its exponent too: Euler and Maclaurin's sum."""
    s, q = trace.traced(args[0]), (*args[1:], keywords.get("q"))[0]
    if trace.is_constant(trace.lift(s)):
        return trace.ruled("zeta", s, 1.0 if q is None else q)
    if q is None:
        count = _terms(trace, s)
        # Riemann's functional equation, with Stirling's series for the gamma function.
        left = np.real(s) < -0.25
        t = np.where(left, 1 - s, 1.25)
        big, series = t + _TERMS, 0.0
        for order in range(6, 0, -1):
            series = series / (big * big) + _BERNOULLI[order - 1] / (2 * order * (2 * order - 1))
        series = series / big
        height = (big - 0.5) * np.log(big) - big - t * np.log(2 * np.pi) + series
        half = np.exp(height / 2)
        factor = 2 * np.sqrt(2 * np.pi) * np.cos(np.pi / 2 * t) * half / math.prod(t + k for k in range(_TERMS)) * half
        s = np.where(left, t, s)
        powers = [1.0]
        for k in range(2, count + 2):
            prime = next(each for each in range(2, k + 1) if k % each == 0)
            powers.append(np.exp(-math.log(k) * s) if prime == k else powers[prime - 1] * powers[k // prime - 1])
        *terms, power = powers
        near, far = sum(reversed(terms)), 1.0 + count
    else:
        q, low = trace.traced(q), np.arange(float(_TERMS))
        near, far = np.sum((q[..., None] + low) ** -s[..., None], axis=-1), q + _TERMS
        power = far**-s
    total = near + far * power / (s - 1) + 0.5 * power
    term = s * (power / far) / 2
    for order, number in enumerate(_BERNOULLI, 1):
        total = total + number * term
        term = term * (s + 2 * order - 1) * (s + 2 * order) / ((2 * order + 1) * (2 * order + 2) * far * far)
    return total if q is not None else np.where(left, factor * total, total)


def _terms(trace: Trace, s: Any) -> int:
    """How many terms of the sum the exponents need, which may be complex; a guard keeps them as small."""
    count, height = _TERMS, np.max(np.abs(np.imag(s)), initial=0.0)
    while trace.varies(height) and not bool(1.5 * height <= count - _TERMS):
        count *= 2
        if count > _MOST_TERMS:
            raise trace.refuse(
                f"scipy.special.zeta of a traced complex number with an imaginary part above {_MOST_TERMS // 2 - 8}.",
                "Give it a rule: yota.diffrule.",
            )
    return count


@records("scipy.special", "zetac")
def _zetac(trace: Trace, x: Any) -> Any:
    """What the zeta function is above its first term, which is 1."""
    if not bool(np.all(trace.traced(x) > 1)):
        return trace.ruled("zetac", x)
    return _zeta(trace, x, 2.0)


def _harmonic(first: Any, last: Any, a: Any) -> Any:
    """The sum of k**-a over the whole numbers from ``first`` to ``last``, of each element."""
    arrays = [np.ravel(each) for each in np.broadcast_arrays(first, last, a)]
    sums = [
        np.sum(np.arange(float(begin), float(end) + 1) ** -power) if int(end) >= int(begin) else 0.0 * power
        for begin, end, power in zip(*arrays, strict=True)
    ]
    return np.reshape(np.stack(sums), np.broadcast_shapes(np.shape(first), np.shape(last), np.shape(a)))


@records(OWN, "_gen_harmonic", "_normalized_gen_harmonic")
def _gen_harmonic(trace: Trace, *args: Any) -> Any:
    """The sum from 1 to a whole number; normalized, what that from one to another is of it."""
    *ends, n = (whole(trace, each, "the end of a sum of powers") for each in args[:-1])
    a = trace.traced(args[-1])
    total = _harmonic(1, n, a)
    return _harmonic(ends[0], ends[1], a) / total if ends else total
