"""Macros for shapes, reductions and indexing, and for phases of complex numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from yota.ir.indexing import Index, Slice, pieces_of
from yota.ir.primitive import Emitter
from yota.rules.macros.base import Handle, emit, macro, reshaped
from yota.rules.statics import axes_of, axis_of

__all__ = ["adjoint", "unbroadcast", "unreduce"]


@macro("v")
def unreduce(emitter: Emitter, v: Handle, shape: tuple[int, ...], axis: Any = None, keepdims: bool = False) -> Handle:
    """``v``, the result of a reduction of an array of ``shape``, repeated along the reduced axes."""
    axes = axes_of(axis, len(shape))
    kept = tuple(1 if position in axes else extent for position, extent in enumerate(shape))
    v = reshaped(emitter, v, kept)
    return v if kept == shape else emit(emitter, "broadcast_to", v, shape=shape)


@macro("v")
def unbroadcast(emitter: Emitter, v: Handle, shape: tuple[int, ...]) -> Handle:
    """``v`` summed over the axes along which an array of ``shape`` was repeated to its shape."""
    found = emitter.type(v).shape
    if len(found) < len(shape):
        found = (1,) * (len(shape) - len(found)) + found
        v = reshaped(emitter, v, found)
    extra = len(found) - len(shape)
    axes = tuple(
        axis for axis, extent in enumerate(found) if axis < extra or (shape[axis - extra] == 1 and extent != 1)
    )
    if axes:
        v = emit(emitter, "sum", v, axis=axes, keepdims=False)
    kept = tuple(1 if wanted == 1 else own for own, wanted in zip(found[extra:], shape, strict=True))
    v = reshaped(emitter, v, kept)
    return v if kept == shape else emit(emitter, "broadcast_to", v, shape=shape)


@macro("a")
def adjoint(emitter: Emitter, a: Handle) -> Handle:
    """The conjugate transpose of the last two axes."""
    type_ = emitter.type(a)
    if type_.is_complex:
        a = emit(emitter, "conjugate", a)
    order = list(range(type_.ndim))
    order[-2:] = reversed(order[-2:])
    return emit(emitter, "transpose", a, axes=tuple(order))


@macro("v")
def expand_dims(emitter: Emitter, v: Handle, axis: int) -> Handle:
    """``v`` with an axis of extent 1 put in, at position ``axis`` of the result."""
    shape = list(emitter.type(v).shape)
    shape.insert(axis_of(axis, len(shape) + 1), 1)
    return emit(emitter, "reshape", v, shape=tuple(shape))


@macro("v")
def squeeze(emitter: Emitter, v: Handle, axis: int) -> Handle:
    """``v`` without its axis ``axis``, which has extent 1."""
    shape = list(emitter.type(v).shape)
    shape.pop(axis_of(axis, len(shape)))
    return emit(emitter, "reshape", v, shape=tuple(shape))


@macro("v")
def rows(emitter: Emitter, v: Handle) -> Handle:
    """``v`` as a matrix: all axes but the last made one."""
    shape = emitter.type(v).shape
    return reshaped(emitter, v, (math.prod(shape[:-1]), shape[-1]))


@macro("v")
def reverse(emitter: Emitter, v: Handle, axis: int) -> Handle:
    """``v`` from back to front along ``axis``."""
    shape = emitter.type(v).shape
    axis = axis_of(axis, len(shape))
    if shape[axis] < 2:
        return v
    entries = [Slice(0, extent) for extent in shape]
    entries[axis] = Slice(shape[axis] - 1, None, -1)
    return emit(emitter, "getitem", v, index=tuple(entries))


@macro()
def phase(emitter: Emitter, x: Handle, y: Handle) -> Handle:
    """``x / |x|`` where ``y`` is ``|x|``; 0 at 0. For real ``x`` it is the sign."""
    if not emitter.type(x).is_complex:
        return emit(emitter, "sign", x)
    nothing = emit(emitter, "equal", y, emitter.constant(0))
    return emit(emitter, "divide", x, emit(emitter, "where", nothing, emitter.constant(1), y))


@macro()
def branch(emitter: Emitter, p: Handle, q: Handle) -> Handle:
    """``p``; for complex numbers ``-p`` where ``q``, which is about ``1 / p`` on the branch that is meant, tells so.

    A root of what has lost the sign of a zero lies on the other side of a branch cut as often as not.
    """
    if not emitter.type(p).is_complex:
        return p
    agreement = emit(emitter, "real", emit(emitter, "multiply", p, q))
    opposite = emit(emitter, "less", agreement, emitter.constant(0))
    return emit(emitter, "where", opposite, emit(emitter, "negative", p), p)


@macro("v")
def lower(emitter: Emitter, v: Handle) -> Handle:
    """The lower triangle of ``v`` with half its diagonal."""
    type_ = emitter.type(v)
    mask = np.tri(*type_.shape[-2:], dtype=type_.dtype) - np.eye(*type_.shape[-2:], dtype=type_.dtype) / 2
    return emit(emitter, "multiply", v, emitter.constant(mask.astype(type_.dtype)))


@macro("v")
def piece(emitter: Emitter, v: Handle, i: int, *xs: Handle, indices: tuple[Index, ...]) -> Handle:
    """What ``v``, the adjoint of a scatter, holds for the operand number ``i`` of the scatter."""
    for number, arrays, index in pieces_of(range(len(xs)), indices):
        if i == number:
            found = emit(emitter, "getitem", v, *(xs[each] for each in arrays), index=index)
            return unbroadcast(emitter, found, emitter.type(xs[i]).shape)
    raise ValueError(f"operand {i} of scatter is no piece")
