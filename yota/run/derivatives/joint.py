"""Derivative matrices by structures, or of functions that return structures, as blocks of one matrix."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from yota.ir.callables import name_of
from yota.run.gradient_layout import Wanted
from yota.structures import Path, flatten, is_leaf, mapped
from yota.tracing.methods import is_tracer
from yota.tracing.results import parted, type_of, vector


@dataclass(frozen=True, slots=True)
class _Piece:
    """An array or number, and its position in the joined vector.

    group: number of its vector; there is one for each dtype.
    """

    path: Path
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    group: int
    start: int

    @property
    def span(self) -> slice:
        return slice(self.start, self.start + math.prod(self.shape))


def as_vector(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` with a structured result joined to one vector."""

    def flat(*values: Any) -> Any:
        return parted(function, [], joined=True)(*values)[0]

    flat.__name__ = name_of(function)
    return flat


class Joint:
    """The derivative matrices of a function by one argument, where the argument or the result is a structure.

    The leaves of the argument are joined to one vector for each dtype, and all results to another vector.

    matrix: creates the function of the matrices by the arguments at given positions.
    """

    def __init__(
        self, function: Callable[..., Any], position: int, wanted: Wanted, matrix: Callable[..., Callable[..., Any]]
    ) -> None:
        self.position, self.wanted = position, wanted
        self._function, self._matrix = function, matrix
        self._made: dict[int, Sequence[Callable[..., Any]]] = {}

    def __call__(self, *args: Any) -> Any:
        """Blocks by path, with values before them if requested."""
        by = args[self.position]
        leaves = [(path, leaf) for path, leaf in flatten(by) if _is_moved(leaf)]
        pieces, count = _pieces([(path, type_of(leaf)) for path, leaf in leaves], apart=True)
        values = [leaf for _, leaf in leaves]
        vectors = [vector([v for v, p in zip(values, pieces, strict=True) if p.group == g]) for g in range(count)]
        if count not in self._made:
            self._made[count] = list(self._by_vectors(count))
        found = [matrix(*vectors, *args) for matrix in self._made[count]]
        return self._hessian(pieces, found[0], count) if self.wanted.order == 2 else self._jacobian(pieces, found)

    def parts(self) -> Iterator[Any]:
        """The compiled functions."""
        for made in self._made.values():
            yield from made

    def _by_vectors(self, count: int) -> Iterator[Callable[..., Any]]:
        """The function of the matrices by the vectors."""
        function = self._flat(count)
        if self.wanted.order == 2:
            yield self._matrix(function, 0 if count == 1 else tuple(range(count)), self.wanted)
            return
        for place in range(count):
            wanted = replace(self.wanted, joined=True, with_value=self.wanted.with_value and not place)
            yield self._matrix(function, place, wanted)

    def _flat(self, count: int) -> Callable[..., Any]:
        """The function of the vectors, and its arguments after them."""
        function, position = self._function, self.position

        def flat(*values: Any) -> Any:
            vectors, args = values[:count], list(values[count:])
            leaves = [leaf for _, leaf in flatten(args[position]) if _is_moved(leaf)]
            pieces, _ = _pieces([((), type_of(leaf)) for leaf in leaves], apart=True)
            moved = iter([_taken(vectors[p.group], p, leaf) for p, leaf in zip(pieces, leaves, strict=True)])
            args[position] = mapped(args[position], lambda leaf: next(moved) if _is_moved(leaf) else leaf)
            return function(*args)

        flat.__name__ = name_of(function)
        return flat

    def _jacobian(self, pieces: Sequence[_Piece], found: Sequence[Any]) -> Any:
        form, *values, _ = found[0]
        several, whole = [each[-1] for each in found], form.parts is None
        results, _ = _pieces(zip(form.paths(), form.types(), strict=True), apart=False)
        filled = []
        for result in results:
            blocks = {}
            for piece in pieces:
                rows = several[piece.group] if whole else several[piece.group][result.span]
                shape = (*result.shape, *piece.shape)
                block = self._block(rows, piece, shape)
                blocks[piece.path] = block if whole else _cast(block, np.result_type(result.dtype, piece.dtype))
            filled.append(blocks.get((), blocks))
        matrix = form.filled(filled)
        if not values:
            return matrix
        (value,) = values
        parts = [value] if whole else [_cast(value[each.span].reshape(each.shape), each.dtype)[()] for each in results]
        return form.filled(parts), matrix

    def _hessian(self, pieces: Sequence[_Piece], found: Any, count: int) -> Any:
        *values, rows = found if self.wanted.with_value else (found,)
        grid = rows if count > 1 else ((rows,),)
        blocks = {
            row.path: {
                column.path: self._block(grid[row.group][column.group][row.span], column, (*row.shape, *column.shape))
                for column in pieces
            }
            for row in pieces
        }
        if not values:
            return blocks
        value, slope = values
        slopes = slope if count > 1 else (slope,)
        return value, {each.path: slopes[each.group][each.span].reshape(each.shape)[()] for each in pieces}, blocks

    def _block(self, rows: Any, piece: _Piece, shape: tuple[int, ...]) -> Any:
        """The columns of ``piece``; a sparse block stays a matrix."""
        return rows[:, piece.span] if self.wanted.sparse else rows[..., piece.span].reshape(shape)[()]


def _is_moved(leaf: Any) -> bool:
    return (is_tracer(leaf) or is_leaf(leaf)) and type_of(leaf)[1].kind in "fc"


def _pieces(
    parts: Iterable[tuple[Path, tuple[tuple[int, ...], np.dtype[Any]]]], *, apart: bool
) -> tuple[list[_Piece], int]:
    """The position of each leaf, and the number of vectors: one for each dtype, or one for all."""
    groups: dict[Any, int] = {}
    starts: dict[int, int] = {}
    found = []
    for path, (shape, dtype) in parts:
        group = groups.setdefault(dtype if apart else None, len(groups))
        start = starts.get(group, 0)
        found.append(_Piece(path, shape, dtype, group, start))
        starts[group] = start + math.prod(shape)
    return found, len(groups)


def _taken(vector: Any, piece: _Piece, leaf: Any) -> Any:
    """The value of ``leaf`` from the vector: an array of its shape, a NumPy scalar or a Python number."""
    if isinstance(leaf, np.ndarray):
        return vector[piece.span].reshape(piece.shape)
    number = vector[piece.start]
    return number if isinstance(leaf, np.generic) else number.item()


def _cast(block: Any, dtype: np.dtype[Any]) -> Any:
    if block.dtype == dtype:
        return block
    return (block if dtype.kind == "c" or block.dtype.kind != "c" else block.real).astype(dtype)
