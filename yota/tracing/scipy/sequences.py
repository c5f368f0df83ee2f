"""Sequences of special functions by their orders."""

from __future__ import annotations

from typing import Any

from yota.tracing.implementations import records
from yota.tracing.scipy.special import scipy_special
from yota.tracing.trace import Trace
from yota.tracing.untyped import np


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


@records("scipy.special", "lqn")
def _legendre(trace: Trace, n: Any, z: Any) -> Any:
    """By the recurrence, which is stable between -1 and 1."""
    z = trace.traced(z).astype(float)
    if not bool(np.all(np.abs(z) < 1)):
        raise trace.unrecorded("scipy.special.lqn outside of -1 to 1", "Keep the argument inside.")
    found = [np.arctanh(z), z * np.arctanh(z) - 1]
    for k in range(1, int(n)):
        found.append(((2 * k + 1) * z * found[k] - k * found[k - 1]) / (k + 1))
    slopes = [1 / (1 - z**2), *(k * (z * found[k] - found[k - 1]) / (z**2 - 1) for k in range(1, int(n) + 1))]
    return np.stack(found[: int(n) + 1]), np.stack(slopes[: int(n) + 1])
