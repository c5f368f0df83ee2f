"""Calls that reach compiled functions without passing through Python code."""

from __future__ import annotations

import operator
import types
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from yota.errors import CodegenError

__all__ = ["MOST_FORMS", "offer", "quick", "watch"]

MOST_FORMS = 8
"""Forms are tried in turn, so that many would cost more than a look into a table."""
_KINDS = frozenset({np.ndarray, float, complex})


def quick(function: Callable[..., Any]) -> Any:
    """A callable that does what ``function`` does; `offer` gives it compiled forms to try first.

    It has the attributes of ``function``, which says how it is pickled and copied. Without a compiler it is
    ``function`` itself.
    """
    try:
        found = _dispatcher()(function)
    except CodegenError:
        # Whatever is compiled for a call will say so.
        return function
    if hasattr(function, "__dict__"):
        found.__dict__ = function.__dict__
    return found


def offer(dispatcher: Any, form: Callable[..., Any] | None, args: tuple[Any, ...]) -> bool:
    """Let ``dispatcher`` call ``form`` for arguments like ``args``; False if it must not.

    A compiled function refuses arrays of another dtype or shape itself; numbers are told apart by their type.
    """
    kinds = tuple(map(type, args))
    if not isinstance(form, types.BuiltinFunctionType) or not _KINDS.issuperset(kinds):
        return False
    if len(dispatcher.forms) >= MOST_FORMS or any(known[0] is form for known in dispatcher.forms):
        return False
    dispatcher.set_forms((*dispatcher.forms, (form, *kinds)))
    return True


def watch(dispatcher: Any, identities: tuple[tuple[Any, ...], ...] | None) -> bool:
    """Let ``dispatcher`` try forms only while variables hold certain objects; False if that cannot be told so.

    Where these are others than it knew, it forgets its forms, which were compiled for those.
    """
    wanted = identities or ()
    if not _are_same(dispatcher.watched, wanted):
        dispatcher.set_forms(())
        dispatcher.set_watched(wanted)
    return identities is not None


def _are_same(known: tuple[tuple[Any, ...], ...], wanted: tuple[tuple[Any, ...], ...]) -> bool:
    """Equality of tuples of tuples by the identity of what is in them."""
    return len(known) == len(wanted) and all(
        len(one) == len(other) and all(map(operator.is_, one, other)) for one, other in zip(known, wanted, strict=True)
    )


@cache
def _dispatcher() -> Any:
    # Only who compiles needs these.
    from yota.codegen.render import render
    from yota.runtime import native

    return native.build(render("c/dispatcher.c.jinja")).Dispatcher
