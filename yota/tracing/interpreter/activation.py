"""A function that is being interpreted: its variables, and what is done for each kind of expression and statement."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from types import CellType, CodeType
from typing import Any, TypeAlias, TypeVar

from yota.errors import TracingError
from yota.ir.location import Span
from yota.tracing.bytecode import UNKNOWN, static_attribute
from yota.tracing.current import current
from yota.tracing.implementations import registering
from yota.tracing.interpreter.definition import Definition, Scope, span_of
from yota.tracing.interpreter.effects import writes
from yota.tracing.methods import is_tracer
from yota.tracing.patching import ABSENT, content
from yota.tracing.source_lines import is_installed_file
from yota.tracing.writers import Called, Outlets


class Unknown(TracingError):
    """Something in the source is not known to the interpreter."""


class Stopped(Exception):
    """A StopIteration on its way through the generators that execute statements: Python lets none leave a generator."""

    def __init__(self, fault: StopIteration) -> None:
        super().__init__(fault)
        self.fault = fault


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
            try:
                completion = simple(activation, statement)
            except StopIteration as fault:
                raise Stopped(fault) from None
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


_FORMATS = (ast.JoinedStr, ast.FormattedValue)
_SEQUENCES = (ast.Tuple, ast.List, ast.Starred, ast.keyword)


class Activation:
    """One call of a function from its source.

    cells: variables of functions around it that Python runs.
    outer: the function around it, where that is interpreted too.
    code: what Python would run, if the function exists there.
    """

    __slots__ = ("callees", "cells", "code", "definition", "globals", "outer", "part", "variables")

    def __init__(
        self,
        definition: Definition,
        globals: dict[str, Any],
        cells: dict[str, CellType],
        outer: Activation | None,
        code: CodeType | None = None,
    ) -> None:
        self.definition, self.globals, self.cells, self.outer, self.code = definition, globals, cells, outer, code
        self.variables: dict[str, Any] = {}
        self.part: ast.AST = definition.tree
        self.callees: dict[ast.Call, Any] = {}
        """What each call calls that was begun."""

    def scope(self, defaults: dict[str, Any]) -> Scope:
        """What a function defined here can read, its default values included."""
        around = [self]
        while (outer := around[-1].outer) is not None:
            around.append(outer)
        last = around[-1]
        return Scope(last.code, last.globals, last.cells, (defaults, *(each.variables for each in around)))

    # -- variables ---------------------------------------------------------------------------------------

    def load(self, name: str) -> Any:
        """The value of a variable."""
        name = self.definition.mangled(name)
        found = self.variables.get(name, ABSENT)
        if found is not ABSENT:
            return found
        if name in self.definition.local and not isinstance(self.definition.tree, ast.ClassDef):
            raise UnboundLocalError(f"cannot access local variable '{name}' where it is not associated with a value")
        if name not in self.definition.outside:
            found = self._free(name)
        if found is ABSENT:
            found = self.globals.get(name, ABSENT)
        if found is ABSENT:
            found = vars(builtins).get(name, ABSENT)
        if found is ABSENT:
            raise NameError(f"name '{name}' is not defined")
        return found

    def _free(self, name: str) -> Any:
        """The value of a variable of a function around this one."""
        scope = self._home(name)
        if scope is None:
            return ABSENT
        found = scope.variables.get(name, ABSENT) if isinstance(scope, Activation) else content(scope)
        if found is ABSENT:
            raise NameError(
                f"cannot access free variable '{name}' where it is not associated with a value in enclosing scope"
            )
        return found

    def _home(self, name: str) -> Activation | CellType | None:
        """Where a variable of a function around this one is kept."""
        scope: Activation = self
        while scope.outer is not None:
            scope = scope.outer
            if name == "__class__" and isinstance(scope.definition.tree, ast.ClassDef):
                return scope
            if name in scope.definition.local and not isinstance(scope.definition.tree, ast.ClassDef):
                return scope
            if name in scope.definition.outside:
                return None
        return scope.cells.get(name)

    def store(self, name: str, value: Any) -> None:
        """Assign to a variable; what was computed for it takes its name."""
        self.called(name, value)
        name = self.definition.mangled(name)
        if name in self.definition.outside:
            if not is_installed_file(self.definition.filename):  # what packages keep to themselves
                writes(self.globals)
            self.globals[name] = value
        elif name in self.definition.enclosing:
            home = self._home(name)
            if isinstance(home, Activation):
                home.variables[name] = value
            elif home is not None:
                writes(home)
                home.cell_contents = value
        else:
            self.variables[name] = value

    def delete(self, name: str) -> None:
        """Delete a variable."""
        self.load(name)
        name = self.definition.mangled(name)
        home: Any = self._home(name) if name in self.definition.enclosing else self
        if not isinstance(home, Activation):
            writes(home)
        if name in self.definition.outside:
            del self.globals[name]
        elif isinstance(home, Activation):
            del home.variables[name]
        else:
            del home.cell_contents

    def called(self, name: str, value: Any) -> None:
        """Give the variable of the tape that holds ``value`` the user's name for it, unless it has one."""
        trace = current()
        if trace is not None and is_tracer(value) and value._trace is trace:
            variable = value._current()
            if trace.builder.definition(variable) is not None:
                trace.builder.names.setdefault(variable, name)

    def function(self) -> Activation:
        """The function itself, where this is a comprehension in it."""
        scope = self
        while not isinstance(scope.definition.tree, (ast.FunctionDef, ast.Lambda, ast.ClassDef)) and scope.outer:
            scope = scope.outer
        return scope

    def is_within(self, other: object) -> bool:
        """Whether it is ``other``, or a comprehension in it."""
        return self is other or self.function() is other

    # -- places ------------------------------------------------------------------------------------------

    def location(self) -> Span:
        """The expression that is evaluated now."""
        return span_of(self.part, self.definition)

    def is_written_out(self, outlets: Outlets) -> bool:
        """Whether what that makes of a value is only written out."""
        part, parents, is_text = self.part, self.definition.parents, False
        while True:
            above = _above(part, self)
            if isinstance(part, ast.Call):
                function = self.callees.get(part, UNKNOWN)
                if function is UNKNOWN:
                    return False
                names = [each.arg for each in part.keywords if _static(self, each.value) not in outlets]
                keywords = None if None in names else tuple(name for name in names if name is not None)
                found = Called.of(function, keywords)
                if found.writes(outlets):
                    return True
                if not found.converts:
                    return False
                is_text = is_text or found.makes_text
            elif isinstance(part, _FORMATS) or _formats(part):
                is_text = True
            elif not isinstance(part, _SEQUENCES) and not (
                is_text and isinstance(part, ast.BinOp) and isinstance(part.op, ast.Add)
            ):
                return False
            if isinstance(above, ast.Attribute):
                above = parents.get(above)
            if above is None or isinstance(above, ast.Expr):
                return above is not None
            part = above

    def refuse(self, part: ast.AST, what: str, cure: str = "Use yota.trace, which lets Python run it.") -> TracingError:
        """The error for something in the source that is not known."""
        location = span_of(part, self.definition)
        text = location.text
        return Unknown(f"{location}: `{text if len(text) <= 80 else f'{text[:77]}...'}`: {what} {cure}")


def _static(activation: Activation, part: ast.expr) -> Any:
    """The value of a variable, or of attributes of one, without running code."""
    if isinstance(part, ast.Attribute):
        return static_attribute(_static(activation, part.value), part.attr)
    try:
        return activation.load(part.id) if isinstance(part, ast.Name) else UNKNOWN
    except NameError:
        return UNKNOWN


def _formats(part: ast.AST) -> bool:
    """Whether an expression is the operator % with a text, written in the code, on its left."""
    if not (isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mod)):
        return False
    left = part.left
    return isinstance(left, ast.JoinedStr) or (isinstance(left, ast.Constant) and type(left.value) is str)


def _above(part: ast.AST, activation: Activation) -> ast.AST | None:
    """What an expression is a part of, leaving out a choice that may give its value as it is."""
    parents = activation.definition.parents
    above = parents.get(part)
    while isinstance(above, ast.IfExp) and part is not above.test:
        part, above = above, parents.get(above)
    return above
