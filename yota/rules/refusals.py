"""Law: a string in the place of a derivative says why there is none, and stands nowhere else."""

from __future__ import annotations

from yota.rules.display import show
from yota.rules.inspection import Inspection
from yota.rules.model import refusal

__all__ = ["refusals"]

_SHORTEST = 10


def refusals(case: Inspection) -> None:
    """A string is a whole right-hand side of a derivative, and long enough to be a reason."""
    for side in case.sides():
        reason = refusal(side.expression)
        if reason is None:
            continue
        if side.role in ("primal", "kink"):
            raise case.fault(
                side.expression,
                "a string stands in the place of a derivative only, and says why there is none",
                write=f"{side.left} = ..." if side.role == "primal" else "assert x != 0",
            )
        if len(reason.strip()) < _SHORTEST:
            raise case.fault(
                side.expression,
                f"{side.left} does not say why there is no derivative",
                found=show(side.expression),
                write=f'{side.left} = "no closed form"',
            )
