"""Hypergeometric functions by their parameters, by Euler's integrals: the trapezoidal rule in a double exponential.

NIST Handbook of Mathematical Functions, 13.4.1, 13.4.4 and 15.6.1. H. Takahasi, M. Mori, Double exponential formulas
for numerical integration, Publ. RIMS 9 (1974).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from yota.tracing.functions.scipy.formulas import special
from yota.tracing.implementations import records
from yota.tracing.methods import is_tracer
from yota.tracing.trace import Trace
from yota.tracing.untyped import np

_STEP = 1 / 32
_PLACES = np.arange(-6.5, 6.5, _STEP)
_TURNED = np.pi / 2 * np.sinh(_PLACES)
_WEIGHTS = np.log(np.pi / 2 * np.cosh(_PLACES) * _STEP)
_BELOW, _ABOVE = -np.logaddexp(0, -2 * _TURNED), -np.logaddexp(0, 2 * _TURNED)
"""Logarithms of the variable from 0 to 1, and of what it lacks to 1."""


def _between(first: Any, second: Any, logarithm: Callable[[], Any]) -> Any:
    """The mean of the exponential of ``logarithm()`` over the beta distribution."""
    exponent = first * _BELOW + second * _ABOVE + logarithm() + _WEIGHTS + np.log(2.0)
    return np.sum(np.exp(exponent - special("betaln")(first, second)), axis=-1)


def _gauss(a: Any, b: Any, c: Any, z: Any) -> Any:
    a, b = (a, b) if _is_between(b, c) else (b, a)
    if not (_is_between(b, c) and bool(np.all(z < 1))):
        return None
    a, b, c, z = (each[..., None] for each in (a, b, c, z))
    return _between(b, c - b, lambda: -a * np.log(np.exp(_ABOVE) + (1 - z) * np.exp(_BELOW)))


def _kummer(a: Any, b: Any, z: Any) -> Any:
    if not _is_between(a, b):
        return None
    a, b, z = (each[..., None] for each in (a, b, z))
    return _between(a, b - a, lambda: z * np.exp(_BELOW))


def _tricomi(a: Any, b: Any, z: Any) -> Any:
    if not (bool(np.all(a > 0)) and bool(np.all(z > 0))):
        return None
    a, b, z = (each[..., None] for each in (a, b, z))
    exponent = a * _TURNED - z * np.exp(_TURNED) + (b - a - 1) * np.logaddexp(0, _TURNED) + _WEIGHTS
    return np.sum(np.exp(exponent - special("gammaln")(a)), axis=-1)


def _limit(b: Any, z: Any) -> Any:
    """By Bessel functions, of one sign of the argument."""
    negative = bool(np.all(z < 0))
    if not (negative or bool(np.all(z > 0))):
        return None
    root = np.sqrt(-z if negative else z)
    return special("gamma")(b) * root ** (1 - b) * special("jv" if negative else "iv")(b - 1, 2 * root)


def _is_between(value: Any, high: Any) -> bool:
    return bool(np.all((value > 0) & (value < high)))


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


def _recorded(name: str, form: Callable[..., Any], many: int, trace: Trace, *args: Any, **keywords: Any) -> Any:
    """By the parameters as an integral or a sum if there is one; else by the rule, which says why not."""
    found = None
    if not keywords and any(map(trace.varies, args[:-1])):
        found = _polynomial(args[:many], args[many:-1], args[-1]) if many else None
        found = form(*map(trace.traced, args)) if found is None else found
    return trace.apply(trace.registry.primitive(name), args, keywords) if found is None else found


for _name, _form, _many in (
    ("hyp2f1", _gauss, 2),
    ("hyp1f1", _kummer, 1),
    ("hyperu", _tricomi, 0),
    ("hyp0f1", _limit, 0),
):
    records("scipy.special", _name)(functools.partial(_recorded, _name, _form, _many))
