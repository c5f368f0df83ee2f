"""Macros: functions of rule bodies that expand to several primitives, for shapes, reductions and scans."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from yota.ir.catalog import primitive
from yota.ir.indexing import GATHER, Index, Slice
from yota.ir.primitive import Emitter
from yota.rules.statics import axes_of, axis_of

__all__ = ["MACROS", "Macro", "macro", "unbroadcast", "unreduce"]

Handle = Any
"""What an emitter calls a value; parameters with this annotation take values, others take static Python objects."""


@dataclass(frozen=True, slots=True)
class Macro:
    """A macro, with the parameters that take values and those in which it is linear."""

    function: Callable[..., Any]
    values: frozenset[str]
    linear: frozenset[str]


MACROS: dict[str, Macro] = {}
"""All macros by name."""


def macro(*linear: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the decorated function, which takes an emitter first; it is linear in the parameters named."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        values = frozenset(name for name, kind in function.__annotations__.items() if kind == "Handle")
        MACROS[function.__name__.rstrip("_")] = Macro(function, values - {"return"}, frozenset(linear))
        return function

    return register


def emit(emitter: Emitter, name: str, *operands: Handle, **static: Any) -> Handle:
    """Apply the built-in primitive ``name``."""
    return emitter.emit(primitive(name), operands, static)


def reshaped(emitter: Emitter, v: Handle, shape: tuple[int, ...]) -> Handle:
    """``v`` in ``shape``; nothing to do if it has it."""
    return v if emitter.type(v).shape == shape else emit(emitter, "reshape", v, shape=shape)


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


@macro("v")
def lower(emitter: Emitter, v: Handle) -> Handle:
    """The lower triangle of ``v`` with half its diagonal."""
    type_ = emitter.type(v)
    mask = np.tri(*type_.shape[-2:], dtype=type_.dtype) - np.eye(*type_.shape[-2:], dtype=type_.dtype) / 2
    return emit(emitter, "multiply", v, emitter.constant(mask.astype(type_.dtype)))


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


@macro("v")
def piece(emitter: Emitter, v: Handle, i: int, *xs: Handle, indices: tuple[Index, ...]) -> Handle:
    """What ``v``, the adjoint of a scatter, holds for the operand number ``i`` of the scatter."""
    start = 0
    for index in indices:
        count = sum(1 for entry in index if entry is GATHER)
        if i == start:
            found = emit(emitter, "getitem", v, *xs[start + 1 : start + 1 + count], index=index)
            return unbroadcast(emitter, found, emitter.type(xs[i]).shape)
        start += 1 + count
    raise ValueError(f"operand {i} of scatter is no piece")
