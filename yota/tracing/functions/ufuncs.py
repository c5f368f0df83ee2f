"""Methods of ufuncs, and ufuncs that are recorded as several primitives."""

from __future__ import annotations

from typing import Any

from yota.tracing.implementations import OF_COMPLEX, implements
from yota.tracing.methods import is_tracer
from yota.tracing.parts import turned
from yota.tracing.trace import Trace
from yota.tracing.untyped import np
from yota.tracing.views import view


@implements("outer")
def _outer(trace: Trace, ufunc: Any, a: Any, b: Any, **rest: Any) -> Any:
    a, b = trace.traced(a), trace.traced(b)
    return ufunc(np.reshape(a, a.shape + (1,) * b.ndim), b, **rest)


@implements(np.divmod)
def _divmod(trace: Trace, x1: Any, x2: Any) -> Any:
    return np.floor_divide(x1, x2), np.remainder(x1, x2)


@implements(np.modf)
def _modf(trace: Trace, x: Any) -> Any:
    whole = np.trunc(x)
    # The remainder has the sign of x where it is 0, as a difference has not.
    nothing, unit = np.asarray([0, 1], whole.dtype)
    return np.where(np.isinf(x), np.copysign(nothing, x), np.fmod(x, unit)), whole


@implements(np.ldexp)
def _ldexp(trace: Trace, x1: Any, x2: Any) -> Any:
    x1, x2 = trace.traced(x1), np.asarray(x2)
    if x2.dtype.kind not in "biu":
        raise TypeError("ufunc 'ldexp' not supported for the input types: the exponents are no whole numbers")
    if not is_tracer(x2) and np.all(np.abs(x2) < np.finfo(x1.dtype).maxexp):
        return x1 * np.exp2(np.astype(x2, x1.dtype))
    # In three steps, since the whole power may be out of reach where the result is not.
    part = x2 // 3
    for exponent in (part, part, x2 - 2 * part):
        x1 = x1 * np.exp2(np.astype(exponent, x1.dtype))
    return x1


@implements(np.clip)
def _clip(
    trace: Trace, a: Any, a_min: Any = None, a_max: Any = None, min: Any = None, max: Any = None, **rest: Any
) -> Any:
    low = a_min if min is None else min
    high = a_max if max is None else max
    result = trace.traced(a)
    if low is not None and high is not None and not np.ndim(low) and not np.ndim(high):
        # Of zeros of both signs NumPy keeps that of the array, and these two their second operand.
        return np.minimum(high, np.maximum(low, result))
    if low is not None:
        result = np.maximum(result, low)
    return result if high is None else np.minimum(result, high)


@implements(np.round, np.around)
def _round(trace: Trace, a: Any, decimals: int = 0) -> Any:
    if not decimals:
        return np.rint(a)
    scale = 10.0 ** abs(decimals)
    return np.rint(a * scale) / scale if decimals > 0 else np.rint(a / scale) * scale


def _sign(trace: Trace, z: Any) -> Any:
    """Of a complex number its direction, which changes along the circle."""
    z = np.where(np.isinf(np.absolute(z)), _towards_infinity(z), z)
    size = np.absolute(z)
    nothing = np.equal(size, 0)
    return np.where(nothing, z.dtype.type(0), z / np.where(nothing, size.dtype.type(1), size))


def _towards_infinity(z: Any) -> Any:
    """The direction of a part that is infinite; there is none where both are."""
    real, imaginary = (np.where(np.isinf(each), np.sign(each), 0) for each in (np.real(z), np.imag(z)))
    return np.where(np.logical_and(real, imaginary), np.nan, real + 1j * imaginary).astype(z.dtype)


def _rint(trace: Trace, z: Any) -> Any:
    return np.rint(np.real(z)) + turned(np.rint(np.imag(z)), z.dtype)


OF_COMPLEX.update({np.sign: _sign, np.rint: _rint})


@implements(np.real)
def _real(trace: Trace, val: Any) -> Any:
    return view(val, "real", {}) if val.dtype.kind == "c" else val


@implements(np.imag)
def _imag(trace: Trace, val: Any) -> Any:
    return view(val, "imag", {}) if val.dtype.kind == "c" else np.zeros_like(val)
