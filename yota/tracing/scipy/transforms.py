"""The transforms of scipy.fft and scipy.fftpack: Fourier's as NumPy's are, others by their matrices."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from yota.tracing.forms import Trace, axes_of, np, original, records

_FOURIER = "fft ifft rfft irfft hfft ihfft fft2 ifft2 rfft2 irfft2 fftn ifftn rfftn irfftn fftshift ifftshift".split()
_WAVES = "dct idct dst idst dctn idctn dstn idstn".split()
_HOME = "scipy.fft._pocketfft"
_COMPILED = f"{_HOME}.pypocketfft"
_MOST = 2048
"""Rows of a matrix of cosines: what is larger is refused."""


@records("scipy.fft", *_FOURIER, named=True)
def _fourier(name: str, trace: Trace, x: Any, *args: Any, **keywords: Any) -> Any:
    # The rest says how SciPy computes, not what.
    chosen = {key: value for key, value in keywords.items() if key not in ("overwrite_x", "workers", "plan")}
    return getattr(np.fft, name)(trace.traced(x), *args[:3], **chosen)


@records("scipy.fft", *_WAVES, named=True)
@records(_HOME, *_WAVES, named=True)
def _of_waves(name: str, trace: Trace, *args: Any, **keywords: Any) -> Any:
    """The form of a transform in Python, which calls the compiled one that it holds."""
    held = original(getattr(sys.modules[_HOME], name))
    forward, compiled = held.args
    return held.func(forward, functools.partial(_along, trace, compiled, (1, 3)), *args, **keywords)


def _along(trace: Trace, compiled: Callable[..., Any], places: tuple[int, int], x: Any, *args: Any) -> Any:
    """A compiled transform; ``places`` are those of the axes, and of an array for the result, among ``args``."""
    place, last = places
    out, found = args[last], trace.traced(x)
    for axis in axes_of(tuple(args[place]), found.ndim):
        count = found.shape[axis]
        if count > _MOST:
            raise trace.unrecorded(f"{compiled.__name__} of {count} numbers", "Write it with scipy.fft.fft.")
        matrix = _matrix(compiled, count, (*args[:place], (0,), *args[place + 1 : last], None, *args[last + 1 :]))
        found = np.moveaxis(np.tensordot(matrix.astype(found.dtype), found, axes=(1, axis)), 0, axis)
    if out is not None and out is not x:
        out[...] = found
    return found


@functools.lru_cache(32)
def _matrix(compiled: Callable[..., Any], count: int, rest: tuple[Any, ...]) -> Any:
    """What the transform makes of each unit vector: it is linear."""
    found = compiled(np.eye(count), *rest)
    found.flags.writeable = False
    return found


@records(_COMPILED, "r2r_fftpack")
def _real(trace: Trace, *args: Any) -> Any:
    return _along(trace, original(sys.modules[_COMPILED].r2r_fftpack), (0, 4), *args)


@records(_COMPILED, "c2c")
def _complex(trace: Trace, x: Any, axes: Any, forward: bool, norm: int, out: Any, workers: int) -> Any:
    transform = np.fft.fftn if forward else np.fft.ifftn
    return transform(x, None, tuple(axes), ("backward", "ortho", "forward")[norm if forward else 2 - norm])


_INVERSES = {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}
"""The norms of inverse transforms."""


@records("scipy.fft", "hfft2", "ihfft2", "hfftn", "ihfftn", named=True)
def _hermitian(name: str, trace: Trace, x: Any, s: Any, axes: Any, norm: Any) -> Any:
    """The form of a transform along several axes whose result is real, or whose argument is."""
    x = trace.traced(x)
    if name.startswith("i"):
        return np.conjugate(np.fft.rfftn(x, s, axes, _INVERSES[norm]))
    return np.fft.irfftn(np.conjugate(x), s, axes, _INVERSES[norm])
