"""Gives tapes the methods that need evaluation, code generation and pages: `play`, `compile`, a notebook's form."""

from __future__ import annotations

from yota.compilation.playing import compile, play
from yota.ir.tape import Tape


def _repr_html_(tape: Tape) -> str:
    """What a notebook shows of a tape."""
    from yota.report.notebook import tape_html

    return tape_html(tape)


# The intermediate representation knows neither evaluation nor code generation nor pages; its tapes offer all the same.
for _method in (play, compile, _repr_html_):
    setattr(Tape, _method.__name__, _method)
