"""What the source of a function says about its names, and what functions that run from their source can read."""

from __future__ import annotations

import ast
import functools
import linecache
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import CellType, CodeType
from typing import Any, TypeAlias

from yota.ir.location import Span

_MARK = "yota_interpreted"


@dataclass(frozen=True, slots=True, eq=False)
class Scope:
    """What a function inside of an interpreted one can read.

    code, globals, cells: code, global variables and closure of the outermost function.
    variables: its default values, and the variables of the interpreted functions around it.
    """

    code: CodeType | None
    globals: dict[str, Any]
    cells: Mapping[str, CellType]
    variables: tuple[dict[str, Any], ...]


def marked(function: Any, scope: Scope | None = None) -> Any:
    """``function``, marked as one that runs from its source."""
    setattr(function, _MARK, scope)
    return function


def is_marked(function: Any) -> bool:
    """Whether a function runs from its source."""
    return _MARK in getattr(function, "__dict__", ()) or _MARK in vars(type(function))


def scope_of(function: Any) -> Scope | None:
    """What a function reads that the interpreter has made; None for others."""
    found: Scope | None = vars(function).get(_MARK)
    return found


FunctionTree: TypeAlias = "ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda"
_SCOPES = (
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.Lambda,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True, slots=True, eq=False)
class Definition:
    """A function, class or comprehension in the source.

    filename, name, qualified: the file, its name, and its name with those of what it stands in.
    owner: name of the class in whose body it stands, for private names.
    outside: names that it declares global.
    enclosing: names that it declares nonlocal.
    parents: what each part of the tree is a part of.
    """

    tree: ast.AST
    filename: str
    name: str
    qualified: str
    owner: str | None
    local: frozenset[str]
    outside: frozenset[str]
    enclosing: frozenset[str]
    is_generator: bool
    parents: Mapping[ast.AST, ast.AST]

    def mangled(self, name: str) -> str:
        """A private name as Python stores it."""
        if self.owner is None or not name.startswith("__") or name.endswith("__"):
            return name
        return f"_{self.owner.lstrip('_')}{name}"


@functools.lru_cache(4096)
def define(tree: ast.AST, filename: str, qualified: str, owner: str | None) -> Definition:
    """The definition of a function, a class or a comprehension."""
    bound: dict[str, None] = {}
    outside: set[str] = set()
    enclosing: set[str] = set()
    if isinstance(tree, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        given = tree.args
        every = (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg)
        bound.update(dict.fromkeys(each.arg for each in every if each is not None))
    inner = list(_inner(tree))
    for part in inner:
        if isinstance(part, ast.Global):
            outside.update(part.names)
        elif isinstance(part, ast.Nonlocal):
            enclosing.update(part.names)
        else:
            bound.update(dict.fromkeys(_binds(part, tree)))
    return Definition(
        tree,
        filename,
        qualified.rpartition(".")[2],
        qualified,
        owner,
        frozenset(bound) - outside - enclosing,
        frozenset(outside),
        frozenset(enclosing),
        any(isinstance(part, (ast.Yield, ast.YieldFrom)) for part in inner),
        {child: parent for parent in ast.walk(tree) for child in ast.iter_child_nodes(parent)},
    )


def _inner(tree: ast.AST) -> Iterator[ast.AST]:
    """The parts that belong to the scope of ``tree`` itself."""
    pending: list[ast.AST]
    if isinstance(tree, ast.Lambda):
        pending = [tree.body]
    elif isinstance(tree, _COMPREHENSIONS):
        pending = [each.target for each in tree.generators]
    else:
        pending = list(getattr(tree, "body", []))
    while pending:
        part = pending.pop()
        yield part
        if isinstance(part, _COMPREHENSIONS):
            # An assignment expression in a comprehension binds in the function around it.
            pending += [each for each in ast.walk(part) if isinstance(each, ast.NamedExpr)]
            continue
        if not isinstance(part, _SCOPES):
            pending += ast.iter_child_nodes(part)


def _binds(part: ast.AST, tree: ast.AST) -> list[str]:
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


def span_of(part: ast.AST, definition: Definition) -> Span:
    """Where a part of the source stands."""
    line, end_line = getattr(part, "lineno", 0), getattr(part, "end_lineno", None) or 0
    begin, end = getattr(part, "col_offset", 0), getattr(part, "end_col_offset", None) or 0
    return Span(
        definition.filename,
        line,
        definition.name,
        _characters(definition.filename, line, begin) + 1,
        end_line,
        _characters(definition.filename, end_line, end) + 1,
    )


def _characters(filename: str, line: int, offset: int) -> int:
    """Columns of syntax trees count bytes."""
    text = linecache.getline(filename, line)
    return offset if text.isascii() else len(text.encode()[:offset].decode())
