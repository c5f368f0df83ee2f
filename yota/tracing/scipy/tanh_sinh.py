"""Integrals by `scipy.integrate.tanhsinh`: a sum over the nodes of the level at which SciPy ends, for each element."""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable
from typing import Any

from yota.tracing.forms import Trace, concrete, np, paused
from yota.tracing.scipy.callbacks import concrete_function
from yota.tracing.scipy.quadrature import diverges

_STEPS = 8
"""Steps of the coarsest level to each side."""
_GUARDED, _COARSE = 1e-6, 1e-2
"""How far the sum of the level before may be away, as a part of the sum of all sizes: as a rule, and at the most."""
_NEAREST = 1e-150
"""Nearer to an end, the slope of an integrand that is infinite there outgrows the numbers."""


def tanhsinh(trace: Trace, f: Callable[..., Any], a: Any, b: Any, *, args: Any = (), **options: Any) -> Any:
    """The integrals, and all else that SciPy gives, which is constant; a guard says whether other levels are needed."""
    original = inspect.unwrap(sys.modules["scipy.integrate._tanhsinh"].tanhsinh)
    if options.get("log") or options.get("preserve_shape") or options.get("callback"):
        return original(f, a, b, args=args, **options)
    more = args if isinstance(args, (tuple, list)) else (args,)
    ends, known = ([np.asarray(concrete(trace, each)) for each in values] for values in ((a, b), more))
    plain = concrete_function(trace, f)
    with paused():
        found = original(plain, *ends, args=tuple(known), **options)
        value = np.asarray(found.integral)
        low, high, *known = _columns(value.shape, *ends, *known)
        places, weights, even = _nodes(max(int(np.max(found.maxlevel, initial=0)), 1), low, high, value.real.dtype)
        with np.errstate(all="ignore"):
            x, _ = _points(places, low, high, low, high, len(even) // 2)
            values = np.asarray(plain(x, *known))
        used = (np.minimum(low, high) < x) & (x < np.maximum(low, high)) & np.isfinite(values) & (weights != 0)
        used &= np.isfinite(weights)
        # What SciPy leaves out stands in the middle of the range, without a weight.
        half = len(even) // 2
        middle, kept = np.repeat(places[:, [0, half]], half, axis=1), used.any(axis=0)
        places, weights = np.where(used, places, middle)[:, kept], np.where(used, weights, 0.0)[:, kept]
        even, count = even[kept], int(kept[:half].sum())
    first, last = _columns(value.shape, a, b)
    x, span = _points(places, first, last, low, high, count)
    terms = span * weights * f(x, *_columns(value.shape, *more))
    result, size = np.sum(terms, axis=1), np.sum(np.abs(terms), axis=1)
    rough = np.abs(result - 2 * np.sum(terms[:, even], axis=1))
    wanted = np.ravel(np.isfinite(value))
    most = np.asarray(concrete(trace, rough)) / np.maximum(np.asarray(concrete(trace, size)), np.finfo(float).tiny)
    if not bool(np.all((rough <= np.clip(10 * most, _GUARDED, _COARSE) * size) | ~wanted)):
        raise diverges(trace, "tanhsinh")
    result = np.reshape(np.where(wanted, result, value.ravel()), value.shape)
    # SciPy's sums write what is traced into the others.
    found.update({name: trace.traced(each) for name, each in found.items() if isinstance(each, np.ndarray)})
    found.integral = result if value.shape else result[()]
    return found


def _columns(shape: tuple[int, ...], *values: Any) -> list[Any]:
    return [np.reshape(np.broadcast_to(each, shape), (-1, 1)) for each in values]


def _nodes(level: int, low: Any, high: Any, kind: Any) -> tuple[Any, Any, Any]:
    """Places in the range from both of its ends, with their weights; and which belong to the level before."""
    most = math.asinh(math.log(0.5 / float(np.finfo(kind).smallest_normal) - 1) / math.pi)
    step = most / _STEPS / 2**level
    number = np.arange(_STEPS * 2**level + 1)
    bent = np.pi / 2 * np.sinh(number * step)
    with np.errstate(all="ignore"):
        y = 0.5 / (np.exp(bent) * np.cosh(bent))
        weight = step * np.pi / 4 * np.cosh(number * step) / np.cosh(bent) ** 2
        weight[0] /= 2
        infinite = np.isinf(low).astype(int) + np.isinf(high)
        line = (1 - 2 * y) / (4 * y * (1 - y))
        stretched = 2 * weight * (1 + (1 - 2 * y) ** 2) / (4 * y * (1 - y)) ** 2
        places = [
            np.select([infinite == 0, infinite == 1], [y, 1 / y - 1], line),
            np.select([infinite == 0, infinite == 1], [-y, y / (1 - y)], -line),
        ]
        weights = [np.select([infinite == 0, infinite == 1], [weight, weight / t**2], stretched) for t in (y, 1 - y)]
        nearest = [(y >= _NEAREST) | (infinite > 0), (y >= _NEAREST) | (infinite > 1)]
        weights = [np.where(each, weight, 0.0) for each, weight in zip(nearest, weights, strict=True)]
    signs = np.where(low == high, 0, np.where(np.isinf(low) & np.isfinite(high), -1, 1))
    even = np.tile(number % 2 == 0, 2)
    return np.concatenate(places, axis=1), signs * np.concatenate(weights, axis=1), even


def _points(places: Any, a: Any, b: Any, low: Any, high: Any, count: int) -> tuple[Any, Any]:
    """Where the integrand is evaluated, and the length of the range: 1 or -1 for an infinite one.

    count: how many places are from the first end; the others are from the second.
    """
    is_finite = np.isfinite(low) & np.isfinite(high)
    start = np.where(np.isfinite(low), a, np.where(np.isfinite(high), b, 0.0))
    span = np.where(is_finite, b - a, np.where(np.isinf(high), np.sign(high), np.sign(low)))
    left, right = places[:, :count], places[:, count:]
    return np.concatenate([start + span * left, np.where(is_finite, b, start) + span * right], axis=1), span
