"""Bringing an adjoint to the shape and dtype of its variable: broadcasting and promotion undone, in one place."""

from __future__ import annotations

import numpy as np

from yota.ir.catalog import primitive
from yota.ir.tape import TapeBuilder
from yota.ir.types import TensorType

__all__ = ["match"]


def match(builder: TapeBuilder, adjoint: int, target: TensorType) -> int:
    """``adjoint`` summed over the axes that were broadcast, real where the variable is, in its dtype.

    The sum over broadcast axes is the transpose of broadcasting (Griewank and Walther, Evaluating Derivatives,
    2nd ed., section 3.2: the adjoint of a copy is a sum).
    """
    type_ = builder.types[adjoint]
    if type_.is_complex and not target.is_complex:
        adjoint = builder.emit(primitive("real"), (adjoint,))
    adjoint = _undo_broadcast(builder, adjoint, target.shape)
    found = builder.types[adjoint]
    if found.dtype != target.dtype or found.weak != target.weak:
        static = {"dtype": np.dtype(target.dtype)}
        adjoint = builder.emit(primitive("astype"), (adjoint,), static, type=target)
    return adjoint


def _undo_broadcast(builder: TapeBuilder, adjoint: int, shape: tuple[int, ...]) -> int:
    found = builder.types[adjoint].shape
    if found == shape:
        return adjoint
    extra = len(found) - len(shape)
    axes = tuple(
        axis for axis, extent in enumerate(found) if axis < extra or (shape[axis - extra] == 1 and extent != 1)
    )
    if axes:
        adjoint = builder.emit(primitive("sum"), (adjoint,), {"axis": axes, "keepdims": False})
    if builder.types[adjoint].shape != shape:
        adjoint = builder.emit(primitive("reshape"), (adjoint,), {"shape": shape})
    return adjoint
