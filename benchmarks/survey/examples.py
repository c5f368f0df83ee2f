"""Runs the examples of a documentation and keeps the calls of public functions that they make."""

from __future__ import annotations

import ast
import contextlib
import copy
import doctest
import linecache
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.survey.public import name_of

_DRAWING = (
    *(
        "matplotlib",
        "matplotlib.pyplot",
        "matplotlib.animation",
        "matplotlib.patches",
        "matplotlib.cm",
    ),
    *("matplotlib.ticker", "matplotlib.colors", "mpl_toolkits", "mpl_toolkits.mplot3d"),
)

__all__ = ["Observed", "Observer", "observe"]

_LARGEST = 2_000_000
"""Bytes of an argument that is copied."""


@dataclass(frozen=True)
class Observed:
    """A call that was made: the arguments are as they were before it."""

    name: str
    function: Any
    owner: Any
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]
    result: Any
    maker: Observed | None
    """The call that made the object whose method this is."""


class Observer:
    """Stands around each call of an example."""

    def __init__(self) -> None:
        self.calls: list[Observed] = []
        self._made: dict[int, tuple[Any, Observed]] = {}

    def __call__(self, function: Any, /, *arguments: Any, **keywords: Any) -> Any:
        name = name_of(function)
        if name is None:
            return function(*arguments, **keywords)
        owner = getattr(function, "__self__", function)
        made = self._made.get(id(owner))
        kept = (
            _copied(owner)
            if made is None and not isinstance(owner, (type, types.ModuleType)) and title(owner) is None
            else owner
        )
        given, named = _copied(arguments), _copied(keywords)
        result = function(*arguments, **keywords)
        found = Observed(name, function, kept, given, named, result, made and made[1])
        self.calls.append(found)
        if not isinstance(
            result,
            (
                np.ndarray,
                np.generic,
                float,
                int,
                str,
                complex,
                tuple,
                list,
                type(None),
                dict,
            ),
        ):
            self._made[id(result)] = (result, found)
        return result


def title(value: Any) -> str | None:
    from benchmarks.survey.public import title_of

    return title_of(value)


def _copied(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.nbytes > _LARGEST:
        return value
    try:
        return copy.deepcopy(value)
    except Exception:  # noqa: BLE001  (some objects cannot be copied)
        return value


class _Calls(ast.NodeTransformer):
    """Hands each call to the observer, but for those inside of functions that the example defines."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        observed = ast.Call(ast.Name("_observe", ast.Load()), [node.func, *node.args], node.keywords)
        return ast.copy_location(observed, node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node

    visit_Lambda = visit_ClassDef = visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815  (names of ast's)


class _Nothing:
    """Stands for a library that draws: any use of it gives nothing."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Nothing()

    def __call__(self, *_: Any, **__: Any) -> Any:
        return _Nothing()

    def __getitem__(self, place: Any) -> Any:
        return _Nothing()

    def __setitem__(self, place: Any, value: Any) -> None:
        pass

    def __iter__(self) -> Iterator[Any]:
        return iter((_Nothing(), _Nothing()))

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *fault: Any) -> None:
        pass


def observe(title: str, text: str, observer: Observer) -> int:
    """Run the examples of a text; give how many failed."""
    try:
        examples = doctest.DocTestParser().get_examples(text)
    except ValueError:
        return 1
    module = types.ModuleType("examples")
    space = vars(module)
    space.update(np=np, numpy=np, _observe=observer)
    failed = 0
    _stand_in()
    for number, example in enumerate(examples):
        try:
            _run(f"<{title} {number}>", example.source, space)
        except TimeoutError:
            raise
        except (Exception, SystemExit):  # noqa: BLE001  (an example may show an error)
            failed += 1
    return failed


def _stand_in() -> None:
    """Modules that draw do nothing."""
    for name in _DRAWING:
        parent, _, child = name.rpartition(".")
        sys.modules[name] = module = _Nothing()  # type: ignore[assignment]
        if parent:
            setattr(sys.modules[parent], child, module)


def _run(place: str, source: str, space: dict[str, Any]) -> None:
    linecache.cache[place] = (len(source), None, source.splitlines(True), place)
    tree = ast.fix_missing_locations(_Calls().visit(ast.parse(source)))
    last = tree.body[-1] if tree.body else None
    exec(compile(tree, place, "exec"), space)
    if isinstance(last, ast.Expr):
        space["_"] = None


@contextlib.contextmanager
def same_random() -> Iterator[None]:
    """Draws of NumPy's global generator repeat."""
    # Examples draw from the old global generator.
    state = np.random.get_state()  # noqa: NPY002
    np.random.seed(0)  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(state)  # noqa: NPY002
