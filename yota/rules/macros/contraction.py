"""Macro for the adjoint of ``einsum``."""

from __future__ import annotations

from typing import Any

import numpy as np

from yota.ir.indexing import GATHER
from yota.ir.primitive import Emitter
from yota.ir.types import TensorType
from yota.rules.macros.base import Handle, emit, macro, reshaped
from yota.rules.macros.shapes import unbroadcast

__all__ = ["contraction"]


@macro("v")
def contraction(emitter: Emitter, v: Handle, i: int, *xs: Handle, subscripts: str) -> Handle:
    """Adjoint of operand ``i`` of ``einsum(subscripts, *xs)``, whose result has the adjoint ``v``.

    The operand's labels that nothing else has are repeated; a label that the operand has twice lands on the
    diagonal.
    """
    inputs, output = subscripts.split("->")
    labels = inputs.split(",")
    types = [emitter.type(x) for x in xs]
    extents = _extents(labels, types)
    own = labels[i]
    wanted = "".join(dict.fromkeys(own))
    others = [position for position in range(len(xs)) if position != i]
    known = output + "".join(labels[position] for position in others)
    present = "".join(label for label in wanted if label in known)
    operands = [v, *(_conjugate(emitter, xs[position]) for position in others)]
    terms = [output, *(labels[position] for position in others)]
    if operands[1:] or present != output:
        v = emit(emitter, "einsum", *operands, subscripts=f"{','.join(terms)}->{present}")
    # An axis that einsum itself repeats can come out of a single element.
    shape = tuple(extents[label] for label in wanted)
    v = reshaped(emitter, v, _aligned(emitter.type(v).shape, present, wanted))
    if emitter.type(v).shape != shape:
        v = emit(emitter, "broadcast_to", v, shape=shape)
    if len(wanted) < len(own):
        return _diagonal(emitter, v, own, wanted, types[i])
    return unbroadcast(emitter, v, types[i].shape)


def _extents(labels: list[str], types: list[TensorType]) -> dict[str, int]:
    extents: dict[str, int] = {}
    for term, type_ in zip(labels, types, strict=True):
        for label, extent in zip(term, type_.shape, strict=True):
            if extents.get(label, 1) == 1:
                extents[label] = extent
    return extents


def _conjugate(emitter: Emitter, x: Handle) -> Handle:
    return emit(emitter, "conjugate", x) if emitter.type(x).is_complex else x


def _aligned(shape: tuple[int, ...], present: str, wanted: str) -> tuple[int, ...]:
    found = dict(zip(present, shape, strict=True))
    return tuple(found.get(label, 1) for label in wanted)


def _diagonal(emitter: Emitter, v: Handle, own: str, wanted: str, type_: TensorType) -> Handle:
    """``v`` over the labels ``wanted``, put where the labels ``own`` agree."""
    if any(type_.shape[position] != type_.shape[own.index(label)] for position, label in enumerate(own)):
        raise ValueError(f"einsum: the label {own!r} stands for two extents")
    positions: dict[str, Any] = {}
    for axis, label in enumerate(wanted):
        extent = type_.shape[own.index(label)]
        grid = [1] * len(wanted)
        grid[axis] = extent
        positions[label] = emitter.constant(np.arange(extent).reshape(grid))
    shape = tuple(type_.shape[own.index(label)] for label in wanted)
    where = [positions[label] for label in own]
    v = unbroadcast(emitter, v, shape)
    return emit(emitter, "scatter", v, *where, shape=type_.shape, indices=((GATHER,) * len(own),))
