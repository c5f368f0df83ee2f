"""The gradient object that `grad` returns with the value."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from yota.errors import ArgumentError
from yota.ir.tape import Tape


def operations_of(source: str) -> dict[str, int]:
    """Count of each operation in generated code, as its header states; operations in loops count per element."""
    head = re.search(r"Operations: ([^.;]*)", source)
    return {name: int(count) for count, name in re.findall(r"(\d+) (\w+)", head.group(1))} if head else {}


@dataclass(frozen=True, slots=True, eq=False)
class GradResult:
    """Gradients by argument.

    ``g[0]`` is the gradient by the first argument. For an array it is an array of the same shape and dtype; for a
    number, a number. For a structure it is a dict from field path to array, without the fields that do not affect
    the result. For an argument without a derivative it is None.

    Parameters
    ----------
    gradients
        One for each argument.
    tape
        The tape with adjoints.
    source
        The generated code.
    captor
        Function that captures a call on a GPU; None for other targets.

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
        """Capture the call as a CUDA graph, which launches in a few microseconds.

        Returns
        -------
        Callable
            Takes no arguments; launches the same call on the same arrays. It returns the value and the gradients by
            argument, in arrays that each launch overwrites. To change the inputs, write into the argument arrays:
            ``x[...] = ...``.

        Raises
        ------
        ArgumentError
            If the call did not run on a GPU, or branched on traced data.
        """
        if self.captor is None:
            raise ArgumentError(
                "capture() needs a gradient that was computed on a GPU; pass CuPy arrays: yota.to_cuda(x)"
            )
        return self.captor()

    @property
    def operations(self) -> dict[str, int]:
        """Count of each operation in the generated code; operations in loops count per element."""
        return operations_of(self.source)

    def __reduce__(self) -> tuple[Any, ...]:
        # The captor holds memory of this process and is not pickled.
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
        """LaTeX for notebooks that do not show HTML."""
        return self.tape._repr_latex_()

    def _repr_html_(self) -> str:
        """HTML for notebooks."""
        from yota.tools.report.notebook import result_html

        return result_html(self)
