"""Arrays as arrays of scalar variables, each read when something first needs it."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from yota.ir.tape import Op, Tape
from yota.ir.types import TensorType
from yota.passes.rewrite import Rewriting

__all__ = ["LARGEST_SOURCE", "Elements", "Unrolling", "Unsuitable"]

Elements: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"
"""Handles of an array's elements: a variable's number, or a negative number for an element not read yet."""

LARGEST_SOURCE = 1 << 20


class Unsuitable(Exception):
    """The tape does not fall apart into few scalars."""


class Unrolling(Rewriting):
    """A tape under reconstruction as scalar ops.

    Parameters
    ----------
    tape
        The tape that is read.
    limit
        Number of scalar ops beyond which it is given up.
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
        if found.shape != type.shape:
            raise Unsuitable
        self._elements[op.result] = found
        if not type.shape and (handle := int(found)) >= 0:
            self.bind(op.result, handle)
