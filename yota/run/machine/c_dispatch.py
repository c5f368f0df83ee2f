"""Dispatch in C: calls that reach compiled functions without Python code."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from types import BuiltinFunctionType
from typing import Any

from yota.errors import CodegenError
from yota.marks import MISSING

MOST_FORMS = 8
"""Largest number of forms, which are tried in turn; a table lookup is faster for more."""
MOST_PARTS = 64
"""Largest number of kinds of a form with tuples and lists."""
_CHECKS = (
    *("cell", "entry", "item", "function", "class", "bases", "attributes", "attribute", "size", "list", "dict"),
    *("form", "bytes", "changed"),
)
"""Kinds of checks, as `yota.tracing.captured.checks` describes them."""
_RESULT_PARTS = ("output", "argument", "object", "tuple", "list", "dict")
"""Kinds of parts of a result."""


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    """A compiled function for one combination of argument types, and the checks for its validity.

    function: takes the leaves of the arguments and then ``captured``; None if no output is computed. After `MISSING`
        other forms are tried, and then the Python function.
    kinds: the type of each argument, for an array with its shape and dtype, for a tuple or a list with its length, for
        a dict or an object with its keys, and followed by the kinds of the items. With a value beside its type, it is
        no leaf and must have that value.
    captured: captured arrays, passed as further arguments.
    arrangement: the result, as a kind and what it is of: the number of an output or of an argument's leaf, an object,
        or the parts of a tuple, a list or a dict, with its keys; None for the outputs as they come.
    checks: each check as its kind and its values.
    failures: types of exceptions after which likewise others are tried.
    """

    function: Callable[..., Any] | None
    kinds: tuple[tuple[Any, ...], ...]
    captured: tuple[Any, ...]
    arrangement: tuple[str, Any] | None
    checks: tuple[tuple[Any, ...], ...]
    failures: tuple[type[Exception], ...] = ()


def quick(function: Callable[..., Any], *, build: bool) -> Any:
    """A callable equivalent to ``function`` that first tries the compiled forms registered by `offer`.

    It has the attributes of ``function``, which defines its pickling and copying. Without a compiler, and if the
    dispatcher is not compiled yet and ``build`` is false, it is ``function`` itself.
    """
    made = _type(build)
    if made is None:
        return function
    found = made(function)
    if hasattr(function, "__dict__"):
        found.__dict__ = function.__dict__
    return found


def guarded(form: Form, otherwise: Callable[..., Any], *, build: bool) -> Any:
    """A callable of ``form`` if types and checks match, otherwise of ``otherwise``; None if it is not compiled."""
    made = _type(build)
    if made is None:
        return None
    found = made(otherwise)
    found.set_forms((_as_offered(form),))
    return found


def split_form(function: Callable[..., Any] | None) -> Callable[..., Any] | None:
    """The compiled function that gives all results of ``function`` but the first in a tuple of their own."""
    name = getattr(function, "__name__", "")
    return getattr(getattr(function, "__self__", None), f"{name}_split", None)


def offer(dispatcher: Any, key: Any, form: Form | None) -> None:
    """Register ``form`` with ``dispatcher``; it replaces the form with the same ``key``."""
    known = dispatcher.__dict__.setdefault("_offered", {})
    known.pop(key, None)
    if form is not None:
        if len(known) == MOST_FORMS:
            del known[next(iter(known))]
        known[key] = _as_offered(form)
    dispatcher.set_forms(tuple(known.values()))


def _as_offered(form: Form) -> tuple[Any, ...]:
    kinds = tuple(map(_offered_kind, form.kinds))
    checks = tuple(
        (_CHECKS.index(kind.removeprefix("equal_")), owner, *(_packed(values) if kind in ("form", "bytes") else values))
        for kind, owner, *values in form.checks
    )
    function, *context = getattr(form.function, "within", (form.function,))
    arrangement = form.arrangement and _numbered(form.arrangement)
    return function, kinds, form.captured, arrangement, checks, form.failures, MISSING, *context


def _offered_kind(kind: tuple[Any, ...]) -> tuple[Any, ...]:
    """A kind as the dispatcher takes it; only that of an array has more than a type and a value."""
    return kind if len(kind) < 3 else (kind[0], *_packed(kind[1:]))


def _numbered(part: tuple[Any, ...]) -> tuple[Any, ...]:
    kind, what, *keys = part
    return _RESULT_PARTS.index(kind), tuple(map(_numbered, what)) if kind in ("tuple", "list", "dict") else what, *keys


def _packed(values: Iterable[Any]) -> Iterator[Any]:
    """The values, with shapes as bytes in NumPy's format."""
    return (struct.pack(f"{len(each)}n", *each) if type(each) is tuple else each for each in values)


def offer_whole(dispatcher: Any, kinds: Any, like: Any) -> None:
    """Register the form for the kinds ``like`` for others with integers, which become floats."""
    known = dispatcher.__dict__.get("_offered", {})
    found = known.get(like)
    if found is not None and not _gives_arguments(found[3]):
        known[kinds] = _of_floats(found[0]), tuple(map(_offered_kind, kinds)), *found[2:]
        if len(known) > MOST_FORMS:
            del known[next(iter(known))]
        dispatcher.set_forms(tuple(known.values()))


def _of_floats(function: Callable[..., Any] | None) -> Callable[..., Any] | None:
    # C converts numbers itself.
    if function is None or isinstance(function, BuiltinFunctionType):
        return function
    return lambda *leaves: function(*[float(each) if type(each) is int else each for each in leaves])


def _gives_arguments(part: Any) -> bool:
    kind, what, *_ = part or (0, ())
    return kind == _RESULT_PARTS.index("argument") or (type(what) is tuple and any(map(_gives_arguments, what)))


def withdraw(dispatcher: Any) -> None:
    """Remove all forms of ``dispatcher``."""
    dispatcher.__dict__.pop("_offered", None)
    dispatcher.set_forms(())


@cache
def prepare() -> None:
    """Compile the dispatcher in the background, for functions and processes to come."""
    from yota.run.machine.background import Later

    Later(lambda: None, _dispatcher)()


def _type(build: bool) -> Any:
    """The type of dispatchers; None if it cannot be had, or is not compiled yet and ``build`` is false."""
    if not build and not _dispatcher.cache_info().currsize:
        return _kept()
    try:
        return _dispatcher()
    except CodegenError:
        # The first compilation for a call reports the error.
        return None


@cache
def _kept() -> Any:
    """The type of dispatchers, if another process has compiled it."""
    from yota.run.machine.native import kept

    try:
        found = kept(_text())
    except (CodegenError, OSError):
        return None
    return found and found.Dispatcher


@cache
def _dispatcher() -> Any:
    # These imports are only needed for compilation.
    from yota.run.machine.native import build

    return _kept() or build(_text(), anywhere=True).Dispatcher


def _text() -> str:
    from yota.emit.render import rendered

    return rendered("c/dispatcher.c.jinja", checks=_CHECKS, parts=_RESULT_PARTS, most=MOST_PARTS)
