"""Legendre functions and spherical harmonics of scipy.special, of one order or of all up to one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from yota.tracing.functions.scipy.special import scipy_special
from yota.tracing.implementations import records
from yota.tracing.methods import is_traced
from yota.tracing.trace import Trace
from yota.tracing.untyped import np


def _plainly(trace: Trace, name: str, keywords: dict[str, Any], **defaults: Any) -> None:
    others = [key for key, value in keywords.items() if key not in defaults or value != defaults[key]]
    if others:
        raise trace.unrecorded(f"scipy.special.{name} with {', '.join(others)}", "Leave it out.")


@records("scipy.special", "legendre_p")
def _legendre(trace: Trace, n: Any, z: Any, **keywords: Any) -> Any:
    _plainly(trace, "legendre_p", keywords, diff_n=0)
    return np.asarray(scipy_special().eval_legendre(n, z))[None]


@records("scipy.special", "legendre_p_all")
def _legendre_all(trace: Trace, n: int, z: Any, **keywords: Any) -> Any:
    _plainly(trace, "legendre_p_all", keywords, diff_n=0)
    return np.stack([scipy_special().eval_legendre(each, z) for each in range(int(n) + 1)])[None]


def _spherical(trace: Trace, n: Any, m: Any, theta: Any) -> Any:
    """A spherical harmonic where the other angle is 0."""
    return np.real(scipy_special().sph_harm_y(n, m, theta, 0.0))


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


def _harmonic(trace: Trace, n: Any, m: Any, theta: Any, phi: Any) -> Any:
    return scipy_special().sph_harm_y(n, m, theta, phi)


def _one(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def form(trace: Trace, n: Any, m: Any, *arguments: Any, **keywords: Any) -> Any:
        _plainly(trace, name, keywords, diff_n=0, norm=False, branch_cut=2)
        return np.asarray(function(trace, n, m, *arguments))[None]

    return form


def _all(name: str, function: Callable[..., Any], *, leading: bool = True) -> Callable[..., Any]:
    """The form of all functions of degrees up to ``n``; orders below 0 are counted from the end."""

    def form(trace: Trace, n: int, m: int, *arguments: Any, **keywords: Any) -> Any:
        _plainly(trace, name, keywords, diff_n=0, norm=False, branch_cut=2)
        orders = [*range(int(m) + 1), *range(-int(m), 0)]
        degrees = range(int(n) + 1)
        found = np.stack([np.stack([function(trace, each, order, *arguments) for order in orders]) for each in degrees])
        return found[None] if leading else found

    return form


for _name, _function in {"sph_legendre_p": _spherical, "assoc_legendre_p": _associated}.items():
    records("scipy.special", _name)(_one(_name, _function))
    records("scipy.special", f"{_name}_all")(_all(f"{_name}_all", _function))
records("scipy.special", "sph_harm_y_all")(_all("sph_harm_y_all", _harmonic, leading=False))
