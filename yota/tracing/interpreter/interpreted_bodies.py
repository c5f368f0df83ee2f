"""Functions that run from their source: arguments and bodies; and those without one, which call such functions."""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import sys
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from types import CellType, CodeType, FunctionType
from typing import Any

from yota.tracing.current import current
from yota.tracing.interpreter.activation import Activation, Stopped, evaluate, execute
from yota.tracing.interpreter.definition import Definition, definition_of, is_marked, marked
from yota.tracing.interpreter.effects import made
from yota.tracing.patching import ABSENT, content
from yota.tracing.source_lines import is_library_file

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

    found: Any = interpreted
    found.__name__, found.__qualname__ = definition.name, definition.qualified
    found.__module__ = outer.globals.get("__name__")
    found.__signature__ = inspect.signature(binding)
    tree = definition.tree
    found.__doc__ = ast.get_docstring(tree) if isinstance(tree, ast.FunctionDef) else None
    given = found.__signature__.parameters.values()
    return marked(found, outer.scope({each.name: each.default for each in given if each.default is not each.empty}))


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
    try:
        return _finished(activation)
    except Stopped as stopped:
        raise stopped.fault from None


def _generated(activation: Activation) -> Generator[Any, Any, Any]:
    try:
        completion = yield from execute(activation, activation.definition.tree.body)  # type: ignore[attr-defined]
    except Stopped as stopped:
        raise stopped.fault from None
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


_MOST_FOLLOWED = 4
"""Such functions that call one another: how many are followed."""


def reading(function: FunctionType, form: Callable[[Any], Any], depth: int = 0) -> FunctionType:
    """``function`` with ``form`` applied to the functions that it calls by its global variables and closure."""
    code = function.__code__
    if (is_library_file(code.co_filename) and not code.co_filename.startswith("<")) or is_marked(function):
        return function

    def of(value: Any) -> Any:
        found = form(value)
        if found is value and type(value) is FunctionType and depth < _MOST_FOLLOWED:
            return reading(value, form, depth + 1)
        return found

    found = {name: function.__globals__[name] for name in code.co_names if name in function.__globals__}
    cells = [(cell, content(cell)) for cell in function.__closure__ or ()]
    forms = {name: of(value) for name, value in found.items()}
    inner = [cell if (new := of(held)) is held or held is ABSENT else CellType(new) for cell, held in cells]
    if all(forms[name] is value for name, value in found.items()) and all(
        one is cell for one, (cell, _) in zip(inner, cells, strict=True)
    ):
        return function
    made = FunctionType(
        code, {**function.__globals__, **forms}, function.__name__, function.__defaults__, tuple(inner) or None
    )
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def is_generated(kind: type, begin: Any) -> bool:
    """Whether ``begin`` is what `dataclasses.dataclass` wrote as the ``__init__`` of a class."""
    owner = next((each for each in kind.__mro__ if vars(each).get("__init__") is begin), None)
    return owner is not None and "__dataclass_fields__" in vars(owner) and begin.__code__.co_filename == "<string>"


def initialise(
    new: Any, args: tuple[Any, ...], keywords: Mapping[str, Any], call: Callable[[Any, Any, Any], Any]
) -> None:
    """Set the fields of ``new``, an object of a dataclass, as the ``__init__`` does that was written for it."""
    kind: Any = type(new)
    bound = inspect.signature(kind.__init__).bind(new, *args, **keywords)
    frozen = kind.__dataclass_params__.frozen
    later = []
    for each in kind.__dataclass_fields__.values():
        sort = each._field_type.name
        if sort == "_FIELD_CLASSVAR":
            continue
        if each.name in bound.arguments:
            value = bound.arguments[each.name]
        elif each.default is not dataclasses.MISSING:
            value = each.default
        elif each.default_factory is not dataclasses.MISSING:
            value = call(each.default_factory, (), {})
        else:
            continue
        if sort == "_FIELD_INITVAR":
            later.append(value)
        elif frozen:
            object.__setattr__(new, each.name, value)
        else:
            setattr(new, each.name, value)
    if hasattr(kind, "__post_init__"):
        call(kind.__post_init__, (new, *later), {})
