"""Serialised tapes as text without code, which another process parses when it needs the tape."""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from yota.ir.callables import original
from yota.ir.calls import Form, Items, Place, path_of, resolve
from yota.ir.indexing import GATHER, NEWAXIS, Slice
from yota.ir.inputs import Input, Static
from yota.ir.linear_solvers import Banded, Direct, Iterative
from yota.ir.location import Location, Span, where
from yota.ir.primitive import Primitive
from yota.ir.regions import Region
from yota.ir.tape import Guard, Op, Tape
from yota.ir.types import TensorType, TupleType

_RECORDS: tuple[Any, ...] = (
    TensorType,
    TupleType,
    Location,
    Span,
    Guard,
    Input,
    Slice,
    Place,
    Items,
    Form,
    Tape,
    Region,
    Direct,
    Banded,
    Iterative,
)
_KINDS: tuple[Any, ...] = (bool, int, float, complex, list, tuple, dict)
_MARKERS = {"newaxis": NEWAXIS, "gather": GATHER}


class Unwritable(Exception):
    """An object that cannot be serialised, such as a user's function."""


class Carried:
    """An object of yota's that another process makes again from its state: numbers, strings, arrays, and such objects.

    Its class is found by its dotted name.
    """

    def state(self) -> dict[str, Any]:
        """What it is made of."""
        return dict(vars(self))

    @classmethod
    def restored(cls, state: dict[str, Any]) -> Any:
        """The object of a `state`."""
        made = object.__new__(cls)
        made.__dict__.update(state)
        return made


def text(value: Any, named: Callable[[Primitive], str], outside: Sequence[Any] = ()) -> str:
    """``value`` as JSON.

    value: numbers, strings, arrays, and parts of tapes.
    named: returns the name of a primitive, from which another process finds it.
    outside: arrays that are serialised as their positions in this list.
    Raises Unwritable if ``value`` contains anything else.

    >>> read(text({"x": (1.5, None)}, str), str)
    {'x': (1.5, None)}
    """
    return json.dumps(_Writer(named, outside).written(value), separators=(",", ":"))


class _Writer:
    """Converts values to lists that begin with a tag."""

    def __init__(self, named: Callable[[Primitive], str], outside: Sequence[Any]) -> None:
        self._named = named
        self._outside = {id(array): number for number, array in enumerate(outside)}
        # Many ops share a location, and many variables share a type.
        self._shared: dict[int, Any] = {}
        # States are new objects, whose identities must not come again.
        self._carried: dict[int, tuple[int, dict[str, Any]]] = {}

    def written(self, value: Any) -> Any:
        kind = type(value)
        if value is None or kind in (bool, int, str):
            return value
        if kind is Op:
            try:
                static = [[name, self.written(each)] for name, each in value.static]
            except Unwritable as reason:
                raise Unwritable(f"{where(value.location)}{reason}") from None
            location = self._once(value.location)
            found = self._shared.get(id(value.primitive))
            if found is None:
                found = self._shared[id(value.primitive)] = self._named(value.primitive)
            return ["op", value.result, found, value.operands, static, location]
        if kind in (tuple, list):
            return ["t" if kind is tuple else "l", *map(self.written, value)]
        if kind is dict:
            return ["d", *([self.written(key), self._once(part)] for key, part in value.items())]
        if kind in _RECORDS:
            return ["o", _RECORDS.index(kind), *(self.written(getattr(value, field.name)) for field in fields(kind))]
        return self._other(value, kind)

    def _once(self, value: Any) -> Any:
        if isinstance(value, Carried):
            return self.written(value)
        found = self._shared.get(id(value))
        if found is None:
            found = self._shared[id(value)] = self.written(value)
        return found

    def _other(self, value: Any, kind: Any) -> Any:
        if id(value) in self._outside:
            return ["x", self._outside[id(value)]]
        if isinstance(value, Carried):
            return self._carrying(value)
        if kind in (float, complex) or isinstance(value, np.generic):
            return ["n", kind.__name__ if kind in _KINDS else "", *_bytes(np.asarray(value))]
        if kind is np.ndarray:
            return ["a", value.shape, *_bytes(value)]
        if isinstance(value, np.dtype) and value.kind in "biufc":
            return ["y", value.str]
        if kind is type and value in _KINDS:
            return ["k", value.__name__]
        if callable(value) and (path := path_of(value)):
            return ["f", path]
        for name, marker in _MARKERS.items():
            if value is marker:
                return ["m", name]
        raise Unwritable(
            f"{getattr(value, 'name', f'a {kind.__name__}')} holds functions or other objects of this process"
        )

    def _carrying(self, value: Carried) -> Any:
        if id(value) in self._carried:
            return ["r", self._carried[id(value)][0]]
        number, state = len(self._carried), value.state()
        self._carried[id(value)] = number, state
        kind = type(value)
        return ["c", number, f"{kind.__module__}.{kind.__qualname__}", self.written(state)]


def read(text: str, primitive: Callable[[str], Primitive], outside: Sequence[Any] = ()) -> Any:
    """Parse the value of ``text``."""

    def made(found: Any) -> Any:
        return made_of[found[0]](*found[1:]) if type(found) is list else found

    def op(result: int, name: str, operands: list[int], static: list[list[Any]], location: Any) -> Op:
        pairs = tuple((name, made(each)) for name, each in static)
        return Op(result, primitive(name), tuple(operands), pairs, made(location))

    carried: dict[int, Any] = {}

    def restored(number: int, path: str, state: Any) -> Any:
        carried[number] = _carried_class(path).restored(made(state))
        return carried[number]

    made_of: dict[str, Callable[..., Any]] = {
        "op": op,
        "c": restored,
        "r": carried.__getitem__,
        "t": lambda *parts: tuple(map(made, parts)),
        "l": lambda *parts: list(map(made, parts)),
        "d": lambda *pairs: {made(key): made(part) for key, part in pairs},
        "o": lambda number, *parts: _RECORDS[number](*map(made, parts)),
        "x": lambda number: outside[number],
        "n": lambda kind, *data: _number(kind, _array([], *data)[()]),
        "a": _array,
        "y": _dtype,
        "k": _kind,
        "f": lambda path: original(_found(path, ("numpy", "scipy", "yota"))),
        "m": lambda name: _MARKERS[name],
    }
    return made(json.loads(text))


def _found(path: str, packages: Sequence[str]) -> Any:
    """The function or class of a dotted name in one of the packages."""
    with contextlib.suppress(ImportError, AttributeError):
        if path.partition(".")[0] in packages:
            return resolve(path)
    raise ValueError(f"{path} is not found in {', '.join(packages)}")


def _carried_class(path: str) -> Any:
    found = _found(path, ("yota",))
    if not issubclass(found, Carried):
        raise ValueError(f"{path} is not a class of objects that are carried")
    return found


def _kind(name: str) -> Any:
    return {kind.__name__: kind for kind in _KINDS}[name]


def _number(kind: str, value: Any) -> Any:
    return _kind(kind)(value) if kind else value


def _bytes(value: np.ndarray) -> tuple[str, str]:
    if value.dtype.kind not in "biufc":
        raise Unwritable(f"an array of {value.dtype} is no array of numbers")
    return value.dtype.str, base64.b64encode(value.tobytes()).decode("ascii")


def _array(shape: list[int], dtype: str, data: str) -> np.ndarray:
    """A read-only array."""
    return np.ndarray(shape, _dtype(dtype), base64.b64decode(data))


def _dtype(text: str) -> np.dtype[Any]:
    found = np.dtype(text)
    if found.kind not in "biufc":
        raise ValueError(f"the dtype {text} is not one of numbers")
    return found


_EAGER = ("name", "inputs", "outputs", "guards", "statics")


def tape_text(tape: Tape, named: Callable[[Primitive], str], outside: Sequence[Any]) -> tuple[str, str]:
    """A tape as two texts: the data that each call needs, and the rest, for `LateTape`; static values are omitted."""
    rest = {field.name: getattr(tape, field.name) for field in fields(Tape) if field.name not in _EAGER}
    eager = (tape.name, tape.inputs, tape.outputs, tape.guards)
    rest["constants"], rest["types"], rest["names"] = dict(tape.constants), dict(tape.types), dict(tape.names)
    rest["captured"] = dict(tape.captured)
    return text(eager, named), text(rest, named, outside)


class LateTape(Tape):
    """A tape that parses its ops on first access."""

    __slots__ = ("_rest",)

    @classmethod
    def of(cls, eager: tuple[Any, ...], rest: Callable[[], dict[str, Any]], statics: tuple[Static, ...]) -> LateTape:
        """A tape that parses missing attributes with ``rest``."""
        made = object.__new__(cls)
        for name, value in zip((*_EAGER, "_rest"), (*eager, statics, rest), strict=True):
            object.__setattr__(made, name, value)
        return made

    def __getattr__(self, name: str) -> Any:
        # Python calls this only for missing attributes.
        if name.startswith("_") or name in _EAGER:
            raise AttributeError(name)
        for each, value in self._rest().items():
            object.__setattr__(self, each, value)
        return object.__getattribute__(self, name)

    def __reduce__(self) -> tuple[Any, ...]:
        return Tape, tuple(getattr(self, field.name) for field in fields(Tape))
