"""The values that one point of a loop nest computes: equal ones are one, whatever array they were elements of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from yota.ir.location import Location
from yota.schedule.nests.linear_index import Linear


@dataclass(frozen=True, slots=True)
class Value:
    """One number.

    kind: ``"load"`` (``data`` is the array's variable, ``offset`` the place), ``"literal"`` (``data`` is the number),
        ``"cast"`` or ``"apply"`` (``data`` is a primitive's name).
    operands: numbers of the values it is computed from.
    offset: where a load reads.
    """

    kind: str
    dtype: np.dtype[Any]
    data: Any = None
    operands: tuple[int, ...] = ()
    offset: Linear | None = None


class Values:
    """Values in an order in which they can be computed.

    places, hints: for some values, the user's line they come from, and a name.
    """

    def __init__(self) -> None:
        self.items: list[Value] = []
        self.places: dict[int, Location] = {}
        self.hints: dict[int, str] = {}
        self._known: dict[Any, int] = {}

    def __getitem__(self, number: int) -> Value:
        return self.items[number]

    def __len__(self) -> int:
        return len(self.items)

    def load(self, variable: int, offset: Linear, dtype: np.dtype[Any]) -> int:
        """An element of an array in memory."""
        numbers = tuple(-1 - axis for axis, _ in offset.terms if axis < 0)
        return self._put(Value("load", dtype, variable, numbers, offset), (variable, offset))

    def literal(self, value: Any, dtype: np.dtype[Any]) -> int:
        """A number that is known now."""
        if dtype == np.int64 and value >= 2**63:
            # A Python integer that only floating-point numbers hold.
            dtype = np.dtype(np.float64)
        number = dtype.type(value)
        # repr tells -0.0 from 0.0 and makes NaN equal to itself.
        return self._put(Value("literal", dtype, number), ("literal", repr(number), dtype))

    def cast(self, number: int, dtype: np.dtype[Any]) -> int:
        """A value in another dtype."""
        value = self.items[number]
        if value.dtype == dtype:
            return number
        if value.dtype.kind == "c" and dtype.kind == "b":
            # Either part makes it true, as in NumPy's logic.
            return self.apply("not_equal", (number, self.literal(0, value.dtype)), dtype)
        if value.kind == "literal":
            data = value.data.real if value.dtype.kind == "c" and dtype.kind != "c" else value.data
            with np.errstate(all="ignore"):
                return self.literal(data, dtype)
        return self._put(Value("cast", dtype, None, (number,)), ("cast", number, dtype))

    def apply(self, name: str, operands: Iterable[int], dtype: np.dtype[Any]) -> int:
        """A primitive's result."""
        operands = tuple(operands)
        return self._put(Value("apply", dtype, name, operands), (name, operands, dtype))

    def is_literal(self, number: int, data: float) -> bool:
        """Whether a value is this number."""
        value = self.items[number]
        return value.kind == "literal" and bool(value.data == data)

    def _put(self, value: Value, key: Any) -> int:
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = len(self.items)
            self.items.append(value)
        return found
