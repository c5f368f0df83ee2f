"""Which units read each variable, kept up to date while ops move between loops."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence

from yota.ir.tape import Op
from yota.ir.types import TensorType
from yota.passes.units import Growing
from yota.passes.views import is_view

__all__ = ["Readers"]


class Readers:
    """The readers of each variable; a lone view stands for those who read the view.

    Parameters
    ----------
    units
        All units; more may come.
    kept
        Variables that are read from outside, too.
    """

    def __init__(self, units: Sequence[Growing], kept: Container[int], types: Mapping[int, TensorType]) -> None:
        self._kept, self._types = kept, types
        self._units: list[Growing] = []
        self._number: dict[int, int] = {}
        self._direct: dict[int, set[int]] = {}
        """For each variable, the numbers of the units that read it."""
        self._known: dict[int, list[Growing]] = {}
        for unit in units:
            self.add(unit, (member.op for member in unit.members))

    def of(self, variable: int) -> list[Growing]:
        """Who reads ``variable``, each once."""
        found = self._known.get(variable)
        if found is None:
            units: dict[int, Growing] = {}
            for number in sorted(self._direct.get(variable, ())):
                units.update((id(unit), unit) for unit in self._behind_view(self._units[number]))
            found = self._known[variable] = list(units.values())
        return found

    def add(self, unit: Growing, ops: Iterable[Op]) -> None:
        """``unit`` reads what ``ops`` read."""
        number = self._number.setdefault(id(unit), len(self._units))
        if number == len(self._units):
            self._units.append(unit)
        for op in ops:
            for operand in op.operands:
                self._direct.setdefault(operand, set()).add(number)
        self._known.clear()

    def drop(self, unit: Growing, ops: Iterable[Op]) -> None:
        """``unit`` has lost ``ops``."""
        left = {operand for member in unit.members for operand in member.op.operands}
        for op in ops:
            for operand in op.operands:
                if operand not in left:
                    self._direct[operand].discard(self._number[id(unit)])
        self._known.clear()

    def _behind_view(self, unit: Growing) -> list[Growing]:
        """``unit`` itself, or who reads it if it is a lone view."""
        op = unit.members[0].op
        if unit.extent or not is_view(op, self._types):
            return [unit]
        return [*self.of(op.result), *([unit] if op.result in self._kept else ())]
