"""Functions of scipy.signal and scipy.ndimage: convolutions, linear filters, interpolation."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy

from yota.tracing.methods import is_traced

if TYPE_CHECKING:
    from yota.tracing.trace import Trace

__all__ = ["FILTERS"]

# Traced values go where NumPy's annotations ask for arrays.
np: Any = numpy

_PADDING: dict[str, Any] = {
    "reflect": "symmetric",
    "grid-mirror": "symmetric",
    "mirror": "reflect",
    "nearest": "edge",
    "wrap": "wrap",
    "grid-wrap": "wrap",
    "constant": "edge",
    "grid-constant": "edge",
}
"""NumPy's names for SciPy's modes; the outside of a constant mode is written over."""


def _convolve(trace: Trace, in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Any:
    a, v = trace.traced(in1), trace.traced(in2)
    if a.ndim != v.ndim or not a.ndim or not a.size or not v.size:
        raise trace.refuse("scipy.signal.convolve is recorded for arrays with equally many axes and elements.", "")
    known = trace.registry.primitive("signal_convolve")
    full = trace.apply(known, (a, v), {"mode": "full", "method": method})
    if mode == "full":
        return full
    if mode == "same":
        return _centre(full, a.shape)
    if mode != "valid":
        raise ValueError("acceptable mode flags are 'valid', 'same', or 'full'")
    return _centre(full, tuple(abs(n - m) + 1 for n, m in zip(a.shape, v.shape, strict=True)))


def _centre(full: Any, shape: Sequence[int]) -> Any:
    starts = [(whole - part) // 2 for whole, part in zip(full.shape, shape, strict=True)]
    return full[tuple(slice(start, start + part) for start, part in zip(starts, shape, strict=True))]


def _fftconvolve(trace: Trace, in1: Any, in2: Any, mode: str = "full", axes: Any = None) -> Any:
    if axes is not None:
        raise trace.refuse("scipy.signal.fftconvolve with axes= is not recorded.", "Convolve along all axes.")
    return _convolve(trace, in1, in2, mode, "fft")


def _correlate(trace: Trace, in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Any:
    v = trace.traced(in2)
    return _convolve(trace, in1, np.conjugate(v[(slice(None, None, -1),) * v.ndim]), mode, method)


def _lfilter(trace: Trace, b: Any, a: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    if zi is not None:
        raise trace.refuse("scipy.signal.lfilter with zi= gives two results and is not recorded.", "Leave zi out.")
    operands = tuple(np.atleast_1d(trace.traced(each)) for each in (b, a, x))
    return trace.apply(trace.registry.primitive("lfilter"), operands, {"axis": axis % operands[2].ndim})


# -- scipy.ndimage ---------------------------------------------------------------------------------------


def _padded(trace: Trace, x: Any, before: Sequence[int], after: Sequence[int], mode: str, cval: Any) -> Any:
    """``x`` continued beyond its ends."""
    if mode not in _PADDING:
        raise RuntimeError("boundary mode not supported")
    for axis, (low, high) in enumerate(zip(before, after, strict=True)):
        extent = x.shape[axis]
        if not low and not high:
            continue
        places = numpy.pad(numpy.arange(extent), (low, high), _PADDING[mode])
        x = x[(slice(None),) * axis + (places,)]
        if "constant" in mode:
            where = numpy.arange(-low, extent + high)
            shape = (-1,) + (1,) * (x.ndim - axis - 1)
            x = np.where(((where >= 0) & (where < extent)).reshape(shape), x, cval)
    return x


def _weighted(trace: Trace, x: Any, weights: Any, mode: str, cval: Any, origin: Any, flipped: bool) -> Any:
    """Sums of the neighbours of each element of ``x``, times ``weights``."""
    x, weights = trace.traced(x), trace.traced(weights)
    if x.ndim != weights.ndim or not isinstance(mode, str):
        raise trace.refuse("scipy.ndimage filters are recorded for one mode and weights with as many axes.", "")
    origins = [origin] * x.ndim if isinstance(origin, int) else list(origin)
    if flipped:
        weights = weights[(slice(None, None, -1),) * x.ndim]
        origins = [-each - (extent % 2 == 0) for each, extent in zip(origins, weights.shape, strict=True)]
    before = [extent // 2 + each for extent, each in zip(weights.shape, origins, strict=True)]
    after = [extent - 1 - each for extent, each in zip(weights.shape, before, strict=True)]
    known = trace.registry.primitive("signal_correlate")
    padded = _padded(trace, x, before, after, mode, cval)
    return trace.apply(known, (padded, np.conjugate(weights)), {"mode": "valid", "method": "direct"})


def _nd_correlate(
    trace: Trace,
    input: Any,
    weights: Any,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    **rest: Any,
) -> Any:
    _no_more(trace, "correlate", output, rest)
    return _weighted(trace, input, weights, mode, cval, origin, False)


def _nd_convolve(
    trace: Trace,
    input: Any,
    weights: Any,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    **rest: Any,
) -> Any:
    _no_more(trace, "convolve", output, rest)
    return _weighted(trace, input, weights, mode, cval, origin, True)


def _no_more(trace: Trace, name: str, output: Any, rest: dict[str, Any]) -> None:
    if output is not None or any(value is not None for value in rest.values()):
        raise trace.refuse(f"scipy.ndimage.{name} with output= or axes= is not recorded.", "Leave them out.")


def _gaussian_filter(
    trace: Trace,
    input: Any,
    sigma: Any,
    order: Any = 0,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    truncate: float = 4.0,
    *,
    radius: Any = None,
    axes: Any = None,
) -> Any:
    x = trace.traced(input)
    _no_more(trace, "gaussian_filter", output, {"axes": axes})
    if order != 0:
        raise trace.refuse("scipy.ndimage.gaussian_filter is recorded for order 0 only.", "Use order=0.")
    for axis in range(x.ndim):
        width = sigma if np.ndim(sigma) == 0 else sigma[axis]
        if not width > 1e-15:
            continue
        reach = radius if radius is None or np.ndim(radius) == 0 else radius[axis]
        reach = int(truncate * width + 0.5) if reach is None else reach
        bell = np.exp(-0.5 * np.square(numpy.arange(-reach, reach + 1) / width))
        kernel = np.reshape(bell / np.sum(bell), (-1,) + (1,) * (x.ndim - axis - 1))
        x = _weighted(trace, x, np.reshape(kernel, (1,) * axis + kernel.shape), mode, cval, 0, False)
    return x


def _map_coordinates(
    trace: Trace,
    input: Any,
    coordinates: Any,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: float = 0.0,
    prefilter: bool = True,
) -> Any:
    """Linear interpolation; order 1 only."""
    _no_more(trace, "map_coordinates", output, {})
    if order != 1 or mode not in ("constant", "nearest"):
        raise trace.refuse(
            "scipy.ndimage.map_coordinates is recorded for order=1 and the modes 'constant' and 'nearest'.",
            "Pass order=1.",
        )
    x, places = trace.traced(input), trace.traced(coordinates)
    inside: Any = True
    corners = []
    for axis, extent in enumerate(x.shape):
        place = places[axis]
        within = np.logical_and(place >= 0, place <= extent - 1)
        inside = np.logical_and(inside, within) if mode == "constant" else inside
        held = np.minimum(np.maximum(place, 0), extent - 1) if mode == "nearest" else np.where(within, place, 0.0)
        low = np.minimum(np.floor(held), max(extent - 2, 0))
        share = held - low
        index = low.astype(int)
        corners.append(((index, 1 - share), (np.minimum(index + 1, extent - 1), share)))
    total: Any = 0.0
    for choice in itertools.product(*corners):
        weight = choice[0][1]
        for _, each in choice[1:]:
            weight = weight * each
        total = total + weight * x[tuple(index for index, _ in choice)]
    return np.where(inside, total, cval) if is_traced(inside) else total


FILTERS: dict[tuple[str, str], Callable[..., Any]] = {
    ("scipy.signal", "convolve"): _convolve,
    ("scipy.signal", "fftconvolve"): _fftconvolve,
    ("scipy.signal", "correlate"): _correlate,
    ("scipy.signal", "lfilter"): _lfilter,
    ("scipy.ndimage", "convolve"): _nd_convolve,
    ("scipy.ndimage", "correlate"): _nd_correlate,
    ("scipy.ndimage", "gaussian_filter"): _gaussian_filter,
    ("scipy.ndimage", "map_coordinates"): _map_coordinates,
}
"""Recorded forms by module and name; each takes the trace first."""
