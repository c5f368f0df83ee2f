"""Reductions, recorded as sum, max, min, prod and cumsum with normalised axes; those that leave NaNs out, by masks."""

from __future__ import annotations

import math
from typing import Any

from yota.tracing.forms import Trace, axes_of, implements, is_tracer, np, primitive, unboxed


def reduce(trace: Trace, name: str, x: Any, axis: Any, keepdims: bool) -> Any:
    """Record the reduction ``name``, whose result has NumPy's type."""
    x = trace.traced(x)
    axes = () if not x.ndim and axis in (0, -1) else axes_of(axis, x.ndim)
    return trace.apply(primitive(name), (x,), {"axis": axes, "keepdims": bool(keepdims)})


@implements(np.sum, np.prod, named=True, by_kind=1)
def _fold(
    name: str,
    trace: Trace,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    a = trace.traced(a)
    if dtype is not None and np.dtype(dtype) != a.dtype:
        a = a.astype(dtype)
    if where is not True:
        a = np.where(where, a, np.full((), name == "prod", a.dtype))
    result = reduce(trace, name, a, axis, keepdims)
    if initial is None:
        return result
    return (np.add if name == "sum" else np.multiply)(as_dtype(trace, initial, result.dtype), result)


def as_dtype(trace: Trace, value: Any, dtype: Any) -> Any:
    """``value`` with a reduction's dtype, which NumPy gives the element that it starts from, or NumPy's error."""
    return trace.traced(value).astype(dtype, copy=False) if is_tracer(value) else np.asarray(value, dtype)


@implements(np.max, np.amax, np.min, np.amin, named=True, by_kind=1)
def _extremum(
    name: str, trace: Trace, a: Any, axis: Any = None, keepdims: bool = False, initial: Any = None, where: Any = True
) -> Any:
    a, name = trace.traced(a), name[-3:]
    if initial is not None:
        initial = as_dtype(trace, initial, a.dtype)
    if where is not True:
        if initial is None:
            raise ValueError("NumPy says why")
        a = np.where(where, a, initial)
    if not a.size and initial is not None:
        return np.full(np.sum(a, axis=axis, keepdims=keepdims).shape, initial, a.dtype)
    result = reduce(trace, name, a, axis, keepdims)
    return result if initial is None else getattr(np, f"{name}imum")(initial, result)


@implements(np.any, np.all, named=True, by_kind=1)
def _truth(name: str, trace: Trace, a: Any, axis: Any = None, keepdims: bool = False, where: Any = True) -> Any:
    if where is not True:
        a = np.where(where, a, name == "all")
    return reduce(trace, name, a, axis, keepdims)


def _counted(a: Any, where: Any, axis: Any, keepdims: bool) -> Any:
    """How many elements of ``a`` a mask lets into a reduction."""
    axes = axes_of(axis, a.ndim)
    if where is True:
        return math.prod(a.shape[each] for each in axes)
    return np.asarray(np.sum(np.broadcast_to(where, a.shape), axis=axes, keepdims=keepdims))


@implements(np.mean)
def _mean(trace: Trace, a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False, where: Any = True) -> Any:
    a = trace.traced(a)
    if dtype is None and a.dtype == np.float16:
        # As in NumPy: the total of many may be past the largest of such numbers, where their mean is not.
        return np.mean(a, axis=axis, dtype=np.float32, keepdims=keepdims, where=where).astype(np.float16)
    if dtype is None and a.dtype.kind in "biu":
        dtype = np.dtype(float)
    total = np.sum(a, axis=axis, dtype=dtype, keepdims=keepdims, where=where)
    return _shared(total, _counted(a, where, axis, keepdims))


def _shared(total: Any, count: Any) -> Any:
    """``total / count``, where the count of float16 numbers may be past the largest of them."""
    wide = np.dtype(np.float32) if total.dtype == np.float16 else total.dtype
    count = count.astype(wide) if hasattr(count, "dtype") else count
    return (total.astype(wide, copy=False) / count).astype(total.dtype, copy=False)


@implements(np.var)
def _var(
    trace: Trace, a: Any, axis: Any = None, dtype: Any = None, ddof: float = 0, keepdims: bool = False, **rest: Any
) -> Any:
    a, where, mean, correction = trace.traced(a), rest.get("where", True), rest.get("mean"), rest.get("correction")
    ddof = ddof if correction is None else correction
    exact = a.dtype if dtype is None and a.dtype.kind in "fc" else dtype
    centre = np.mean(a, axis=axis, dtype=exact, keepdims=True, where=where) if mean is None else mean
    deviation = a - centre
    square = np.real(deviation * np.conj(deviation)) if a.dtype.kind == "c" else deviation * deviation
    total = np.sum(square, axis=axis, dtype=dtype, keepdims=keepdims, where=where)
    count = _counted(a, where, axis, keepdims) - ddof
    return _shared(total, max(count, 0) if where is True else np.maximum(count, 0))


implements(np.std)(lambda trace, a, *args, **keywords: root(trace, np.var(trace.traced(a), *args, **keywords)))


def root(trace: Trace, variance: Any) -> Any:
    """The square root of a variance or a sum of squares; at 0, the tip of a cone, its derivative is taken to be 0."""
    if variance.dtype.kind == "c":
        # dtype=complex: the variance of what has no imaginary part, or NumPy's own sense of one.
        return np.sqrt(variance)
    return trace.ruled("_root", variance)


@implements(np.cumsum, np.cumprod, named=True, by_kind=1)
def _accumulate(name: str, trace: Trace, a: Any, axis: Any = None, dtype: Any = None) -> Any:
    a = trace.traced(a)
    if dtype is not None and np.dtype(dtype) != a.dtype:
        a = a.astype(dtype)
    if axis is None or not a.ndim:
        a, axis = a.reshape(-1), 0
    return trace.apply(primitive(name), (a,), {"axis": axes_of(axis, a.ndim)[0]})


@implements(np.argmax, np.argmin, named=True, by_kind=1)
def _position(name: str, trace: Trace, a: Any, axis: Any = None, keepdims: bool = False) -> Any:
    a = trace.traced(a)
    axis = None if axis is None else axes_of(axis, a.ndim)[0]
    return trace.apply(primitive(name), (a,), {"axis": axis, "keepdims": bool(keepdims)})


@implements(np.argsort)
def _argsort(trace: Trace, a: Any, axis: Any = -1, kind: Any = None, order: Any = None, stable: Any = None) -> Any:
    a = trace.traced(a)
    if axis is None or not a.ndim:
        a, axis = a.reshape(-1), 0
    kind = "stable" if stable or kind == "stable" else None
    return trace.apply(primitive("argsort"), (a,), {"axis": axes_of(axis, a.ndim)[0], "kind": kind})


@implements(np.sort)
def _sort(trace: Trace, a: Any, axis: Any = -1, kind: Any = None, order: Any = None, stable: Any = None) -> Any:
    a = trace.traced(a)
    if axis is None:
        a, axis = a.reshape(-1), 0
    return np.take_along_axis(a, np.argsort(a, axis=axis, kind=kind, stable=stable), axis)


def _without_nan(trace: Trace, a: Any, fill: float) -> tuple[Any, Any]:
    """The array with ``fill`` in the place of NaNs, and where it had numbers."""
    a = trace.traced(a)
    if a.dtype.kind not in "fc":
        return a, True
    valid = np.logical_not(np.isnan(a))
    return np.where(valid, a, np.asarray(fill, a.dtype)), valid


def _both(valid: Any, where: Any) -> Any:
    return valid if where is True else where if valid is True else np.logical_and(valid, where)


@implements(np.nanmax, np.nanmin, named=True)
def _valid_extremum(name: str, trace: Trace, a: Any, axis: Any = None, keepdims: bool = False, **keywords: Any) -> Any:
    filled, valid = _without_nan(trace, a, math.inf if name == "nanmin" else -math.inf)
    result = getattr(np, name[3:])(filled, axis=axis, keepdims=keepdims, **keywords)
    if valid is True or "initial" in keywords:
        return result
    some = np.any(valid, axis=axes_of(axis, valid.ndim), keepdims=keepdims)
    return unboxed(np.where(some, result, np.asarray(math.nan, filled.dtype)))


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
    enough = _counted(filled, chosen, axis, keepdims) > ddof
    return unboxed(np.where(enough, result, np.asarray(math.nan, result.dtype)))


implements(np.nanstd)(lambda trace, a, *args, **keywords: root(trace, np.nanvar(trace.traced(a), *args, **keywords)))


_PLAIN_MEDIAN = np.median._implementation


@implements(np.median)
def _median(trace: Trace, a: Any, axis: Any = None, overwrite_input: bool = False, keepdims: bool = False) -> Any:
    """Where sizes have names, both elements in the middle are read, which are one if their number is odd."""
    a = trace.traced(a)
    if trace.sizes is None or a.dtype != np.float64 or not a.size:
        return _PLAIN_MEDIAN(a, axis, keepdims=keepdims)
    axes, ordered, place, _ = _places(trace, a, axis, 0.5)
    one, other = (ordered[..., each.astype(int)][..., 0] for each in (np.floor(place), np.ceil(place)))
    found = np.where(np.isnan(ordered[..., -1]), math.nan, 0.5 * one + 0.5 * other)
    return _with_axes(found, a, axes) if keepdims else found


def _places(trace: Trace, a: Any, axis: Any, q: Any) -> tuple[tuple[int, ...], Any, Any, Any]:
    """The reduced axes, the sorted rows, where the probabilities lie in them, and the last place for each of these."""
    axes, rows = _rows(a, axis)
    # What arrays of constants are computed to stays on the tape where it has no form.
    ends = trace.constant(np.full(np.size(q), float(rows.shape[-1] - 1)))
    return axes, np.sort(rows, axis=-1), ends * np.ravel(q), ends


@implements(np.quantile, np.percentile, named=True)
def _quantile(name: str, trace: Trace, a: Any, q: Any, axis: Any = None, keepdims: bool = False, **options: Any) -> Any:
    """Where sizes have names, positions are computed from them."""
    a, method = trace.traced(a), options.pop("method", "linear")
    options.pop("overwrite_input", None)
    known = not is_tracer(q) and np.ndim(q) < 2 and not options and method == "linear"
    if trace.sizes is None or not known or a.dtype != np.float64 or not a.size:
        return getattr(np, name)._implementation(a, q, axis, method=method, keepdims=keepdims, **options)
    axes, ordered, place, ends = _places(trace, a, axis, np.true_divide(q, 100 if name == "percentile" else 1))
    lower = np.floor(place)
    one, other = (ordered[..., each.astype(int)] for each in (lower, np.minimum(lower + 1.0, ends)))
    # As in NumPy from the end that is nearer.
    step, part = other - one, place - lower
    found = np.where(part >= 0.5, other - step * (1 - part), one + step * part)
    found = np.where(np.isnan(ordered[..., -1:]), math.nan, found)
    each = [_with_axes(found[..., number], a, axes) if keepdims else found[..., number] for number in range(np.size(q))]
    return np.stack(each) if np.ndim(q) else each[0]


def _rows(a: Any, axis: Any) -> tuple[tuple[int, ...], Any]:
    """The axes that are reduced, and the array with all of them as the last one."""
    axes = axes_of(axis, a.ndim)
    rest = tuple(extent for place, extent in enumerate(a.shape) if place not in axes)
    moved = np.moveaxis(a, axes, range(a.ndim - len(axes), a.ndim))
    return axes, np.reshape(moved, (*rest, math.prod(a.shape[place] for place in axes)))


def _with_axes(result: Any, a: Any, axes: tuple[int, ...]) -> Any:
    """A reduction of ``a`` with the reduced axes as axes of one element."""
    return np.reshape(result, tuple(1 if place in axes else extent for place, extent in enumerate(a.shape)))


@implements(np.nanmedian)
def _nanmedian(trace: Trace, a: Any, axis: Any = None, overwrite_input: bool = False, keepdims: bool = False) -> Any:
    a = trace.traced(a)
    if a.dtype.kind != "f" or not a.size:
        return np.nanquantile(a, 0.5, axis=axis, keepdims=keepdims)
    # All rows at once: NumPy itself goes through them one by one.
    axes, rows = _rows(a, axis)
    count = np.sum(np.logical_not(np.isnan(rows)), axis=-1, keepdims=True)
    # What is no number comes last; a row without numbers ends in one at place -1.
    ordered = np.sort(rows, axis=-1)
    middle = [np.take_along_axis(ordered, place, -1)[..., 0] for place in ((count - 1) // 2, count // 2)]
    middle[1] = np.where(count[..., 0] == 0, middle[0], middle[1])
    median = 0.5 * middle[0] + 0.5 * middle[1]
    return _with_axes(median, a, axes) if keepdims else median
