"""Functions made from rewritten sources."""

from __future__ import annotations

import ast
import functools
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import CellType, CodeType, FunctionType
from typing import Any

from yota.errors import YotaError
from yota.tracing.bytecode import nested
from yota.tracing.current import current
from yota.tracing.implementations import Form, registering
from yota.tracing.rewriting import (  # noqa: F401  (they register how parts are rewritten)
    branch_rewriting,
    loop_rewriting,
    statement_rewriting,
)
from yota.tracing.rewriting.definition import FUTURE, Definition, definition_of, is_marked, marked
from yota.tracing.rewriting.expression_rewriting import function_body, without_defaults
from yota.tracing.rewriting.rewriter import Rewriter, placed
from yota.tracing.rewriting.scopes import scope_of
from yota.tracing.source_lines import Rewritten, is_installed_file, rewritten

RULES: dict[str, Any] = {"YotaError": YotaError, "slice": slice}
"""What rewritten code calls, by name without the dot."""


_DEEPER = 4
"""Python's own calls that a call of rewritten code takes at the most."""
_DEEPEST = 12_000


def rule(*names: str) -> Callable[[Form], Form]:
    """Register a rule."""
    return registering(RULES, dict.fromkeys(names, ""))


def from_source(function: FunctionType) -> FunctionType:
    """A Python function of the user's as its source says it, rewritten."""
    code, trace = function.__code__, current()
    selects = trace is not None and trace.first_run is not None and trace.first_run.selects
    made, rules = _code(code, definition_of(function), selects)
    held = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    cells = tuple(held[name] if cell is None else cell for name, cell in zip(made.co_freevars, rules, strict=True))
    found = FunctionType(made, function.__globals__, function.__name__, function.__defaults__, cells)
    found.__kwdefaults__, found.__qualname__ = function.__kwdefaults__, function.__qualname__
    return found


_codes: dict[tuple[int, bool], tuple[CodeType, Definition, CodeType, list[CellType | None]]] = {}


def _code(code: CodeType, definition: Definition, selects: bool) -> tuple[CodeType, list[CellType | None]]:
    """The rewritten code, and cells with the rules among its free variables."""
    known = _codes.get((id(code), selects))
    if known is None or known[1] is not definition:
        try:
            made = _compiled(code, definition, selects)
        except RecursionError:
            made = code  # an expression as deep as Python itself takes it runs as it is
        rules = [CellType(RULES[name[1:]]) if name.startswith(".") else None for name in made.co_freevars]
        known = _codes[id(code), selects] = code, definition, made, rules
        if made is code:
            return made, rules
        originals = {(each.co_name, each.co_firstlineno): each for each in nested(code)}
        for each in nested(made):
            original = originals.get((each.co_name, each.co_firstlineno), code)
            rewritten[id(each)] = Rewritten(each, original, definition)
    return known[2], known[3]


def _compiled(code: CodeType, definition: Definition, selects: bool) -> CodeType:
    """Code of the rewritten function, whose free variables are those of ``code`` and rules."""
    rewriter = Rewriter(is_installed_file(definition.filename), selects=selects)
    tree: Any = definition.tree
    # Their default values are those of the function.
    given = without_defaults(tree.args)
    if isinstance(tree, ast.Lambda):
        rewriter.scopes.append(scope_of(tree, definition.owner))
        made: Any = ast.Expr(ast.Lambda(given, rewriter.rewrite(tree.body)))
    else:
        made = type(tree)(tree.name, given, function_body(rewriter, tree, definition.owner), [], None)
    if definition.owner is not None:
        # Private names leave out underscores ahead of the name of the class; nothing else in the code has this one.
        made = ast.ClassDef(f"{'_' * 9}{definition.owner}", [], [], [made], [])
    names = {f".{name}" for name in RULES} | {name for name in code.co_freevars if name != "__class__"}
    around = ast.arguments([], [ast.arg(name) for name in sorted(names)], None, [], [], None, [])
    body = [made]
    if definition.owner is None and code.co_name.isidentifier() and code.co_name not in names:
        body.insert(0, ast.Global([code.co_name]))  # it is no variable of the factory
    factory = placed(ast.FunctionDef(".factory", around, body, [], None), tree)
    module = ast.Module([factory], [])
    whole = compile(module, definition.filename, "exec", code.co_flags & FUTURE, dont_inherit=True)
    return next(each for each in nested(whole) if each.co_name == code.co_name and each.co_firstlineno == tree.lineno)


def standing_for(function: FunctionType) -> Any:
    """A function that runs ``function`` from its source while a trace runs, and is ``function`` otherwise."""
    if is_marked(function):
        return function

    @functools.wraps(function)
    def interpreted(*args: Any, **keywords: Any) -> Any:
        if current() is None:
            return function(*args, **keywords)
        with deep():
            return from_source(function)(*args, **keywords)

    return marked(interpreted)


class _Depth(threading.local):
    entered = False


_depth = _Depth()


@contextmanager
def deep() -> Generator[None, None, None]:
    """Let Python's own calls go deeper in the main thread, so that a recursion may be as deep as in Python."""
    if _depth.entered or threading.current_thread() is not threading.main_thread():
        yield
        return
    limit = sys.getrecursionlimit()
    _depth.entered = True
    sys.setrecursionlimit(max(limit, min(limit * _DEEPER, _DEEPEST)))
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)
        _depth.entered = False
