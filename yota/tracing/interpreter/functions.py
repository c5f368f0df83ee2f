"""Functions that run from their source: binding arguments, running bodies, and making functions that do so."""

from __future__ import annotations

import ast
import functools
import inspect
import sys
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from types import CodeType, FunctionType
from typing import Any

from yota.tracing.interpreter.activation import Activation
from yota.tracing.interpreter.definition import Definition, is_marked, marked
from yota.tracing.interpreter.effects import made
from yota.tracing.interpreter.source import definition_of
from yota.tracing.interpreter.tables import evaluate, execute
from yota.tracing.state import current

_DEEPER = 16
"""Python's own calls that a call of an interpreted function takes at the most, about."""
_DEEPEST = 12_000


def run(function: FunctionType, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> Any:
    """Call a Python function of the user's from its source."""
    definition = definition_of(function)
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    activation = Activation(definition, function.__globals__, cells, None, function.__code__)
    binding = _binding(definition, function.__defaults__ or (), function.__kwdefaults__ or {})
    return _start(activation, binding, args, keywords)


def make(
    definition: Definition, outer: Activation, defaults: tuple[Any, ...], keyword_defaults: Mapping[str, Any]
) -> Any:
    """A function for a definition inside of one that is interpreted."""
    binding = _binding(definition, defaults, keyword_defaults)
    scope = outer.globals, outer.cells, outer

    def interpreted(*args: Any, **keywords: Any) -> Any:
        return _start(Activation(definition, *scope), binding, args, keywords)

    return _named(interpreted, definition, outer, inspect.signature(binding))


def _named(interpreted: Any, definition: Definition, outer: Activation, signature: inspect.Signature) -> Any:
    interpreted.__name__, interpreted.__qualname__ = definition.name, definition.qualified
    interpreted.__module__ = outer.globals.get("__name__")
    interpreted.__signature__ = signature
    tree = definition.tree
    interpreted.__doc__ = ast.get_docstring(tree) if isinstance(tree, ast.FunctionDef) else None
    given = signature.parameters.values()
    return marked(
        interpreted, outer.scope({each.name: each.default for each in given if each.default is not each.empty})
    )


def standing_for(function: FunctionType) -> Any:
    """A function that runs ``function`` from its source while a trace runs, and is ``function`` otherwise."""
    if is_marked(function):
        return function

    @functools.wraps(function)
    def interpreted(*args: Any, **keywords: Any) -> Any:
        if current() is None:
            return function(*args, **keywords)
        with deep():
            return run(function, args, keywords)

    return marked(interpreted)


def _binding(definition: Definition, defaults: tuple[Any, ...], keyword_defaults: Mapping[str, Any]) -> FunctionType:
    """A function with the parameters of a definition, which returns what they are bound to."""
    found = FunctionType(_code(definition), {}, definition.name, defaults)
    found.__qualname__, found.__kwdefaults__ = definition.qualified, dict(keyword_defaults)
    return found


@functools.lru_cache(4096)
def _code(definition: Definition) -> CodeType:
    tree = definition.tree
    assert isinstance(tree, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
    given = tree.args

    def bare(*parameters: ast.arg) -> list[ast.arg]:
        return [ast.arg(definition.mangled(each.arg)) for each in parameters]

    found = ast.arguments(
        bare(*given.posonlyargs),
        bare(*given.args),
        None if given.vararg is None else bare(given.vararg)[0],
        bare(*given.kwonlyargs),
        [None] * len(given.kwonlyargs),
        None if given.kwarg is None else bare(given.kwarg)[0],
        [],
    )
    names = [each.arg for each in ast.walk(found) if isinstance(each, ast.arg)]
    values = ast.Dict([ast.Constant(name) for name in names], [ast.Name(name, ast.Load()) for name in names])
    code = compile(ast.fix_missing_locations(ast.Expression(ast.Lambda(found, values))), definition.filename, "eval")
    return next(each for each in code.co_consts if isinstance(each, CodeType))


def _start(activation: Activation, binding: FunctionType, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> Any:
    definition = activation.definition
    tree: Any = definition.tree
    activation.variables.update(binding(*args, **keywords))
    if tree.args.kwarg is not None:
        made(activation.variables[definition.mangled(tree.args.kwarg.arg)])
    if isinstance(tree, ast.AsyncFunctionDef):
        raise activation.refuse(tree, "an asynchronous function is not known to the interpreter of source.")
    if definition.is_generator:
        return made(_generated(activation))
    return _finished(activation)


def _generated(activation: Activation) -> Generator[Any, Any, Any]:
    completion = yield from execute(activation, activation.definition.tree.body)  # type: ignore[attr-defined]
    return None if completion is None else completion.value


def _finished(activation: Activation) -> Any:
    tree = activation.definition.tree
    if isinstance(tree, ast.Lambda):
        return evaluate(activation, tree.body)
    steps = execute(activation, tree.body)  # type: ignore[attr-defined]
    try:
        next(steps)
    except StopIteration as finished:
        completion = finished.value
        return None if completion is None else completion.value
    raise AssertionError("a function without a yield has yielded")


class _Depth(threading.local):
    entered = False


_depth = _Depth()


@contextmanager
def deep() -> Generator[None, None, None]:
    """Let Python's own calls go deeper, so that a recursion of the user's may be as deep as it may be in Python.

    Only the main thread has the stack for it.
    """
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
