"""What scipy.stats has of its own in scipy.special and is plain arithmetic: moments, probabilities, sums of powers."""

from __future__ import annotations

import math
from typing import Any

from yota.tracing.functions.scipy.formulas import special
from yota.tracing.implementations import records
from yota.tracing.trace import Trace
from yota.tracing.untyped import np

_OWN = "scipy.special._ufuncs"


def _records(name: str, formula: Any) -> None:
    records(_OWN, name)(lambda trace, *args: formula(*map(trace.traced, args)))


def _central(name: str, raw: Any, excess: float) -> None:
    """Mean, variance, skewness and kurtosis, less its ``excess``, from the first four moments about 0."""

    def skewness(*args: Any) -> Any:
        one, two, three, _ = raw(*args)
        return (three - 3 * one * two + 2 * one**3) / (two - one * one) ** 1.5

    def kurtosis(*args: Any) -> Any:
        one, two, three, four = raw(*args)
        return (four - 4 * one * three + 6 * one * one * two - 3 * one**4) / (two - one * one) ** 2 - excess

    _records(f"{name}_mean", lambda *args: raw(*args)[0])
    _records(f"{name}_variance", lambda *args: raw(*args)[1] - raw(*args)[0] ** 2)
    _records(f"{name}_skewness", skewness)
    _records(f"{name}_kurtosis_excess", kurtosis)


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
_records("_nbinom_mean", lambda n, p: n * (1 - p) / p)
_records("_nbinom_variance", lambda n, p: n * (1 - p) / (p * p))
_records("_nbinom_skewness", lambda n, p: (2 - p) / np.sqrt(n * (1 - p)))
_records("_nbinom_kurtosis_excess", lambda n, p: (p * p - 6 * p + 6) / (n * (1 - p)))


def _binomial(k: Any, n: Any, p: Any) -> Any:
    weights = special("xlogy")(k, p) + special("xlog1py")(n - k, -p)
    return np.exp(weights - special("betaln")(k + 1, n - k + 1) - np.log(n + 1))


def _negative_binomial(k: Any, n: Any, p: Any) -> Any:
    return np.exp(n * np.log(p) + special("xlog1py")(k, -p) - special("betaln")(n, k + 1) - np.log(n + k))


_records("_binom_pmf", _binomial)
_records("_nbinom_pmf", _negative_binomial)
for _name, _function in (("_binom_cdf", "betaincc"), ("_binom_sf", "betainc")):
    _records(_name, lambda k, n, p, name=_function: special(name)(np.floor(k) + 1, n - np.floor(k), p))
for _name, _function in (("_nbinom_cdf", "betainc"), ("_nbinom_sf", "betaincc")):
    _records(_name, lambda k, n, p, name=_function: special(name)(n, np.floor(k) + 1, p))
_records(
    "_beta_pdf",
    lambda x, a, b: np.exp(special("xlogy")(a - 1, x) + special("xlog1py")(b - 1, -x) - special("betaln")(a, b)),
)
_records("_beta_ppf", lambda p, a, b: special("betaincinv")(a, b, p))


def _cotangent(p: Any) -> Any:
    """The cotangent of ``pi * p``; near the ends of 0 to 1 the tangent of the distance from there keeps its digits."""
    return 1 / np.tan(math.pi * np.where(p > 0.5, p - 1, p))


_records("_cauchy_ppf", lambda p, m, s: m - s * _cotangent(p))
_records("_cauchy_isf", lambda p, m, s: m + s * _cotangent(p))

_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
_TERMS = 12


@records("scipy.special", "zeta")
def _zeta(trace: Trace, *args: Any, **keywords: Any) -> Any:
    """Hurwitz's zeta function, by its exponent too: Euler and Maclaurin's sum."""
    s, q = trace.traced(args[0]), (*args[1:], keywords.get("q"))[0]
    if trace.is_constant(trace.lift(s)):
        return trace.apply(trace.registry.primitive("zeta"), (s, 1.0 if q is None else q))
    q = trace.traced(1.0 if q is None else q)
    low = np.arange(float(_TERMS))
    near = np.sum((q[..., None] + low) ** -s[..., None], axis=-1)
    far = q + _TERMS
    total = near + far ** (1 - s) / (s - 1) + 0.5 * far**-s
    term = s * far ** (-s - 1) / 2
    for order, number in enumerate(_BERNOULLI, 1):
        total = total + number * term
        term = term * (s + 2 * order - 1) * (s + 2 * order) / ((2 * order + 1) * (2 * order + 2) * far * far)
    return total


def _harmonic(first: Any, last: Any, a: Any) -> Any:
    """The sum of k**-a over the whole numbers from ``first`` to ``last``, of each element."""
    arrays = [np.ravel(each) for each in np.broadcast_arrays(first, last, a)]
    sums = [
        np.sum(np.arange(float(begin), float(end) + 1) ** -power) if int(end) >= int(begin) else 0.0 * power
        for begin, end, power in zip(*arrays, strict=True)
    ]
    return np.reshape(np.stack(sums), np.broadcast_shapes(np.shape(first), np.shape(last), np.shape(a)))


def _whole(trace: Trace, value: Any) -> Any:
    """Whole numbers, which have no derivative."""
    variable = trace.lift(value)
    if not trace.is_constant(variable):
        raise trace.refuse("sums of powers have no derivative by their ends.", "Pass whole numbers.")
    return trace.values[variable]


@records(_OWN, "_gen_harmonic")
def _gen_harmonic(trace: Trace, *args: Any) -> Any:
    n, a = args
    return _harmonic(1, _whole(trace, n), trace.traced(a))


@records(_OWN, "_normalized_gen_harmonic")
def _normalized_gen_harmonic(trace: Trace, *args: Any) -> Any:
    first, last, n, a = args
    first, last, n, a = _whole(trace, first), _whole(trace, last), _whole(trace, n), trace.traced(a)
    return _harmonic(first, last, a) / _harmonic(1, n, a)
