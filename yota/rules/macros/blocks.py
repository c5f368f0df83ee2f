"""Macros for matrices made of blocks, triangles, and products of a signal with its past."""

from __future__ import annotations

from typing import Any

import numpy as np

from yota.ir.indexing import Slice
from yota.ir.primitive import Emitter
from yota.rules.macros.base import Handle, emit, macro
from yota.rules.statics import axis_of

__all__ = ["corner", "impulse", "lagged", "triangle", "twice", "upper_block"]


@macro("v")
def triangle(emitter: Emitter, v: Handle, lower: bool, strict: bool) -> Handle:
    """The lower or upper triangle of the matrix ``v``, without its diagonal if ``strict``."""
    type_ = emitter.type(v)
    mask = np.tri(type_.shape[-2], type_.shape[-1], -1 if strict else 0, type_.dtype)
    return emit(emitter, "multiply", v, emitter.constant(mask if lower else np.ascontiguousarray(mask.T)))


def _quadrants(emitter: Emitter, a: Handle, b: Handle) -> Handle:
    """``[[a, b], [0, a]]``."""
    type_ = emitter.type(a)
    nothing = emitter.constant(np.zeros(type_.shape, type_.dtype))
    rows = [emit(emitter, "concatenate", *row, axis=1) for row in ((a, b), (nothing, a))]
    return emit(emitter, "concatenate", *rows, axis=0)


@macro("a", "e")
def upper_block(emitter: Emitter, a: Handle, e: Handle) -> Handle:
    """``[[a, e], [0, a]]``."""
    return _quadrants(emitter, a, e)


@macro("v")
def twice(emitter: Emitter, v: Handle) -> Handle:
    """``[[v, 0], [0, v]]``."""
    type_ = emitter.type(v)
    return _quadrants(emitter, v, emitter.constant(np.zeros(type_.shape, type_.dtype)))


@macro("v")
def corner(emitter: Emitter, v: Handle) -> Handle:
    """The upper right quadrant of the matrix ``v``."""
    extent = emitter.type(v).shape[0]
    index = (Slice(0, extent // 2), Slice(extent // 2, extent))
    return emit(emitter, "getitem", v, index=index)


@macro()
def impulse(emitter: Emitter, x: Handle) -> Handle:
    """A vector of the single element 1, in the dtype of ``x``."""
    return emitter.constant(np.ones(1, emitter.type(x).dtype))


@macro("v")
def lagged(emitter: Emitter, v: Handle, x: Handle, count: int, axis: int) -> Handle:
    """For each lag below ``count`` the sum of ``v`` times the conjugate of ``x`` so much earlier along ``axis``."""
    type_ = emitter.type(v)
    axis = axis_of(axis, type_.ndim)
    if emitter.type(x).is_complex:
        x = emit(emitter, "conjugate", x)
    sums = [_lag(emitter, v, x, lag, axis) for lag in range(count)]
    return emit(emitter, "stack", *sums, axis=0)


def _lag(emitter: Emitter, v: Handle, x: Handle, lag: int, axis: int) -> Handle:
    shape = emitter.type(v).shape
    extent = shape[axis]
    if lag >= extent:
        return emitter.constant(emitter.type(v).dtype.type(0))
    now: list[Any] = [Slice(0, each) for each in shape]
    past = list(now)
    now[axis], past[axis] = Slice(lag, extent), Slice(0, extent - lag)
    product = emit(
        emitter,
        "multiply",
        emit(emitter, "getitem", v, index=tuple(now)),
        emit(emitter, "getitem", x, index=tuple(past)),
    )
    return emit(emitter, "sum", product, axis=tuple(range(len(shape))), keepdims=False)
