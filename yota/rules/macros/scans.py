"""Macros for products: of all other elements, and the adjoint of running products."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from yota.ir.indexing import Slice
from yota.ir.primitive import Emitter
from yota.rules.macros.base import Handle, emit, macro, reshaped
from yota.rules.statics import axes_of, axis_of

__all__ = ["coproduct", "cumprod_adjoint"]


@macro()
def coproduct(emitter: Emitter, x: Handle, axis: Any = None) -> Handle:
    """For each element the product of all *other* elements along ``axis``: exact where some are zero.

    A tree of pairwise products: linear work, a number of ops that grows with the logarithm of the extent.
    """
    shape = emitter.type(x).shape
    axes = axes_of(axis, len(shape))
    order = tuple(position for position in range(len(shape)) if position not in axes) + axes
    rest = tuple(shape[position] for position in order[: len(shape) - len(axes)])
    moved = x if order == tuple(range(len(shape))) else emit(emitter, "transpose", x, axes=order)
    flat = reshaped(emitter, moved, (*rest, math.prod(shape[position] for position in axes)))
    others = reshaped(emitter, _coproduct(emitter, flat), tuple(shape[position] for position in order))
    back = tuple(order.index(position) for position in range(len(shape)))
    return others if order == back == tuple(range(len(shape))) else emit(emitter, "transpose", others, axes=back)


def _coproduct(emitter: Emitter, x: Handle) -> Handle:
    """The product of all other elements along the last axis."""
    levels = [x]
    while emitter.type(levels[-1]).shape[-1] > 1:
        top = levels[-1]
        length = emitter.type(top).shape[-1]
        half = length // 2
        paired = emit(emitter, "multiply", _part(emitter, top, 0, half), _part(emitter, top, half, 2 * half))
        tail = [_part(emitter, top, 2 * half, length)] if length % 2 else []
        levels.append(_joined(emitter, [paired, *tail]))
    others = _ones(emitter, levels.pop())
    for level in reversed(levels):
        length = emitter.type(level).shape[-1]
        half = length // 2
        above = _part(emitter, others, 0, half)
        left = emit(emitter, "multiply", above, _part(emitter, level, half, 2 * half))
        right = emit(emitter, "multiply", above, _part(emitter, level, 0, half))
        tail = [_part(emitter, others, half, half + 1)] if length % 2 else []
        others = _joined(emitter, [left, right, *tail])
    return others


@macro("v")
def cumprod_adjoint(emitter: Emitter, v: Handle, x: Handle, axis: int) -> Handle:
    """Adjoint of the cumulative product of ``x``: exact where some elements are zero.

    With ``s[j] = v[j] + x[j + 1] * s[j + 1]`` it is ``s[j]`` times the product of ``x`` before ``j``; the recurrence
    is solved by doubling.
    """
    length = emitter.type(x).shape[axis]
    if emitter.type(x).is_complex:
        x = emit(emitter, "conjugate", x)
    if length < 2:
        return v
    factors = _shifted(emitter, x, axis, 1, 0)
    step = 1
    while step < length:
        v = emit(emitter, "add", v, emit(emitter, "multiply", factors, _shifted(emitter, v, axis, step, 0)))
        factors = emit(emitter, "multiply", factors, _shifted(emitter, factors, axis, step, 0))
        step *= 2
    product = emit(emitter, "cumprod", x, axis=axis)
    return emit(emitter, "multiply", v, _shifted(emitter, product, axis, -1, 1))


def _shifted(emitter: Emitter, v: Handle, axis: int, step: int, fill: int) -> Handle:
    """``v`` moved by ``step`` towards the front of ``axis``, filled up with ``fill``."""
    type_ = emitter.type(v)
    shape = list(type_.shape)
    length = shape[axis]
    count = min(abs(step), length)
    kept = _part(emitter, v, count, length, axis) if step > 0 else _part(emitter, v, 0, length - count, axis)
    shape[axis] = count
    filler = emitter.constant(np.full(tuple(shape), fill, type_.dtype))
    return _joined(emitter, [kept, filler] if step > 0 else [filler, kept], axis)


def _part(emitter: Emitter, v: Handle, start: int, stop: int, axis: int = -1) -> Handle:
    shape = emitter.type(v).shape
    axis = axis_of(axis, len(shape))
    if (start, stop) == (0, shape[axis]):
        return v
    entries: list[Any] = [Slice(0, extent) for extent in shape]
    entries[axis] = Slice(start, stop)
    return emit(emitter, "getitem", v, index=tuple(entries))


def _joined(emitter: Emitter, pieces: list[Handle], axis: int = -1) -> Handle:
    count = emitter.type(pieces[0]).ndim
    return pieces[0] if len(pieces) == 1 else emit(emitter, "concatenate", *pieces, axis=axis_of(axis, count))


def _ones(emitter: Emitter, v: Handle) -> Handle:
    type_ = emitter.type(v)
    one = emitter.constant(type_.dtype.type(1))
    return emit(emitter, "broadcast_to", one, shape=type_.shape) if type_.shape else one
