"""Calls that reach compiled functions without passing through Python code."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from yota.errors import CodegenError

__all__ = ["MOST_FORMS", "Form", "guarded", "offer", "quick", "withdraw"]

MOST_FORMS = 8
"""Forms are tried in turn, so that many would cost more than a look into a table."""
_CHECKS = (
    *("cell", "entry", "item", "function", "class", "bases", "attributes", "attribute", "size", "list", "dict"),
    *("form", "bytes", "changed"),
)
"""Kinds of checks, as `yota.watching.checks` describes them."""
_ARRANGEMENTS = ("plain", "split", "list")


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    """A compiled function for arguments of one kind, and what must hold for it to be called.

    Parameters
    ----------
    function
        Takes the arguments, and after them ``captured``.
    kinds
        Of each argument its type, for an array with its shape and dtype.
    captured
        Further arguments that it supplies itself.
    arrangement
        How results are given: ``"plain"`` as they come, ``"split"`` with all but the first in a tuple, ``"list"``.
    checks
        Each as its kind and what that is about.
    """

    function: Callable[..., Any]
    kinds: tuple[tuple[Any, ...], ...]
    captured: tuple[Any, ...]
    arrangement: str
    checks: tuple[tuple[Any, ...], ...]


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


def guarded(form: Form, otherwise: Callable[..., Any], *, build: bool) -> Any:
    """A callable that calls ``form`` where that fits and holds, and else ``otherwise``; None if it is not compiled.

    Parameters
    ----------
    build
        Whether to compile the checks if this process has not loaded them yet.
    """
    if not build and not _dispatcher.cache_info().currsize:
        return None
    try:
        found = _dispatcher()(otherwise)
    except CodegenError:
        return None
    found.set_forms((_as_offered(form),))
    return found


def offer(dispatcher: Any, key: Any, form: Form | None) -> None:
    """Let ``dispatcher`` call ``form``, which replaces the one that it was offered under the same ``key``."""
    known = dispatcher.__dict__.setdefault("_offered", {})
    known.pop(key, None)
    if form is not None:
        if len(known) == MOST_FORMS:
            del known[next(iter(known))]
        known[key] = _as_offered(form)
    dispatcher.set_forms(tuple(known.values()))


def _as_offered(form: Form) -> tuple[Any, ...]:
    kinds = tuple((kind, *_packed(of)) for kind, *of in form.kinds)
    checks = tuple(
        (_CHECKS.index(kind.removeprefix("equal_")), owner, *(_packed(values) if kind in ("form", "bytes") else values))
        for kind, owner, *values in form.checks
    )
    return form.function, kinds, form.captured, _ARRANGEMENTS.index(form.arrangement), checks


def _packed(values: Iterable[Any]) -> Iterator[Any]:
    """The values, where a shape is the bytes that NumPy has of it."""
    return (struct.pack(f"{len(each)}n", *each) if type(each) is tuple else each for each in values)


def withdraw(dispatcher: Any) -> None:
    """Take back all forms that ``dispatcher`` was offered."""
    dispatcher.__dict__.pop("_offered", None)
    dispatcher.set_forms(())


@cache
def _dispatcher() -> Any:
    # Only who compiles needs these.
    from yota.runtime import native
    from yota.runtime.texts import rendered

    return native.build(rendered("c/dispatcher.c.jinja", checks=_CHECKS, arrangements=_ARRANGEMENTS)).Dispatcher
