"""Result types of primitives, found by one call of their NumPy functions for each combination of types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from yota.errors import TapeError
from yota.ir.extents import Sizes, at_sample, extent_of, extents_in
from yota.ir.primitive import Primitive
from yota.ir.types import TensorType, TupleType, tuple_of, type_of


@lru_cache(maxsize=65536)
def infer(primitive: Primitive, operands: tuple[TensorType, ...], static: tuple[tuple[str, Any], ...]) -> TensorType:
    """Type of ``primitive(*operands, **static)``; weak if every operand is.

    An elementwise primitive is called on single elements. Others are called on arrays of ones with zero strides,
    and on identity matrices, so that no large memory is allocated.
    """
    found = next(extents_in((operands, static)), None)
    if found is not None:
        # The type for shapes with extents is inferred at each sample of the sizes.
        samples = [(at_sample(operands, number), at_sample(static, number)) for number in range(len(found.values))]
        return _joined([infer(primitive, *each) for each in samples], found.sizes)
    if primitive.typed is not None:
        return primitive.typed(operands, static)
    if primitive.elementwise:
        try:
            shape = np.broadcast_shapes(*(operand.shape for operand in operands))
        except ValueError as fault:
            raise TapeError(f"{primitive.name}: {fault}") from None
        probes = tuple(TensorType(operand.dtype, (), operand.weak) for operand in operands)
        element = _probe(primitive, probes, static)
        return TensorType(element.dtype, shape, all(operand.weak for operand in operands))
    return _probe(primitive, operands, static)


def _joined(types: Sequence[TensorType], sizes: Sizes) -> TensorType:
    """The type for all samples of the sizes."""
    first = types[0]
    shape = tuple(extent_of(each, sizes) for each in zip(*(type.shape for type in types), strict=True))
    if not isinstance(first, TupleType):
        return replace(first, shape=shape)
    parts = zip(*(type.parts for type in types if isinstance(type, TupleType)), strict=True)
    return replace(first, shape=shape, parts=tuple(_joined(each, sizes) for each in parts))


def _probe(primitive: Primitive, operands: tuple[TensorType, ...], static: tuple[tuple[str, Any], ...]) -> TensorType:
    with np.errstate(all="ignore"):
        samples = tuple(map(sample, operands))
        try:
            result = primitive.function(*samples, **dict(static))
        except OverflowError:
            # Quantiles of Boost's raise at the probability 1.
            halves = (
                each / 2 if type.dtype.kind == "f" else each for each, type in zip(samples, operands, strict=True)
            )
            result = primitive.function(*halves, **dict(static))
        except np.linalg.LinAlgError:
            # Of whole numbers a sample is 0, which is a valid index and no regular matrix.
            regular = (
                each if type.differentiable else sample(TensorType(np.dtype(float), type.shape)).astype(type.dtype)
                for each, type in zip(samples, operands, strict=True)
            )
            result = primitive.function(*regular, **dict(static))
    if isinstance(result, (tuple, list)):
        return tuple_of([strong(type_of(each)) for each in result])
    return strong(type_of(result))


def strong(type: TensorType) -> TensorType:
    """The non-weak type of an array of this dtype and shape."""
    return TensorType(type.dtype, type.shape)


def sample(type: TensorType) -> Any:
    """A sample value of a type: ones, the identity for matrices, zeros for integers."""
    if isinstance(type, TupleType):
        return tuple(map(sample, type.parts))
    if type.weak:
        return type.dtype.type(1).item()
    # Zero is a valid index for every axis with an element.
    value = type.dtype.type(0 if type.dtype.kind in "iu" else 1)
    if type.ndim >= 2 and type.differentiable and type.size:
        # A matrix of ones is singular, and the primitive may be an inverse or a factorisation.
        return np.broadcast_to(_identity(type.shape[-2], type.shape[-1], type.dtype), type.shape)
    return np.broadcast_to(np.asarray(value), type.shape)


def _identity(rows: int, columns: int, dtype: np.dtype[Any]) -> Any:
    """``np.eye(rows, columns)`` as a view of the memory of one row and one column."""
    step = dtype.itemsize
    diagonals = np.zeros(rows + columns - 1, dtype)
    diagonals[columns - 1] = 1
    diagonals.flags.writeable = False
    return np.ndarray((rows, columns), dtype, diagonals, (columns - 1) * step, (step, -step))
