"""Elements of arrays whose strides in memory are known, as loops of a kernel read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from yota.codegen.c.index import Bounds, Linear, Point
from yota.codegen.c.pull import Pull
from yota.ir.tape import Op, Tape

__all__ = ["StridedPull"]

_LIMIT = 2_000_000


class StridedPull(Pull):
    """Pulls values out of arrays.

    Parameters
    ----------
    strides
        Strides of arrays that are not in C order, in elements.
    """

    def __init__(
        self,
        tape: Tape,
        definitions: dict[int, Op],
        leaves: frozenset[int],
        bounds: Bounds,
        strides: Mapping[int, Sequence[int]],
    ) -> None:
        super().__init__(tape, definitions, leaves, bounds, _LIMIT)
        self._strides = strides

    def place(self, variable: int, point: Point) -> Linear:
        """Where in memory an element lies, from the first one."""
        if variable not in self._strides:
            return super().place(variable, point)
        total = Linear(0)
        for each, step in zip(point, self._strides[variable], strict=True):
            total = total + each.scaled(step)
        return total
