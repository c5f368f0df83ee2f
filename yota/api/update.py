"""`yota.update`: a step through a structure."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from yota.errors import ArgumentError
from yota.structures import Path, children, is_fixed, is_on_device, rebuilt

__all__ = ["update"]


def update(structure: Any, gradient: Any, step: Callable[[Any, Any], Any]) -> Any:
    """Apply ``step(value, gradient)`` to each part of a structure that has a gradient, and store the results.

    Parameters
    ----------
    structure
        An array, which is updated in place, or a structure, whose fields are replaced.
    gradient
        Its gradient from `grad`: an array, or a dict from field path to array.
    step
        For example ``lambda x, gx: x - 0.01 * gx``.

    Returns
    -------
    object
        ``structure`` itself, or a new one if its outermost type is immutable, such as a tuple.

    Raises
    ------
    ArgumentError
        If the gradient does not match the structure, or an array is read-only. After an error, also one of ``step``,
        the structure is unchanged.

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
    """``part`` with ``value`` in place of ``old``, in place if possible; the reverse action goes into ``undo``."""
    if isinstance(part, (list, dict)):
        part[key] = value
        undo.append(functools.partial(operator.setitem, part, key, old))
        return part
    if is_fixed(part):
        return rebuilt(part, [(name, value if name == key else each) for name, each in children(part) or ()])
    setattr(part, key, value)
    undo.append(functools.partial(setattr, part, key, old))
    return part
