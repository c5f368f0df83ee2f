"""Macros for Fourier transforms: lengths, and how often a frequency counts."""

from __future__ import annotations

import numpy as np

from yota.ir.indexing import Slice
from yota.ir.primitive import Emitter
from yota.rules.macros.base import Handle, emit, macro

__all__ = ["counted", "fitted"]


@macro("v")
def fitted(emitter: Emitter, v: Handle, shape: tuple[int, ...]) -> Handle:
    """``v`` cut, or filled up with zeros, to ``shape``."""
    found = emitter.type(v).shape
    kept = tuple(Slice(0, min(own, wanted)) for own, wanted in zip(found, shape, strict=True))
    if any(own > wanted for own, wanted in zip(found, shape, strict=True)):
        v = emit(emitter, "getitem", v, index=kept)
    if emitter.type(v).shape == shape:
        return v
    return emit(emitter, "scatter", v, shape=shape, indices=(kept,))


@macro("v")
def counted(emitter: Emitter, v: Handle, n: int, axis: int, inner: float) -> Handle:
    """``v``, the ``n // 2 + 1`` frequencies of a real signal, times ``inner``.

    The first is left as it is, and the last if ``n`` is even: they have no counterpart among the negative ones.
    """
    type_ = emitter.type(v)
    weights = np.full(n // 2 + 1, inner, type_.dtype.type(0).real.dtype)
    weights[0] = 1
    if n % 2 == 0:
        weights[-1] = 1
    return emit(emitter, "multiply", v, emitter.constant(weights.reshape((-1,) + (1,) * (type_.ndim - axis - 1))))
