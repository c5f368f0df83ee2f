"""Lazily computed values of variables that do not depend on differentiable inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from yota.ir.tape import Tape


class Known(Mapping[int, Any]):
    """Values by variable.

    values: values of some inputs.
    relied: inputs that affected any requested value.
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
        self.rely(variable)
        return self.peek(variable)

    def rely(self, variable: int) -> None:
        """Add the inputs that a value depends on to `relied`."""
        self.relied |= self._sources[variable]

    def peek(self, variable: int) -> Any:
        """A value whose use is not recorded in `relied`."""
        if variable not in self._values:
            op = self._definitions[variable]
            operands = [self.peek(operand) for operand in op.operands]
            self._values[variable] = op.primitive.function(*operands, **dict(op.static))
        return self._values[variable]
