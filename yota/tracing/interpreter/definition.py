"""From a function to the syntax tree of its source, and what that says about names."""

from __future__ import annotations
import __future__

import ast
import functools
import inspect
import linecache
import operator
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from types import CellType, CodeType, FunctionType
from typing import Any, TypeAlias

from yota.ir.location import Span
from yota.tracing.bytecode import nested
from yota.tracing.current import current
from yota.tracing.source_lines import is_deep_file, is_library_file

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


_Index: TypeAlias = dict[tuple[int, str], list[tuple[FunctionTree, str, str | None]]]

_FUTURE = functools.reduce(
    operator.or_, [getattr(__future__, name).compiler_flag for name in __future__.all_feature_names]
)
_known: dict[CodeType, tuple[list[str], Definition | str]] = {}
"""What was found for code, in the lines that its file had then."""


class Unreadable(Exception):
    """The source of a function cannot be had; the message says why."""


def is_readable(function: Any) -> bool:
    """Whether ``function`` is a Python function of the user's with a source."""
    return type(function) is FunctionType and is_readable_code(function.__code__, function.__globals__)


def is_readable_code(code: CodeType, names: dict[str, Any]) -> bool:
    """Whether code of the user's, with its global variables, has a source; of SciPy's too where a trace is deep."""
    name, trace = code.co_filename, current()
    if is_library_file(name) and not (trace is not None and trace.deep and is_deep_file(name)):
        return False
    return isinstance(_definition(code, names), Definition)


def definition_of(function: FunctionType) -> Definition:
    """The definition of a Python function.

    Raises Unreadable if there is no source, or not that of the function.
    """
    found = _definition(function.__code__, function.__globals__)
    if isinstance(found, str):
        raise Unreadable(found)
    return found


def _definition(code: CodeType, names: dict[str, Any]) -> Definition | str:
    """The definition, or why there is none."""
    lines = linecache.getlines(code.co_filename, names)
    known = _known.get(code)
    if known is None or known[0] is not lines:
        # What runs may be other than what is written, as where pytest rewrites assertions.
        loader = names.get("__loader__")
        rewritten = loader is not None and not isinstance(loader, (SourceFileLoader, type))
        known = _known[code] = lines, _find(code, "".join(lines), rewritten)
    return known[1]


def _find(code: CodeType, text: str, rewritten: bool) -> Definition | str:
    """The definition, or why there is none."""
    where = f"{code.co_filename}:{code.co_firstlineno}"
    if not text:
        return f"{where}: the source of {code.co_name} cannot be read"
    changed = f"{where}: the source of {code.co_name} has changed since it was imported"
    place = code.co_firstlineno, code.co_name
    try:
        if not rewritten and code not in _codes(text, code.co_flags & _FUTURE).get(place, []):
            return changed
        candidates = [each for each in _index(text).get(place, []) if _takes(each[0], code)]
    except SyntaxError:
        return changed
    if len(candidates) > 1:
        candidates = [each for each in candidates if _contains(each[0], code)]
    if len(candidates) > 1:
        return f"{where}: several functions in this line cannot be told apart"
    if not candidates:
        return changed
    tree, qualified, owner = candidates[0]
    return define(tree, code.co_filename, qualified, owner)


@functools.lru_cache(256)
def _codes(text: str, flags: int) -> dict[tuple[int, str], list[CodeType]]:
    """What Python makes of the functions in a file, by first line and name; it is looked at, and never run."""
    found: dict[tuple[int, str], list[CodeType]] = {}
    for code in nested(compile(text, "", "exec", flags, dont_inherit=True)):
        found.setdefault((code.co_firstlineno, code.co_name), []).append(code)
    return found


@functools.lru_cache(256)
def _index(text: str) -> _Index:
    """The functions in a file by first line and name, each with its qualified name and the class that it is in."""
    found: _Index = {}
    for tree, qualified, owner in _functions(ast.parse(text), "", None):
        name = "<lambda>" if isinstance(tree, ast.Lambda) else tree.name
        decorators = [] if isinstance(tree, ast.Lambda) else tree.decorator_list
        first = min([tree.lineno, *(each.lineno for each in decorators)])
        found.setdefault((first, name), []).append((tree, qualified, owner))
    return found


def _functions(tree: ast.AST, prefix: str, owner: str | None) -> Iterator[tuple[FunctionTree, str, str | None]]:
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            name = "<lambda>" if isinstance(child, ast.Lambda) else child.name
            yield child, prefix + name, owner
            yield from _functions(child, f"{prefix}{name}.<locals>.", owner)
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{prefix}{child.name}.", child.name)
        else:
            yield from _functions(child, prefix, owner)


def _takes(tree: FunctionTree, code: CodeType) -> bool:
    """Whether both have the same arguments; private ones are mangled in the code."""
    given = tree.args
    names = [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    names += [each.arg for each in (given.vararg, given.kwarg) if each is not None]
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    others = code.co_varnames[:count]
    return len(names) == len(others) and all(
        name == other or (name.startswith("__") and other.endswith(name))
        for name, other in zip(names, others, strict=True)
    )


def _contains(tree: FunctionTree, code: CodeType) -> bool:
    """Whether the instructions of ``code`` stand in the source where ``tree`` does, as Python from 3.11 on knows."""
    if not hasattr(code, "co_positions"):
        return True
    body = tree.body if isinstance(tree.body, ast.expr) else tree.body[0]
    for line, end_line, column, end_column in code.co_positions():
        if None in (line, end_line, column, end_column) or (line == end_line == code.co_firstlineno and not end_column):
            continue
        begin, end = (body.lineno, body.col_offset), (body.end_lineno, body.end_col_offset)
        return begin <= (line, column) and (end_line, end_column) <= end
    return True
