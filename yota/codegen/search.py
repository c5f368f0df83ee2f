"""The long search for few operations: forms of one function are compared, and the best are factored again and again."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from yota.codegen.count import elements
from yota.codegen.factor import Options
from yota.codegen.forest import Forest
from yota.codegen.revise import revise
from yota.codegen.symbolic import factored, optimise, rewritten
from yota.ir.tape import Tape

__all__ = ["forms", "search"]

_log = logging.getLogger("yota.search")
_NESTED = Options(nest=True)
_MOST_FORMS = 2
"""Forms that are searched: those which a quick look finds to be the best."""


def forms(tape: Tape) -> list[Tape]:
    """A tape of values, and the same with its sums nested: its derivatives come out in another form, too."""
    nested = rewritten(tape, lambda planted: factored(planted, _NESTED), values=len(tape.outputs))
    return [tape] if nested is tape else [tape, nested]


def search(tapes: Sequence[Tape], *, seconds: float, strict: bool = False, values: int = 1) -> tuple[int, Tape]:
    """The shortest form that is found of any of several tapes that compute the same, and the number of that tape.

    Parameters
    ----------
    seconds
        How long to search at most, on a machine of today: it is steps that are counted, so that the same comes out
        everywhere.
    strict, values
        See `optimise`.
    """
    quick = [elements(optimise(tape, strict=strict, values=values)) for tape in tapes]
    close = sorted(range(len(tapes)), key=quick.__getitem__)[:_MOST_FORMS]
    each = seconds / len(close)

    def revised(planted: Forest) -> Forest:
        return factored(planted, Options()) if planted.is_array else revise(planted, seconds=each)

    found: dict[int, Tape] = {}
    for number in close:
        found[number] = rewritten(tapes[number], revised, strict=strict, values=values)
        now = elements(found[number])
        _log.info("%s: %d operations, %d after a long search", tapes[number].name, quick[number], now)
    best = min(found, key=lambda number: elements(found[number]))
    return best, found[best]
