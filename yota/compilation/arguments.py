"""Sorting a call's arguments into what is differentiable, what is data, and what is static."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from yota.errors import ArgumentError
from yota.ir.inputs import Static, spelled
from yota.marks import mark_of
from yota.structures import children, flatten, is_leaf, is_on_device, rebuild
from yota.tracing.record import Leaf

__all__ = ["Arguments", "key_of", "names_of", "positional", "sort_arguments"]


@dataclass(frozen=True, slots=True, eq=False)
class Arguments:
    """The leaves of a call, in order, the other parts, and how to make the arguments again from replacements."""

    leaves: tuple[Leaf, ...]
    values: tuple[Any, ...]
    statics: tuple[Static, ...] = ()

    def rebuild(self, replacements: Sequence[Any]) -> tuple[Any, ...]:
        """The arguments, with each leaf replaced."""
        rest = iter(replacements)
        return tuple(rebuild(value, rest) for value in self.values)


def names_of(function: Callable[..., Any], count: int) -> list[str]:
    """Parameter names for ``count`` positional arguments."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return [f"x{position}" for position in range(count)]
    names: list[str] = []
    for parameter in parameters:
        if parameter.kind is parameter.VAR_POSITIONAL:
            names += [f"{parameter.name}{position}" for position in range(max(0, count - len(names)))]
        else:
            names.append(parameter.name)
    return (names + [f"x{position}" for position in range(len(names), count)])[:count]


def positional(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The call with all of its arguments by position; keyword-only ones go through a wrapper."""
    if not kwargs:
        return function, args
    bound = inspect.signature(function).bind(*args, **kwargs)
    if not bound.kwargs:
        return function, bound.args
    return _Keywords(function, len(bound.args), tuple(bound.kwargs)), (*bound.args, *bound.kwargs.values())


class _Keywords:
    """A function that takes its last arguments, which are keyword-only, by position."""

    def __init__(self, function: Callable[..., Any], count: int, names: tuple[str, ...]) -> None:
        self._function, self._count, self.names = function, count, names
        functools.update_wrapper(self, function)

    def __call__(self, *args: Any) -> Any:
        keywords = dict(zip(self.names, args[self._count :], strict=True))
        return self._function(*args[: self._count], **keywords)


def sort_arguments(function: Callable[..., Any], args: tuple[Any, ...]) -> Arguments:
    """Find the leaves of ``args``.

    Raises
    ------
    ArgumentError
        If an argument holds something that cannot be traced.
    """
    leaves: list[Leaf] = []
    statics: list[Static] = []
    for position, (name, value) in enumerate(zip(names_of(function, len(args)), args, strict=True)):
        for path, part in flatten(value):
            if is_leaf(part):
                leaves.append(Leaf(_checked(part, spelled(name, path)), position, name, path))
            else:
                _refuse_lookalikes(part, spelled(name, path))
                statics.append(Static(part, position, name, path))
    return Arguments(tuple(leaves), args, tuple(statics))


def _checked(value: Any, place: str) -> Any:
    kind = type(value)
    if isinstance(value, np.ma.MaskedArray) or kind.__name__ == "matrix":
        raise ArgumentError(f"argument {place} is a {kind.__name__}; pass a plain array: np.asarray(...)")
    if not isinstance(value, (np.ndarray, np.generic)) and not is_on_device(value):
        return value
    if value.dtype.names is not None:
        raise ArgumentError(
            f"argument {place} is a structured array with fields {list(value.dtype.names)}; "
            "pass a dict or dataclass of its columns"
        )
    if value.dtype == object:
        raise ArgumentError(f"argument {place} is an object array; convert it: np.array({place}, dtype=float)")
    if value.dtype.name == "bfloat16":
        if is_on_device(value):
            return value
        raise ArgumentError(
            f"argument {place} has dtype bfloat16, in which NumPy cannot compute; pass "
            f"{place}.astype(np.float32), or have it on the GPU: yota.to_cuda({place})"
        )
    if value.dtype.kind not in "biufc":
        raise ArgumentError(f"argument {place} has dtype {value.dtype}; only numbers can be traced")
    return value


def _refuse_lookalikes(value: Any, place: str) -> None:
    if hasattr(value, "__array__") or hasattr(value, "toarray"):
        module = type(value).__module__.partition(".")[0]
        method = {"pandas": ".to_numpy()", "scipy": ".toarray()", "torch": ".detach().numpy()"}.get(module)
        cure = f"{place}{method}" if method else f"np.asarray({place})"
        raise ArgumentError(f"argument {place} is a {module}.{type(value).__name__}; pass a NumPy array: {cure}")


def key_of(value: Any, leaves: list[Any]) -> Any:
    """What of an argument a compiled function depends on: type, dtype and shape of leaves, statics by value.

    The leaves are appended to ``leaves``, as generated code takes them.
    """
    kind = type(value)
    if kind is np.ndarray:
        leaves.append(value if value.dtype.isnative else _native(value))
        return value.dtype, value.shape
    if kind is float or kind is complex:
        leaves.append(value)
        return kind
    # The commonest structures by a short way; `children` would find the same.
    if kind is dict:
        return kind, tuple(
            [(key if type(key) is str else mark_of(key), key_of(part, leaves)) for key, part in value.items()]
        )
    if kind is list or kind is tuple:
        return kind, tuple([key_of(part, leaves) for part in value])
    if is_leaf(value):
        if is_on_device(value):
            leaves.append(value)
            return kind, value.dtype, value.shape
        if not isinstance(value, (np.ndarray, np.generic)):
            leaves.append(value)
            return kind
        leaves.append(_native(value) if isinstance(value, np.ndarray) else value)
        return kind, value.dtype, value.shape
    parts = children(value)
    if parts is not None:
        return kind, tuple([(mark_of(key), key_of(part, leaves)) for key, part in parts])
    return mark_of(value)


def _native(value: Any) -> Any:
    return np.asarray(value, dtype=value.dtype.newbyteorder("="))
