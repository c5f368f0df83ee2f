"""Primitives: named array functions that a tape records as one op; and Python's binary operators with theirs."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

from yota.ir.semantics import Semantics, semantics
from yota.ir.types import TensorType


class Emitter(Protocol):
    """Target of the expansion of a composite body: a tape builder, or direct evaluation."""

    def emit(self, primitive: Primitive, operands: tuple[Any, ...], static: dict[str, Any]) -> Any:
        """Apply ``primitive`` and return the handle of the result."""

    def constant(self, value: Any) -> Any:
        """The handle of a constant."""

    def type(self, handle: Any) -> TensorType:
        """The type of the value of ``handle``."""


@dataclass(frozen=True, slots=True, eq=False)
class Shared:
    """A function of real operands in terms of parts that other functions of them are written in too.

    parts: writes the parts as other primitives, and gives their handles: ``parts(emitter, operands)``.
    value: writes the function itself: ``value(emitter, operands)``.
    """

    parts: Callable[[Any, tuple[Any, ...]], tuple[Any, ...]]
    value: Callable[[Any, tuple[Any, ...]], Any]


@dataclass(frozen=True, slots=True, eq=False)
class Primitive:
    """One primitive; identity is by name within a registry.

    name: short name that rule bodies and tapes use, e.g. ``"matmul"``.
    target: dotted name of the Python function it stands for, e.g. ``"numpy.matmul"``; None for a function that is
        defined by its rule's primal alone.
    elementwise: whether it acts on each element after broadcasting its operands.
    function: evaluates it on concrete values: ``function(*operands, **static)``.
    expand: expands its body into other primitives: ``expand(emitter, operands, static)``; None for primitives that
        targets implement.
    several: for a function of several results, the kind of its rule: ``"elementwise"`` or ``"tensor"``; empty for one
        result. ``elementwise`` is False then, since its result is a tuple; the primitive ``item`` reads it.
    typed: returns the type of the result from the types of the operands and the keywords; None if a call of
        ``function`` determines it.
    shared: another form of the primitive for tapes that compute one of its parts anyway; None if there is no such form.
    semantics: its record in the semantics table.
    access: its access map.
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


class Operator(NamedTuple):
    """An operator: its symbol, its node in syntax trees, and its function."""

    sign: str
    node: type[ast.operator | ast.cmpop]
    function: Callable[[Any, Any], Any]


BINARY: Mapping[str, Operator] = {
    "add": Operator("+", ast.Add, operator.add),
    "subtract": Operator("-", ast.Sub, operator.sub),
    "multiply": Operator("*", ast.Mult, operator.mul),
    "divide": Operator("/", ast.Div, operator.truediv),
    "power": Operator("**", ast.Pow, operator.pow),
    "matmul": Operator("@", ast.MatMult, operator.matmul),
    "remainder": Operator("%", ast.Mod, operator.mod),
    "floor_divide": Operator("//", ast.FloorDiv, operator.floordiv),
    "equal": Operator("==", ast.Eq, operator.eq),
    "not_equal": Operator("!=", ast.NotEq, operator.ne),
    "less": Operator("<", ast.Lt, operator.lt),
    "less_equal": Operator("<=", ast.LtE, operator.le),
    "greater": Operator(">", ast.Gt, operator.gt),
    "greater_equal": Operator(">=", ast.GtE, operator.ge),
}
COMPARISONS = frozenset(name for name, each in BINARY.items() if issubclass(each.node, ast.cmpop))
