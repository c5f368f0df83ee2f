"""np.pad in all its modes: gathers by constant positions, or pieces computed and joined axis by axis."""

from __future__ import annotations

from typing import Any

from yota.tracing.implementations import implements
from yota.tracing.trace import Trace
from yota.tracing.untyped import np

_STATISTICS = {"maximum": "max", "mean": "mean", "median": "median", "minimum": "min"}
_KEYWORDS: dict[str, tuple[str, ...]] = {
    "constant": ("constant_values",),
    "linear_ramp": ("end_values",),
    **dict.fromkeys(_STATISTICS, ("stat_length",)),
    **dict.fromkeys(("reflect", "symmetric"), ("reflect_type",)),
    **dict.fromkeys(("edge", "wrap", "empty"), ()),
}


@implements(np.pad)
def _pad(trace: Trace, array: Any, pad_width: Any, mode: Any = "constant", **keywords: Any) -> Any:
    array = trace.traced(array)
    widths = [(int(low), int(high)) for low, high in _pairs(_by_axis(pad_width, array.ndim), array.ndim)]
    if any(low < 0 or high < 0 for low, high in widths):
        raise ValueError("index can't contain negative values")
    if callable(mode):
        return _by_function(array, widths, mode, keywords)
    if mode not in _KEYWORDS:
        raise ValueError(f"mode '{mode}' is not supported")
    wrong = set(keywords) - set(_KEYWORDS[mode])
    if wrong:
        raise ValueError(f"unsupported keyword arguments for mode '{mode}': {wrong}")
    given = next(iter(keywords.values()), None)
    if mode in ("reflect", "symmetric") and given == "odd":
        return _padded(array, widths, lambda x, axis, low, high: _odd(x, axis, low, high, mode))
    if mode in ("edge", "wrap", "reflect", "symmetric"):
        return _padded(array, widths, lambda x, axis, low, high: _gathered(x, axis, low, high, mode))
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


def _gathered(x: Any, axis: int, low: int, high: int, mode: str) -> Any:
    """Modes that repeat elements: NumPy pads their positions."""
    positions = np.pad(np.arange(x.shape[axis]), (low, high), mode=mode)
    return np.take(x, positions, axis=axis)


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


def _slab(x: Any, axis: int, start: int, stop: int) -> Any:
    return x[(slice(None),) * axis + (slice(start, stop),)]


def _statistic(x: Any, axis: int, width: tuple[int, int], mode: str, lengths: tuple[Any, Any]) -> Any:
    extent = x.shape[axis]
    before, after = (extent if length is None else min(int(length), extent) for length in lengths)
    if not (before and after) and mode in ("maximum", "minimum"):
        raise ValueError("stat_length of 0 yields no value for padding")
    pieces = [_slab(x, axis, 0, before), _slab(x, axis, extent - after, extent)]
    ends = [getattr(np, _STATISTICS[mode])(piece, axis=axis, keepdims=True) for piece in pieces]
    return np.concatenate([_repeated(ends[0], axis, width[0]), x, _repeated(ends[1], axis, width[1])], axis=axis)


def _repeated(x: Any, axis: int, count: int) -> Any:
    return np.broadcast_to(x, (*x.shape[:axis], count, *x.shape[axis + 1 :]))


def _constant(x: Any, axis: int, width: tuple[int, int], values: tuple[Any, Any]) -> Any:
    rest = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
    low, high = (
        _repeated(np.broadcast_to(np.astype(np.asarray(value), x.dtype), rest), axis, count)
        for value, count in zip(values, width, strict=True)
    )
    return np.concatenate([low, x, high], axis=axis)


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
