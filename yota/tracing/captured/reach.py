"""Finds the variables, attributes and functions that a function can read, from the names in its code."""

from __future__ import annotations

import builtins
import functools
import gc
import operator
import sys
import types
import weakref
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from yota.marks import content_of
from yota.structures import children, has_attributes, held_by, is_leaf, is_library, package_of, slots_of
from yota.tracing.captured.mentions import mentions
from yota.tracing.observation import Running
from yota.tracing.patching import ABSENT, content
from yota.tracing.source_lines import closure_of, is_installed_file, is_library_file, original_code

_MOST = 10_000
"""Largest number of functions, classes and modules to follow."""
_MOST_PARTS = 200
"""Largest number of parts of a variable of an installed package that are compared."""
_WRAPPERS = (staticmethod, classmethod, property, functools.cached_property, functools._lru_cache_wrapper)
_METHODS = (types.MethodType, types.BuiltinMethodType)
_BUILT_INS = vars(builtins)
_GETTERS = (operator.attrgetter, operator.methodcaller)
_UNWATCHED = frozenset({"__repr__", "__str__", "__format__", "__set_name__", "__init_subclass__", "__class_getitem__"})
"""Implicit methods that do not affect results."""
_PLAIN = (int, float, complex, str, bytes, type(None), np.ndarray, np.generic, np.ufunc, np.dtype)


def bearers(value: Any) -> Iterator[Any]:
    """Functions, classes and modules in a structure, classes of its objects, and names."""
    if isinstance(value, _PLAIN) and type(value) is not str:
        return
    kinds = (str, types.FunctionType, *_METHODS, types.ModuleType, type)
    if isinstance(value, kinds) or "__wrapped__" in getattr(value, "__dict__", ()):
        yield value
        return
    yield type(value)
    for _, part in children(value) or ():
        yield from bearers(part)


class Reach:
    """Variables that functions read, found through the functions, classes and modules that their code names.

    dependencies: what may change, by kind, owner and name:

    - ``cell``: a variable of a function around;
    - ``entry``: a global variable or an attribute, in a mapping;
    - ``table``: a global variable of an installed package with more parts than are compared at each call;
    - ``attribute``: one that takes part in a call without being mentioned, as the class of an object;
    - ``function``: the code and the default values of a function;
    - ``size``: the number of items of a mapping that nothing may be added to;
    - ``items``: all items of a list, a dict or the attributes of an object;
    - ``cached``: results in the cache of `functools.lru_cache`, which the user may clear;
    - ``parts``: what can be written in another way: sets, and structures of other kinds.

    defaults: what parameters default to, and what methods and partial functions are bound to.
    """

    def __init__(self) -> None:
        self.dependencies: list[tuple[str, Any, str]] = []
        self.codes: list[types.CodeType] = []
        self.defaults: list[Any] = []
        self._owners: list[tuple[Mapping[str, Any], ...]] = []
        self._libraries: list[Mapping[str, Any]] = []
        self.attributes = {"__getattr__"}
        self._known: set[int] = set()
        self._asks = self.is_dynamic = False
        self._seen: dict[int, Any] = {}
        self.followed = 0
        self._taken: set[tuple[str, int, str]] = set()
        self._names: dict[type, dict[str, Any]] = {}
        self._foreign: dict[str, bool] = {}

    def take(self, roots: Iterable[Any]) -> None:
        """Add what ``roots`` read: functions, classes, modules, objects, and structures of them."""
        pending = list(roots)
        while pending:
            while pending:
                value = pending.pop()
                if type(value) is str:
                    self.attributes.add(value)
                elif id(value) not in self._seen and _is_followed(value):
                    self._seen[id(value)] = value
                    pending += self._visit(value)
            pending += self._attributes_of_owners()

    def take_receiver(self, function: Any) -> None:
        """Track which plain function a callable runs, but not its data, which is an argument."""
        if isinstance(function, functools.partial):
            self._watch("attribute", function, "func", "args")
            self.take_receiver(function.func)
        elif not isinstance(function, (types.FunctionType, types.BuiltinFunctionType, *_METHODS, np.ufunc, type)):
            self._watch("attribute", function, "__class__")
            self.attributes.add("__call__")
            self.take([type(function)])

    def _watch(self, kind: str, owner: Any, *names: str) -> None:
        for name in names or ("",):
            if (kind, id(owner), name) not in self._taken:
                self._taken.add((kind, id(owner), name))
                self.dependencies.append((kind, owner, name))

    def _is_foreign(self, value: Any) -> bool:
        """Whether an object belongs to Python or to an installed package."""
        package = package_of(value)
        found = self._foreign.get(package)
        if found is None:
            file = getattr(sys.modules.get(package), "__file__", None) or ""
            found = self._foreign[package] = is_library(package) or is_installed_file(file)
        return found

    def variables(self) -> list[Any]:
        """What variables and attributes hold now."""
        found = [content(owner) for kind, owner, _ in self.dependencies if kind == "cell"]
        return found + [owner.get(name, ABSENT) for kind, owner, name in self.dependencies if kind == "entry"]

    def _visit(self, value: Any) -> Iterable[Any]:
        if isinstance(value, (types.FunctionType, Running, types.ModuleType, type)):
            self.followed += 1
            return self._bearer(value) if self.followed < _MOST else ()
        if isinstance(value, _METHODS):
            # Data of its object is treated as data of a variable.
            self.defaults.append(value.__self__)
            return (getattr(value, "__func__", None), value.__self__)
        if isinstance(value, functools.partial):
            self._watch("attribute", value, "func", "args", "keywords")
            self._watch("items", value.keywords)
            self.defaults += [*value.args, *value.keywords.values()]
            return [value.func, *value.args, *value.keywords.values()]
        if isinstance(value, _WRAPPERS):
            if isinstance(value, property):
                return value.fget, value.fset
            if isinstance(value, functools._lru_cache_wrapper):
                self._watch("cached", value)
            return (value.func if isinstance(value, functools.cached_property) else value.__wrapped__,)
        if isinstance(value, weakref.ref):
            return (value(),)
        if isinstance(value, _GETTERS):
            self.is_dynamic = True
            self.attributes.update(".".join(map(str, value.__reduce__()[1])).split("."))
            return ()
        # A compiled derivative, for example, stands for its original function.
        return [type(value), held_by(value).get("__wrapped__"), *self._parts(value)]

    def _bearer(self, value: Any) -> Iterable[Any]:
        """Add the code and data of a function, a class or a module."""
        if isinstance(value, types.FunctionType):
            self._owners.append((vars(value),))
            return [*self._function(value), vars(value).get("__wrapped__")]
        if isinstance(value, Running):
            found = self._code(value.code, value.names, ran=True)
            for each in map(value.names.get, mentions(value.code).names):
                if isinstance(each, types.FunctionType):
                    # A function that it names may have run, although nothing was recorded in it.
                    found += self._code(original_code(each), each.__globals__, ran=True)
            return found
        if isinstance(value, types.ModuleType):
            if self._is_foreign(value):
                self._libraries.append(vars(value))
            else:
                self._owners.append((vars(value),))
            return ()
        own = [base for base in value.__mro__ if not self._is_foreign(base)]
        self._libraries += [self._names_of(base) for base in value.__mro__ if base not in own and not is_library(base)]
        if not own:
            return ()
        self._watch("attribute", value, "__mro__")
        if type(value) is not type and not self._is_foreign(type(value)):
            self._watch("attribute", value, "__class__")
        found = [function for base in own for function in self._implicit(base)]
        self._owners.append(tuple(map(self._names_of, own)))
        return [type(value), *found]

    def _implicit(self, base: type) -> Iterator[Any]:
        """Methods that are called implicitly: operators and constructors."""
        if base in self._names:
            return
        names = self._names_of(base)
        self._watch("size", names)
        for name, value in names.items():
            # Python makes `__new__` a static method, and a few others class methods.
            if name.startswith("__") and isinstance(value, (types.FunctionType, staticmethod, classmethod)):
                if name not in _UNWATCHED:
                    self._variable(names, name)
                yield value

    def _names_of(self, base: type) -> dict[str, Any]:
        """The dict behind `vars`, which returns a new view each time."""
        return self._names.setdefault(base, gc.get_referents(vars(base))[0])

    def _parts(self, value: Any) -> list[Any]:
        """The parts of an object or structure; its kind of mutability is noted."""
        if isinstance(value, np.ndarray):
            return list(value.flat)
        parts = children(value)
        if isinstance(value, (list, dict)):
            self._watch("items", value)
        elif content_of(value) is not None or not (parts is None or isinstance(value, tuple) or has_attributes(value)):
            self._watch("parts", value)
        if package_of(type(value)) in ("numpy", "scipy"):
            # Coefficients of polynomials, parameters of frozen distributions and entries of sparse matrices.
            held = list(held_by(value).values())
            self._attributes_of(value)
            self.defaults += [each for each in held if isinstance(each, np.ndarray)]
            return [each for each in held if not is_leaf(each) or _is_followed(each)]
        if parts is None and (self._is_foreign(type(value)) or not hasattr(value, "__dict__")):
            return []
        if type(value) not in (list, dict, tuple):
            self._attributes_of(value)
        return [part for _, part in parts or () if not is_leaf(part)]

    def _attributes_of(self, value: Any) -> None:
        self._watch("attribute", value, "__class__", *slots_of(value))
        own = getattr(value, "__dict__", None)
        if type(own) is dict:
            self._watch("attribute", value, "__dict__")
            self._watch("items", own)

    def _function(self, function: types.FunctionType) -> list[Any]:
        code = original_code(function)
        found = self._code(code, function.__globals__, ran=not self.codes)
        held = closure_of(function)
        if self._knows(code):
            self._watch("function", function)
        elif package_of(function.__globals__.get("__name__")) != "yota":
            # For a decorator, only the functions that it calls are followed.
            return [each for _, cell in held for each in _callables(content(cell))]
        found += self._closure(held)
        defaults = [*(function.__defaults__ or ())]
        if function.__kwdefaults__:
            self._watch("items", function.__kwdefaults__)
            defaults += function.__kwdefaults__.values()
        self.defaults += defaults
        return [*found, *defaults]

    def _closure(self, held: Iterable[tuple[str, types.CellType]]) -> list[Any]:
        found = []
        for name, cell in held:
            value = content(cell)
            found.append(value)
            if not isinstance(value, types.ModuleType):
                self._watch("cell", cell, name)
        return found

    def _knows(self, code: types.CodeType) -> bool:
        return id(code) in self._known

    def _code(self, code: types.CodeType, names: dict[str, Any], *, ran: bool = False) -> list[Any]:
        """What code reads by name; nothing for code of installed packages that did not run."""
        if self._knows(code) or is_library_file(code.co_filename):
            return []
        if not ran and self._is_foreign(names.get("__name__", "")):
            return []
        self.codes.append(code)
        self._known.add(id(code))
        mentioned = mentions(code)
        self.attributes |= mentioned.attributes
        self._asks = self._asks or mentioned.asks
        self.is_dynamic = self.is_dynamic or mentioned.is_dynamic
        found = [self._variable(names, name) for name in mentioned.names]
        return [*found, *(self._variable(sys.modules, name) for name in mentioned.modules if name in sys.modules)]

    def _variable(self, names: Mapping[str, Any], name: str) -> Any:
        value = names.get(name, ABSENT)
        library = isinstance(value, types.ModuleType) and self._is_foreign(value)
        if value is ABSENT and name in _BUILT_INS and name != "type":
            # It may be replaced there, and a variable of that name may be defined later; a trace replaces `type`.
            self._watch("entry", names, name)
            value = self._variable(_BUILT_INS, name)
            return None if self._is_foreign(value) else value
        if value is not ABSENT and not library:
            if self._is_foreign(names.get("__module__", names.get("__name__"))) and _is_large(value):
                self._watch("table", names, name)
                return None
            self._watch("entry", names, name)
        return value

    def _attributes_of_owners(self) -> list[Any]:
        found: list[Any] = []
        for family in self._owners:
            for names in family:
                mentioned = names if self.is_dynamic else self.attributes.intersection(names)
                if self._asks or self.is_dynamic:
                    self._watch("size", names)
                found += [self._variable(names, name) for name in sorted(mentioned)]
        for names in self._libraries:
            if names.get("__name__") == "yota":
                # Names that yota loads when they are first read.
                for name in self.attributes.intersection(names["__all__"]):
                    getattr(sys.modules["yota"], name)
            # Members that the user adds to a library are tracked; its own code is not.
            values = [self._variable(names, name) for name in sorted(names.keys() & self.attributes)]
            found += [value for value in values if isinstance(value, types.ModuleType)]
        return [value for value in found if not isinstance(value, _PLAIN) and id(value) not in self._seen]


def _is_followed(value: Any) -> bool:
    """Whether a value may contain others, or code."""
    if type(value) is np.ndarray:
        return bool(value.dtype.hasobject)
    return value is not ABSENT and not isinstance(value, _PLAIN)


def _is_large(value: Any) -> bool:
    """Whether a structure has more parts than are compared at each call."""
    pending, seen, count = [value], set[int](), 0
    while pending:
        each = pending.pop()
        if isinstance(each, _PLAIN) or id(each) in seen:
            continue
        seen.add(id(each))
        parts = children(each) or ()
        count += len(parts)
        if count > _MOST_PARTS:
            return True
        pending += [part for _, part in parts]
    return False


def _callables(value: Any) -> list[Any]:
    """Callables that a decorator holds: the object itself, or the items of its dict."""
    found = value.values() if isinstance(value, Mapping) else [value]
    return [each for each in found if isinstance(each, (types.FunctionType, types.MethodType, functools.partial))]
