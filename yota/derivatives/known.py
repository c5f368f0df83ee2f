"""Values of variables that no differentiable input has a part in, computed when they are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from yota.ir.tape import Tape

__all__ = ["Known"]


class Known(Mapping[int, Any]):
    """The values by variable.

    Parameters
    ----------
    tape
        The tape.
    values
        Values of some of its inputs.

    Attributes
    ----------
    relied
        Inputs whose values were asked for, or had a part in what was.
    """

    def __init__(self, tape: Tape, values: Mapping[int, Any]) -> None:
        self.relied: set[int] = set()
        self._values = {**tape.constants, **values}
        self._sources: dict[int, frozenset[int]] = dict.fromkeys(tape.constants, frozenset())
        self._sources.update({variable: frozenset({variable}) for variable in values})
        self._definitions = tape.definitions()
        for op in tape.ops:
            if all(operand in self._sources for operand in op.operands):
                self._sources[op.result] = frozenset().union(*(self._sources[operand] for operand in op.operands))

    def __contains__(self, variable: object) -> bool:
        return variable in self._sources

    def __iter__(self) -> Iterator[int]:
        return iter(self._sources)

    def __len__(self) -> int:
        return len(self._sources)

    def __getitem__(self, variable: int) -> Any:
        self.relied |= self._sources[variable]
        return self.peek(variable)

    def peek(self, variable: int) -> Any:
        """A value that nothing is going to rely on."""
        if variable not in self._values:
            op = self._definitions[variable]
            operands = [self.peek(operand) for operand in op.operands]
            self._values[variable] = op.primitive.function(*operands, **dict(op.static))
        return self._values[variable]
