"""A workload: one function of arrays as its user writes it, its arguments, and texts for peers that need their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Workload", "flatten"]


@dataclass(frozen=True, slots=True)
class Workload:
    """One workload.

    Parameters
    ----------
    name
        What the command line calls it.
    title
        One line for people.
    write
        ``write(np)`` gives the function, written against the namespace ``np``: NumPy's own, or a peer's.
    arguments
        ``arguments(quick)`` gives the arguments; smaller ones when ``quick``.
    wrt
        Positions of the arguments to differentiate by.
    jacobian
        Whether the function has many results, of which the Jacobian takes the place of the gradient.
    single
        Whether it is a function of a few numbers, where calls cost more than arithmetic.
    large
        Whether at its full size it is for a GPU alone.
    specific
        For a peer that cannot run ``write``: a factory of ``function(*arguments) -> (value, gradient)``.
    """

    name: str
    title: str
    write: Callable[[Any], Callable[..., Any]]
    arguments: Callable[[bool], tuple[Any, ...]]
    wrt: int | tuple[int, ...] = 0
    jacobian: bool = False
    single: bool = False
    large: bool = False
    specific: Mapping[str, Callable[[], Callable[..., Any]]] = field(default_factory=dict)

    @property
    def positions(self) -> tuple[int, ...]:
        """``wrt`` as a tuple."""
        return (self.wrt,) if isinstance(self.wrt, int) else self.wrt


def flatten(gradient: Any) -> list[Any]:
    """All arrays of a gradient, in an order on which every library agrees.

    >>> flatten({("b",): 1.0, ("a",): [2.0, 3.0]})
    [2.0, 3.0, 1.0]
    """
    if isinstance(gradient, Mapping):
        return [array for key in sorted(gradient, key=str) for array in flatten(gradient[key])]
    if isinstance(gradient, (tuple, list)):
        return [array for part in gradient for array in flatten(part)]
    return [gradient]
