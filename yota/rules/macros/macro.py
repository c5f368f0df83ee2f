"""What macros are made of: how they are registered, and values with Python's operators, which write primitives."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias, TypeVar

from yota.ir.catalog import primitive
from yota.ir.indexing import Slice
from yota.ir.primitive import Emitter
from yota.ir.types import TensorType
from yota.rules.language.statics import axis_of

_Function = TypeVar("_Function", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Macro:
    """A macro, with the parameters that take values, those in which it is linear, and values that may be None."""

    function: Callable[..., Any]
    values: frozenset[str]
    linear: frozenset[str]
    optional: frozenset[str]

    @property
    def signature(self) -> inspect.Signature:
        """Signature of the function."""
        return _signature(self.function)


@cache
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(function)


REGISTERED: dict[str, Macro] = {}
"""Macros by name, of the files that are loaded; `yota.rules.macros` has all of them."""


def macro(*linear: str) -> Callable[[_Function], _Function]:
    """Register the decorated function; it is linear in the parameters named.

    Parameters with the annotation `Value` or `Slope` take values, others take static Python objects.
    """

    def register(function: _Function) -> _Function:
        kinds = {name: kind for name, kind in function.__annotations__.items() if name != "return"}
        values, optional = (
            frozenset(name for name, each in kinds.items() if each == kind) for kind in ("Value", "Slope")
        )
        REGISTERED[function.__name__] = Macro(function, values, frozenset(linear), optional)
        return function

    return register


class Value:
    """A value of an emitter; its operators and methods write primitives, and numbers beside it become constants."""

    __slots__ = ("emitter", "handle")
    __array_ufunc__ = None

    def __init__(self, emitter: Emitter, handle: Any) -> None:
        self.emitter, self.handle = emitter, handle

    @property
    def type(self) -> TensorType:
        """Type of the value."""
        return self.emitter.type(self.handle)

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the value."""
        return self.type.shape

    def constant(self, value: Any) -> Value:
        """A constant beside the value."""
        return value if isinstance(value, Value) else Value(self.emitter, self.emitter.constant(value))

    def of_dtype(self, value: Any) -> Value:
        """A number in the dtype of the value."""
        return self.constant(self.type.dtype.type(value))

    def do(self, name: str, *others: Any, **static: Any) -> Value:
        """The built-in primitive ``name`` of the value and others."""
        handles = (self.handle, *(self.constant(each).handle for each in others))
        return Value(self.emitter, self.emitter.emit(primitive(name), handles, static))

    def __neg__(self) -> Value:
        return self.do("negative")

    def __add__(self, other: Any) -> Value:
        return self.do("add", other)

    def __sub__(self, other: Any) -> Value:
        return self.do("subtract", other)

    def __mul__(self, other: Any) -> Value:
        return self.do("multiply", other)

    def __truediv__(self, other: Any) -> Value:
        return self.do("divide", other)

    def __matmul__(self, other: Any) -> Value:
        return self.do("matmul", other)

    def conj(self) -> Value:
        """The complex conjugate; of a real value itself."""
        return self.do("conjugate") if self.type.is_complex else self

    @property
    def H(self) -> Value:  # noqa: N802
        """The conjugate transpose of the last two axes."""
        order = list(range(self.type.ndim))
        order[-2:] = reversed(order[-2:])
        return self.conj().do("transpose", axes=tuple(order))

    def reshape(self, *shape: int) -> Value:
        """The value in ``shape``; nothing to do if it has it."""
        return self if self.shape == shape else self.do("reshape", shape=shape)

    def broadcast_to(self, *shape: int) -> Value:
        """The value repeated to ``shape``; nothing to do if it has it."""
        return self if self.shape == shape else self.do("broadcast_to", shape=shape)

    def transpose(self, axes: tuple[int, ...]) -> Value:
        """The value with its axes in another order; nothing to do if that is theirs."""
        return self if axes == tuple(range(len(axes))) else self.do("transpose", axes=axes)

    def sum(self, *axes: int) -> Value:
        """The sum over ``axes``."""
        return self.do("sum", axis=axes, keepdims=False)

    def part(self, start: int, stop: int, axis: int = -1) -> Value:
        """A slice along one axis; nothing to do if it is all of it."""
        entries = [Slice(0, extent) for extent in self.shape]
        if entries[axis] == Slice(start, stop):
            return self
        entries[axis] = Slice(start, stop)
        return self.do("getitem", index=tuple(entries))


Slope: TypeAlias = "Value | None"
"""The adjoint of one of several results; None if nothing depends on this one."""


def joined(pieces: list[Value], axis: int = -1) -> Value:
    """Values one behind the other along an axis."""
    first, *rest = pieces
    return first.do("concatenate", *rest, axis=axis_of(axis, first.type.ndim)) if rest else first
