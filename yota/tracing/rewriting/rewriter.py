"""Rewrites the syntax tree of a function: operators, calls, conditions and stores go through the rules of `RULES`.

The names of rules, and of variables that the rewriting adds, begin with a dot, as no name of the user's can.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from yota.tracing.implementations import Form, registering
from yota.tracing.rewriting.scopes import Scope, scope_of

OPERATORS = {
    getattr(ast, kind): name
    for kind, name in zip(
        "Add Sub Mult Div FloorDiv Mod Pow MatMult BitAnd BitOr BitXor LShift RShift".split(),
        "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split(),
        strict=True,
    )
}
"""Binary operators, by the name of the special method without underscores."""
SIGNS = {ast.UAdd: "pos", ast.USub: "neg", ast.Invert: "invert"}
COMPARISONS = {
    getattr(ast, kind): name
    for kind, name in zip(
        "Eq NotEq Lt LtE Gt GtE In NotIn".split(), "eq ne lt le gt ge contains lacks".split(), strict=True
    )
}
_forms: dict[type[ast.AST], Callable[[Any, Any], Any]] = {}


def rewrites(*kinds: type[ast.AST]) -> Callable[[Form], Form]:
    """Register what a part of these kinds becomes: a part, or a list of statements."""
    return registering(_forms, dict.fromkeys(kinds, ""))


@dataclass(eq=False)
class Rewriter:
    """Rewrites one function, with those inside of it."""

    is_installed: bool
    scopes: list[Scope] = field(default_factory=list)
    depth: int = 0
    """Number of loops of which this is one trip."""
    selects: bool = False
    """Whether decisions by traced values become selections."""
    _count: int = 0

    @property
    def scope(self) -> Scope:
        """The function or class whose code is rewritten."""
        return self.scopes[-1]

    @property
    def may_loop(self) -> bool:
        """Whether loops may be recorded by one trip: no function inside writes variables of another."""
        return not any(isinstance(each, ast.Nonlocal) for each in ast.walk(self.scopes[0].tree))

    def new(self, purpose: str = "") -> str:
        """The name of a new variable."""
        self._count += 1
        return f".{purpose}{self._count}"

    def rewrite(self, part: Any) -> Any:
        """What a part becomes; what is new in it stands where the part does."""
        form = _forms.get(type(part))
        found = rebuilt(self, part) if form is None else form(self, part)
        if isinstance(found, list):
            for each in found:
                placed(each, part)
            return found
        return placed(found, part)

    def every(self, parts: Iterable[Any]) -> list[Any]:
        """What a list of parts becomes."""
        found: list[Any] = []
        for part in parts:
            new = self.rewrite(part) if isinstance(part, ast.AST) else part
            found.extend(new) if isinstance(new, list) else found.append(new)
        return found

    def within(self, tree: ast.AST, owner: str | None, statements: Iterable[ast.AST]) -> list[Any]:
        """The statements of a function or class inside of this one."""
        self.scopes.append(scope_of(tree, owner))
        depth, self.depth = self.depth, 0
        found = self.every(statements)
        self.scopes.pop()
        self.depth = depth
        return found

    def iterated(self, part: ast.expr) -> Any:
        """What an expression gives that is iterated over."""
        return placed(rule("iterate", self.rewrite(part)), part)

    def test(self, part: Any) -> Any:
        """A condition; each part of it is asked once, as Python does, and is a guard if it is traced."""
        if isinstance(part, ast.BoolOp):
            return placed(ast.BoolOp(part.op, list(map(self.test, part.values))), part)
        if isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.Not):
            return placed(ast.UnaryOp(part.op, self.test(part.operand)), part)
        found = self.rewrite(part)
        if isinstance(found, ast.BoolOp):  # a chain of comparisons
            found.values = [placed(rule("truth", each), part) for each in found.values]
        # Python itself asks what it compares in the middle of a chain.
        asked = isinstance(found, (ast.BoolOp, ast.Compare, ast.Constant))
        return found if asked else placed(rule("truth", found), part)


def placed(new: Any, part: Any) -> Any:
    """``new``, of which what has no place stands where ``part`` does."""
    if "lineno" in new._attributes:
        if hasattr(new, "lineno"):
            return new
        ast.copy_location(new, part)
    for each in ast.iter_child_nodes(new):
        placed(each, part)
    return new


def rule(name: str, /, *args: Any) -> Any:
    """A call of a rule."""
    return ast.Call(load(f".{name}"), [*args], [])


def load(name: str) -> Any:
    """A variable's value."""
    return ast.Name(name, ast.Load())


def store(name: str) -> Any:
    """A variable that is assigned to."""
    return ast.Name(name, ast.Store())


def rebuilt(rewriter: Rewriter, part: Any) -> Any:
    """The part with what its own parts become; a ``test`` or ``guard`` is a condition."""
    if not part._fields:
        return part
    fields = {}
    for name, value in ast.iter_fields(part):
        if isinstance(value, list):
            fields[name] = rewriter.every(value)
        elif isinstance(value, ast.AST):
            fields[name] = rewriter.test(value) if name in ("test", "guard") else rewriter.rewrite(value)
        else:
            fields[name] = value
    return type(part)(**fields)


def stored(rewriter: Rewriter, target: ast.Name, value: Any) -> Any:
    """A value on its way into a variable: it takes its name; those outside of the function are not written twice."""
    if isinstance(value, (ast.Constant, ast.Lambda)):
        return value
    name = rewriter.scope.mangled(target.id)
    found = rule("named", value, ast.Constant(name))
    return rule("outside", found) if is_outside(rewriter, name) else found


def is_outside(rewriter: Rewriter, name: str) -> bool:
    """Whether a variable is neither the function's nor one of a function inside."""
    scope = rewriter.scope
    if name in scope.outside:
        return not rewriter.is_installed  # what packages keep to themselves
    return name in scope.enclosing and not any(name in each.local for each in rewriter.scopes)


_PATTERNS = tuple(each for each in vars(ast).values() if isinstance(each, type) and issubclass(each, ast.pattern))
rewrites(ast.Constant, ast.Name, ast.Global, ast.Nonlocal, ast.Import, ast.ImportFrom, ast.arguments, *_PATTERNS)(
    lambda rewriter, part: part
)
