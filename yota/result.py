"""What `grad` returns beside the value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from yota.ir.tape import Tape

__all__ = ["GradResult"]


@dataclass(frozen=True, slots=True, eq=False)
class GradResult:
    """Gradients by argument.

    ``g[0]`` is the gradient by the first argument: an array of its shape and dtype for an array, a number for a
    number, a dict from field path to array for a structure (fields that the result does not depend on are left
    out), None for an argument that has no derivative.

    Parameters
    ----------
    gradients
        One for each argument.
    tape
        The recorded function with its adjoints.
    source
        The generated code.
    """

    gradients: tuple[Any, ...]
    tape: Tape
    source: str

    def __getitem__(self, position: int) -> Any:
        return self.gradients[position]

    def __len__(self) -> int:
        return len(self.gradients)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.gradients)

    def __repr__(self) -> str:
        return f"GradResult({', '.join(map(repr, self.gradients))})"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from yota.report.notebook import result_html

        return result_html(self)
