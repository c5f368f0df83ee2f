"""What is done for each kind of expression and statement, and the two ways into it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from yota.errors import TracingError
from yota.tracing.implementations import registering

if TYPE_CHECKING:
    from yota.tracing.interpreter.activation import Activation


class Unknown(TracingError):
    """Something in the source is not known to the interpreter."""


_Form = TypeVar("_Form", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Completion:
    """How a statement ended that does not go on to the next one: ``"break"``, ``"continue"`` or ``"return"``."""

    kind: str
    value: Any = None


Running: TypeAlias = Generator[Any, Any, "Completion | None"]
"""Statements being executed; what they yield, the user's generator yields."""

_EXPRESSIONS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {}
_STATEMENTS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {}
_BLOCKS: dict[type[ast.AST], Callable[[Any, Any], Running]] = {}


def evaluates(*kinds: type[ast.AST]) -> Callable[[_Form], _Form]:
    """Register what an expression of these kinds evaluates to."""
    return registering(_EXPRESSIONS, kinds)


def executes(*kinds: type[ast.AST]) -> Callable[[_Form], _Form]:
    """Register what a statement of these kinds does; it gives a `Completion` or None."""
    return registering(_STATEMENTS, kinds)


def block(*kinds: type[ast.AST]) -> Callable[[_Form], _Form]:
    """Register what a statement does that holds other statements: it may yield from them."""
    return registering(_BLOCKS, kinds)


def evaluate(activation: Activation, part: ast.AST) -> Any:
    """The value of an expression."""
    form = _EXPRESSIONS.get(type(part))
    if form is None:
        raise activation.refuse(part, f"{_kind(part)} is not known to the interpreter of source.")
    return form(activation, part)


def execute(activation: Activation, statements: Sequence[ast.stmt]) -> Running:
    """Execute statements in turn, until one does not go on to the next."""
    for statement in statements:
        simple = _STATEMENTS.get(type(statement))
        if simple is not None and not isinstance(getattr(statement, "value", None), (ast.Yield, ast.YieldFrom)):
            completion = simple(activation, statement)
        else:
            form = _BLOCKS.get(type(statement))
            if form is None:
                raise activation.refuse(statement, f"{_kind(statement)} is not known to the interpreter of source.")
            completion = yield from form(activation, statement)
        if completion is not None:
            return completion  # type: ignore[no-any-return]
    return None


def _kind(part: ast.AST) -> str:
    if isinstance(part, (ast.Yield, ast.YieldFrom)):
        return "a `yield` inside of a larger expression"
    name = type(part).__name__
    return f"this ({name})"
