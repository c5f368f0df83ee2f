"""Compiled filters of scipy.ndimage: weighted sums, extremes and ranks of neighbours; factors of Fourier transforms."""

from __future__ import annotations

import functools
import importlib
import itertools
import math
import operator
import sys
from collections.abc import Callable, Sequence
from typing import Any

from yota.ir.location import where
from yota.tracing.forms import Trace, is_traced, np, records
from yota.tracing.scipy.splines import filled
from yota.tracing.source_lines import here

_COMPILED = "scipy.ndimage._nd_image"
WRAP, REFLECT, CONSTANT = 1, 2, 4
"""SciPy's numbers of its modes."""
_GRID_CONSTANT = 6
_MOST_LINES = 32
"""Lines of weights up to which correlations of lines take less time than one of several axes."""
_PADDING: tuple[Any, ...] = ("edge", "wrap", "symmetric", "reflect", "edge", "wrap", "edge")
"""NumPy's names for all of them; the outside of a constant mode is written over."""


def padded(trace: Trace, x: Any, before: Sequence[int], after: Sequence[int], mode: int, cval: Any) -> Any:
    """``x`` continued beyond its ends."""
    for axis, (low, high) in enumerate(zip(before, after, strict=True)):
        extent = x.shape[axis]
        if not low and not high:
            continue
        places = np.pad(np.arange(extent), (low, high), _PADDING[mode])
        x = x[(slice(None),) * axis + (places,)]
        if mode in (CONSTANT, _GRID_CONSTANT):
            where = np.arange(-low, extent + high)
            shape = (-1,) + (1,) * (x.ndim - axis - 1)
            x = np.where(((where >= 0) & (where < extent)).reshape(shape), x, cval)
    return x


def store(trace: Trace, out: Any, found: Any) -> None:
    """Write ``found`` into ``out``, the array for the result of a filter."""
    if not is_traced(out) and not trace.varies(found):
        out[...] = found._value()
    elif not is_traced(out):
        # No TypeError, after which the function would run again with a traced copy of the array.
        raise ValueError(
            f"{where(here())}scipy.ndimage would write traced values into a plain array; make the array for output= "
            "inside of the function with np.zeros, or leave it out"
        )
    else:
        filled(trace, out, found)


def _around(trace: Trace, x: Any, shape: Sequence[int], mode: int, cval: Any, origins: Sequence[int]) -> Any:
    """``x`` continued as far as neighbourhoods of a shape reach."""
    before = [extent // 2 + int(origin) for extent, origin in zip(shape, origins, strict=True)]
    after = [extent - 1 - each for extent, each in zip(shape, before, strict=True)]
    return padded(trace, x, before, after, mode, cval)


def _shifted(whole: Any, place: Sequence[int], shape: Sequence[int]) -> Any:
    """The part of a continued array that starts at a place."""
    return whole[tuple(slice(start, start + extent) for start, extent in zip(place, shape, strict=True))]


def _lines(trace: Trace, rows: Any, weights: Any) -> Any:
    """The correlation of each row: that of all rows one after the other, without what spans two of them."""
    flat = np.reshape(rows, -1)
    found = trace.ruled("signal_correlate", flat, weights, mode="valid", method="direct")
    found = np.concatenate([found, np.zeros(len(weights) - 1, found.dtype)])
    return np.reshape(found, rows.shape)[..., : rows.shape[-1] - len(weights) + 1]


def _single(ndim: int, axis: int, value: Any, rest: Any) -> list[Any]:
    return [value if each == axis else rest for each in range(ndim)]


@records(_COMPILED, "correlate")
def _correlate(trace: Trace, x: Any, weights: Any, out: Any, mode: int, cval: Any, origins: Any) -> None:
    x, weights = trace.traced(x), trace.traced(weights)
    whole = _around(trace, x, weights.shape, mode, cval, origins)
    importlib.import_module("scipy.signal")  # scipy.ndimage does not need it
    axis = max(range(x.ndim), key=weights.shape.__getitem__)
    if x.ndim == 1 or not x.size or not 0 < math.prod(weights.shape) <= _MOST_LINES * weights.shape[axis]:
        store(trace, out, trace.ruled("signal_correlate", whole, weights, mode="valid", method="direct"))
        return
    whole, weights = np.moveaxis(whole, axis, -1), np.moveaxis(weights, axis, -1)
    inner = (*x.shape[:axis], *x.shape[axis + 1 :])
    parts = (
        _lines(trace, _shifted(whole, place, inner), weights[place])
        for place in itertools.product(*map(range, weights.shape[:-1]))
    )
    store(trace, out, np.moveaxis(functools.reduce(operator.add, parts), -1, axis))


@records(_COMPILED, "correlate1d")
def _correlate_along(
    trace: Trace, x: Any, weights: Any, axis: int, out: Any, mode: int, cval: Any, origin: int
) -> None:
    weights = np.reshape(trace.traced(weights), _single(x.ndim, axis, -1, 1))
    _correlate(trace, x, weights, out, mode, cval, _single(x.ndim, axis, origin, 0))


@records(_COMPILED, "uniform_filter1d")
def _uniform_along(trace: Trace, x: Any, size: int, axis: int, out: Any, mode: int, cval: Any, origin: int) -> None:
    _correlate_along(trace, x, np.full(size, 1 / size), axis, out, mode, cval, origin)


@records("scipy.ndimage", "gaussian_filter1d")
def _gaussian_along(
    trace: Trace,
    input: Any,
    sigma: Any,
    axis: int,
    order: int,
    output: Any,
    mode: str,
    cval: Any,
    truncate: float,
    radius: Any,
) -> Any:
    """As SciPy has it, with a guard on the radius that SciPy computes from ``float(sigma)``."""
    module = sys.modules["scipy.ndimage._filters"]
    reach = int(float(truncate) * sigma + 0.5) if radius is None else int(radius)
    weights = vars(module)["_gaussian_kernel1d"](sigma, int(order), reach)[::-1]
    return vars(module)["correlate1d"](input, weights, axis, output, mode, cval, 0)


def _neighbours(trace: Trace, x: Any, footprint: Any, mode: int, cval: Any, origins: Any) -> Any:
    """The neighbours of each element that a footprint covers, along a new first axis."""
    x = trace.traced(x)
    whole = _around(trace, x, footprint.shape, mode, cval, origins)
    return np.stack([_shifted(whole, place, x.shape) for place in np.argwhere(footprint).tolist()])


@records(_COMPILED, "min_or_max_filter")
def _extreme(
    trace: Trace, x: Any, footprint: Any, structure: Any, out: Any, mode: int, cval: Any, origins: Any, minimum: int
) -> None:
    found = _neighbours(trace, x, footprint, mode, cval, origins)
    if structure is not None:
        heights = np.reshape(trace.traced(structure)[footprint], (-1,) + (1,) * (found.ndim - 1))
        found = found - heights if minimum else found + heights
    store(trace, out, (np.min if minimum else np.max)(found, axis=0))


@records(_COMPILED, "min_or_max_filter1d")
def _extreme_along(
    trace: Trace, x: Any, size: int, axis: int, out: Any, mode: int, cval: Any, origin: int, minimum: int
) -> None:
    footprint = np.ones(_single(x.ndim, axis, size, 1), bool)
    _extreme(trace, x, footprint, None, out, mode, cval, _single(x.ndim, axis, origin, 0), minimum)


@records(_COMPILED, "rank_filter")
def _ranked(trace: Trace, x: Any, rank: int, footprint: Any, out: Any, mode: int, cval: Any, origins: Any) -> None:
    store(trace, out, np.sort(_neighbours(trace, x, footprint, mode, cval, origins), axis=0)[int(rank)])


@records("scipy.ndimage._rank_filter_1d", "rank_filter")
def _ranked_line(trace: Trace, x: Any, rank: int, size: int, out: Any, mode: int, cval: Any, origin: int) -> None:
    _ranked(trace, x, rank, np.ones(size, bool), out, mode, cval, [origin])


_MOST = 4096
"""Neighbourhoods that a function of Python's is called for."""


@records(_COMPILED, "generic_filter")
def _called(
    trace: Trace, x: Any, function: Any, footprint: Any, out: Any, mode: int, cval: Any, origins: Any, *given: Any
) -> None:
    arguments, keywords = given
    if math.prod(x.shape) > _MOST:
        raise trace.unrecorded(f"a function of more than {_MOST} neighbourhoods", "Write it with arrays.")
    found = _neighbours(trace, x, footprint, mode, cval, origins).astype(float, copy=False)
    rows = np.reshape(found, (len(found), -1)).T
    store(trace, out, np.reshape(np.stack([function(each, *arguments, **keywords) for each in rows]), x.shape))


def _frequencies(shape: tuple[int, ...], n: int, axis: int) -> list[Any]:
    """Of each axis the frequencies, in cycles a pixel; along ``axis`` those of a real signal of ``n`` numbers."""
    found = []
    for number, extent in enumerate(shape):
        half = n >= 0 and number == axis % len(shape)
        values = np.arange(extent) / n if half else np.fft.fftfreq(extent)
        found.append(np.reshape(values, (-1,) + (1,) * (len(shape) - 1 - number)))
    return found


def _ellipsoid(terms: list[Any]) -> Any:
    radius = math.pi * np.sqrt(sum(term * term for term in terms))
    safe = np.where(radius == 0, 1.0, radius)
    if len(terms) == 1:
        found = np.sin(safe) / safe
    elif len(terms) == 2:
        found = 2 * sys.modules["scipy.special"].j1(safe) / safe
    else:
        found = 3 * (np.sin(safe) - safe * np.cos(safe)) / safe**3
    return np.where(radius == 0, 1.0, found)


_FACTORS: tuple[Callable[[list[Any]], Any], ...] = (
    lambda terms: np.exp(-2 * math.pi**2 * sum(term * term for term in terms)),
    lambda terms: math.prod(map(np.sinc, terms)),
    _ellipsoid,
)
"""By SciPy's numbers, what filters multiply by: functions of frequencies times the parameters of their axes."""


@records(_COMPILED, "fourier_filter")
def _multiplied(trace: Trace, x: Any, widths: Any, n: int, axis: int, out: Any, kind: int) -> None:
    terms = [width * each for width, each in zip(widths, _frequencies(x.shape, n, axis), strict=True)]
    store(trace, out, trace.traced(x) * _FACTORS[kind](terms))


@records(_COMPILED, "fourier_shift")
def _turned(trace: Trace, x: Any, shifts: Any, n: int, axis: int, out: Any) -> None:
    total = sum(shift * each for shift, each in zip(shifts, _frequencies(x.shape, n, axis), strict=True))
    store(trace, out, trace.traced(x) * np.exp(-2j * math.pi * total))
