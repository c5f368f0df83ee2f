"""Unambiguous descriptions of values, code and library objects, equal in all processes."""

from __future__ import annotations

import collections
import dataclasses
import enum
import functools
import hashlib
import sys
import types
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from yota.structures import children, held_by, is_library, package_of
from yota.tracing.patching import ABSENT, content
from yota.tracing.source_lines import closure_of, is_library_file, original_code

_MOST_BYTES = 1 << 22
"""Largest total size of captured arrays in a digest."""
_PURE = frozenset(
    "abc builtins cmath collections copy dataclasses enum fractions functools itertools math numbers operator "
    "statistics types typing __future__".split()
)
"""Modules of the standard library that only compute."""
IMPURE = frozenset(
    "__import__ breakpoint compile delattr dir eval exec globals hash id input locals open print setattr vars".split()
)
"""Built-in functions that read external state, look up computed names, or have side effects."""
_READING = ("numpy.random.", "numpy.lib.", "numpy.ctypeslib.", "scipy.io.", "scipy.datasets.")
"""Library modules that read external state, or whose functions are not identified by their names."""
READERS = frozenset(
    "ctypeslib datasets DataSource datetime64 default_rng environ fromfile fromregex genfromtxt getenv io load loadmat "
    "loadtxt memmap open_memmap random RandomState rvs seed attrgetter methodcaller".split()
)
"""Library functions of this kind."""


class NoDigest(Exception):
    """A digest would not cover all that a process may find."""


def code(of: types.CodeType) -> tuple[Any, ...]:
    """The description of code; its lines are included, because errors show them. Pickles by value drop its file."""
    constants = [code(each) if isinstance(each, types.CodeType) else each for each in of.co_consts]
    return (
        "code",
        *(of.co_name, of.co_firstlineno, of.co_flags, of.co_code, list(of.co_lines())),
        *(of.co_argcount, of.co_posonlyargcount, of.co_kwonlyargcount),
        *(of.co_names, of.co_varnames, of.co_freevars, of.co_cellvars),
        constants,
    )


class Description:
    """An unambiguous description of values."""

    def __init__(self, *, ran: bool = False) -> None:
        self._ran = ran
        self.arrays: list[np.ndarray] = []
        self.classes: list[type] = []
        self._hash = hashlib.sha256()
        self._known: dict[int, tuple[int, Any]] = {}
        self._bytes = 0

    def digest(self) -> str:
        """The digest of all added values."""
        return self._hash.hexdigest()

    def add(self, value: Any) -> None:
        """Add a value."""
        kind = type(value)
        plain = PLAIN.get(kind)
        if plain is not None:
            self._write(kind.__name__, plain(value))
        elif kind in _VALUES:
            # Identity of equal objects differs between processes.
            self._add_new(value)
        elif id(value) in self._known:
            self._write("again", str(self._known[id(value)][0]).encode())
        else:
            self._known[id(value)] = len(self._known), value
            self._add_new(value)

    def _write(self, tag: str, data: bytes = b"") -> None:
        self._hash.update(f"{tag}:{len(data)}:".encode())
        self._hash.update(data)

    def _several(self, tag: str, values: Iterable[Any]) -> None:
        values = list(values)
        self._write(tag, str(len(values)).encode())
        for each in values:
            self.add(each)

    def _add_new(self, value: Any) -> None:
        kind = type(value)
        if value is ABSENT:
            self._write("absent")
        elif kind in (tuple, list):
            self._several(kind.__name__, value)
        elif kind is dict:
            self._several("dict", (part for pair in value.items() for part in pair))
        elif kind in (set, frozenset):
            self._several(kind.__name__, sorted(map(_alone, value)))
        elif kind in (slice, range):
            self._several(kind.__name__, (value.start, value.stop, value.step))
        elif kind is np.ndarray:
            self._array(value)
        elif isinstance(value, np.generic):
            self._write(f"scalar {value.dtype.str}", value.tobytes())
        elif isinstance(value, np.dtype):
            self._write("dtype", repr(value.descr).encode())
        elif isinstance(value, (types.ModuleType, type)):
            self._module_or_class(value)
        elif not self._function(value):
            self._object(value)

    def _array(self, value: np.ndarray) -> None:
        self._bytes += value.nbytes
        if value.dtype.hasobject or self._bytes > _MOST_BYTES:
            raise NoDigest("an array of objects" if value.dtype.hasobject else "large arrays")
        flags = value.flags
        self.arrays.append(value)
        self._write(
            f"array {value.dtype.str} {value.shape} {flags.c_contiguous} {flags.f_contiguous} {flags.writeable}"
        )
        self._write("content", value.tobytes())

    def _module_or_class(self, value: Any) -> None:
        if isinstance(value, type):
            self.classes.append(value)
            module, name = value.__module__, value.__qualname__
        else:
            module, name = value.__name__, ""
            if "__getattr__" in vars(value) and not is_library(module):
                raise NoDigest(f"the module {module}, which computes its attributes")
        if not is_library(module):
            if name and not is_library(type(value)):
                raise NoDigest(f"the class {name}, which has a class of its own")
            self._several("class" if name else "module", (module, name, value.__mro__[1:] if name else ()))
            return
        allow(module if name else f"{module}.")
        if name and _found(module, name) is not value:
            raise NoDigest(f"the class {module}.{name}")
        self._write("library", f"{module} {name} {_version(module)}".encode())

    def _function(self, value: Any) -> bool:
        """Add a function, or an object made of functions; False for other objects."""
        made_of = self._made_of(value)
        if made_of is not None:
            self._several(type(value).__name__, made_of)
        elif isinstance(value, types.FunctionType) and not _is_named(value):
            if is_librarys(value):
                allow(str(value.__globals__.get("__name__", "")))
            cells = [content(cell) for _, cell in closure_of(value)]
            names = value.__module__, value.__qualname__
            self._several(
                "function", (*names, code(original_code(value)), value.__defaults__, value.__kwdefaults__, cells)
            )
            self._several("attributes", (vars(value),))
        elif callable(value) and hasattr(value, "__name__"):
            self._library_function(value)
        else:
            return False
        return True

    def _made_of(self, value: Any) -> tuple[Any, ...] | None:
        """The parts of an object that stands for functions or fields; None for other objects."""
        if isinstance(value, types.MethodType):
            return value.__func__, value.__self__
        if isinstance(value, types.BuiltinMethodType) and isinstance(value.__self__, type):
            return value.__name__, value.__self__
        if isinstance(value, _FIELDS):
            # The data belongs to the object.
            return value.__reduce__()[1] if isinstance(value, _TUPLE_FIELD) else (value.__name__,)
        if isinstance(value, functools.partial):
            return value.func, value.args, value.keywords
        if isinstance(value, property):
            return value.fget, value.fset
        if isinstance(value, functools.cached_property):
            return (value.func,)
        if isinstance(value, (staticmethod, classmethod, functools._lru_cache_wrapper)):
            if isinstance(value, functools._lru_cache_wrapper) and not self._ran and value.cache_info().currsize:
                raise NoDigest("a cache with results from before")
            return (value.__wrapped__,)
        if package_of(type(value)) == "yota" and hasattr(value, "recipe"):
            make, args, options = value.recipe
            return make.__module__, make.__qualname__, args, dict(options)
        return None

    def _library_function(self, value: Any) -> None:
        """Add a library function, by its name."""
        name = getattr(value, "__qualname__", value.__name__)
        homes = (
            ("numpy", "scipy.special") if isinstance(value, np.ufunc) else (getattr(value, "__module__", None) or "",)
        )
        for module in homes:
            if _found(module, name) is value:
                allow(module)
                if name.rpartition(".")[2] in READERS | IMPURE:
                    break
                self._write("library", f"{module} {name} {_version(module)}".encode())
                return
        raise NoDigest(f"the function {name}")

    def _object(self, value: Any) -> None:
        """Add an object of a user-defined class."""
        kind = type(value)
        if isinstance(value, enum.Enum):
            self._several("member", (kind, value.name, value.value))
            return
        parts = children(value)
        if dataclasses.is_dataclass(value) and kind.__module__.startswith("yota."):
            self._several("option", (kind.__qualname__, repr(value)))
            return
        held = isinstance(value, (tuple, list, dict, set, frozenset, int, float, complex, str, bytes, np.ndarray))
        if any(isinstance(getattr(kind, name, None), functools.cached_property) for name in held_by(value)):
            raise NoDigest("a property that was computed before")
        bare = parts is None and kind.__dictoffset__ and not vars(value)
        named = isinstance(value, tuple) and hasattr(value, "_fields")
        simple = kind is types.SimpleNamespace or not is_library(kind)
        if not simple or (held and not named) or (parts is None and not bare):
            raise NoDigest(f"a {kind.__module__}.{kind.__qualname__}")
        self._several("object", (kind, [part for pair in parts or () for part in pair]))


_TUPLE_FIELD = type(collections.namedtuple("_Example", "field").field)  # type: ignore[attr-defined]
_FIELDS = (types.MemberDescriptorType, _TUPLE_FIELD)
"""Descriptors of fields."""
_VALUES = (tuple, frozenset, slice, range)


def _alone(value: Any) -> str:
    """The digest of an element of a set."""
    found = Description()
    found.add(value)
    return found.digest()


def is_librarys(function: types.FunctionType) -> bool:
    """Whether a function's code belongs to a library."""
    return is_library_file(function.__code__.co_filename) or is_library(function.__globals__.get("__name__"))


def _is_named(function: types.FunctionType) -> bool:
    """Whether a function belongs to a library by name, and was not created by it for the user."""
    own = is_librarys(function) and is_library(function)
    return own and _found(function.__module__, function.__qualname__) is function


def allow(module: str) -> None:
    """Refuse modules and module members that may read external state; the name of a module ends in a dot."""
    pure = package_of(module) in (*_PURE, "numpy", "scipy", "yota")
    if not pure or f"{module}.".startswith(_READING) or module == "builtins.":
        raise NoDigest(f"the module {module.rstrip('.')}")


def _found(module: str, name: str) -> Any:
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _version(module: str) -> str:
    return str(getattr(sys.modules.get(package_of(module)), "__version__", ""))


def _bits(value: Any) -> bytes:
    return np.array(value).tobytes()


PLAIN: dict[type, Callable[[Any], bytes]] = {
    bool: lambda value: b"1" if value else b"0",
    int: lambda value: str(value).encode(),
    float: _bits,
    complex: _bits,
    str: lambda value: value.encode("utf-8", "surrogatepass"),
    bytes: bytes,
    type(None): lambda _: b"",
    type(Ellipsis): lambda _: b"",
    type(NotImplemented): lambda _: b"",
}
