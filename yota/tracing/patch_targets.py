"""Finds the names that traced code takes functions from: variables, attributes, defaults, containers, closures."""

from __future__ import annotations

import functools
import sys
import threading
import types
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from yota.structures import is_library, package_of
from yota.tracing.bytecode import needs_source
from yota.tracing.methods import ArrayMethods
from yota.tracing.observation import Running
from yota.tracing.patching import ABSENT, Patch, content, held_at
from yota.tracing.recording_forms import BUILT_IN_FORMS, LONGEST, REBUILT, recording_form
from yota.tracing.source_lines import is_installed_file, is_library_file

_MOST = 10_000
"""Objects that are followed at a time."""
_PLAIN = (
    *(bool, int, float, complex, str, bytes, bytearray, range, slice, type(None), type(Ellipsis), np.ndarray),
    *(np.ufunc, types.BuiltinFunctionType, types.MethodWrapperType, types.WrapperDescriptorType),
    *(types.GetSetDescriptorType, types.MemberDescriptorType, types.MethodDescriptorType, types.CodeType),
    # A proxy whose object is gone raises an error at each question.
    *weakref.ProxyTypes,
)
"""Types of what leads nowhere."""
_ON_HEAP = 1 << 9
"""The flag of classes that are made as the program runs."""
_CONTAINERS = (list, tuple, dict, set, frozenset)


def _imported(names: Mapping[str, Any], name: str) -> Iterator[types.ModuleType]:
    """The modules that code with these global variables may mean where it imports ``name``."""
    package = names.get("__package__")
    parents = package.split(".") if isinstance(package, str) else []
    for count in range(len(parents) + 1):
        module = sys.modules.get(".".join((*parents[:count], name)))
        if type(module) is types.ModuleType:
            yield module


@functools.cache
def _is_installed(package: str) -> bool:
    """Whether a loaded package, by its name, is SciPy or another one that is installed."""
    file = getattr(sys.modules[package], "__file__", None) or ""
    return package == "scipy" or (is_installed_file(file) and not is_library_file(file))


def _home(module: Any) -> str:
    """The name of the installed package that a module, by its name, belongs to; empty if there is none."""
    package = package_of(module) if isinstance(module, str) else ""
    return package if package in sys.modules and _is_installed(package) else ""


def _is_users(value: Any) -> bool:
    """Whether a function, a class, or the class of an object comes from a module of the user's."""
    if isinstance(value, types.FunctionType):
        module = value.__globals__.get("__name__")
    else:
        module = (value if isinstance(value, type) else type(value)).__module__
    return isinstance(module, str) and not (is_library(module) or _home(module))


class Installed:
    """The names in installed packages, found once for all traces with the same ``forms``.

    forms: what records, by the identity of what it stands for.
    of_scipy: patches in SciPy of the functions that record.
    packages: by name of a package, what its code takes functions from, in whatever package; of SciPy all of its own.
    """

    def __init__(self, forms: Mapping[int, Any], of_scipy: Sequence[Patch]) -> None:
        self.forms, self.of_scipy = forms, of_scipy
        self.packages: dict[str, PatchTargets] = {}
        self._lock = threading.RLock()

    def follow(self, package: str, roots: Iterable[Any], attributes: set[str]) -> PatchTargets:
        """Follow ``roots`` in a package, and ``attributes`` of what is reached there."""
        with self._lock:
            found = self.packages.get(package)
            if found is None:
                found = self.packages[package] = PatchTargets(self, package)
                if package == "scipy":
                    count = sum(name.startswith("scipy.") for name in sys.modules)
                    found.patches += [*self.of_scipy, *_of_scipy(count, tuple(self.forms.items()))]
            if package != "scipy":
                found.mention(attributes)
                found.patches += found.take(roots)
            return found


@functools.lru_cache(2)
def _of_scipy(modules: int, forms: tuple[tuple[int, Any], ...]) -> list[Patch]:
    """Patches of all modules and classes of SciPy's, which takes a fifth of the time of following its code."""
    known, found, seen = dict(forms), list[Patch](), set[int]()
    for module in [name for name in sys.modules if name.startswith("scipy.")]:
        names = getattr(sys.modules[module], "__dict__", {})
        for name, value in list(names.items()):
            if (form := recording_form(known, value)) is not value:
                found.append(Patch(names, name, value, form))
            if isinstance(value, type) and id(value) not in seen and value.__module__.startswith("scipy."):
                seen.add(id(value))
                found += _methods(value, known)
    return found


def _methods(kind: type, forms: Mapping[int, Any]) -> Iterator[Patch]:
    """Patches of the attributes of a class of SciPy's."""
    for name, value in list(vars(kind).items()):
        if (form := recording_form(forms, value)) is not value:
            yield Patch(kind, name, value, form if hasattr(type(value), "__get__") else staticmethod(form))


class PatchTargets:
    """The names from which code may take a function that records, found by following what the code mentions.

    Every attribute that some code mentions is followed, of every module, class and object that is reached. Of Python's
    own library that is done where a module holds such a function. What lies in an installed package is left to
    `Installed`.

    package: the installed package that is followed, but for what the user has put into it; empty for a trace.
    patches: all that was found in it.
    reached: packages whose code a trace reaches, with the number of their patches then.
    """

    def __init__(self, installed: Installed, package: str = "") -> None:
        self._installed, self._forms, self._package = installed, installed.forms, package
        self.patches: list[Patch] = []
        self.reached: dict[str, int] = {}
        self._mentions: dict[str, int] = {}
        """By such a package, how many attributes were known to be mentioned in it."""
        self._found: list[Patch] = []
        self._owners: list[tuple[Any, Mapping[str, Any]]] = []
        self._more_owners: list[tuple[Any, Mapping[str, Any]]] = []
        self._attributes: set[str] = set()
        self._more_attributes: set[str] = set()
        self._seen: dict[int, Any] = {}
        self._codes: dict[tuple[int, int], types.CodeType] = {}
        self._taken: set[tuple[int, Any]] = set()
        self._near: dict[str, bool] = {}
        self.needs_source = False
        """Whether code of the user's that is not installed may branch otherwise by traced values; see `bytecode`."""

    def take(self, roots: Iterable[Any]) -> list[Patch]:
        """Follow ``roots``; the patches that were not known before."""
        pending, most = list(roots), len(self._seen) + _MOST
        while True:
            while pending and len(self._seen) < most:
                value = pending.pop()
                kind = type(value)
                if kind in _PLAIN or id(value) in self._seen or issubclass(kind, ArrayMethods):
                    continue
                # The closure of what records has the function that it stands for, which must stay there.
                if self._forms.get(id(value)) is not value and not (self._package and _is_users(value)):
                    if kind is not Running:
                        self._seen[id(value)] = value
                    pending += self._visit(value, kind)
            pending = self._mentioned()
            if not pending:
                break
        for package in self.reached:
            self.reached[package] = len(self._installed.packages[package].patches)
        found, self._found = self._found, []
        return found

    def mention(self, attributes: set[str]) -> None:
        """Follow further attributes next time."""
        self._more_attributes |= attributes

    def reach_scipy(self) -> None:
        """Take in SciPy, if it is loaded."""
        if "scipy" in sys.modules:
            self._leave("scipy", None)

    def _leave(self, module: Any, root: Any) -> bool:
        """Leave ``root`` to the package that its ``module`` belongs to; False if this follows it itself."""
        package = _home(module)
        if self._package and package != "scipy":
            return False
        if package:
            self._installed.follow(package, [root], set() if package in self.reached else self._attributes)
            self.reached.setdefault(package, 0)
        return bool(package)

    def _visit(self, value: Any, kind: type) -> Iterable[Any]:
        visit = _VISITS.get(kind)
        if visit is not None:
            return visit(self, value)
        if isinstance(value, type):
            return self._class(value)
        if isinstance(value, (dict, list)):
            return self._items(value)
        return (kind,) if self._object(value) else ()

    def _object(self, value: Any) -> bool:
        """Take the attributes of an object; whether its class is to be followed."""
        try:
            own = object.__getattribute__(value, "__dict__")
        except (AttributeError, TypeError):
            own = None
        near = self._is_followed(type(value))
        if type(own) is dict and (near or type(value) is types.SimpleNamespace):
            self._more_owners.append((own, own))
            if package_of(type(value)) == "scipy":  # its methods call what it holds
                for name, held in list(own.items()):
                    if type(held) in REBUILT:
                        self._value(own, name, held, [])
        return near

    def _is_followed(self, kind: type) -> bool:
        """Whether the methods of a class are followed; one that code without a name defines is in no module."""
        module = kind.__module__
        return bool(kind.__flags__ & _ON_HEAP) and (module == "builtins" or self._is_near(module))

    def _is_near(self, module: Any) -> bool:
        """Whether code of a module is followed."""
        near = self._near.get(module)
        if near is None:
            near = not is_library(module) or package_of(module) in ("scipy", "sklearn")
            if package_of(module) in sys.stdlib_module_names and module in sys.modules:
                near = not self._forms.keys().isdisjoint(map(id, list(vars(sys.modules[module]).values())))
            elif not near and package_of(module) not in ("numpy", "yota"):
                self.reach_scipy()  # its code is not followed, and may call SciPy
            if module in sys.modules:
                self._near[module] = near
        return near

    def _function(self, function: types.FunctionType) -> list[Any]:
        names = function.__globals__
        # A library's function may still call one of the user's, as what a decorator makes does.
        near = self._is_near(names.get("__name__"))
        found = self._code(function.__code__, names) if near else []
        for cell in function.__closure__ or ():
            if (held := content(cell)) is not ABSENT:
                self._value(cell, "cell_contents", held, found)
        if function.__defaults__:
            self._value(function, "__defaults__", function.__defaults__, found)
        if function.__kwdefaults__:
            found.append(function.__kwdefaults__)
        if function.__dict__:
            self._more_owners.append((function.__dict__, function.__dict__))
            found.append(function.__dict__.get("__wrapped__"))
        return found

    def _code(self, code: types.CodeType, names: dict[str, Any]) -> list[Any]:
        found: list[Any] = []
        if (id(code), id(names)) in self._codes or self._leave(names.get("__name__"), Running(code, names)):
            return found
        self._codes[id(code), id(names)] = code
        name = code.co_filename
        is_own = not (is_library_file(name) or is_installed_file(name))
        self.needs_source = self.needs_source or (is_own and needs_source(code))
        for name in code.co_names:
            value = names.get(name, ABSENT)
            if name in BUILT_IN_FORMS and (value is ABSENT or value is BUILT_IN_FORMS[name]):
                if not is_library_file(code.co_filename):
                    self._patch(names, name, ABSENT, BUILT_IN_FORMS[name])
            elif value is not ABSENT:
                self._value(names, name, value, found)
            else:
                found += _imported(names, name)
        self._more_attributes.update(code.co_names)
        for constant in code.co_consts:
            if type(constant) is types.CodeType:
                found += self._code(constant, names)
            elif type(constant) is str and constant in sys.modules:
                found.append(sys.modules[constant])
            elif type(constant) is str and constant.isidentifier():  # getattr(module, "name"), globals()["name"]
                self._more_attributes.add(constant)
                if constant in names:
                    self._value(names, constant, names[constant], found)
        return found

    def _module(self, module: types.ModuleType) -> Iterable[Any]:
        if self._is_near(module.__name__) and not self._leave(module.__name__, module):
            self._more_owners.append((vars(module), vars(module)))
        return ()

    def _class(self, kind: type) -> Iterator[Any]:
        if type(kind) is not type:
            yield type(kind)
        packages = [package_of(base.__module__) for base in kind.__mro__]
        for base, package in zip(kind.__mro__, packages, strict=True):
            if self._is_followed(base) and not self._leave(base.__module__, base):
                self._more_owners.append((base, vars(base)))
                # SciPy's classes call methods of theirs, and Python calls some without a name.
                every = "scipy" in packages and package != "scipy"
                for name, value in list(vars(base).items()):
                    if type(value) is types.FunctionType and (every or name.startswith("__")):
                        yield value

    def _mentioned(self) -> list[Any]:
        """The values of attributes of which the name, or the owner, has come up since the last time."""
        found: list[Any] = []
        names = self._more_attributes - self._attributes
        self._attributes |= names
        self._more_attributes = set()
        more, every = [names] if names else [], [self._attributes]
        for package in list(self.reached):
            target = self._installed.follow(package, (), names)
            mentioned = target._attributes
            self.reached.update(dict.fromkeys(target.reached.keys() - self.reached.keys(), 0))
            if len(mentioned) > self._mentions.get(package, 0):
                more.append(mentioned)
                self._mentions[package] = len(mentioned)
            every.append(mentioned)
        asked = [(owner, held, each) for each in more for owner, held in self._owners]
        asked += [(owner, held, each) for each in every for owner, held in self._more_owners]
        for owner, held, mentioned in asked:
            for name in held.keys() & mentioned:
                self._value(owner, name, held[name], found)
        self._owners += self._more_owners
        self._more_owners = []
        return found

    def _items(self, container: Any) -> list[Any]:
        found: list[Any] = []
        if len(container) > LONGEST:
            return found
        if isinstance(container, dict):
            for key, value in list(container.items()):
                self._value(container, key, value, found)
        elif isinstance(container, list):
            for position, value in enumerate(container):
                self._value(container, position, value, found)
        else:
            found += container
        return found

    def _value(self, owner: Any, name: Any, value: Any, found: list[Any]) -> None:
        """Note a variable or attribute that holds ``value``, which is to be followed if it is nothing that records."""
        held = held_at(owner, name)
        value = value if held is None else held.original
        form = self.form(value)
        if form is not value:
            if isinstance(owner, type) and not hasattr(type(value), "__get__"):
                form = staticmethod(form)  # it takes no receiver either
            self._patch(owner, name, value, form)
        if type(value) not in _PLAIN:
            found.append(value)

    def _patch(self, owner: Any, name: Any, value: Any, form: Any) -> None:
        if (id(owner), name) not in self._taken:
            self._taken.add((id(owner), name))
            self._found.append(Patch(owner, name, value, form))

    def form(self, value: Any) -> Any:
        """See `recording_form`."""
        return recording_form(self._forms, value)


_VISITS: dict[type, Callable[[PatchTargets, Any], Iterable[Any]]] = {
    types.FunctionType: PatchTargets._function,
    Running: lambda reached, value: reached._code(value.code, value.names),
    types.ModuleType: PatchTargets._module,
    types.MethodType: lambda reached, value: (value.__func__, value.__self__),
    functools.partial: lambda reached, value: (value.func, *value.args, *value.keywords.values()),
    functools._lru_cache_wrapper: lambda reached, value: (value.__wrapped__,),
    functools.cached_property: lambda reached, value: (value.func,),
    property: lambda reached, value: (value.fget, value.fset),
    staticmethod: lambda reached, value: (value.__func__,),
    classmethod: lambda reached, value: (value.__func__,),
    np.vectorize: lambda reached, value: (value.pyfunc,),
    **dict.fromkeys(_CONTAINERS, PatchTargets._items),
}
