"""Structures of arguments: flattening into leaves, and copies with other leaves."""

from __future__ import annotations

import collections
import copy
import dataclasses
import enum
import functools
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from yota.errors import ArgumentError

Path = tuple[Any, ...]
"""Attribute names, positions and keys from an argument to a leaf."""

LIBRARIES = ("yota", "numpy", "scipy", "cupy", "pandas", "torch", "jax", "jaxlib", "sympy", "matplotlib", "sklearn")
"""Objects of these packages are never structures."""
_STATIC = (bool, int, str, bytes, type(None), type, np.dtype, types.ModuleType, slice, type(Ellipsis), enum.Enum)
PLAIN = frozenset(
    (
        *(bool, int, float, complex, str, bytes, type(None), np.ndarray, np.float64, np.ufunc),
        *(type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType),
    )
)
"""Types without parts, among those of most values."""
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, np.ufunc)


def is_leaf(value: Any) -> bool:
    """Whether ``value`` is an array, or a floating-point or complex number."""
    if isinstance(value, (np.ndarray, np.generic, float, complex)):
        return not isinstance(value, (str, bytes))
    return is_on_device(value)


def is_on_device(value: Any) -> bool:
    """Whether ``value`` is a CuPy array, in GPU memory."""
    kind = type(value)
    return kind.__name__ == "ndarray" and package_of(kind) == "cupy"


def package_of(value: Any) -> str:
    """The package of a class, function, module or module name; empty if unknown.

    Examples
    --------
    >>> package_of(np.linalg), package_of(np.linalg.norm), package_of("numpy.linalg")
    ('numpy', 'numpy', 'numpy')
    """
    if not isinstance(value, str):
        value = getattr(value, "__name__" if isinstance(value, types.ModuleType) else "__module__", None)
    # A class written in C may have a descriptor of that name.
    return value.partition(".")[0] if isinstance(value, str) else ""


def is_library(value: Any) -> bool:
    """Whether an object belongs to the standard library or to a package in `LIBRARIES`; see `package_of`."""
    package = package_of(value)
    return package in sys.stdlib_module_names or package in LIBRARIES


def children(value: Any) -> list[tuple[Any, Any]] | None:
    """``(key, child)`` for each part of a structure; None if ``value`` is not a structure.

    Structures are dataclasses, objects with attributes, named tuples, tuples, lists, dicts, and types registered
    with optree.
    """
    kind = type(value)
    if kind in PLAIN:
        return None
    if kind is dict:
        return list(value.items())
    if is_leaf(value) or isinstance(value, (*_STATIC, *_FUNCTIONS)):
        return None
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return [(name, getattr(value, name)) for name in value._fields]
    if isinstance(value, (tuple, list)):
        return list(enumerate(value))
    if isinstance(value, Mapping):
        return list(value.items())
    names = _attributes(value)
    if names is not None:
        return [(name, getattr(value, name)) for name in names]
    return _registered(value)


def has_attributes(value: Any) -> bool:
    """Whether the parts of a structure are its attributes."""
    return not isinstance(value, (tuple, list, Mapping)) and _attributes(value) is not None


def slots_of(value: Any) -> list[str]:
    """Names of all slots of an object, with or without a value."""
    return [name for base in type(value).__mro__ for name in _slots(base)]


def _attributes(value: Any) -> list[str] | None:
    if dataclasses.is_dataclass(value):
        fields = [field.name for field in dataclasses.fields(value) if hasattr(value, field.name)]
        return fields + [name for name in _own(value) if name not in fields]
    if is_library(type(value)) and not isinstance(value, types.SimpleNamespace):
        return None
    slots = [name for name in slots_of(value) if hasattr(value, name)]
    own = _own(value)
    return slots + own if slots or own else None


def _own(value: Any) -> list[str]:
    """Names in the ``__dict__`` of an object, except the results of cached properties."""
    kind = type(value)
    return [name for name in held_by(value) if not isinstance(getattr(kind, name, None), functools.cached_property)]


def held_by(value: Any) -> dict[str, Any]:
    """The ``__dict__`` of an object; empty where it has none, or its class makes up what it gives."""
    own = getattr(value, "__dict__", None)
    return own if isinstance(own, dict) else {}


def _slots(base: type) -> Sequence[str]:
    slots = base.__dict__.get("__slots__", ())
    names = (slots,) if isinstance(slots, str) else tuple(slots)
    private = f"_{base.__name__.lstrip('_')}"
    return [
        private + name if name.startswith("__") and not name.endswith("__") else name
        for name in names
        if name not in ("__dict__", "__weakref__")
    ]


def _registered(value: Any) -> list[tuple[Any, Any]] | None:
    # Only a process that has imported optree can have registered types; of those that it knows itself one is left.
    if "optree" not in sys.modules and not isinstance(value, collections.deque):
        return None
    import optree

    if optree.tree_is_leaf(value):
        return None
    parts, _, entries, _ = optree.tree_flatten_one_level(value)
    return list(zip(entries, parts, strict=True))


def flatten(value: Any, path: Path = (), _inside: tuple[int, ...] = ()) -> Iterator[tuple[Path, Any]]:
    """``(path, part)`` for each part of a structure without parts of its own, in a fixed order.

    Raises
    ------
    ArgumentError
        If a structure contains itself.
    """
    parts = children(value)
    if parts is None:
        yield path, value
        return
    if id(value) in _inside:
        raise ArgumentError(f"the {type(value).__name__} at {list(path)} contains itself; pass a tree")
    for key, part in parts:
        yield from flatten(part, (*path, key), (*_inside, id(value)))


def rebuild(value: Any, replacements: Iterator[Any]) -> Any:
    """A copy of the structure with its leaves replaced in the order of `flatten`."""
    if is_leaf(value):
        return next(replacements)
    parts = children(value)
    if parts is None:
        return value
    return rebuilt(value, [(key, rebuild(part, replacements)) for key, part in parts])


def rebuilt(value: Any, made: list[tuple[Any, Any]]) -> Any:
    """A copy of a structure with other parts under the same keys; constructors of its class do not run."""
    kind: Any = type(value)
    parts = [part for _, part in made]
    if kind in (tuple, list):
        return kind(parts)
    if isinstance(value, tuple):
        result = tuple.__new__(kind, parts)
        if hasattr(value, "__dict__"):
            vars(result).update(vars(value))
        return result
    if isinstance(value, list):
        result = copy.copy(value)
        list.__setitem__(result, slice(None), parts)
        return result
    if isinstance(value, dict):
        result = copy.copy(value)
        dict.update(result, made)
        return result
    if isinstance(value, Mapping):
        return kind(dict(made))
    if _attributes(value) is None:
        return _rebuilt_by_optree(value, parts)
    return _with_attributes(kind, made)


def _with_attributes(kind: Any, made: Iterable[tuple[Any, Any]]) -> Any:
    # A user-defined `__new__` does not run either.
    result = object.__new__(kind) if isinstance(kind.__new__, types.FunctionType) else kind.__new__(kind)
    for key, part in made:
        object.__setattr__(result, key, part)
    return result


def is_bare(value: Any) -> bool:
    """Whether a structure consists only of parts under keys; see `bare`."""
    if isinstance(value, (tuple, list, dict)):
        plain = type(value) in (tuple, list, dict, collections.OrderedDict)
        return plain or (isinstance(value, tuple) and not getattr(value, "__dict__", None))
    return not isinstance(value, Mapping) and _attributes(value) is not None


def bare(kind: Any, keys: Sequence[Any]) -> Any:
    """A structure of a class with None under each key.

    Examples
    --------
    >>> bare(dict, ("a", "b"))
    {'a': None, 'b': None}
    """
    if issubclass(kind, (tuple, list)):
        return [None] * len(keys) if kind is list else tuple.__new__(kind, [None] * len(keys))
    return kind.fromkeys(keys) if issubclass(kind, dict) else _with_attributes(kind, ((key, None) for key in keys))


def _rebuilt_by_optree(value: Any, parts: list[Any]) -> Any:
    import optree

    _, metadata, _, unflatten = optree.tree_flatten_one_level(value)
    if unflatten is None:
        raise ArgumentError(f"optree cannot rebuild a {type(value).__name__}")
    return unflatten(metadata, parts)


def mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """A copy of a structure with ``change`` applied to each leaf; also for a single leaf."""
    return rebuild(value, iter([change(part) for _, part in flatten(value) if is_leaf(part)]))


def is_fixed(structure: Any) -> bool:
    """Whether replacing a part requires a new structure."""
    if isinstance(structure, (tuple, Mapping)) or _attributes(structure) is None:
        return True
    parameters = getattr(structure, "__dataclass_params__", None)
    return parameters is not None and bool(parameters.frozen)
