"""Derivatives by several arguments: a Jacobian for each of them, and a block of the Hessian for each pair."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from yota.derivatives.gradients import gradient, value_and_grad
from yota.derivatives.straight import Wanted
from yota.errors import ArgumentError

__all__ = ["hessians", "jacobians"]

Places = tuple[int | str, ...]


Composed = tuple[Callable[..., Any], Sequence[Any]]
"""A function, and those that it calls."""
Matrix = Callable[[Callable[..., Any], "int | str", Wanted], Callable[..., Any]]
"""Makes the function that gives a matrix of derivatives by one argument."""


def jacobians(f: Callable[..., Any], wrt: Places, wanted: Wanted, matrix: Matrix) -> Composed:
    """A function that gives a tuple of Jacobians, one by each argument; with the value before it, if that is wanted."""
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
    """A function that gives the rows of blocks of the Hessian; with value and gradients before, if they are wanted.

    The block by two arguments is the Jacobian, by the second, of the gradient by the first; those below the diagonal
    are transposed from above.
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
        axes = [found[place, place].ndim // 2 for place in count]
        for row, column in itertools.combinations(count, 2):
            found[column, row] = _transposed(found[row, column], axes[row])
        rows = tuple(tuple(found[row, column] for column in count) for row in count)
        return rows if both is None else (*both(*args, **kwargs), rows)

    return call, (*blocks.values(), *([] if both is None else [both]))


def _transposed(block: Any, count: int) -> Any:
    """A block with its first ``count`` axes put last; a sparse one, of two axes, by rows again."""
    if hasattr(block, "tocsr"):
        return block.T.tocsr()
    return np.transpose(block, (*range(count, np.ndim(block)), *range(count)))


def _check(wrt: Places) -> None:
    if not wrt:
        raise ArgumentError("wrt=() names no argument to differentiate by; give positions or names, as in wrt=(0, 1)")
