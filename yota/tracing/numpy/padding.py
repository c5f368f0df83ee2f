"""Making arrays longer or shorter: pad, insert, delete, trim_zeros, block, vander, meshgrid, windows."""

from __future__ import annotations

import functools
import sys
from typing import Any

from yota.tracing.creation import filled
from yota.tracing.forms import Trace, axes_of, implements, is_traced, is_tracer, np
from yota.tracing.numpy.coefficients import trimmed, trims_coefficients
from yota.tracing.tracer import Tracer
from yota.tracing.views import UNREAD, Look, derived

_STATISTICS = {"maximum": "max", "mean": "mean", "median": "median", "minimum": "min"}


@implements(np.pad, checked=True)
def _pad(trace: Trace, array: Any, pad_width: Any, mode: Any = "constant", **keywords: Any) -> Any:
    array = trace.traced(array)
    if not array.ndim:
        return np.copy(array)
    widths = [(int(low), int(high)) for low, high in _pairs(_by_axis(pad_width, array.ndim), array.ndim)]
    if callable(mode):
        return _by_function(array, widths, mode, keywords)
    given = next(iter(keywords.values()), None)
    if mode in ("reflect", "symmetric") and given == "odd":
        return _padded(array, widths, lambda x, axis, low, high: _odd(x, axis, low, high, mode))
    if mode in ("edge", "wrap", "reflect", "symmetric"):
        return _padded(array, widths, lambda x, axis, low, high: _repeating(x, axis, low, high, mode))
    if mode in _STATISTICS:
        lengths = _pairs(given, array.ndim)
        return _padded(array, widths, lambda x, axis, *width: _statistic(x, axis, width, mode, lengths[axis]))
    values = _pairs(0 if given is None else given, array.ndim)
    form = _ramp if mode == "linear_ramp" else _constant
    return _padded(array, widths, lambda x, axis, *width: form(x, axis, width, values[axis]))


def _by_axis(width: Any, ndim: int) -> Any:
    """Widths in the order of the axes, of a dictionary too."""
    if not isinstance(width, dict):
        return width
    found: list[Any] = [(0, 0)] * ndim
    for axis, each in width.items():
        found[axis] = each if isinstance(each, tuple) else (each, each)
    return found


def _pairs(value: Any, ndim: int) -> list[tuple[Any, Any]]:
    """``value`` as one pair for each axis, by NumPy's broadcasting; the items may be traced."""
    if value is None:
        return [(None, None)] * ndim
    table = np.broadcast_to(np.asarray(value), (ndim, 2))
    return [(table[axis, 0], table[axis, 1]) for axis in range(ndim)]


def _padded(array: Any, widths: list[tuple[int, int]], pad: Any) -> Any:
    """``array`` with ``pad`` done along one axis after the other, as NumPy fills the corners."""
    for axis, (low, high) in enumerate(widths):
        if low or high:
            array = pad(array, axis, low, high)
    return array


def _odd(x: Any, axis: int, low: int, high: int, mode: str) -> Any:
    """Reflection about the edge values: linear in the array, with few elements in each place."""
    extent = x.shape[axis]
    edge = 1 if mode == "reflect" else 0
    if max(low, high) > extent - edge or extent == 1:
        # What is padded is longer than the array: the map is small, and NumPy gives it column by column.
        table = np.pad(np.eye(extent), ((low, high), (0, 0)), mode=mode, reflect_type="odd")
        return np.moveaxis(np.tensordot(table.astype(x.dtype), x, axes=(1, axis)), 0, axis)
    places = np.arange(extent)
    before = 2 * _slab(x, axis, 0, 1) - np.take(x, places[edge : low + edge][::-1], axis=axis)
    after = 2 * _slab(x, axis, extent - 1, extent) - np.take(x, places[::-1][edge : high + edge], axis=axis)
    return np.concatenate([before, x, after], axis=axis)


def _repeating(x: Any, axis: int, low: int, high: int, mode: str) -> Any:
    """Elements of the array once more: parts of it at both ends, as a rule."""
    extent = x.shape[axis]
    edge = 1 if mode == "reflect" else 0
    longest = extent and max(low, high) if mode == "edge" else extent - edge
    if max(low, high) > longest:
        # What is padded is longer than the array, and repeats several times: NumPy pads the positions.
        return np.take(x, np.pad(np.arange(extent), (low, high), mode=mode), axis=axis)
    if mode == "edge":
        before, after = (_slab(x, axis, start, start + 1) for start in (0, extent - 1))
        ends = _repeated(before, axis, low), _repeated(after, axis, high)
    elif mode == "wrap":
        ends = _slab(x, axis, extent - low, extent), _slab(x, axis, 0, high)
    else:
        first, last = _slab(x, axis, edge, low + edge), _slab(x, axis, extent - high - edge, extent - edge)
        ends = np.flip(first, axis), np.flip(last, axis)
    return np.concatenate([*ends[: low > 0], x, *ends[1 : 1 + (high > 0)]], axis=axis)


def _slab(x: Any, axis: int, start: int, stop: int) -> Any:
    return x[(slice(None),) * axis + (slice(start, stop),)]


def _statistic(x: Any, axis: int, width: tuple[int, int], mode: str, lengths: tuple[Any, Any]) -> Any:
    extent = x.shape[axis]
    before, after = (extent if length is None else min(int(length), extent) for length in lengths)
    pieces = [_slab(x, axis, 0, before), _slab(x, axis, extent - after, extent)]
    ends = [getattr(np, _STATISTICS[mode])(piece, axis=axis, keepdims=True) for piece in pieces]
    return np.concatenate([_repeated(ends[0], axis, width[0]), x, _repeated(ends[1], axis, width[1])], axis=axis)


def _repeated(x: Any, axis: int, count: int) -> Any:
    return np.broadcast_to(x, (*x.shape[:axis], count, *x.shape[axis + 1 :]))


def _constant(x: Any, axis: int, width: tuple[int, int], values: tuple[Any, Any]) -> Any:
    low, high = (
        [_filled(x, value, (*x.shape[:axis], count, *x.shape[axis + 1 :]))] if count else []
        for value, count in zip(values, width, strict=True)
    )
    return np.concatenate([*low, x, *high], axis=axis)


def _filled(x: Any, value: Any, shape: tuple[int, ...]) -> Any:
    if is_traced(value):
        return np.broadcast_to(value.astype(x.dtype), shape)
    return filled(x._trace, np.full(shape, value, x.dtype))


def _ramp(x: Any, axis: int, width: tuple[int, int], values: tuple[Any, Any]) -> Any:
    extent = x.shape[axis]
    first, last = (np.take(x, position, axis=axis) for position in (0, extent - 1))
    low, high = (
        np.linspace(value, edge, count, endpoint=False, axis=axis).astype(x.dtype)
        for value, edge, count in zip(values, (first, last), width, strict=True)
    )
    return np.concatenate([low, x, np.flip(high, axis)], axis=axis)


def _by_function(array: Any, widths: list[tuple[int, int]], function: Any, keywords: dict[str, Any]) -> Any:
    """The user's function fills each vector of an array of zeros in place, along one axis after the other."""
    padded = _padded(array, widths, lambda x, axis, *width: _constant(x, axis, width, (0, 0))).copy()
    for axis in range(array.ndim):
        lines = np.moveaxis(padded, axis, -1)
        for place in np.ndindex(lines.shape[:-1]):
            function(lines[place], widths[axis], axis, keywords)
    return padded


@implements(np.insert)
def _insert(trace: Trace, arr: Any, obj: Any, values: Any, axis: Any = None) -> Any:
    arr, values = trace.traced(arr), trace.traced(values)
    if axis is None:
        arr, axis = np.ravel(arr), 0
    axis = axes_of(axis, arr.ndim)[0]
    obj = _plain_places(trace, obj)
    extent = arr.shape[axis]
    if arr.dtype.kind in "biu" and values.dtype.kind in "fc":
        raise trace.refuse("np.insert would cast floating values to integers.", "Make the array floating first.")
    places: Any = np.arange(extent)[obj] if isinstance(obj, slice) else np.asarray(obj)
    if places.dtype == bool:
        places = np.flatnonzero(places)
    count = places.size
    if count == 1:
        values = np.reshape(values, (1,) * (arr.ndim - values.ndim) + values.shape)
        if not places.ndim:
            values = np.moveaxis(values, 0, axis)
        count, places = values.shape[axis], int(places.item())
    values = np.broadcast_to(values, (*arr.shape[:axis], count, *arr.shape[axis + 1 :])).astype(arr.dtype)
    # Where each element of the result stands in the array with the values behind it.
    order = np.insert(np.arange(extent), places, extent + np.arange(count))
    return np.take(np.concatenate([arr, values], axis=axis), order, axis=axis)


def _plain_places(trace: Trace, places: Any) -> Any:
    if is_tracer(places) and not places.ndim:
        return int(places)
    if is_tracer(places):
        if not trace.varies(places):
            return np.copy(places._value())
        raise trace.refuse("positions that depend on the arguments cannot be inserted or deleted at.", "Use a mask.")
    return places


@implements(np.delete)
def _delete(trace: Trace, arr: Any, obj: Any, axis: Any = None) -> Any:
    arr = trace.traced(arr)
    if axis is None:
        arr, axis = np.ravel(arr), 0
    axis = axes_of(axis, arr.ndim)[0]
    kept = np.delete(np.arange(arr.shape[axis]), _plain_places(trace, obj))
    return np.take(arr, kept, axis=axis)


@implements(np.trim_zeros)
def _trim_zeros(trace: Trace, filt: Any, trim: str = "fb", axis: Any = None) -> Any:
    """How much is cut off is a guard."""
    if trims_coefficients(sys._getframe()):
        return trimmed(trace, filt, trim)
    filt = trace.traced(filt)
    mask = np.not_equal(filt, 0)
    result = filt
    for each in axes_of(axis, filt.ndim):
        others = tuple(position for position in range(filt.ndim) if position != each)
        found = np.any(mask, axis=others)
        first, last = 0, filt.shape[each]
        if not bool(np.any(found)):
            last = 0
        else:
            if "f" in trim.lower():
                first = int(np.argmax(found))
            if "b" in trim.lower():
                last -= int(np.argmax(found[::-1]))
        result = result[(slice(None),) * each + (slice(first, last),)]
    return result


@implements(np.block, checked=True)
def _block(trace: Trace, arrays: Any) -> Any:
    depth = _depth(arrays)
    ndim = max(depth, _most_axes(trace, arrays))

    def joined(part: Any, level: int) -> Any:
        if isinstance(part, list):
            return np.concatenate([joined(each, level + 1) for each in part], axis=level - depth)
        found = trace.traced(part)
        return np.reshape(found, (1,) * (ndim - found.ndim) + found.shape)

    return joined(arrays, 0)


def _depth(part: Any) -> int:
    return 1 + _depth(part[0]) if isinstance(part, list) else 0


def _most_axes(trace: Trace, part: Any) -> int:
    if isinstance(part, list):
        return max(_most_axes(trace, each) for each in part)
    return int(trace.traced(part).ndim)


@implements(np.vander)
def _vander(trace: Trace, x: Any, N: Any = None, increasing: bool = False) -> Any:
    x = trace.traced(x)
    x = x.astype(np.promote_types(x.dtype, int), copy=False)
    count = len(x) if N is None else int(N)
    columns = np.broadcast_to(x[:, None], (len(x), max(count - 1, 0)))
    powers = np.cumprod(np.concatenate([np.ones((len(x), min(count, 1)), x.dtype), columns], axis=1), axis=1)
    return powers if increasing else np.flip(powers, 1)


@implements(np.meshgrid, checked=True)
def _meshgrid(trace: Trace, *xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    order = list(range(len(xi)))
    if indexing == "xy" and len(xi) > 1:
        order[:2] = 1, 0
    grids = [
        np.reshape(trace.traced(x), (1,) * order[position] + (-1,) + (1,) * (len(xi) - order[position] - 1))
        for position, x in enumerate(xi)
    ]
    found = tuple(grids) if sparse else tuple(np.broadcast_arrays(*grids))
    return tuple(each.copy() for each in found) if copy else found


@implements(np.lib.stride_tricks.sliding_window_view)
def _windows(
    trace: Trace, x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Any:
    x = trace.traced(x)
    extents = tuple(window_shape) if isinstance(window_shape, (tuple, list)) else (window_shape,)
    axes = tuple(range(x.ndim)) if axis is None else axis if isinstance(axis, (tuple, list)) else (axis,)
    places = tuple(axes_of(each, x.ndim)[0] for each in axes)
    # NumPy raises the errors.
    plain = np.lib.stride_tricks.sliding_window_view(x._value(), extents, places)
    read = Look(functools.partial(_gathered, extents, places, (slice(None),) * x.ndim))
    if type(x) is not Tracer or trace.sizes is not None or len(set(places)) < len(places) or not plain.size:
        return derived(x, read)
    found = _Windows(trace, UNREAD, x, read)
    found._kept = extents, places, plain.shape
    return found


def _gathered(extents: tuple[int, ...], places: tuple[int, ...], kept: tuple[slice, ...], x: Any) -> Any:
    """The windows of ``x``, of which ``kept`` says by axis which ones; their value lies where that of ``x`` does."""
    value = x._value()
    for place, extent in zip(places, extents, strict=True):
        starts = np.arange(x.shape[place] - extent + 1)[kept[place]]
        x = np.moveaxis(np.take(x, starts[:, None] + np.arange(extent), axis=place), place + 1, -1)
    if places:
        # Windows share elements, and so may be copied where they are reshaped.
        laid = np.lib.stride_tricks.sliding_window_view(value, extents, places)[kept]
        x = x._trace.rearranged(x._current(), laid)
    return x


class _Windows(Tracer):
    """All windows of an array, which are many times its size: slices of them make only those that they take."""

    __slots__ = ("_kept",)

    def __init__(self, trace: Trace, variable: int, base: Tracer | None = None, read: Any = None) -> None:
        super().__init__(trace, variable, base, read)
        self._kept: Any = None

    def _is_unread(self) -> bool:
        return self._variable == UNREAD and self._kept is not None and np.shape(self._base) == self._base_shape

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        value = None if self._is_unread() else self._trace.values.get(self._current())
        return np.ndarray if value is None else type(value)

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents."""
        found: tuple[int, ...] = self._kept[2] if self._is_unread() else super().shape
        return found

    @shape.setter
    def shape(self, extents: Any) -> None:
        raise self._trace.refuse("setting the shape of a view is not supported.", "Use .reshape(...).")

    def __getitem__(self, index: Any) -> Any:
        kept = self._slices(index if isinstance(index, tuple) else (index,)) if self._is_unread() else None
        if kept is None or self._base is None:
            return super().__getitem__(index)
        extents, places, _ = self._kept
        return derived(self._base, Look(functools.partial(_gathered, extents, places, kept)))

    def _slices(self, index: tuple[Any, ...]) -> tuple[slice, ...] | None:
        """By axis of the array, the windows that an index takes; None if it does something else too."""
        given = [each for each in index if each is not Ellipsis]
        if not all(type(each) is slice and _is_plain(each) for each in given) or len(given) < len(index) - 1:
            return None
        _, places, shape = self._kept
        front = next((place for place, each in enumerate(index) if each is Ellipsis), len(given))
        given[front:front] = [slice(None)] * (len(shape) - len(given))
        fixed = [each for place, each in enumerate(given) if place not in places]
        ndim = len(shape) - len(places)
        return tuple(given[:ndim]) if len(given) == len(shape) and all(each == slice(None) for each in fixed) else None


def _is_plain(entry: slice) -> bool:
    return all(each is None or type(each) is int for each in (entry.start, entry.stop, entry.step))
