"""The transforms of scipy.fft: Fourier's as NumPy's are, those of cosines and sines by their matrices."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from yota.rules.statics import axes_of
from yota.tracing.implementations import records
from yota.tracing.trace import Trace
from yota.tracing.untyped import np

_FOURIER = "fft ifft rfft irfft hfft ihfft fft2 ifft2 rfft2 irfft2 fftn ifftn rfftn irfftn fftshift ifftshift".split()
_WAVES = ("dct", "idct", "dst", "idst")
_MOST = 2048
"""Rows of a matrix of cosines: what is larger is refused."""


def _fourier(name: str) -> Callable[..., Any]:
    def form(trace: Trace, x: Any, *args: Any, **keywords: Any) -> Any:
        # The rest says how SciPy computes, not what.
        chosen = {key: value for key, value in keywords.items() if key not in ("overwrite_x", "workers", "plan")}
        return getattr(np.fft, name)(x, *args[:3], **chosen)

    return form


def _of_waves(name: str) -> Callable[..., Any]:
    def form(trace: Trace, x: Any, type: int, n: Any, axis: int, norm: Any, orthogonalize: Any) -> Any:
        x = trace.traced(x)
        place = axes_of(axis, x.ndim)[0]
        extent = x.shape[place]
        count = extent if n is None else int(n)
        if count > _MOST:
            raise trace.unrecorded(f"scipy.fft.{name} of {count} numbers", "Write it with scipy.fft.fft.")
        matrix = _matrix(name, type, count, norm, orthogonalize)[:, : min(extent, count)]
        x = x[(slice(None),) * place + (slice(count),)]
        kind = x.dtype if x.dtype.kind in "fc" else float
        return np.moveaxis(np.tensordot(matrix.astype(kind), x, axes=(1, place)), 0, place)

    return form


def _along_several(name: str) -> Callable[..., Any]:
    transform = _of_waves(name)

    def form(trace: Trace, x: Any, type: int, s: Any, axes: Any, norm: Any, orthogonalize: Any) -> Any:
        x = trace.traced(x)
        if axes is None and s is not None:
            axes = range(x.ndim - len(tuple(s)), x.ndim)
        places = axes_of(None if axes is None else tuple(axes), x.ndim)
        for place, count in zip(places, [None] * len(places) if s is None else s, strict=True):
            x = transform(trace, x, type, count, place, norm, orthogonalize)
        return x

    return form


@functools.lru_cache(32)
def _matrix(name: str, type: int, count: int, norm: Any, orthogonalize: Any) -> Any:
    """What the transform makes of each unit vector: it is linear."""
    transform = getattr(sys.modules["scipy.fft"], name)
    transform = getattr(transform, "__wrapped__", transform)
    found = transform(np.eye(count), type=type, axis=0, norm=norm, orthogonalize=orthogonalize)
    found.flags.writeable = False
    return found


_INVERSES = {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}
"""The norms of inverse transforms."""


def _hermitian(name: str) -> Callable[..., Any]:
    """The form of a transform along several axes whose result is real, or whose argument is."""

    def form(trace: Trace, x: Any, s: Any, axes: Any, norm: Any) -> Any:
        x = trace.traced(x)
        if name.startswith("i"):
            return np.conjugate(np.fft.rfftn(x, s, axes, _INVERSES[norm]))
        return np.fft.irfftn(np.conjugate(x), s, axes, _INVERSES[norm])

    return form


for _name in ("hfft2", "ihfft2", "hfftn", "ihfftn"):
    records("scipy.fft", _name)(_hermitian(_name))
for _name in _FOURIER:
    records("scipy.fft", _name)(_fourier(_name))
for _name in _WAVES:
    records("scipy.fft", _name)(_of_waves(_name))
    records("scipy.fft", f"{_name}n")(_along_several(_name))
