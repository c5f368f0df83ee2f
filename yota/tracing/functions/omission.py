"""Reductions that leave NaNs out, by masks."""

from __future__ import annotations

import functools
import math
from typing import Any

from yota.rules.statics import axes_of
from yota.tracing.functions.reductions import root
from yota.tracing.implementations import implements
from yota.tracing.methods import unboxed
from yota.tracing.trace import Trace
from yota.tracing.untyped import np


def _without_nan(trace: Trace, a: Any, fill: float) -> tuple[Any, Any]:
    """The array with ``fill`` in the place of NaNs, and where it had numbers."""
    a = trace.traced(a)
    if a.dtype.kind not in "fc":
        return a, True
    valid = np.logical_not(np.isnan(a))
    return np.where(valid, a, np.asarray(fill, a.dtype)), valid


def _both(valid: Any, where: Any) -> Any:
    return valid if where is True else where if valid is True else np.logical_and(valid, where)


def _extremum(
    name: str, fill: float, trace: Trace, a: Any, axis: Any = None, keepdims: bool = False, **keywords: Any
) -> Any:
    filled, valid = _without_nan(trace, a, fill)
    result = getattr(np, name)(filled, axis=axis, keepdims=keepdims, **keywords)
    if valid is True or "initial" in keywords:
        return result
    some = np.any(valid, axis=axes_of(axis, valid.ndim), keepdims=keepdims)
    return unboxed(np.where(some, result, np.asarray(math.nan, filled.dtype)))


implements(np.nanmax)(functools.partial(_extremum, "max", -math.inf))
implements(np.nanmin)(functools.partial(_extremum, "min", math.inf))


@implements(np.nanmean)
def _nanmean(
    trace: Trace, a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False, where: Any = True
) -> Any:
    filled, valid = _without_nan(trace, a, 0.0)
    # NumPy adds up float16 numbers as such here, unlike in its mean.
    dtype = filled.dtype if dtype is None and filled.dtype.kind in "fc" else dtype
    return np.mean(filled, axis=axis, dtype=dtype, keepdims=keepdims, where=_both(valid, where))


@implements(np.nanvar)
def _nanvar(
    trace: Trace, a: Any, axis: Any = None, dtype: Any = None, ddof: float = 0, keepdims: bool = False, **rest: Any
) -> Any:
    filled, valid = _without_nan(trace, a, 0.0)
    chosen, correction = _both(valid, rest.get("where", True)), rest.get("correction")
    ddof = ddof if correction is None else correction
    result = np.var(filled, axis, dtype, ddof=ddof, keepdims=keepdims, where=chosen, mean=rest.get("mean"))
    if valid is True:
        return result
    # NumPy gives NaN where no degrees of freedom are left.
    count = np.sum(np.broadcast_to(chosen, filled.shape), axis=axes_of(axis, filled.ndim), keepdims=keepdims)
    return np.where(count > ddof, result, np.asarray(math.nan, result.dtype))


@implements(np.nanstd)
def _nanstd(trace: Trace, a: Any, *args: Any, **keywords: Any) -> Any:
    return root(trace, np.nanvar(trace.traced(a), *args, **keywords))


@implements(np.nanmedian)
def _nanmedian(trace: Trace, a: Any, axis: Any = None, overwrite_input: bool = False, keepdims: bool = False) -> Any:
    a = trace.traced(a)
    if a.dtype.kind != "f" or not a.size:
        return np.nanquantile(a, 0.5, axis=axis, keepdims=keepdims)
    # All rows at once: NumPy itself goes through them one by one.
    axes = axes_of(axis, a.ndim)
    rest = tuple(extent for place, extent in enumerate(a.shape) if place not in axes)
    rows = np.reshape(np.moveaxis(a, axes, range(a.ndim - len(axes), a.ndim)), (*rest, -1))
    count = np.sum(np.logical_not(np.isnan(rows)), axis=-1, keepdims=True)
    # What is no number comes last; a row without numbers ends in one at place -1.
    ordered = np.sort(rows, axis=-1)
    middle = [np.take_along_axis(ordered, place, -1)[..., 0] for place in ((count - 1) // 2, count // 2)]
    middle[1] = np.where(count[..., 0] == 0, middle[0], middle[1])
    median = 0.5 * middle[0] + 0.5 * middle[1]
    if not keepdims:
        return median
    return np.reshape(median, tuple(1 if place in axes else extent for place, extent in enumerate(a.shape)))
