"""Macros for shapes, reductions and indexing, products of all other elements, triangles, blocks and spectra."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from yota.ir.indexing import GATHER, Index, Slice, pieces_of
from yota.rules.language.statics import axes_of, axis_of
from yota.rules.macros.macro import Value, joined, macro

# -- shapes and reductions -----------------------------------------------------------------------------------


@macro("v")
def unreduce(v: Value, shape: tuple[int, ...], axis: Any = None, keepdims: bool = False) -> Value:
    """``v``, the result of a reduction of an array of ``shape``, repeated along the reduced axes."""
    axes = axes_of(axis, len(shape))
    kept = (1 if position in axes else extent for position, extent in enumerate(shape))
    return v.reshape(*kept).broadcast_to(*shape)


@macro("v")
def unbroadcast(v: Value, shape: tuple[int, ...]) -> Value:
    """``v`` summed over the axes along which an array of ``shape`` was repeated to its shape."""
    found = v.shape
    found = (1,) * (len(shape) - len(found)) + found
    v = v.reshape(*found)
    extra = len(found) - len(shape)
    axes = [axis for axis, extent in enumerate(found) if axis < extra or (shape[axis - extra] == 1 and extent != 1)]
    if axes:
        v = v.sum(*axes)
    kept = (1 if wanted == 1 else own for own, wanted in zip(found[extra:], shape, strict=True))
    return v.reshape(*kept).broadcast_to(*shape)


@macro("a")
def adjoint(a: Value) -> Value:
    """The conjugate transpose of the last two axes."""
    return a.H


@macro("v")
def expand_dims(v: Value, axis: int) -> Value:
    """``v`` with an axis of extent 1 put in, at position ``axis`` of the result."""
    shape = list(v.shape)
    shape.insert(axis_of(axis, len(shape) + 1), 1)
    return v.do("reshape", shape=tuple(shape))


@macro("v")
def squeeze(v: Value, axis: int) -> Value:
    """``v`` without its axis ``axis``, which has extent 1."""
    shape = list(v.shape)
    shape.pop(axis_of(axis, len(shape)))
    return v.do("reshape", shape=tuple(shape))


@macro("v")
def rows(v: Value) -> Value:
    """``v`` as a matrix: all axes but the last made one."""
    return v.reshape(math.prod(v.shape[:-1]), v.shape[-1])


@macro("v")
def reverse(v: Value, axis: int) -> Value:
    """``v`` from back to front along ``axis``."""
    shape = v.shape
    if shape[axis] < 2:
        return v
    entries = [Slice(0, extent) for extent in shape]
    entries[axis] = Slice(shape[axis] - 1, None, -1)
    return v.do("getitem", index=tuple(entries))


@macro()
def phase(x: Value, y: Value) -> Value:
    """``x / |x|`` where ``y`` is ``|x|``; 0 at 0. For real ``x`` it is the sign."""
    if not x.type.is_complex:
        return x.do("sign")
    return x / y.do("equal", 0).do("where", 1, y)


@macro()
def branch(p: Value, q: Value) -> Value:
    """``p``; for complex numbers ``-p`` where ``q``, which is about ``1 / p`` on the branch that is meant, tells so.

    A root of what has lost the sign of a zero lies on the other side of a branch cut as often as not.
    """
    return (p * q).do("real").do("less", 0).do("where", -p, p) if p.type.is_complex else p


@macro("v")
def piece(v: Value, i: int, *xs: Value, indices: tuple[Index, ...]) -> Value:
    """What ``v``, the adjoint of a scatter, holds for the operand number ``i`` of the scatter."""
    for number, arrays, index in pieces_of(range(len(xs)), indices):
        if i == number:
            return unbroadcast(v.do("getitem", *(xs[each] for each in arrays), index=index), xs[i].shape)
    raise ValueError(f"operand {i} of scatter is no piece")


@macro("v")
def entries(v: Value, y: Value, rows: Value, columns: Value) -> Value:
    """Elements of the matrix ``v @ adjoint(y)``, or of the outer product of vectors, at ``rows`` and ``columns``."""
    index = (GATHER, *(Slice(0, extent) for extent in v.shape[1:]))
    found = v.do("getitem", rows, index=index) * y.do("getitem", columns, index=index).do("conjugate")
    return found.sum(1) if len(v.shape) > 1 else found


@macro("x")
def sparse_matmul(data: Value, rows: Value, columns: Value, x: Value) -> Value:
    """The product with ``x`` of the square matrix that has ``data`` at ``rows`` and ``columns``, else zeros."""
    shape = x.shape
    picked = x.do("getitem", columns, index=(GATHER, *(Slice(0, extent) for extent in shape[1:])))
    found = data.reshape(data.shape[0], *(1 for _ in shape[1:])) * picked
    return found.do("scatter", rows, shape=shape, indices=((GATHER, *(Slice(0, extent) for extent in shape[1:])),))


# -- einsum --------------------------------------------------------------------------------------------------


@macro("v")
def contraction(v: Value, i: int, *xs: Value, subscripts: str) -> Value:
    """Adjoint of operand ``i`` of ``einsum(subscripts, *xs)``, whose result has the adjoint ``v``.

    The operand's labels that nothing else has are repeated; a label that the operand has twice lands on the
    diagonal.
    """
    inputs, output = subscripts.split("->")
    labels = inputs.split(",")
    extents: dict[str, int] = {}
    for term, x in zip(labels, xs, strict=True):
        extents |= {label: n for label, n in zip(term, x.shape, strict=True) if extents.get(label, 1) == 1}
    own = labels[i]
    wanted = "".join(dict.fromkeys(own))
    others = [position for position in range(len(xs)) if position != i]
    terms = [output, *(labels[position] for position in others)]
    present = "".join(label for label in wanted if label in "".join(terms))
    if others or present != output:
        v = v.do("einsum", *(xs[each].conj() for each in others), subscripts=f"{','.join(terms)}->{present}")
    # An axis that einsum itself repeats can come out of a single element.
    found = dict(zip(present, v.shape, strict=True))
    v = v.reshape(*(found.get(label, 1) for label in wanted)).broadcast_to(*(extents[label] for label in wanted))
    return unbroadcast(v, xs[i].shape) if len(wanted) == len(own) else _diagonal(v, own, wanted, xs[i].shape)


def _diagonal(v: Value, own: str, wanted: str, shape: tuple[int, ...]) -> Value:
    """``v`` over the labels ``wanted``, put where the labels ``own`` agree."""
    extents = dict(zip(own, shape, strict=True))
    if any(extents[label] != extent for label, extent in zip(own, shape, strict=True)):
        raise ValueError(f"einsum: the label {own!r} stands for two extents")
    grids = np.ogrid[tuple(slice(extents[label]) for label in wanted)]
    positions = {label: v.constant(np.ascontiguousarray(grid)) for label, grid in zip(wanted, grids, strict=True)}
    v = unbroadcast(v, tuple(extents[label] for label in wanted))
    return v.do("scatter", *(positions[label] for label in own), shape=shape, indices=((GATHER,) * len(own),))


# -- products of all other elements --------------------------------------------------------------------------


@macro()
def coproduct(x: Value, axis: Any = None) -> Value:
    """For each element the product of all *other* elements along ``axis``: exact where some are zero.

    The products of all ahead of an element times those of all behind it.
    """
    shape = x.shape
    axes = axes_of(axis, len(shape))
    order = tuple(position for position in range(len(shape)) if position not in axes) + axes
    moved = x.transpose(order)
    rest = moved.shape[: len(shape) - len(axes)]
    flat = moved.reshape(*rest, math.prod(shape[position] for position in axes))
    back = tuple(order.index(position) for position in range(len(shape)))
    return _coproduct(flat).reshape(*moved.shape).transpose(back)


def _coproduct(x: Value) -> Value:
    """The product of all other elements along the last axis."""
    axis = len(x.shape) - 1
    ahead, behind = (_shifted(each.do("cumprod", axis=axis), axis, -1, 1) for each in (x, _reversed(x, axis)))
    return ahead * _reversed(behind, axis)


def _reversed(x: Value, axis: int) -> Value:
    index = [Slice(0, extent) for extent in x.shape]
    index[axis] = Slice(x.shape[axis] - 1, None, -1)
    return x.do("getitem", index=tuple(index))


@macro("v")
def cumprod_adjoint(v: Value, x: Value, axis: int) -> Value:
    """Adjoint of the cumulative product of ``x``: exact where some elements are zero.

    With ``s[j] = v[j] + x[j + 1] * s[j + 1]`` it is ``s[j]`` times the product of ``x`` before ``j``; the recurrence
    is solved by doubling.
    """
    length = x.shape[axis]
    x = x.conj()
    if length < 2:
        return v
    factors = _shifted(x, axis, 1, 0)
    step = 1
    while step < length:
        v = v + factors * _shifted(v, axis, step, 0)
        factors = factors * _shifted(factors, axis, step, 0)
        step *= 2
    return v * _shifted(x.do("cumprod", axis=axis), axis, -1, 1)


def _shifted(v: Value, axis: int, step: int, fill: int) -> Value:
    """``v`` moved by ``step`` towards the front of ``axis``, filled up with ``fill``."""
    shape = list(v.shape)
    length = shape[axis]
    count = shape[axis] = min(abs(step), length)
    kept = v.part(count, length, axis) if step > 0 else v.part(0, length - count, axis)
    filler = v.constant(np.full(tuple(shape), fill, v.type.dtype))
    return joined([kept, filler] if step > 0 else [filler, kept], axis)


# -- triangles and blocks ------------------------------------------------------------------------------------


@macro("v")
def lower(v: Value) -> Value:
    """The lower triangle of ``v`` with half its diagonal."""
    dtype = v.type.dtype
    return v * (np.tri(*v.shape[-2:], dtype=dtype) - np.eye(*v.shape[-2:], dtype=dtype) / 2).astype(dtype)


@macro("v")
def triangle(v: Value, lower: bool, strict: bool) -> Value:
    """The lower or upper triangle of the matrix ``v``, without its diagonal if ``strict``."""
    mask = np.tri(v.shape[-2], v.shape[-1], -1 if strict else 0, v.type.dtype)
    return v * (mask if lower else np.ascontiguousarray(mask.T))


@macro("a", "e")
def upper_block(a: Value, e: Value) -> Value:
    """``[[a, e], [0, a]]``."""
    nothing = a.constant(np.zeros(a.shape, a.type.dtype))
    return joined([joined([a, e], 1), joined([nothing, a], 1)], 0)


@macro("v")
def twice(v: Value) -> Value:
    """``[[v, 0], [0, v]]``."""
    return upper_block(v, v.constant(np.zeros(v.shape, v.type.dtype)))


@macro("v")
def corner(v: Value) -> Value:
    """The upper right quadrant of the matrix ``v``."""
    extent = v.shape[0]
    return v.do("getitem", index=(Slice(0, extent // 2), Slice(extent // 2, extent)))


@macro()
def impulse(x: Value) -> Value:
    """A vector of the single element 1, in the dtype of ``x``."""
    return x.constant(np.ones(1, x.type.dtype))


@macro("v")
def lagged(v: Value, x: Value, count: int, axis: int) -> Value:
    """For each lag below ``count`` the sum of ``v`` times the conjugate of ``x`` so much earlier along ``axis``."""
    x, extent, axes = x.conj(), v.shape[axis], range(v.type.ndim)
    sums = [
        (v.part(lag, extent, axis) * x.part(0, extent - lag, axis)).sum(*axes) if lag < extent else v.of_dtype(0)
        for lag in range(count)
    ]
    return sums[0].do("stack", *sums[1:], axis=0)


# -- spectra -------------------------------------------------------------------------------------------------


@macro("v")
def fitted(v: Value, shape: tuple[int, ...]) -> Value:
    """``v`` cut, or filled up with zeros, to ``shape``."""
    kept = tuple(Slice(0, min(own, wanted)) for own, wanted in zip(v.shape, shape, strict=True))
    if any(own > wanted for own, wanted in zip(v.shape, shape, strict=True)):
        v = v.do("getitem", index=kept)
    return v if v.shape == shape else v.do("scatter", shape=shape, indices=(kept,))


@macro("v")
def counted(v: Value, n: int, axis: int, inner: float) -> Value:
    """``v``, the ``n // 2 + 1`` frequencies of a real signal, times ``inner``.

    The first is left as it is, and the last if ``n`` is even: they have no counterpart among the negative ones.
    """
    weights = np.full(n // 2 + 1, inner, v.type.dtype.type(0).real.dtype)
    weights[0] = 1
    if n % 2 == 0:
        weights[-1] = 1
    return v * weights.reshape((-1,) + (1,) * (v.type.ndim - axis - 1))
