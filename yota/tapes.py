"""Gives tapes what needs evaluation, rules, code generation or pages: `play`, `compile`, a notebook's form, pickles."""

from __future__ import annotations

import copyreg
from typing import Any

from yota.compilation.playing import compile, play
from yota.ir.catalog import primitive
from yota.ir.primitive import Primitive
from yota.ir.tape import Tape
from yota.rules.registry import registry
from yota.tracing.intercept import opaque


def _repr_html_(tape: Tape) -> str:
    """What a notebook shows of a tape."""
    from yota.report.notebook import tape_html

    return tape_html(tape)


# The intermediate representation knows neither evaluation nor code generation nor pages; its tapes offer all the same.
for _method in (play, compile, _repr_html_):
    setattr(Tape, _method.__name__, _method)


def _by_name(known: Primitive) -> tuple[Any, tuple[Any, ...]]:
    """How a primitive is pickled: by its name; where that says nothing, by its function."""
    try:
        if primitive(known.name) is known:
            return primitive, (known.name,)
    except KeyError:
        pass
    if registry().knows(known.name):
        return _of_rules, (known.name,)
    return opaque, (known.function,)


def _of_rules(name: str) -> Primitive:
    """The primitive of that name, which has a rule in this process too; `MissingRuleError` says how to write one."""
    return registry().primitive(name)


copyreg.pickle(Primitive, _by_name)
