"""Generated fast paths from a caller's arguments of one combination of types to a generated function."""

from __future__ import annotations

import collections
import itertools
import operator
import types
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from yota.emit.render import rendered
from yota.errors import StaleTapeError
from yota.marks import MISSING
from yota.run.machine.background import Later
from yota.run.machine.c_dispatch import Form, guarded
from yota.run.machine.python import made
from yota.run.specialise import Specialisation
from yota.structures import children, has_attributes, is_leaf, is_on_device, slots_of
from yota.tracing.captured.checks import Check
from yota.tracing.patching import ABSENT, content

_MOST = 400
"""Largest number of checks and parts in a generated entry; longer code takes long to compile."""
_MOST_DEPTH = 20
_MANY_ARRAYS = 4
"""Smallest number of arrays to check, in arguments and captured data, for which checks are compiled in C."""
_DICTS = (dict, collections.OrderedDict, collections.defaultdict)
_GET: Any = object.__getattribute__
STATIC = (int, bool, str, bytes, type(None))
"""Types of values for each of which there is code of its own."""
_CONSTANTS = (int, float, complex, str, np.generic)


class _UnknownError(Exception):
    """There is no entry for such arguments."""


@dataclass(frozen=True, slots=True)
class _Step:
    """The check of one part of the arguments: its variable, type, required value, and parts."""

    kind: str
    name: str
    of: str = ""
    value: str = ""
    parts: tuple[str, ...] = ()


@dataclass(slots=True, eq=False)
class _Writer:
    """Collects steps and the objects that they use by name."""

    objects: dict[str, Any] = field(default_factory=dict)
    steps: list[_Step] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    kinds: list[tuple[Any, ...]] = field(default_factory=list)
    serial: Any = field(default_factory=itertools.count)

    def object(self, value: Any) -> str:
        name = f"o{len(self.objects)}"
        self.objects[name] = value
        return name

    def part(self, name: str, value: Any, depth: int = 0) -> None:
        """The steps for a part of the arguments of the type of ``value``."""
        kind = type(value)
        if len(self.steps) > _MOST or depth > _MOST_DEPTH or is_on_device(value):
            raise _UnknownError
        if isinstance(value, np.ndarray) and kind is not np.ndarray:
            raise _UnknownError  # generated code would compute by the operators of the subclass
        if kind is np.ndarray:
            if not value.dtype.isnative:
                raise _UnknownError
            self._step("array", name, self.object(value.dtype), self.object(value.shape))
            self._leaf(name, kind_of(value))
        elif is_leaf(value):
            self._step("type", name, self.object(kind))
            self._leaf(name, kind_of(value))
        elif kind in STATIC:
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
                # The object may get attributes later.
                self._step("object", name, self.object(kind), self.object([]))
            return
        names = {key: f"x{next(self.serial)}" for key, _ in parts if type(key) in (str, int)}
        if (isinstance(value, tuple) and kind.__iter__ is tuple.__iter__) or kind is list:
            held = tuple(f"x{next(self.serial)}" for _ in parts)
            self._step("sequence", name, self.object(kind), "", held)
        elif kind in _DICTS and len(names) == len(parts):
            held = tuple(names.values())
            if any(type(key) is int for key in names):  # equal keys of other types may have other meanings
                self._step("keys", name, self.object(type), self.object(list(map(type, value))))
            self._step("dict", name, self.object(kind), self.object(list(value)), held)
        elif has_attributes(value) and _is_simple(value) and set(value.__dict__) == set(names):
            held = tuple(names.values())
            ordered = tuple(names[each] for each in value.__dict__)
            self._step("object", name, self.object(kind), self.object(list(value.__dict__)), ordered)
        elif names and has_attributes(value) and _has_only_slots(value, names):
            held = tuple(names.values())
            self._step("slots", name, self.object(kind), self.object(operator.attrgetter(*names)), held)
        else:
            raise _UnknownError
        for inner, (_, part) in zip(held, parts, strict=True):
            self.part(inner, part, depth + 1)

    def _step(self, kind: str, name: str, of: str, value: str = "", parts: tuple[str, ...] = ()) -> None:
        self.steps.append(_Step(kind, name, of, value, parts))


def _is_simple(value: Any) -> bool:
    """Whether the attributes of an object are exactly the items of its dict."""
    kind: Any = type(value)
    own = getattr(value, "__dict__", None)
    return (
        type(own) is dict
        and not slots_of(value)
        and (kind.__getattribute__ is _GET or kind is types.SimpleNamespace)
        and not any(hasattr(getattr(kind, name, None), "__set__") for name in own)
    )


def _has_only_slots(value: Any, names: Collection[str]) -> bool:
    """Whether an object keeps its attributes in slots alone, all of which have values."""
    kind: Any = type(value)
    return (
        not hasattr(value, "__dict__")
        and set(slots_of(value)) == set(names)
        and kind.__getattribute__ is _GET
        and all(type(getattr(kind, name)) is types.MemberDescriptorType for name in names)
    )


def entry(
    args: tuple[Any, ...],
    hidden: tuple[Any, ...],
    root: Specialisation,
    shaped: Callable[[Specialisation, tuple[Any, ...]], Any],
    checks: Sequence[Check],
    *,
    sized: bool = False,
) -> Callable[..., Any] | None:
    """A function of arguments of types like ``args`` that returns the final result, or `MISSING`."""
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
    outputs = [f"r{number}" for number in range(len(root.gradient.tape.outputs))]
    result = None if tree else _result(writer, root, shaped, outputs)
    if result is None and any(each.gradient.sources for each in (root, *root.branches.values())):
        return None
    captured = () if tree else root.gradient.captured
    call = None if tree or sized else _guarded(writer, root, checks)
    if call is not None:
        # Compiled code checks the leaves and the captured data.
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
    source = rendered(
        "numpy/entry.py.jinja",
        names=names,
        steps=writer.steps,
        checks=looked,
        joined=joined,
        inputs=inputs,
        outputs=outputs,
        result=result,
        tree=tree,
        guarded=call is not None,
    )
    found: Callable[..., Any] = made(source, writer.objects)
    return found


def kind_of(value: Any) -> tuple[Any, ...]:
    """The type of an argument, with shape and dtype for an array."""
    return (np.ndarray, value.shape, value.dtype) if type(value) is np.ndarray else (type(value),)


def kinds_of(args: Sequence[Any], *, static: bool = True) -> Iterator[tuple[Any, ...]]:
    """The types of arguments, each structure followed by those of its items, as `Form` describes them."""
    for value in args:
        structure = structure_of(value)
        if structure is not None:
            told, items = structure
            yield type(value), told
            yield from kinds_of(items, static=static)
        else:
            yield (type(value), value) if static and type(value) in STATIC else kind_of(value)


def structure_of(value: Any) -> tuple[Any, Sequence[Any]] | None:
    """What compiled code compares of a structure, and its items; None for all that it does not take apart.

    It compares the number of the items of a tuple or a list, and the keys of a dict or a simple object.
    """
    if type(value) in (tuple, list):
        return len(value), value
    if type(value) is dict:
        return (tuple(value), list(value.values())) if all(type(key) in (str, int) for key in value) else None
    parts = None if type(value) in STATIC or is_leaf(value) or not has_attributes(value) else children(value)
    if parts is None or not _is_simple(value) or [name for name, _ in parts] != list(value.__dict__):
        return None
    return tuple(value.__dict__), list(value.__dict__.values())


def _guarded(writer: _Writer, root: Specialisation, checks: Sequence[Check]) -> Callable[..., Any] | None:
    """The generated function behind compiled checks, if available; it returns `MISSING` if a check fails."""
    arrays = sum(len(kind) > 1 for kind in writer.kinds) + sum(check.kind in ("form", "bytes") for check in checks)
    form = Form(root.call, tuple(writer.kinds), root.gradient.captured, None, as_items(checks))
    # For the target "auto", no call waits for the C compiler.
    build = arrays >= _MANY_ARRAYS and not isinstance(root.call, Later)
    found: Callable[..., Any] | None = guarded(form, _missed, build=build)
    return found


def by_entry(entry: Callable[..., Any], args: tuple[Any, ...]) -> Form:
    """The form of calls that an entry looks at, for arguments of types like ``args``."""
    return Form(entry, tuple(map(kind_of, args)), (), None, ())


def as_items(checks: Sequence[Check]) -> tuple[tuple[Any, ...], ...]:
    """Checks in the form that compiled code takes."""
    return tuple((check.kind, *check.values) for check in checks)


def _missed(*_: Any) -> Any:
    return MISSING


def arrangement(root: Specialisation, shaped: Callable[..., Any]) -> tuple[str, Any] | None:
    """The arrangement of the result, as `Form` describes it; None if compiled code does not support it."""
    tape = root.gradient.tape
    outputs, leaves = (
        [_Output((kind, number)) for number in range(count)]
        for kind, count in (("output", len(tape.outputs)), ("argument", len(tape.inputs)))
    )
    try:
        result = shaped(root, root.gradient.completed(outputs, leaves))
        found: tuple[str, Any] = _arranged(result, lambda each: ("object", _constant(each)), lambda key: key)
    except Exception:  # noqa: BLE001  (it works on arrays alone)
        return None
    return found


def _arranged(found: Any, other: Callable[[Any], Any], key: Callable[[Any], Any]) -> Any:
    """A result as a kind and its parts; what ``key`` gives stands for keys, what ``other`` gives for other objects."""
    kind = type(found)
    if kind in (tuple, list):
        return kind.__name__, tuple([_arranged(each, other, key) for each in found])
    if kind is dict:
        return "dict", tuple([_arranged(each, other, key) for each in found.values()]), tuple(map(key, found))
    return found.name if kind is _Output else other(found)


def _is_filled(cell: Any) -> bool:
    return content(cell) is not ABSENT


def _looked(writer: _Writer, checks: Sequence[Check]) -> tuple[list[tuple[str, tuple[str, ...]]], list[str]]:
    """The source of the checks, and the arrays that are compared with known bytes at once."""
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


def _constant(value: Any) -> Any:
    """A part of a result that is the same in each call; an object of another class may hold outputs."""
    if value is not None and not isinstance(value, _CONSTANTS):
        raise _UnknownError
    return value


class _Output:
    """Placeholder of an output or an argument, to trace how results are arranged."""

    def __init__(self, name: Any) -> None:
        self.name = name


def _result(writer: _Writer, root: Specialisation, shaped: Callable[..., Any], outputs: list[str]) -> Any:
    """The arrangement of named outputs: empty if they are returned unchanged, None if unknown."""
    try:
        completed = root.gradient.completed([*map(_Output, outputs)], [*map(_Output, writer.inputs)])
        result = shaped(root, tuple(completed))
        found = _arranged(result, lambda each: writer.object(_constant(each)), writer.object)
    except Exception:  # noqa: BLE001  (it works on arrays alone)
        return None
    return "" if found == (outputs[0] if len(outputs) == 1 else ("tuple", tuple(outputs))) else found
