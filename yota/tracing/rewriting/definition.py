"""From a function to the syntax tree of its source."""

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
from types import CodeType, FunctionType
from typing import Any, TypeAlias

from yota.ir.location import Span
from yota.tracing.bytecode import nested
from yota.tracing.current import current
from yota.tracing.source_lines import is_deep_file, is_library_file, rewritten

_MARK = "yota_interpreted"


def marked(function: Any) -> Any:
    """``function``, marked as one that runs from its source."""
    setattr(function, _MARK, True)
    return function


def is_marked(function: Any) -> bool:
    """Whether a function runs from its source."""
    if type(function) is FunctionType and id(function.__code__) in rewritten:
        return True
    return _MARK in getattr(function, "__dict__", ()) or _MARK in vars(type(function))


FunctionTree: TypeAlias = "ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda"


@dataclass(frozen=True, eq=False)
class Definition:
    """A function in the source; ``owner`` is the class that it stands in, for private names."""

    tree: FunctionTree
    filename: str
    owner: str | None

    @functools.cached_property
    def parents(self) -> Mapping[ast.AST, ast.AST]:
        """What each part of the tree is a part of."""
        return {child: parent for parent in ast.walk(self.tree) for child in ast.iter_child_nodes(parent)}

    @functools.cached_property
    def parts(self) -> Mapping[tuple[int, int, int, int], ast.AST]:
        """Parts by their place; of several at one place the innermost."""
        placed: Any = (each for each in ast.walk(self.tree) if hasattr(each, "end_col_offset"))
        return {(each.lineno, each.end_lineno, each.col_offset, each.end_col_offset): each for each in placed}

    def span(self, part: Any, name: str) -> Span:
        """Where a part of the source stands, in a function of that name."""
        begin, end = (
            _characters(self.filename, line, offset) + 1
            for line, offset in ((part.lineno, part.col_offset), (part.end_lineno, part.end_col_offset))
        )
        return Span(self.filename, part.lineno, name, begin, part.end_lineno, end)


def _characters(filename: str, line: int, offset: int) -> int:
    """Columns of syntax trees count bytes."""
    text = linecache.getline(filename, line)
    return offset if text.isascii() else len(text.encode()[:offset].decode())


FUTURE = functools.reduce(
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
    return definition_of_code(code, names) is not None


def definition_of_code(code: CodeType, names: dict[str, Any]) -> Definition | None:
    """See `is_readable_code`."""
    name, trace = code.co_filename, current()
    if is_library_file(name) and not (trace is not None and trace.deep and is_deep_file(name)):
        return None
    found = _definition(code, names)
    return found if isinstance(found, Definition) else None


def definition_of(function: FunctionType) -> Definition:
    """The definition of a Python function; Unreadable if its source cannot be had."""
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
    line, name = code.co_firstlineno, code.co_name
    try:
        if not rewritten and code not in _codes(text, code.co_flags & FUTURE).get((line, name), []):
            return changed
        found = [each for each in _functions(_parsed(text), line) if getattr(each[0], "name", "<lambda>") == name]
        candidates = [each for each in found if _takes(each[0], code)]
    except SyntaxError:
        return changed
    if len(candidates) > 1:
        candidates = [each for each in candidates if _contains(each[0], code)]
    if len(candidates) > 1:
        return f"{where}: several functions in this line cannot be told apart"
    if not candidates:
        return changed
    tree, owner = candidates[0]
    return Definition(tree, code.co_filename, owner)


@functools.lru_cache(256)
def _codes(text: str, flags: int) -> dict[tuple[int, str], list[CodeType]]:
    """What Python makes of the functions in a file, by first line and name; it is looked at, and never run."""
    found: dict[tuple[int, str], list[CodeType]] = {}
    for code in nested(compile(text, "", "exec", flags, dont_inherit=True)):
        found.setdefault((code.co_firstlineno, code.co_name), []).append(code)
    return found


_parsed = functools.lru_cache(256)(ast.parse)


def _functions(tree: ast.AST, line: int, owner: str | None = None) -> Iterator[tuple[FunctionTree, str | None]]:
    """The functions that begin at a line, each with the class that it is in."""
    for child in ast.iter_child_nodes(tree):
        last: int | None = getattr(child, "end_lineno", None)
        # Files are long: what lies on other lines is left out.
        if last is not None and not _first_line(child) <= line <= last:
            continue
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)) and _first_line(child) == line:
            yield child, owner
        yield from _functions(child, line, child.name if isinstance(child, ast.ClassDef) else owner)


def _first_line(tree: Any) -> int:
    """The first line of a part of the source, with its decorators."""
    first: int = min(each.lineno for each in (tree, *getattr(tree, "decorator_list", ())))
    return first


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
