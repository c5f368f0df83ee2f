"""Fourier transforms along one axis with normalised keywords; NumPy's own code makes the others of them."""

from __future__ import annotations

from typing import Any

from yota.rules.statics import axes_of
from yota.tracing.implementations import implements
from yota.tracing.trace import Trace
from yota.tracing.untyped import np


def _transform(name: str) -> Any:
    def transform(trace: Trace, a: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Any:
        a = trace.traced(a)
        axis = axes_of(axis, a.ndim)[0]
        if norm not in (None, "backward", "ortho", "forward"):
            raise ValueError(f'Invalid norm value {norm}; should be "backward", "ortho" or "forward".')
        if n is None:
            n = 2 * (a.shape[axis] - 1) if name == "irfft" else a.shape[axis]
        if n < 1:
            raise ValueError(f"Invalid number of FFT data points ({n}) specified.")
        if name == "rfft" and a.dtype.kind == "c":
            raise TypeError("np.fft.rfft takes real arrays")
        static = {"n": int(n), "axis": axis, "norm": norm or "backward"}
        return trace.apply(trace.registry.primitive(name), (a,), static)

    return transform


for _name in ("fft", "ifft", "rfft", "irfft"):
    implements(getattr(np.fft, _name))(_transform(_name))
