"""Arguments of a size that can be chosen: a small one to see that all is right, and one that is worth a GPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["Sized"]


@dataclass(frozen=True, slots=True)
class Sized:
    """Arguments by the number of points; called as `Workload.arguments` is.

    Parameters
    ----------
    make
        ``make(count)`` gives the arguments.
    count, quick
        The full size, and that of a quick run.
    steady
        From how many points on each further one takes the same, if that is not so in a quick run.
    """

    make: Callable[[int], tuple[Any, ...]]
    count: int
    quick: int = 10_000
    steady: int = 0

    def __call__(self, quick: bool) -> tuple[Any, ...]:
        """The arguments."""
        return self.make(self.quick if quick else self.count)
