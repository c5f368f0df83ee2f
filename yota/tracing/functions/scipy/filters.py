"""Convolutions and correlations of scipy.signal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from yota.tracing.functions.scipy.neighbourhoods import CONSTANT, REFLECT, WRAP, padded
from yota.tracing.implementations import records
from yota.tracing.methods import is_traced
from yota.tracing.trace import Trace
from yota.tracing.untyped import np


@records("scipy.signal", "convolve")
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


@records("scipy.signal", "fftconvolve", "oaconvolve")
def _fftconvolve(trace: Trace, in1: Any, in2: Any, mode: str = "full", axes: Any = None) -> Any:
    a, v = trace.traced(in1), trace.traced(in2)
    if axes is None or a.ndim < 2:
        return _convolve(trace, a, v, mode, "fft")
    chosen = np.lib.array_utils.normalize_axis_tuple(axes, a.ndim)
    sizes = [a.shape[axis] + v.shape[axis] - 1 for axis in chosen]
    if a.dtype.kind == "c" or v.dtype.kind == "c":
        full = np.fft.ifftn(np.fft.fftn(a, sizes, chosen) * np.fft.fftn(v, sizes, chosen), axes=chosen)
    else:
        full = np.fft.irfftn(np.fft.rfftn(a, sizes, chosen) * np.fft.rfftn(v, sizes, chosen), sizes, chosen)
    if mode == "full":
        return full
    small = {axis: abs(a.shape[axis] - v.shape[axis]) + 1 if mode == "valid" else a.shape[axis] for axis in chosen}
    return _centre(full, tuple(small.get(axis, extent) for axis, extent in enumerate(full.shape)))


@records("scipy.signal", "correlate")
def _correlate(trace: Trace, in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Any:
    v = trace.traced(in2)
    return _convolve(trace, in1, np.conjugate(v[(slice(None, None, -1),) * v.ndim]), mode, method)


def _plane(name: str, *, flipped: bool) -> Callable[..., Any]:
    """The form of ``convolve2d`` or ``correlate2d``, of which the second looks at the kernel ``flipped``."""

    def form(trace: Trace, in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0) -> Any:
        a, v = trace.traced(in1), trace.traced(in2)
        if a.ndim != 2 or v.ndim != 2:
            raise ValueError(f"{name} inputs must both be 2-D arrays")
        wide = [extent - 1 for extent in v.shape]
        plain = mode == "valid" or (boundary in ("fill", "pad") and not is_traced(fillvalue) and fillvalue == 0)
        if (flipped or not plain) and any(extent > own for extent, own in zip(wide, a.shape, strict=True)):
            raise trace.refuse(f"scipy.signal.{name} is recorded for kernels no larger than the image.", "")
        v = np.conjugate(v[::-1, ::-1]) if flipped else v
        if mode == "valid":
            return _convolve(trace, a, v, mode, "direct")
        if plain:
            full = _convolve(trace, a, v, "full", "direct")
        else:
            kind = {"fill": CONSTANT, "pad": CONSTANT, "wrap": WRAP, "circular": WRAP}.get(boundary, REFLECT)
            full = _convolve(trace, padded(trace, a, wide, wide, kind, fillvalue), v, "valid", "direct")
        if mode == "full":
            return full
        starts = [(extent + flipped) // 2 for extent in wide]
        return full[tuple(slice(start, start + extent) for start, extent in zip(starts, a.shape, strict=True))]

    return form


records("scipy.signal", "convolve2d")(_plane("convolve2d", flipped=False))
records("scipy.signal", "correlate2d")(_plane("correlate2d", flipped=True))
