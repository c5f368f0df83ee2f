"""Functions of scipy.special: recorded by their rules, or as the ufuncs they amount to; sequences by their orders."""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable
from typing import Any

from yota.tracing.forms import Trace, axes_of, is_traced, np, original, records
from yota.tracing.implementations import OF_COMPLEX, when_loaded
from yota.tracing.intercept import bind


def scipy_special() -> Any:
    """The module, which is loaded whenever one of its functions is called."""
    return sys.modules["scipy.special"]


@records("scipy.special", "lambertw", "sph_harm_y", named=True)
def _ruled(name: str, trace: Trace, *args: Any, **keywords: Any) -> Any:
    """The form of a function that has a rule of the same name."""
    return bind(trace, trace.registry.primitive(name), args, keywords)


@records("scipy.special", "expm1", "log1p", named=True)
def _of_numpy(name: str, trace: Trace, x: Any, *args: Any, **keywords: Any) -> Any:
    """The form of a ufunc that NumPy has for real numbers."""
    x = trace.traced(x)
    ufunc = original(getattr(scipy_special(), name)) if x.dtype.kind == "c" else getattr(np, name)
    return ufunc(x, *args, **keywords)


def whole(trace: Trace, value: Any, what: str) -> Any:
    """A whole number, or an array of such, by which there is no derivative."""
    return trace.fixed(value, f"{what} ranges over whole numbers and has no derivative.", "Pass whole numbers.")


@records("scipy.special", "polygamma")
def _polygamma(trace: Trace, n: Any, x: Any) -> Any:
    order = whole(trace, n, "the order of scipy.special.polygamma")
    special = scipy_special()
    if np.ndim(order) == 0:
        if not order:
            return special.psi(x)
        return (-1.0) ** (order + 1) * special.gamma(order + 1.0) * _ruled("zeta", trace, order + 1, x)
    rest = (-1.0) ** (order + 1) * special.gamma(order + 1.0) * _ruled("zeta", trace, np.maximum(order, 1) + 1, x)
    return np.where(order == 0, special.psi(x), rest)


@records("scipy.special", "diric")
def _diric(trace: Trace, x: Any, n: Any) -> Any:
    """By a quotient that is smooth where SciPy's is 0 / 0."""
    x = trace.traced(x)
    x = x if x.dtype.kind == "f" else x.astype(float)
    turns = np.rint(x / (2 * math.pi))
    place = x / (2 * math.pi) - turns
    sign = np.where(np.remainder(turns * (n - 1), 2) == 0, 1, -1)
    return np.where((n <= 0) | (n != np.floor(n)), math.nan, sign * np.sinc(n * place) / np.sinc(place))


@records("scipy.special", "logsumexp")
def _logsumexp(
    trace: Trace, a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False
) -> Any:
    """Shifted by the largest exponent (Blanchard, Higham and Higham 2021, IMA J. Numer. Anal. 41, section 1)."""
    a = trace.traced(a)
    largest = trace.still(np.max(a, axis=axis, keepdims=True))
    terms = np.exp(a - np.where(np.isfinite(largest), largest, 0.0))
    total = np.sum(terms if b is None else b * terms, axis=axis, keepdims=keepdims)
    level = largest if keepdims else np.squeeze(largest, axis=axes_of(axis, a.ndim))
    size = np.where(level == -np.inf, 1.0, np.abs(total) if return_sign else total)
    result = np.log(size) + np.where(level < np.inf, level, 0.0)
    return (result, np.sign(total)) if return_sign else result


@records("scipy.special", "log_softmax")
def _log_softmax(trace: Trace, x: Any, axis: Any = None) -> Any:
    x = trace.traced(x)
    largest = trace.still(np.max(x, axis=axis, keepdims=True))
    shifted = x - np.where(np.isfinite(largest), largest, 0.0)
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))


@records("scipy.special", "spherical_jn", "spherical_yn", "spherical_in", "spherical_kn", named=True)
def _spherical(name: str, trace: Trace, n: Any, z: Any, derivative: bool = False) -> Any:
    """The form of a spherical Bessel function, whose derivative mixes both neighbouring orders."""
    sign, scale = 1 if name[-2] in "ik" else -1, -1 if name[-2] == "k" else 1
    # SciPy takes the whole part of an order, in the neighbouring orders of the derivative too.
    n = np.asarray(whole(trace, n, f"the order of scipy.special.{name}"), int)
    ruled = functools.partial(_ruled, name)
    if not derivative:
        return ruled(trace, n, z)
    below, above = ruled(trace, np.abs(n - 1), z), ruled(trace, n + 1, z)
    return scale * (n * below + sign * (n + 1) * above) / (2 * n + 1)


@records("scipy.special", "riccati_jn", "riccati_yn", named=True)
def _riccati_bessel(name: str, trace: Trace, n: Any, x: Any) -> Any:
    """The form of Riccati-Bessel functions of all orders up to one, with their derivatives."""
    spherical, x = getattr(scipy_special(), f"spherical_{name[-2:]}"), trace.traced(x)
    orders = range(int(whole(trace, n, f"the order of scipy.special.{name}")) + 1)
    found, slopes = (np.stack([spherical(each, x, derivative) for each in orders]) for derivative in (False, True))
    return x * found, found + x * slopes


@when_loaded("scipy.special")
def _of_complex_numbers() -> None:
    special = scipy_special()
    for name in ("psi", "jv", "yv", "iv", "kv", "kve"):
        OF_COMPLEX[getattr(special, name)] = functools.partial(_ruled, f"_complex_{name}")
    for name, part in (("jv", np.imag), ("yv", np.imag), ("iv", np.real)):
        OF_COMPLEX[getattr(special, f"{name}e")] = functools.partial(_scaled, name, part)


def _scaled(name: str, part: Callable[[Any], Any], trace: Trace, v: Any, z: Any) -> Any:
    """A Bessel function times an exponential of the size of its argument's imaginary or real part."""
    if not bool(np.all(np.abs(part(z)) < 700)):
        raise trace.refuse(f"scipy.special.{name}e of numbers so large is not recorded.", "Use hankel1e and hankel2e.")
    return getattr(scipy_special(), name)(v, z) * np.exp(-np.abs(part(z)))


@records("scipy.special._orthogonal", "_gen_roots_and_weights")
def _quadrature(
    trace: Trace, n: int, mu0: Any, an_func: Any, bn_func: Any, f: Any, df: Any, symmetrize: bool, mu: bool
) -> Any:
    """Nodes are eigenvalues of the recurrence, weights by the eigenvectors (Golub and Welsch 1969, Math. Comp. 23)."""
    order = np.arange(float(n))
    beside = bn_func(order[1:])
    x, vectors = np.linalg.eigh(np.diag(an_func(order)) + np.diag(beside, 1) + np.diag(beside, -1))
    w = mu0 * vectors[0] ** 2
    if symmetrize:
        x, w = (x - x[::-1]) / 2, (w + w[::-1]) / 2
    return (x, w, mu0) if mu else (x, w)


@records("scipy.special", "roots_jacobi")
def _jacobi(trace: Trace, n: int, alpha: Any, beta: Any, mu: bool = False) -> Any:
    """Without SciPy's branches for equal parameters, on which a slope by one of them alone is lost."""
    special, (a, b) = scipy_special(), (trace.traced(each) for each in (alpha, beta))
    if n < 1 or n != int(n) or not bool((a > -1) & (b > -1)):
        raise ValueError("n must be a positive integer, alpha and beta must be greater than -1.")

    def beside(k: Any) -> Any:
        twice, later = 2 * k + a + b, np.maximum(k, 2)
        first = 2 / twice * np.sqrt((k + a) * (k + b) / (twice + 1))
        return first * np.where(k == 1, 1.0, np.sqrt(later * (later + a + b) / (2 * later + a + b - 1)))

    def middle(k: Any) -> Any:
        twice = 2 * np.maximum(k, 1) + a + b
        return np.where(k == 0, (b - a) / (2 + a + b), (b * b - a * a) / (twice * (twice + 2)))

    total = np.exp((a + b + 1) * math.log(2) + special.betaln(a + 1, b + 1))
    return _quadrature(trace, n, total, middle, beside, None, None, False, mu)


@records("scipy.special", "roots_gegenbauer")
def _gegenbauer(trace: Trace, n: int, alpha: Any, mu: bool = False) -> Any:
    return _jacobi(trace, n, alpha - 0.5, alpha - 0.5, mu)


def _plainly(trace: Trace, name: str, keywords: dict[str, Any], **defaults: Any) -> None:
    others = [key for key, value in keywords.items() if key not in defaults or value != defaults[key]]
    if others:
        raise trace.unrecorded(f"scipy.special.{name} with {', '.join(others)}", "Leave it out.")


@records("scipy.special", "legendre_p", "legendre_p_all", named=True)
def _legendre(name: str, trace: Trace, n: Any, z: Any, **keywords: Any) -> Any:
    _plainly(trace, name, keywords, diff_n=0)
    one = scipy_special().eval_legendre
    return (np.stack([one(each, z) for each in range(int(n) + 1)]) if name.endswith("_all") else np.asarray(one(n, z)))[
        None
    ]


def _associated(trace: Trace, n: Any, m: Any, z: Any) -> Any:
    if not bool(np.all(np.abs(z) < 1)):
        raise trace.refuse("Legendre functions outside of -1 to 1 are not recorded.", "Keep the argument inside.")
    if is_traced(m) or np.ndim(m) or np.ndim(n):
        raise trace.refuse("Legendre functions of several orders are recorded one by one.", "Pass ints, or use _all.")
    if abs(m) > n:
        return 0.0 * z
    if not m:
        return scipy_special().eval_legendre(n, z)
    found = scipy_special().lpmv(abs(m), n, z)
    return found if m >= 0 else (-1) ** m * math.factorial(n + m) / math.factorial(n - m) * found


_OF_ORDERS: dict[str, Callable[..., Any]] = {
    # A spherical harmonic where the other angle is 0.
    "sph_legendre_p": lambda trace, *args: np.real(scipy_special().sph_harm_y(*args, 0.0)),
    "assoc_legendre_p": _associated,
    "sph_harm_y": lambda trace, *args: scipy_special().sph_harm_y(*args),
}


@records("scipy.special", "sph_legendre_p", "assoc_legendre_p", *(f"{each}_all" for each in _OF_ORDERS), named=True)
def _of_orders(name: str, trace: Trace, n: Any, m: Any, *arguments: Any, **keywords: Any) -> Any:
    """One function, or all of degrees up to ``n``; orders below 0 are counted from the end."""
    _plainly(trace, name, keywords, diff_n=0, norm=False, branch_cut=2)
    one = functools.partial(_OF_ORDERS[name.removesuffix("_all")], trace)
    if not name.endswith("_all"):
        return np.asarray(one(n, m, *arguments))[None]
    orders = [*range(int(m) + 1), *range(-int(m), 0)]
    found = np.stack([np.stack([one(each, order, *arguments) for order in orders]) for each in range(int(n) + 1)])
    return found if name == "sph_harm_y_all" else found[None]


def _orders(trace: Trace, v: Any, x: Any) -> tuple[int, Any, Any]:
    """The whole part of an order, the rest, and the argument in double precision."""
    if np.ndim(v) or np.ndim(x):
        raise ValueError("arguments must be scalars.")
    count = int(v)
    return count, v - count, trace.traced(x).astype(float)


@records("scipy.special", "lmbda")
def _lambda(trace: Trace, v: Any, x: Any) -> Any:
    """By Bessel functions, of which these are the ones that are 1 at 0."""
    special, (count, first, x) = scipy_special(), _orders(trace, v, x)
    safe = np.where(x == 0, 1.0, x)
    found = []
    for order in range(count + 2):
        scaled = special.gamma(first + order + 1) * (2 / safe) ** (first + order) * special.jv(first + order, safe)
        found.append(np.where(x == 0, 1.0, scaled))
    slopes = [-x / (2 * (first + order + 1)) * found[order + 1] for order in range(count + 1)]
    return np.stack(found[:-1]), np.stack(slopes)


@records("scipy.special", "pbdv_seq", "pbvv_seq", named=True)
def _parabolic(name: str, trace: Trace, v: Any, x: Any) -> Any:
    count, first, x = _orders(trace, v, x)
    one = getattr(scipy_special(), name.removesuffix("_seq"))
    values, slopes = zip(*(one(first + order, x) for order in range(max(count, 1) + 1)), strict=True)
    return np.stack(values), np.stack(slopes)


def _inside(trace: Trace, name: str, z: Any) -> Any:
    z = trace.traced(z).astype(float)
    if not bool(np.all(np.abs(z) < 1)):
        raise trace.unrecorded(f"scipy.special.{name} outside of -1 to 1", "Keep the argument inside.")
    return z


@records("scipy.special", "lqmn")
def _associated_second_legendre(trace: Trace, m: Any, n: Any, z: Any) -> Any:
    """By the recurrence over orders from those of order 0 and 1 (https://dlmf.nist.gov/14.10.E1)."""
    z = _inside(trace, "lqmn", z)
    degrees = np.arange(int(n) + 1).reshape(-1, *(1,) * z.ndim)
    sine = np.sqrt(1 - z**2)
    first, slopes = _second_legendre(trace, max(int(n), 1), z)
    found = [first[: int(n) + 1], -sine * slopes[: int(n) + 1]]
    for k in range(int(m)):
        found.append(-2 * (k + 1) * z / sine * found[k + 1] - (degrees - k) * (degrees + k + 1) * found[k])
    steps = [-(found[k + 1] + k * z / sine * found[k]) / sine for k in range(int(m) + 1)]
    return np.stack(found[: int(m) + 1]), np.stack(steps)


@records("scipy.special", "lqn")
def _second_legendre(trace: Trace, n: Any, z: Any) -> Any:
    """By the recurrence, which is stable between -1 and 1."""
    z = _inside(trace, "lqn", z)
    found = [np.arctanh(z), z * np.arctanh(z) - 1]
    for k in range(1, int(n)):
        found.append(((2 * k + 1) * z * found[k] - k * found[k - 1]) / (k + 1))
    slopes = [1 / (1 - z**2), *(k * (z * found[k] - found[k - 1]) / (z**2 - 1) for k in range(1, int(n) + 1))]
    return np.stack(found[: int(n) + 1]), np.stack(slopes[: int(n) + 1])
