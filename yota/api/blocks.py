"""Derivatives by several arguments: a Jacobian for each argument, a Hessian block for each pair."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from yota.api.gradients import gradient, value_and_grad
from yota.errors import ArgumentError
from yota.run.gradient_layout import Wanted

Places = tuple[int | str, ...]


Composed = tuple[Callable[..., Any], Sequence[Any]]
"""A function, and the functions that it calls."""
Matrix = Callable[[Callable[..., Any], "int | str", Wanted], Callable[..., Any]]
"""Creates the function of the derivative matrix by one argument."""


def jacobians(f: Callable[..., Any], wrt: Places, wanted: Wanted, matrix: Matrix) -> Composed:
    """A function of the tuple of Jacobians, one by each argument, with the value before it if requested."""
    _check(wrt)
    first, *rest = wrt
    valued = matrix(f, first, wanted)
    plain = replace(wanted, with_value=False)
    others = [matrix(f, each, plain) for each in rest]

    def call(*args: Any, **kwargs: Any) -> Any:
        found = valued(*args, **kwargs)
        matrices = [other(*args, **kwargs) for other in others]
        return (found[0], (found[1], *matrices)) if wanted.with_value else (found, *matrices)

    return call, (valued, *others)


def hessians(
    f: Callable[..., Any], wrt: Places, wanted: Wanted, matrix: Matrix, options: Mapping[str, Any]
) -> Composed:
    """A function of the rows of Hessian blocks, with value and gradients before them if requested.

    The block by two arguments is the Jacobian, by the second, of the gradient by the first. Blocks below the
    diagonal are transposes of those above.
    """
    _check(wrt)
    both = value_and_grad(f, wrt, **options) if wanted.with_value else None
    blocks: dict[tuple[int, int], Callable[..., Any]] = {}
    for row, column in itertools.combinations_with_replacement(range(len(wrt)), 2):
        one = replace(wanted, with_value=False, order=2 if row == column else 1)
        function = f if row == column else gradient(f, wrt[row], **options)
        blocks[row, column] = matrix(function, wrt[column], one)

    def call(*args: Any, **kwargs: Any) -> Any:
        found = {place: block(*args, **kwargs) for place, block in blocks.items()}
        count = range(len(wrt))
        for row, column in itertools.combinations(count, 2):
            found[row, column] = _completed(found[row, column], found[row, row], found[column, column])
            found[column, row] = _mirrored(found[row, column], found[row, row], found[column, column])
        rows = tuple(tuple(found[row, column] for column in count) for row in count)
        return rows if both is None else (*both(*args, **kwargs), rows)

    return call, (*blocks.values(), *([] if both is None else [both]))


def _completed(block: Any, row: Any, column: Any) -> Any:
    """A block with zeros for the parts of its row structure that the function does not depend on."""
    if not isinstance(row, dict):
        return block
    by = {path: column[path][path] for path in column} if isinstance(column, dict) else column
    return {path: block[path] if path in block else _zeros(row[path][path], by) for path in row}


def _zeros(row: Any, column: Any) -> Any:
    """Zeros of the shape of a block; ``row`` and ``column`` are the diagonal blocks of its row and column."""
    if isinstance(column, dict):
        return {path: _zeros(row, each) for path, each in column.items()}
    if hasattr(row, "tocsr"):
        return (row[:, :1] * 0) @ column[:1] if min(row.shape[0], column.shape[0]) else row[:, :0] @ column[:0]
    shapes = [np.shape(each)[: np.ndim(each) // 2] for each in (row, column)]
    return np.zeros(shapes[0] + shapes[1], np.result_type(row, column))


def _mirrored(block: Any, row: Any, column: Any) -> Any:
    """The block below the diagonal, from the block above it and two diagonal blocks."""
    if not isinstance(row, dict):
        axes = np.ndim(row) // 2
        if isinstance(column, dict):
            return {path: _transposed(each, axes) for path, each in block.items()}
        return _transposed(block, axes)
    ndims = {path: np.ndim(row[path][path]) // 2 for path in row}
    if not isinstance(column, dict):
        return {path: _transposed(each, ndims[path]) for path, each in block.items()}
    return {by: {path: _transposed(block[path][by], ndims[path]) for path in row} for by in column}


def _transposed(block: Any, count: int) -> Any:
    """A block with its first ``count`` axes moved to the end; a sparse block stays in CSR format."""
    if hasattr(block, "tocsr"):
        return block.T.tocsr()
    return np.transpose(block, (*range(count, np.ndim(block)), *range(count)))


def _check(wrt: Places) -> None:
    if not wrt:
        raise ArgumentError("wrt=() names no argument to differentiate by; give positions or names, as in wrt=(0, 1)")
