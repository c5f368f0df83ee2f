"""The option ``dynamic``: whether a function is traced again when a branch changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from yota.errors import ArgumentError, StaleTapeError
from yota.ir.location import where

if TYPE_CHECKING:
    from yota.ir.tape import Guard

Dynamic = bool | Literal["auto"]
"""Whether each branch combination is traced; ``"auto"`` allows `MOST_FOLLOWED` of them."""
MOST_FOLLOWED = 64
"""Largest number of tapes for one combination of argument types with ``dynamic="auto"``."""
MOST_TAPES = 1024
"""Largest number of tapes in one decision tree."""


def check_dynamic(dynamic: Any) -> None:
    """Check the option ``dynamic``.

    Raises ArgumentError if it is not True, False or ``"auto"``.
    """
    if not (dynamic is True or dynamic is False or dynamic == "auto"):
        raise ArgumentError(f"dynamic={dynamic!r} is not known; it is True, False or 'auto'")


def follow(dynamic: Dynamic, fault: StaleTapeError, guard: Guard, count: int) -> None:
    """Raise the error of a failed guard, unless a further tape is allowed after ``count`` tapes.

    Raises StaleTapeError if no further tape is allowed.
    """
    if guard.kind == "points" and fault.decision[1]:
        raise fault  # Points differ from one another: one tape cannot hold for all.
    if dynamic is True or fault.layout:
        return
    if not dynamic:
        raise fault
    if count >= MOST_FOLLOWED:
        known = type(fault)(
            f"{where(guard.location)}this branch goes another way in all of the {count} tapes that were recorded, one "
            "for each combination of branches that was met, and no more are unless they are asked for. Write the "
            f"choice with np.where, or pass dynamic=True, which keeps up to {MOST_TAPES} tapes."
        )
        known.decision, known.missed = fault.decision, fault.missed
        raise known from None
