"""Calls that reach compiled functions without passing through Python code."""

from __future__ import annotations

import types
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from yota.errors import CodegenError

__all__ = ["MOST_FORMS", "offer", "quick"]

MOST_FORMS = 8
"""Forms are tried in turn, so that many would cost more than a look into a table."""
_KINDS = frozenset({np.ndarray, float, complex})


def quick(function: Callable[..., Any]) -> Any:
    """A callable that does what ``function`` does; `offer` gives it compiled forms to try first.

    Without a compiler it is ``function`` itself.
    """
    try:
        return _dispatcher()(function)
    except CodegenError:
        # Whatever is compiled for a call will say so.
        return function


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


@cache
def _dispatcher() -> Any:
    # Only who compiles needs these.
    from yota.codegen.render import render
    from yota.runtime import native

    return native.build(render("c/dispatcher.c.jinja")).Dispatcher
