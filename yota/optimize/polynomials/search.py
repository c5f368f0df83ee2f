"""The long search for few operations: forms of one function are compared, and the best are factored again and again."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial

from yota.ir.op_counts import elements
from yota.ir.tape import Tape
from yota.optimize.polynomials.factor import Options
from yota.optimize.polynomials.symbolic import factored, optimise, rewritten

_log = logging.getLogger("yota.search")
_NESTED = tuple(Options(nest=True, seed=seed) for seed in range(4))
_WAYS = (Options(), Options(shared=False), *_NESTED)
"""How a function is factored before it is differentiated: its derivatives come out in other forms, too."""
_SHORT = 1000
"""Ops of a function up to which all of these are tried."""
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


def search(tapes: Sequence[Tape], *, strict: bool = False, values: int = 1) -> tuple[int, Tape]:
    """The shortest form that is found of any of several tapes that compute the same, and the number of that tape.

    For strict and values see `optimise`.
    """
    quick = [optimise(tape, strict=strict, values=values) for tape in tapes]
    again = partial(_again, strict=strict, values=values)
    found = [min(one, again(one), again(tape), key=elements) for one, tape in zip(quick, tapes, strict=True)]
    best = min(range(len(found)), key=lambda number: elements(found[number]))
    _log.info("%s: %d operations, %d after a long search", tapes[0].name, elements(quick[0]), elements(found[best]))
    return best, found[best]


def _again(tape: Tape, *, strict: bool = False, values: int) -> Tape:
    """``tape`` factored for as long as that helps: what was factored is read in other terms."""
    for _ in range(_ROUNDS if len(tape) <= _LONG else 0):
        found = rewritten(tape, partial(factored, options=Options()), strict=strict, values=values)
        if found is tape:
            break
        tape = found
    return tape
