"""What a function can read besides its arguments: the variables, attributes and functions that its code mentions."""

from __future__ import annotations

import builtins
import dis
import functools
import sys
import types
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from yota.structures import LIBRARIES, children, is_leaf
from yota.tracing.location import is_library_file

__all__ = ["ABSENT", "Reach", "Running", "bearers", "content", "mentions"]

ABSENT = object()
"""What a variable holds that has no value."""
_MOST = 10_000
"""Objects that are followed."""
_WRAPPERS = (
    staticmethod,
    classmethod,
    property,
    functools.cached_property,
    functools._lru_cache_wrapper,
)
_METHODS = (types.MethodType, types.BuiltinMethodType)
_BUILT_IN = frozenset(vars(builtins)) - {"type"}
"""Names of built-in functions; that of `type` is taken while a trace runs."""
_PLAIN = (int, float, complex, str, bytes, type(None), np.ndarray, np.generic, np.ufunc, np.dtype)


@dataclass(frozen=True, slots=True)
class Mentions:
    """Names that code looks up: global variables, attributes, and modules that it imports."""

    names: tuple[str, ...]
    attributes: frozenset[str]
    modules: tuple[str, ...]


@functools.lru_cache(4096)
def mentions(code: types.CodeType) -> Mentions:
    """What ``code``, and the code inside of it (comprehensions, lambdas, nested functions), looks up."""
    names: dict[str, None] = {}
    attributes: set[str] = set()
    modules: dict[str, None] = {}
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            names[step.argval] = None
        elif step.opname.startswith(("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER")) or step.opname == "IMPORT_FROM":
            attributes.add(step.argval)
        elif step.opname == "IMPORT_NAME":
            modules[step.argval] = None
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            inner = mentions(constant)
            names.update(dict.fromkeys(inner.names))
            attributes |= inner.attributes
            modules.update(dict.fromkeys(inner.modules))
        elif isinstance(constant, str) and constant.isidentifier():  # getattr(module, "name")
            attributes.add(constant)
    return Mentions(tuple(names), frozenset(attributes), tuple(modules))


def content(cell: types.CellType) -> Any:
    """What a cell holds."""
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return ABSENT


@dataclass(frozen=True, slots=True, eq=False)
class Running:
    """Code that was seen to run, and the global variables that it uses."""

    code: types.CodeType
    names: dict[str, Any]


def bearers(value: Any) -> Iterator[Any]:
    """Functions, classes and modules in a structure, and the classes of the objects in it: they bring code along."""
    if isinstance(value, _PLAIN):
        return
    kinds = (types.FunctionType, *_METHODS, types.ModuleType, type)
    if isinstance(value, kinds) or "__wrapped__" in getattr(value, "__dict__", ()):
        yield value
        return
    yield type(value)
    for _, part in children(value) or ():
        yield from bearers(part)


class Reach:
    """Variables that functions read, found by following the functions, classes and modules that their code mentions.

    Attributes of modules and classes are found by name: every attribute that some code mentions, in every module and
    class that is reached. What belongs to a library is not followed.
    """

    def __init__(self) -> None:
        self.cells: list[types.CellType] = []
        self.cell_names: list[str] = []
        self.places: list[tuple[Mapping[str, Any], str]] = []
        self.codes: list[types.CodeType] = []
        self.defaults: list[Any] = []
        self._owners: list[tuple[Mapping[str, Any], ...]] = []
        self._attributes: set[str] = set()
        self._seen: dict[int, Any] = {}
        self._taken: set[tuple[int, str]] = set()
        self._home = ""

    def take(self, roots: Iterable[Any]) -> None:
        """Take in what ``roots`` read: functions, classes, modules, objects, and structures of them."""
        pending = list(roots)
        while pending and len(self._seen) < _MOST:
            while pending:
                value = pending.pop()
                if not isinstance(value, _PLAIN) and id(value) not in self._seen:
                    self._seen[id(value)] = value
                    pending += self._visit(value)
            pending += self._attributes_of_owners()

    def _is_foreign(self, module: str) -> bool:
        """Whether a module belongs to Python, or to another package that is installed than the function does."""
        root = module.partition(".")[0]
        if root in sys.stdlib_module_names or root in LIBRARIES:
            return True
        file = getattr(sys.modules.get(root), "__file__", None) or ""
        return root != self._home and "-packages" in file

    def _visit(self, value: Any) -> Iterable[Any]:
        if isinstance(value, types.FunctionType):
            if vars(value):
                self._owners.append((vars(value),))
            return [*self._function(value), vars(value).get("__wrapped__")]
        if isinstance(value, Running):
            return self._code(value.code, value.names)
        if isinstance(value, _METHODS):
            # What its object holds counts as what a variable holds.
            self.defaults.append(value.__self__)
            return (getattr(value, "__func__", None), value.__self__)
        if isinstance(value, functools.partial):
            self.defaults += [*value.args, *value.keywords.values()]
            return [value.func, *value.args, *value.keywords.values()]
        if isinstance(value, _WRAPPERS):
            return _wrapped(value)
        if isinstance(value, types.ModuleType):
            if not self._is_foreign(value.__name__):
                self._owners.append((vars(value),))
            return ()
        if isinstance(value, type):
            own = [base for base in value.__mro__ if not self._is_foreign(base.__module__)]
            if own:
                self._owners.append(tuple(map(vars, own)))
            return [function for base in own for name, function in vars(base).items() if _is_implicit(name, function)]
        # A compiled derivative, say, stands for the function that it is made of.
        wrapped = getattr(value, "__dict__", {}).get("__wrapped__")
        return [type(value), wrapped, *(part for _, part in children(value) or () if not is_leaf(part))]

    def _function(self, function: types.FunctionType) -> list[Any]:
        if not self.codes:
            self._home = function.__globals__.get("__name__", "").partition(".")[0]
        found = self._code(function.__code__, function.__globals__)
        if not self._knows(function.__code__):
            return []
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
            value = content(cell)
            found.append(value)
            if not isinstance(value, types.ModuleType) and not any(cell is known for known in self.cells):
                self.cells.append(cell)
                self.cell_names.append(name)
        defaults = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
        self.defaults += defaults
        return [*found, *defaults]

    def _knows(self, code: types.CodeType) -> bool:
        return any(code is known for known in self.codes)

    def _code(self, code: types.CodeType, names: dict[str, Any]) -> list[Any]:
        if self._knows(code) or self._is_foreign(names.get("__name__", "")) or is_library_file(code.co_filename):
            return []
        self.codes.append(code)
        mentioned = mentions(code)
        self._attributes |= mentioned.attributes
        found = [self._variable(names, name) for name in mentioned.names]
        return [*found, *(sys.modules[name] for name in mentioned.modules if name in sys.modules)]

    def _variable(self, names: Mapping[str, Any], name: str) -> Any:
        value = names.get(name, ABSENT)
        library = isinstance(value, types.ModuleType) and self._is_foreign(value.__name__)
        # A variable of a built-in function's name may come to hide that.
        known = value is not ABSENT or name in _BUILT_IN
        if known and not library and (id(names), name) not in self._taken:
            self._taken.add((id(names), name))
            self.places.append((names, name))
        return value

    def _attributes_of_owners(self) -> list[Any]:
        found: list[Any] = []
        for family in self._owners:
            for name in sorted(self._attributes.intersection(*[set().union(*family)])):
                for names in family:
                    # A class may be given the attribute of its base later.
                    if name in names:
                        found.append(self._variable(names, name))
                    elif (id(names), name) not in self._taken:
                        self._taken.add((id(names), name))
                        self.places.append((names, name))
        return [value for value in found if not isinstance(value, _PLAIN) and id(value) not in self._seen]


def _is_implicit(name: str, value: Any) -> bool:
    """Whether a class has a function that is called without being named: operators, constructors."""
    return name.startswith("__") and isinstance(value, types.FunctionType)


def _wrapped(value: Any) -> Iterator[Any]:
    if isinstance(value, functools.cached_property):
        yield value.func
    elif isinstance(value, property):
        yield from (value.fget, value.fset)
    else:
        yield value.__wrapped__
