"""Arguments that are structures: finding the numbers and arrays inside, rebuilding and updating them."""

from __future__ import annotations

import dataclasses
import enum
import functools
import operator
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from yota.errors import ArgumentError

__all__ = ["LIBRARIES", "Path", "children", "flatten", "is_leaf", "is_on_device", "mapped", "rebuild", "update"]

Path = tuple[Any, ...]
"""Attribute names, positions and keys that lead from an argument to a leaf."""

LIBRARIES = ("numpy", "scipy", "cupy", "pandas", "torch", "jax", "jaxlib", "sympy", "matplotlib", "sklearn")
"""Objects of these are no structures, whatever attributes they have."""
_STATIC = (bool, int, str, bytes, type(None), type, np.dtype, types.ModuleType, slice, type(Ellipsis), enum.Enum)
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, np.ufunc)


def is_leaf(value: Any) -> bool:
    """Whether ``value`` is an array or a floating or complex number, rather than a structure or a constant."""
    if isinstance(value, (np.ndarray, np.generic, float, complex)):
        return not isinstance(value, (str, bytes))
    return is_on_device(value)


def is_on_device(value: Any) -> bool:
    """Whether ``value`` is an array of CuPy's, which lies in the memory of a GPU."""
    kind = type(value)
    return kind.__name__ == "ndarray" and kind.__module__.partition(".")[0] == "cupy"


def children(value: Any) -> list[tuple[Any, Any]] | None:
    """``(key, child)`` of each part of a structure; None for what is none.

    Structures are dataclasses, objects with attributes, named tuples, tuples, lists, dicts, and whatever is
    registered with optree.
    """
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


def _attributes(value: Any) -> list[str] | None:
    if dataclasses.is_dataclass(value):
        return [field.name for field in dataclasses.fields(value) if hasattr(value, field.name)]
    module = type(value).__module__.partition(".")[0]
    if (module in sys.stdlib_module_names or module in LIBRARIES) and not isinstance(value, types.SimpleNamespace):
        return None
    slots = [name for base in type(value).__mro__ for name in _slots(base) if hasattr(value, name)]
    own = list(getattr(value, "__dict__", ()))
    return slots + own if slots or own else None


def _slots(base: type) -> Sequence[str]:
    slots = base.__dict__.get("__slots__", ())
    names = (slots,) if isinstance(slots, str) else tuple(slots)
    return [name for name in names if name not in ("__dict__", "__weakref__")]


def _registered(value: Any) -> list[tuple[Any, Any]] | None:
    import optree

    if optree.tree_is_leaf(value):
        return None
    parts, _, entries, _ = optree.tree_flatten_one_level(value)
    return list(zip(entries, parts, strict=True))


def flatten(value: Any, path: Path = (), _inside: tuple[int, ...] = ()) -> Iterator[tuple[Path, Any]]:
    """``(path, part)`` of every part of a structure that has no parts itself, in a fixed order.

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
    """A copy of the structure in which each leaf, in the order of `flatten`, is the next replacement."""
    if is_leaf(value):
        return next(replacements)
    parts = children(value)
    if parts is None:
        return value
    made = [(key, rebuild(part, replacements)) for key, part in parts]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(part for _, part in made))
    if isinstance(value, (tuple, list)):
        return type(value)(part for _, part in made)
    if isinstance(value, dict):
        copy = value.copy()
        copy.update(made)
        return copy
    if _attributes(value) is None:
        return _rebuild_registered(value, made)
    kind: Any = type(value)
    result = kind.__new__(kind)
    for key, part in made:
        object.__setattr__(result, key, part)
    return result


def _rebuild_registered(value: Any, made: list[tuple[Any, Any]]) -> Any:
    import optree

    *_, unflatten = optree.tree_flatten_one_level(value)
    if unflatten is None:
        raise ArgumentError(f"optree cannot rebuild a {type(value).__name__}")
    metadata = optree.tree_flatten_one_level(value)[1]
    return unflatten(metadata, [part for _, part in made])


def mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """A copy of a structure with each leaf changed; a leaf itself is changed too."""
    return rebuild(value, iter([change(part) for _, part in flatten(value) if is_leaf(part)]))


def update(structure: Any, gradient: Any, step: Callable[[Any, Any], Any]) -> Any:
    """Apply ``step(value, gradient)`` to each part of a structure that has a gradient, and put the result back.

    Parameters
    ----------
    structure
        An array, which is written in place, or a structure, whose fields are rebound.
    gradient
        What `grad` gave for it: an array, or a dict from field path to array.
    step
        For example ``lambda x, gx: x - 0.01 * gx``.

    Returns
    -------
    object
        ``structure`` itself; a new one where its outermost type is immutable, such as a tuple.

    Raises
    ------
    ArgumentError
        If the gradient does not fit the structure, or an array is read-only. After an error, of ``step`` too,
        the structure is as it was.

    Examples
    --------
    >>> import numpy as np
    >>> update(np.array([1.0, 2.0]), np.array([10.0, 20.0]), lambda x, gx: x - 0.1 * gx)
    array([0., 0.])
    """
    if is_on_device(structure) and not isinstance(gradient, Mapping):
        structure[...] = step(structure, gradient)
        return structure
    if isinstance(structure, np.ndarray) and not isinstance(gradient, Mapping):
        if not structure.flags.writeable:
            raise ArgumentError("yota.update writes arrays in place, and this one is read-only; pass a copy")
        structure[...] = step(structure, gradient)
        return structure
    if not isinstance(gradient, Mapping):
        return step(structure, gradient)
    for path in gradient:
        _check_path(structure, path)
    undo: list[Callable[[], None]] = []
    try:
        for path, adjoint in gradient.items():
            structure = _updated(structure, tuple(path), adjoint, step, undo)
    except BaseException:
        for restore in reversed(undo):
            restore()
        raise
    return structure


def _check_path(part: Any, path: Path) -> None:
    for key in path:
        found = dict(children(part) or ())
        if key not in found:
            raise ArgumentError(f"the gradient has the field path {path!r}, but a {type(part).__name__} has no {key!r}")
        part = found[key]


def _updated(
    part: Any, path: Path, adjoint: Any, step: Callable[[Any, Any], Any], undo: list[Callable[[], None]]
) -> Any:
    if not path:
        return step(part, adjoint)
    key = path[0]
    found = dict(children(part) or ())[key]
    return _with(part, key, found, _updated(found, path[1:], adjoint, step, undo), undo)


def _with(part: Any, key: Any, old: Any, value: Any, undo: list[Callable[[], None]]) -> Any:
    """``part`` with ``value`` in the place of ``old``: itself where it can be written to, and how to undo that."""
    if isinstance(part, tuple):
        if hasattr(part, "_fields"):
            return type(part)(*(value if name == key else each for name, each in children(part) or ()))
        return (*part[:key], value, *part[key + 1 :])
    if isinstance(part, (list, dict)):
        part[key] = value
        undo.append(functools.partial(operator.setitem, part, key, old))
        return part
    if _attributes(part) is None:
        parts = children(part) or ()
        return _rebuild_registered(part, [(name, value if name == key else each) for name, each in parts])
    if dataclasses.is_dataclass(part) and type(part).__dataclass_params__.frozen:  # type: ignore[union-attr]
        return dataclasses.replace(part, **{key: value})  # type: ignore[type-var]
    setattr(part, key, value)
    undo.append(functools.partial(setattr, part, key, old))
    return part
