"""Which variables a function or class has of its own, by its syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, *_COMPREHENSIONS)


@dataclass(frozen=True, eq=False)
class Scope:
    """The variables of a function or class.

    owner: name of the class in whose body it stands, for private names.
    outside, enclosing: names that it declares global, and nonlocal.
    """

    tree: ast.AST
    owner: str | None
    local: frozenset[str]
    outside: frozenset[str]
    enclosing: frozenset[str]

    def mangled(self, name: str) -> str:
        """A private name as Python stores it."""
        if self.owner is None or not name.startswith("__") or name.endswith("__"):
            return name
        return f"_{self.owner.lstrip('_')}{name}"


def scope_of(tree: ast.AST, owner: str | None) -> Scope:
    """The variables of a function or class."""
    bound: set[str] = set()
    outside: set[str] = set()
    enclosing: set[str] = set()
    if isinstance(tree, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        given = tree.args
        every = (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg)
        bound.update(each.arg for each in every if each is not None)
    for part in _own(tree):
        if isinstance(part, ast.Global):
            outside.update(part.names)
        elif isinstance(part, ast.Nonlocal):
            enclosing.update(part.names)
        else:
            bound.update(_bound(part))
    return Scope(tree, owner, frozenset(bound) - outside - enclosing, frozenset(outside), frozenset(enclosing))


def bound_in(statements: Sequence[ast.stmt]) -> frozenset[str]:
    """The variables that statements assign in the function that they stand in."""
    return scope_of(ast.Module([*statements], []), None).local


def _own(tree: ast.AST) -> Iterator[ast.AST]:
    """The parts that belong to the scope of ``tree`` itself."""
    body = getattr(tree, "body", [])
    pending: list[ast.AST] = [*body] if isinstance(body, list) else [body]
    while pending:
        part = pending.pop()
        yield part
        if isinstance(part, _COMPREHENSIONS):
            # An assignment expression in a comprehension binds in the function around it.
            pending += [each for each in ast.walk(part) if isinstance(each, ast.NamedExpr)]
        elif not isinstance(part, _SCOPES):
            pending += ast.iter_child_nodes(part)


def _bound(part: ast.AST) -> list[str]:
    if isinstance(part, ast.Name):
        return [part.id] if isinstance(part.ctx, (ast.Store, ast.Del)) else []
    if isinstance(part, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
        return [part.name]
    if isinstance(part, (ast.Import, ast.ImportFrom)):
        return [alias.asname or alias.name.partition(".")[0] for alias in part.names]
    if isinstance(part, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)):
        return [part.name] if part.name else []
    if isinstance(part, ast.MatchMapping):
        return [part.rest] if part.rest else []
    return []
