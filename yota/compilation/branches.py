"""Whether a function is traced again where a branch on traced data goes another way."""

from __future__ import annotations

from typing import Any, Literal

from yota.errors import ArgumentError, StaleTapeError
from yota.ir.location import where
from yota.ir.tape import Guard

__all__ = ["MOST_FOLLOWED", "MOST_TAPES", "Dynamic", "check_dynamic", "follow"]

Dynamic = bool | Literal["auto"]
"""Whether each way is traced; ``"auto"`` stands for up to `MOST_FOLLOWED` of them."""
MOST_FOLLOWED = 64
"""Tapes for one kind of arguments up to which branches are followed unasked."""
MOST_TAPES = 1024
"""Tapes in one decision tree; a function that needs more than that branches too much for tracing to pay."""


def check_dynamic(dynamic: Any) -> None:
    """Refuse what is no choice.

    Raises
    ------
    ArgumentError
        If it is not True, False or ``"auto"``.
    """
    if not (dynamic is True or dynamic is False or dynamic == "auto"):
        raise ArgumentError(f"dynamic={dynamic!r} is not known; it is True, False or 'auto'")


def follow(dynamic: Dynamic, fault: StaleTapeError, guard: Guard, count: int) -> None:
    """Raise the error that a branch goes another way, unless it is followed after ``count`` tapes.

    Raises
    ------
    StaleTapeError
        If branches are not followed, or have been too often.
    """
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
