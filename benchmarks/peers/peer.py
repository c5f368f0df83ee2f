"""What the runner asks of a peer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from benchmarks.workload import Workload

__all__ = ["Peer", "as_it_is", "specific_text"]


def as_it_is(value: Any) -> Any:
    return value


def nothing() -> None:
    return None


def specific_text(name: str) -> Callable[[Workload], Callable[..., Any] | None]:
    """Prepare only what a workload brings for the peer ``name``."""

    def prepare(workload: Workload) -> Callable[..., Any] | None:
        factory = workload.specific.get(name)
        return factory() if factory is not None else None

    return prepare


@dataclass(frozen=True, slots=True)
class Peer:
    """One peer.

    Parameters
    ----------
    name
        Its column in the tables.
    prepare
        Gives ``function(*arguments) -> (value, gradient)`` for a workload, made afresh, or None if it has no text
        for this workload. What it gives must have finished its work when it returns.
    package
        What must be importable.
    place
        Turns an argument into the peer's own arrays; not timed.
    fetch
        Turns an array of the gradient into NumPy's.
    differentiates
        False for the plain function, which gives a value alone.
    large
        Whether it takes part in what is for a GPU alone.
    obstacle
        Says why it cannot take part although its package is there; None if it can.
    """

    name: str
    prepare: Callable[[Workload], Callable[..., Any] | None]
    package: str = "numpy"
    place: Callable[[Any], Any] = as_it_is
    fetch: Callable[[Any], Any] = as_it_is
    differentiates: bool = True
    obstacle: Callable[[], str | None] = nothing
    large: bool = False

    @property
    def absent(self) -> str | None:
        """Why it cannot take part."""
        return self.obstacle() if find_spec(self.package) else f"{self.package} is not installed"
