"""Arrays as arrays of scalar variables, each read when something first needs it, and functions of small matrices.

Determinants, inverses and solutions are made of sub-determinants by the rule of Laplace: W. Ledermann and S. Vajda
(eds.), "Handbook of Applicable Mathematics", volume 1 (1980), chapter 6. With up to four rows no elimination, whose
pivots would be decisions, is shorter.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from yota.ir.tape import Op, Tape
from yota.ir.types import TensorType, TupleType
from yota.optimize.rewrite import Rewriting

Elements: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"
"""Handles of an array's elements: a variable's number, or a negative number for an element not read yet."""

LARGEST_SOURCE = 1 << 20


class Unsuitable(Exception):
    """The tape does not fall apart into few scalars."""


class Unrolling(Rewriting):
    """A tape under reconstruction as scalar ops.

    limit: number of scalar ops beyond which it is given up.
    """

    def __init__(self, tape: Tape, limit: int) -> None:
        super().__init__(tape)
        self._limit = limit
        self._elements: dict[int, Elements] = {}
        self._starts: list[int] = [0]
        self._sources: list[int] = []
        self._read: dict[int, int] = {}
        self.zeros: set[int] = set()

    def elements(self, variable: int) -> Elements:
        """Handles of the elements of a variable of the tape that is read."""
        found = self._elements.get(variable)
        if found is None:
            found = self._elements[variable] = self._source(variable)
        return found

    def _source(self, variable: int) -> Elements:
        """Handles for an input or a constant: nothing is read before it is used."""
        type = self.tape.types[variable]
        if not type.shape:
            return np.array(self[variable], np.int64)
        if type.size > LARGEST_SOURCE:
            raise Unsuitable
        start = self._starts[-1]
        self._starts.append(start + type.size)
        self._sources.append(variable)
        return -1 - (start + np.arange(type.size, dtype=np.int64)).reshape(type.shape)

    def variables(self, elements: Elements) -> list[int]:
        """Variables of elements, in C order; those not read before are read now."""
        return [handle if handle >= 0 else self._element(handle) for handle in elements.ravel().tolist()]

    def _element(self, handle: int) -> int:
        found = self._read.get(handle)
        if found is None:
            self._count()
            found = self._read[handle] = self._fetch(-1 - handle)
        return found

    def _fetch(self, position: int) -> int:
        number = bisect.bisect_right(self._starts, position) - 1
        source = self._sources[number]
        type = self.tape.types[source]
        where = np.unravel_index(position - self._starts[number], type.shape)
        index = tuple(int(entry) for entry in where)
        if source in self.tape.constants:
            return self.constant(np.asarray(self.tape.constants[source])[index])
        return self.emit("getitem", (self[source],), {"index": index}, TensorType(type.dtype))

    def constant(self, value: Any) -> int:
        """Variable of a constant element."""
        found = self.builder.constant(value)
        if value == 0 and not np.signbit(np.real(value)) and not np.signbit(np.imag(value)):
            self.zeros.add(found)
        return found

    def scalar(self, variable: int) -> int:
        """The variable of a 0-d value."""
        if self.tape.types[variable].shape:
            raise Unsuitable
        found = self.mapping.get(variable)
        if found is None:
            (found,) = self.variables(self.elements(variable))
            self.bind(variable, found)
        return found

    def require(self, number: int) -> None:
        """Give up early where ``number`` more ops would be too many."""
        if number > self._limit:
            raise Unsuitable

    def _count(self) -> None:
        self.require(1)
        self._limit -= 1

    def apply(self, op: Op, name: str | None, operands: Sequence[int], type: TensorType) -> int:
        """One scalar op."""
        self._count()
        return self.emit(op.primitive if name is None else name, operands, op.static if name is None else (), type)

    def settle(self, op: Op, found: Elements) -> None:
        """Note the elements of an op's result."""
        type = self.tape.types[op.result]
        if found.shape != type.shape and not isinstance(type, TupleType):
            raise Unsuitable
        self._elements[op.result] = found
        if not type.shape and (handle := int(found)) >= 0:
            self.bind(op.result, handle)


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
        self.entries = np.array(entries, np.int64).reshape(self.type.shape)
        self._minors: dict[tuple[_Some, _Some], int] = {}

    def apply(self, name: str, *operands: int) -> int:
        return self._unrolling.apply(self._op, name, operands, TensorType(self.type.dtype))

    def one(self) -> int:
        return self._unrolling.constant(self.type.dtype.type(1))

    def determinant(self) -> int:
        every = tuple(range(self.size))
        return self.minor(every, every)

    def minor(self, rows: _Some, columns: _Some) -> int:
        """The determinant of some rows and columns, expanded by one of the rows."""
        if not rows:
            return self.one()
        if len(rows) == 1:
            return int(self.entries[rows[0], columns[0]])
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
            product = self.apply("multiply", int(self.entries[rows[place], column]), inner)
            signed.append(((place + number) % 2 == 0, product))
        # A positive term first, so that nothing is negated.
        return self.total(sorted(signed, key=lambda item: not item[0]))

    def total(self, terms: Iterable[tuple[bool, int]]) -> int:
        """The sum of terms with their signs."""
        found: int | None = None
        for positive, term in terms:
            if found is not None:
                found = self.apply("add" if positive else "subtract", found, term)
            else:
                found = term if positive else self.apply("negative", term)
        assert found is not None
        return found

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


def _slogdet(unrolling: Unrolling, op: Op, type: TensorType) -> Elements:
    """The sign and the logarithm, which ``item`` reads apart; of entries of at most 1, as products may overflow."""
    matrix = _Matrix(unrolling, op)
    dtype = matrix.type.dtype
    if dtype.kind != "f":
        raise Unsuitable
    largest = unrolling.constant(np.finfo(dtype).tiny)
    for entry in matrix.entries.flat:
        largest = matrix.apply("maximum", largest, matrix.apply("absolute", int(entry)))
    # The bound is never reached: without it, the scale would be factored out of the determinant again.
    bound = unrolling.constant(dtype.type(-2))
    for place, entry in np.ndenumerate(matrix.entries):
        matrix.entries[place] = matrix.apply("maximum", matrix.apply("divide", int(entry), largest), bound)
    found = matrix.determinant()
    scale = matrix.apply("multiply", unrolling.constant(dtype.type(matrix.size)), matrix.apply("log", largest))
    size = matrix.apply("log", matrix.apply("absolute", found))
    return np.array([matrix.apply("sign", found), matrix.apply("add", size, scale)], np.int64)


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
        order = sorted(range(matrix.size), key=lambda each: (each + row) % 2)
        minors = ((*matrix.cofactor(each, row), int(known[each, column])) for each in order)
        terms = ((positive, matrix.apply("multiply", minor, right)) for positive, minor, right in minors)
        found[row, column] = matrix.apply("divide", matrix.total(terms), bottom)
    return found.reshape(type.shape)


FUNCTIONS: dict[str, Callable[[Unrolling, Op, TensorType], Elements]] = {
    "cofactors": _cofactors,
    "det": _det,
    "inv": _inv,
    "slogdet": _slogdet,
    "solve": _solve,
}
"""By primitive."""
