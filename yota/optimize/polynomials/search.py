"""The long search for few operations: forms of one function are compared, and the best are factored again and again."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial

from yota.ir.op_counts import elements
from yota.ir.tape import Tape
from yota.optimize.polynomials.factor import Options
from yota.optimize.polynomials.revise import revise
from yota.optimize.polynomials.symbolic import factored, optimise, rewritten
from yota.optimize.polynomials.system import PolynomialSystem
from yota.optimize.polynomials.terms import Table

_log = logging.getLogger("yota.search")
_NESTED = tuple(Options(nest=True, seed=seed) for seed in range(4))
_WAYS = (Options(), Options(shared=False), *_NESTED)
"""How a function is factored before it is differentiated: its derivatives come out in other forms, too."""
_SHORT = 1000
"""Ops of a function up to which all of these are tried."""
_MOST_FORMS = 2
"""Forms that are searched: those which a quick look finds to be the best."""
_ROUNDS, _LONG = 8, 2000
"""How often a tape is factored again at most, and ops past which it is not."""


def forms(tape: Tape) -> list[Tape]:
    """A tape of values, and the same factored in several ways."""
    found, values = [tape], len(tape.outputs)
    for options in _WAYS if len(tape) <= _SHORT else _NESTED[:1]:
        made = _again(rewritten(tape, partial(factored, options=options), values=values), values=values)
        if all(made.ops != each.ops for each in found):
            found.append(made)
    return found


def search(tapes: Sequence[Tape], *, seconds: float, strict: bool = False, values: int = 1) -> tuple[int, Tape]:
    """The shortest form that is found of any of several tapes that compute the same, and the number of that tape.

    seconds: how long to search at most, on a machine of today: it is steps that are counted, so that the same comes out
        everywhere.
    strict, values: see `optimise`.
    """
    quick = [_again(optimise(tape, strict=strict, values=values), strict=strict, values=values) for tape in tapes]
    counts = [elements(tape) for tape in quick]
    close = sorted(range(len(tapes)), key=counts.__getitem__)[:_MOST_FORMS]
    each = seconds / len(close)

    def revised(system: PolynomialSystem) -> Table:
        return factored(system, Options()) if system.is_array else revise(system, seconds=each)

    found: dict[int, Tape] = {}
    for number in close:
        made = rewritten(tapes[number], revised, strict=strict, values=values)
        found[number] = min(quick[number], _again(made, strict=strict, values=values), key=elements)
        now = elements(found[number])
        _log.info("%s: %d operations, %d after a long search", tapes[number].name, counts[number], now)
    best = min(found, key=lambda number: elements(found[number]))
    return best, found[best]


def _again(tape: Tape, *, strict: bool = False, values: int) -> Tape:
    """``tape`` factored for as long as that helps: what was factored is read in other terms."""
    for _ in range(_ROUNDS if len(tape) <= _LONG else 0):
        found = rewritten(tape, partial(factored, options=Options()), strict=strict, values=values)
        if found is tape:
            break
        tape = found
    return tape
