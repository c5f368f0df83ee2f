"""Gives lower layers what they offer and do not know: tapes evaluation, pages and pickles, rules a memory of proofs."""

from __future__ import annotations

import copyreg
from typing import Any

import yota
from yota.compilation.playing import compile, play
from yota.compilation.primitives import find, reference
from yota.ir.primitive import Primitive
from yota.ir.tape import Tape
from yota.rules.packages import Packages
from yota.runtime.proofs import Proofs
from yota.tracing.intercept import opaque


def _repr_html_(tape: Tape) -> str:
    """What a notebook shows of a tape."""
    from yota.report.notebook import tape_html

    return tape_html(tape)


# The intermediate representation knows neither evaluation nor code generation nor pages; its tapes offer all the same.
for _method in (play, compile, _repr_html_):
    setattr(Tape, _method.__name__, _method)


def _by_name(known: Primitive) -> tuple[Any, tuple[Any, ...]]:
    """How a primitive is pickled: by its name; where it has no rule, by its function."""
    name = reference(known)
    return (find, (name,)) if name is not None else (opaque, (known.function,))


copyreg.pickle(Primitive, _by_name)


def proofs() -> Proofs:
    """What remembers, from one process to the next, which rule texts were proved."""
    return Proofs(yota.__version__)


Packages.proofs = staticmethod(proofs)
