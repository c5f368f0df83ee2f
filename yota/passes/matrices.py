"""Determinants, inverses and solutions of small systems, element by element, by sub-determinants.

The rule of Laplace: W. Ledermann and S. Vajda (eds.), "Handbook of Applicable Mathematics", volume 1 (1980), chapter 6.
With up to four rows no elimination, whose pivots would be decisions, is shorter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from yota.ir.tape import Op
from yota.ir.types import TensorType
from yota.passes.unroll import Elements, Unrolling, Unsuitable

__all__ = ["FUNCTIONS"]

_LARGEST = 4
_Some: TypeAlias = tuple[int, ...]


class _Matrix:
    """A square matrix of scalar variables."""

    def __init__(self, unrolling: Unrolling, op: Op) -> None:
        self.type = unrolling.tape.types[op.operands[0]]
        if self.type.ndim != 2 or not 1 <= self.type.shape[0] <= _LARGEST or self.type.dtype.kind not in "fc":
            raise Unsuitable
        self.size = self.type.shape[0]
        self._unrolling, self._op = unrolling, op
        entries = unrolling.variables(unrolling.elements(op.operands[0]))
        self._entries = np.array(entries, np.int64).reshape(self.type.shape)
        self._minors: dict[tuple[_Some, _Some], int] = {}

    def apply(self, name: str, *operands: int) -> int:
        """One scalar op."""
        return self._unrolling.apply(self._op, name, operands, TensorType(self.type.dtype))

    def one(self) -> int:
        """The number 1."""
        return self._unrolling.constant(self.type.dtype.type(1))

    def determinant(self) -> int:
        """That of the whole matrix."""
        every = tuple(range(self.size))
        return self.minor(every, every)

    def minor(self, rows: _Some, columns: _Some) -> int:
        """The determinant of some rows and columns, expanded by one of the rows."""
        if not rows:
            return self.one()
        if len(rows) == 1:
            return int(self._entries[rows[0], columns[0]])
        found = self._minors.get((rows, columns))
        if found is None:
            found = self._minors[rows, columns] = self._expanded(rows, columns)
        return found

    def _expanded(self, rows: _Some, columns: _Some) -> int:
        place = _pivot(rows)
        rest = rows[:place] + rows[place + 1 :]
        signed = []
        for number, column in enumerate(columns):
            inner = self.minor(rest, columns[:number] + columns[number + 1 :])
            product = self.apply("multiply", int(self._entries[rows[place], column]), inner)
            signed.append(((place + number) % 2 == 0, product))
        # A positive term first, so that nothing is negated.
        signed.sort(key=lambda item: not item[0])
        total = signed[0][1]
        for positive, product in signed[1:]:
            total = self.apply("add" if positive else "subtract", total, product)
        return total

    def cofactor(self, row: int, column: int) -> tuple[bool, int]:
        """Whether it is positive, and the minor without one row and one column."""
        every = range(self.size)
        rows = tuple(each for each in every if each != row)
        return (row + column) % 2 == 0, self.minor(rows, tuple(each for each in every if each != column))


def _pivot(rows: _Some) -> int:
    """Which row to expand by: pairs of rows that are left are the first two or the last two, so that they recur."""
    if len(rows) == 3:
        for place in range(3):
            if rows[:place] + rows[place + 1 :] in ((0, 1), (2, 3)):
                return place
    return 0


def _det(unrolling: Unrolling, op: Op, type: TensorType) -> Elements:
    return np.array(_Matrix(unrolling, op).determinant(), np.int64)


def _cofactors(unrolling: Unrolling, op: Op, type: TensorType) -> Elements:
    matrix = _Matrix(unrolling, op)
    found = np.empty(type.shape, np.int64)
    for row, column in np.ndindex(type.shape):
        positive, minor = matrix.cofactor(row, column)
        found[row, column] = minor if positive else matrix.apply("negative", minor)
    return found


def _inv(unrolling: Unrolling, op: Op, type: TensorType) -> Elements:
    matrix = _Matrix(unrolling, op)
    scale = matrix.apply("divide", matrix.one(), matrix.determinant())
    negated = matrix.apply("negative", scale)
    found = np.empty(type.shape, np.int64)
    for row, column in np.ndindex(type.shape):
        positive, minor = matrix.cofactor(column, row)
        found[row, column] = matrix.apply("multiply", minor, scale if positive else negated)
    return found


def _solve(unrolling: Unrolling, op: Op, type: TensorType) -> Elements:
    """Cramer's rule, the numerators expanded by the right-hand side."""
    matrix = _Matrix(unrolling, op)
    right = unrolling.tape.types[op.operands[1]]
    if right.dtype != type.dtype or matrix.type.dtype != type.dtype or right.ndim > 2:
        raise Unsuitable
    known = np.array(unrolling.variables(unrolling.elements(op.operands[1])), np.int64).reshape(matrix.size, -1)
    bottom = matrix.determinant()
    found = np.empty(known.shape, np.int64)
    for row, column in np.ndindex(known.shape):
        total: int | None = None
        order = sorted(range(matrix.size), key=lambda each: (each + row) % 2)
        for each in order:
            positive, minor = matrix.cofactor(each, row)
            product = matrix.apply("multiply", minor, int(known[each, column]))
            if total is None:
                total = product if positive else matrix.apply("negative", product)
            else:
                total = matrix.apply("add" if positive else "subtract", total, product)
        assert total is not None
        found[row, column] = matrix.apply("divide", total, bottom)
    return found.reshape(type.shape)


FUNCTIONS: dict[str, Callable[[Unrolling, Op, TensorType], Elements]] = {
    "cofactors": _cofactors,
    "det": _det,
    "inv": _inv,
    "solve": _solve,
}
"""By primitive."""
