"""The way from a caller's arguments of one kind to a generated function, as generated code of its own."""

from __future__ import annotations

import itertools
import operator
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from yota.compilation.specialise import Specialisation
from yota.errors import StaleTapeError
from yota.runtime.background import Later
from yota.runtime.dispatch import Form, guarded
from yota.runtime.python import made
from yota.runtime.texts import rendered
from yota.structures import children, has_attributes, is_leaf, is_on_device, slots_of
from yota.tracing.places import ABSENT, content
from yota.watching.checks import Check

__all__ = ["MISSING", "arrangement", "as_items", "entry", "kind_of"]

MISSING = object()
"""What an entry gives for arguments that it is not made for, and once anything that it relies on has changed."""
_MOST = 400
"""Checks and parts up to which code is generated; longer code takes long to compile."""
_MOST_DEPTH = 20
_MANY_ARRAYS = 4
"""Arrays to look at, in arguments and around the function, from which on checks are worth a call of the C compiler."""
_GET: Any = object.__getattribute__
_VALUES = (int, bool, str, bytes, type(None))


class _UnknownError(Exception):
    """There is no short way for such arguments."""


@dataclass(frozen=True, slots=True)
class _Step:
    """A look at one part of the arguments: what it is called in the code, its type, what it must be, its own parts."""

    kind: str
    name: str
    of: str = ""
    value: str = ""
    parts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Structure:
    """A dict, or, without keys, a tuple or a list."""

    keys: tuple[str, ...] | None
    parts: tuple[str | _Structure, ...]
    is_list: bool = False


@dataclass(frozen=True, slots=True)
class _Plan:
    """What the template is given; ``names`` are those of the objects that the code uses."""

    names: Sequence[str]
    steps: Sequence[_Step]
    checks: Sequence[tuple[str, tuple[str, ...]]]
    joined: Sequence[str]
    inputs: Sequence[str]
    outputs: Sequence[str]
    result: str | _Structure | None
    tree: bool
    guarded: bool


@dataclass(slots=True, eq=False)
class _Writer:
    """Steps, and the objects that they use by name."""

    objects: dict[str, Any] = field(default_factory=dict)
    steps: list[_Step] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    kinds: list[tuple[Any, ...]] = field(default_factory=list)
    serial: Any = field(default_factory=itertools.count)

    def object(self, value: Any) -> str:
        """The name of an object."""
        name = f"o{len(self.objects)}"
        self.objects[name] = value
        return name

    def part(self, name: str, value: Any, depth: int = 0) -> None:
        """The steps for a part of the arguments that looks like ``value``."""
        kind = type(value)
        if len(self.steps) > _MOST or depth > _MOST_DEPTH or is_on_device(value):
            raise _UnknownError
        if kind is np.ndarray:
            if not value.dtype.isnative:
                raise _UnknownError
            self._step("array", name, self.object(value.dtype), self.object(value.shape))
            self._leaf(name, kind_of(value))
        elif is_leaf(value):
            self._step("type", name, self.object(kind))
            self._leaf(name, kind_of(value))
        elif kind in _VALUES:
            self._step("equal", name, self.object(kind), self.object(value))
        else:
            self._structure(name, value, depth)

    def _leaf(self, name: str, kind: tuple[Any, ...]) -> None:
        self.inputs.append(name)
        self.kinds.append(kind)

    def _structure(self, name: str, value: Any, depth: int) -> None:
        parts, kind = children(value), type(value)
        if parts is None:
            self._step("same", name, "", self.object(value))
            if getattr(value, "__dict__", None) == {} and kind is not types.FunctionType:
                # It may come to have attributes.
                self._step("object", name, self.object(kind), self.object([]))
            return
        names = {key: f"x{next(self.serial)}" for key, _ in parts} if _are_names([key for key, _ in parts]) else {}
        if (isinstance(value, tuple) and kind.__iter__ is tuple.__iter__) or kind is list:
            held = tuple(f"x{next(self.serial)}" for _ in parts)
            self._step("sequence", name, self.object(kind), "", held)
        elif kind is dict and len(names) == len(parts):
            held = tuple(names.values())
            self._step("dict", name, self.object(kind), self.object(list(value)), held)
        elif has_attributes(value) and _is_simple(value) and set(value.__dict__) == set(names):
            held = tuple(names.values())
            self._step("object", name, self.object(kind), self.object(list(value.__dict__)), _ordered(value, names))
        else:
            raise _UnknownError
        for inner, (_, part) in zip(held, parts, strict=True):
            self.part(inner, part, depth + 1)

    def _step(self, kind: str, name: str, of: str, value: str = "", parts: tuple[str, ...] = ()) -> None:
        self.steps.append(_Step(kind, name, of, value, parts))


def _are_names(keys: Sequence[Any]) -> bool:
    return all(type(key) is str for key in keys)


def _ordered(value: Any, names: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(names[name] for name in value.__dict__)


def _is_simple(value: Any) -> bool:
    """Whether the attributes of an object are what its dict holds, and no more."""
    kind: Any = type(value)
    own = getattr(value, "__dict__", None)
    return (
        type(own) is dict
        and not slots_of(value)
        and kind.__getattribute__ is _GET
        and not any(hasattr(getattr(kind, name, None), "__set__") for name in own)
    )


def entry(
    args: tuple[Any, ...],
    hidden: tuple[Any, ...],
    root: Specialisation,
    shaped: Callable[[Specialisation, tuple[Any, ...]], Any],
    checks: Sequence[Check],
    *,
    sized: bool = False,
) -> Callable[[tuple[Any, ...]], Any] | None:
    """A function of a tuple of arguments like ``args`` that gives what the caller gets, or `MISSING`.

    Parameters
    ----------
    args
        The caller's arguments.
    hidden
        Arguments ahead of them, which the function supplies itself.
    root
        What was compiled.
    shaped
        Makes what the caller gets of outputs.
    checks
        What must still hold.
    sized
        Whether the generated function looks at dtypes and shapes by itself.
    """
    if len(checks) > _MOST:
        return None
    writer = _Writer()
    try:
        for value in hidden:
            writer.part(writer.object(value), value)
        writer.part("args", args)
    except _UnknownError:
        return None
    if sized:
        writer.steps = [replace(step, kind="any") if step.kind == "array" else step for step in writer.steps]
    if len(writer.inputs) != sum(each.argument >= 0 for each in root.gradient.tape.inputs):
        return None
    tree = bool(root.branches or root.gradient.tape.guards)
    outputs = _outputs(root)
    result = None if tree else _result(writer, root, shaped)
    captured = () if tree else root.gradient.captured
    call = None if tree or sized else _guarded(writer, root, checks)
    if call is not None:
        # Compiled code looks at the leaves and makes the checks.
        writer.steps = [step for step in writer.steps if step.kind not in ("array", "type")]
        captured, checks = (), ()
    inputs = [*writer.inputs, *map(writer.object, captured)]
    looked, joined = _looked(writer, checks)
    writer.objects.update(
        call=call or (root.run if tree else root.call),
        root=root,
        shaped=shaped,
        missing=MISSING,
        stale=StaleTapeError,
        is_=operator.is_,
        ndarray=np.ndarray,
        is_filled=_is_filled,
    )
    names = tuple(writer.objects)
    plan = _Plan(names, writer.steps, looked, joined, inputs, outputs, result, tree, call is not None)
    found: Callable[[tuple[Any, ...]], Any] = made(rendered("numpy/entry.py.jinja", plan=plan), writer.objects)
    return found


def kind_of(value: Any) -> tuple[Any, ...]:
    """The type of an argument; of an array with its shape and dtype."""
    return (np.ndarray, value.shape, value.dtype) if type(value) is np.ndarray else (type(value),)


def _guarded(writer: _Writer, root: Specialisation, checks: Sequence[Check]) -> Callable[..., Any] | None:
    """The generated function behind compiled checks, if there is such a thing: it gives `MISSING` where they fail."""
    arrays = sum(len(kind) > 1 for kind in writer.kinds) + sum(check.kind in ("form", "bytes") for check in checks)
    form = Form(root.call, tuple(writer.kinds), root.gradient.captured, "plain", as_items(checks))
    # Where C is compiled in the background, no call waits for the compiler.
    build = arrays >= _MANY_ARRAYS and not isinstance(root.call, Later)
    found: Callable[..., Any] | None = guarded(form, _missed, build=build)
    return found


def as_items(checks: Sequence[Check]) -> tuple[tuple[Any, ...], ...]:
    """Checks as compiled code takes them."""
    return tuple((check.kind, *check.values) for check in checks)


def _missed(*_: Any) -> Any:
    return MISSING


def arrangement(root: Specialisation, shaped: Callable[..., Any]) -> str | None:
    """How the outputs come, as `Form` describes it; None if that is no way that compiled code knows."""
    result = _result(_Writer(), root, shaped)
    if result == "":
        return "plain"
    first, *rest = outputs = _outputs(root)
    if result == _Structure(None, tuple(outputs), is_list=True):
        return "list"
    return "split" if result == _Structure(None, (first, _Structure(None, tuple(rest)))) else None


def _outputs(root: Specialisation) -> list[str]:
    return [f"r{number}" for number in range(len(root.gradient.tape.outputs))]


def _is_filled(cell: Any) -> bool:
    return content(cell) is not ABSENT


def _looked(writer: _Writer, checks: Sequence[Check]) -> tuple[list[tuple[str, tuple[str, ...]]], list[str]]:
    """The checks as they are written, and the arrays that are compared with known bytes at once."""
    found: list[tuple[str, tuple[str, ...]]] = []
    joined, known = [], []
    for check in checks:
        kind, values = check.kind, check.values
        if kind == "bytes":
            array, *form, held = values
            joined.append(writer.object(array))
            known.append(held)
            kind, values = "form", (array, *form)
        names = [writer.object(value) for value in values]
        found.append((kind, (*names, *[""] * (4 - len(names)))))
    if joined:
        writer.objects["content"] = b"".join(known)
    return found, joined


class _Output:
    """Stands for an output, to see what becomes of it."""

    def __init__(self, name: str) -> None:
        self.name = name


def _result(writer: _Writer, root: Specialisation, shaped: Callable[..., Any]) -> str | _Structure | None:
    """What the caller gets: the empty text where that is the outputs as they come, None where it is not known."""
    outputs = _outputs(root)
    try:
        found = shaped(root, tuple(map(_Output, outputs)))
        spelled = _spelled(writer, found)
    except Exception:  # noqa: BLE001  (it works on arrays alone)
        return None
    if spelled == (outputs[0] if len(outputs) == 1 else _Structure(None, tuple(outputs))):
        return ""
    return spelled


def _spelled(writer: _Writer, found: Any) -> str | _Structure:
    if isinstance(found, _Output):
        return found.name
    if found is None:
        return writer.object(None)
    kind = type(found)
    if kind not in (tuple, list, dict):
        raise _UnknownError
    keys = tuple(map(writer.object, found)) if kind is dict else None
    parts = tuple([_spelled(writer, each) for each in (found if keys is None else found.values())])
    return _Structure(keys, parts, kind is list)
