"""What `grad` returns beside the value."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from yota.errors import ArgumentError
from yota.ir.tape import Tape

__all__ = ["GradResult", "operations_of"]


def operations_of(source: str) -> dict[str, int]:
    """How often each operation occurs in generated code, as its head states; in loops for each element."""
    head = re.search(r"Operations: ([^.;]*)", source)
    return {name: int(count) for count, name in re.findall(r"(\d+) (\w+)", head.group(1))} if head else {}


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
    captor
        What captures the call, where it ran on a GPU.

    Examples
    --------
    >>> import numpy as np
    >>> import yota
    >>> value, g = yota.grad(lambda p, x: p["w"] * np.sum(x), {"w": 2.0}, np.ones(2))
    >>> g[0][("w",)], g[1]
    (2.0, array([2., 2.]))
    """

    gradients: tuple[Any, ...]
    tape: Tape
    source: str
    captor: Callable[[], Callable[[], Any]] | None = field(default=None, repr=False)

    def capture(self) -> Callable[[], Any]:
        """The call as a CUDA graph: a function that launches it again, on the same arrays, in a few microseconds.

        Returns
        -------
        Callable
            Takes nothing; gives the value and the gradients by argument, in arrays that each launch writes anew. To
            compute with other numbers, write them into the arguments' arrays first: ``x[...] = ...``.

        Raises
        ------
        ArgumentError
            If the call did not run on a GPU, or branched on traced data.
        """
        if self.captor is None:
            raise ArgumentError(
                "capture() is for a gradient that was computed on a GPU; pass arrays of CuPy's: yota.to_cuda(x)"
            )
        return self.captor()

    @property
    def operations(self) -> dict[str, int]:
        """How often each operation occurs in the generated code, as its head states; in loops for each element."""
        return operations_of(self.source)

    def __reduce__(self) -> tuple[Any, ...]:
        # What captures the call holds memory of this process.
        return GradResult, (self.gradients, self.tape, self.source)

    def __getitem__(self, position: int) -> Any:
        return self.gradients[position]

    def __len__(self) -> int:
        return len(self.gradients)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.gradients)

    def __repr__(self) -> str:
        return f"GradResult({', '.join(map(repr, self.gradients))})"

    def _repr_latex_(self) -> str | None:
        """What a notebook shows where it shows no HTML."""
        return self.tape._repr_latex_()

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from yota.report.notebook import result_html

        return result_html(self)
