"""Functions of scipy.special written in Python: recorded by their rules, or as the ufuncs they amount to."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy

from yota.tracing.binding import bind
from yota.tracing.methods import is_traced

if TYPE_CHECKING:
    from yota.tracing.trace import Trace

__all__ = ["SPECIAL", "scipy_special"]

# Traced values go where NumPy's annotations ask for arrays.
np: Any = numpy


def scipy_special() -> Any:
    """The module, which is loaded whenever one of its functions is called."""
    return sys.modules["scipy.special"]


def _ruled(name: str) -> Callable[..., Any]:
    """The form of a function that has a rule of the same name."""

    def form(trace: Trace, *args: Any, **keywords: Any) -> Any:
        return bind(trace, trace.registry.primitive(name), args, keywords)

    return form


def _plain(trace: Trace, value: Any, what: str) -> Any:
    if is_traced(value) and not trace.is_constant(trace.lift(value)):
        raise trace.refuse(f"{what} ranges over whole numbers and has no derivative.", "Pass an int.")
    return value if not is_traced(value) else trace.values[trace.lift(value)]


def _zeta(trace: Trace, x: Any, q: Any = None, out: Any = None) -> Any:
    if q is None:
        raise trace.refuse("scipy.special.zeta has no derivative by its exponent.", "Give zeta(x, q) a traced q only.")
    return _ruled("zeta")(trace, x, q)


def _polygamma(trace: Trace, n: Any, x: Any) -> Any:
    order = _plain(trace, n, "the order of scipy.special.polygamma")
    special = scipy_special()
    if np.ndim(order) == 0:
        if not order:
            return special.psi(x)
        return (-1.0) ** (order + 1) * special.gamma(order + 1.0) * _zeta(trace, order + 1, x)
    rest = (-1.0) ** (order + 1) * special.gamma(order + 1.0) * _zeta(trace, np.maximum(order, 1) + 1, x)
    return np.where(order == 0, special.psi(x), rest)


def _multigammaln(trace: Trace, a: Any, d: Any) -> Any:
    count = int(_plain(trace, d, "the dimension of scipy.special.multigammaln"))
    gammaln = scipy_special().gammaln
    return sum((gammaln(a - 0.5 * j) for j in range(count)), count * (count - 1) * 0.25 * math.log(math.pi))


def _comb(trace: Trace, N: Any, k: Any, *, exact: bool = False, repetition: bool = False) -> Any:
    _inexact(trace, "comb", exact)
    if repetition:
        return np.where((k == 0) & (N >= 0), 1.0, _comb(trace, N + k - 1, k))
    return np.where((k <= N) & (N >= 0) & (k >= 0), scipy_special().binom(N, k), 0.0)


def _perm(trace: Trace, N: Any, k: Any, exact: bool = False) -> Any:
    _inexact(trace, "perm", exact)
    return np.where((k <= N) & (N >= 0) & (k >= 0), scipy_special().poch(N - k + 1, k), 0.0)


def _factorial(trace: Trace, n: Any, exact: bool = False, extend: str = "zero") -> Any:
    _inexact(trace, "factorial", exact)
    found = scipy_special().gamma(n + 1)
    return np.where(n < 0, 0.0, found) if extend == "zero" else found


def _inexact(trace: Trace, name: str, exact: bool) -> None:
    if exact:
        raise trace.refuse(f"scipy.special.{name} with exact=True is a whole number.", "Leave exact=True out.")


def _spherical(name: str, sign: float, scale: float) -> Callable[..., Any]:
    """The form of a spherical Bessel function, whose derivative mixes both neighbouring orders."""

    def form(trace: Trace, n: Any, z: Any, derivative: bool = False) -> Any:
        n = _plain(trace, n, f"the order of scipy.special.{name}")
        ruled = _ruled(name)
        if not derivative:
            return ruled(trace, n, z)
        below, above = ruled(trace, np.abs(n - 1), z), ruled(trace, n + 1, z)
        return scale * (n * below + sign * (n + 1) * above) / (2 * n + 1)

    return form


SPECIAL: dict[tuple[str, str], Callable[..., Any]] = {
    ("scipy.special", "zeta"): _zeta,
    ("scipy.special", "polygamma"): _polygamma,
    ("scipy.special", "multigammaln"): _multigammaln,
    ("scipy.special", "comb"): _comb,
    ("scipy.special", "perm"): _perm,
    ("scipy.special", "factorial"): _factorial,
    ("scipy.special", "lambertw"): _ruled("lambertw"),
    ("scipy.special", "sph_harm_y"): _ruled("sph_harm_y"),
    ("scipy.special", "spherical_jn"): _spherical("spherical_jn", -1, 1),
    ("scipy.special", "spherical_yn"): _spherical("spherical_yn", -1, 1),
    ("scipy.special", "spherical_in"): _spherical("spherical_in", 1, 1),
    ("scipy.special", "spherical_kn"): _spherical("spherical_kn", 1, -1),
}
"""Recorded forms by module and name; each takes the trace first."""
