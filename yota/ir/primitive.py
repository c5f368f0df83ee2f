"""A primitive: a named function on arrays that a tape can hold as one op."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from yota.ir.semantics import Semantics, semantics
from yota.ir.types import TensorType

__all__ = ["Emitter", "Primitive", "Shared"]


class Emitter(Protocol):
    """What a composite body is expanded onto: a tape builder, or plain evaluation."""

    def emit(self, primitive: Primitive, operands: tuple[Any, ...], static: dict[str, Any]) -> Any:
        """Apply ``primitive`` and give back the result's handle."""

    def constant(self, value: Any) -> Any:
        """Give back the handle of a constant."""

    def type(self, handle: Any) -> TensorType:
        """Type of what ``handle`` stands for."""


@dataclass(frozen=True, slots=True, eq=False)
class Shared:
    """A function of real operands in terms of parts that other functions of them are written in too.

    Parameters
    ----------
    parts
        Writes the parts as other primitives, and gives their handles: ``parts(emitter, operands)``.
    value
        Writes the function itself: ``value(emitter, operands)``.
    """

    parts: Callable[[Any, tuple[Any, ...]], tuple[Any, ...]]
    value: Callable[[Any, tuple[Any, ...]], Any]


@dataclass(frozen=True, slots=True, eq=False)
class Primitive:
    """One primitive; identity is by name within a registry.

    Parameters
    ----------
    name
        Short name that rule bodies and tapes use, e.g. ``"matmul"``.
    target
        Dotted name of the Python function it stands for, e.g. ``"numpy.matmul"``; None for a function that
        is defined by its rule's primal alone.
    elementwise
        Whether it acts on each element after broadcasting its operands.
    function
        Evaluates it on concrete values: ``function(*operands, **static)``.
    expand
        Writes its body as other primitives: ``expand(emitter, operands, static)``; None for primitives that targets
        know themselves.
    several
        For a function of several results, the kind of its rule: ``"elementwise"`` or ``"tensor"``; empty for one
        result. ``elementwise`` is False then, since its result is a tuple; the primitive ``item`` reads it.
    typed
        Gives the type of the result from those of the operands and the keywords; None where a call of ``function``
        shows it.
    shared
        Another form of it, for tapes on which one of its parts is computed anyway; None where there is no such form.

    Attributes
    ----------
    semantics
        What it means.
    access
        Its access map.
    """

    name: str
    target: str | None
    elementwise: bool
    function: Callable[..., Any] = field(repr=False)
    expand: Callable[..., Any] | None = field(default=None, repr=False)
    several: Literal["", "elementwise", "tensor"] = ""
    typed: Callable[..., TensorType] | None = field(default=None, repr=False)
    shared: Shared | None = field(default=None, repr=False)
    semantics: Semantics = field(init=False, repr=False)
    access: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        record = semantics(self.name, self.target, self.elementwise, self.function)
        object.__setattr__(self, "semantics", record)
        object.__setattr__(self, "access", record.access)

    def __str__(self) -> str:
        return self.name
