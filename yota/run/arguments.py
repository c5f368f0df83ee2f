"""Sorts the arguments of a call into differentiable leaves, data, and static values."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from yota.errors import ArgumentError
from yota.ir.callables import name_of
from yota.ir.inputs import Leaf, Static, spelled
from yota.marks import mark_of
from yota.run.options import explained
from yota.structures import children, flatten, is_leaf, is_on_device, package_of, rebuild
from yota.tracing.captures import plain


@dataclass(frozen=True, slots=True, eq=False)
class Arguments:
    """The leaves of a call in order, its other parts, and a function that rebuilds the arguments from leaves."""

    leaves: tuple[Leaf, ...]
    values: tuple[Any, ...]
    statics: tuple[Static, ...] = ()

    def rebuild(self, replacements: Sequence[Any]) -> tuple[Any, ...]:
        """The arguments with each leaf replaced."""
        rest = iter(replacements)
        return tuple(rebuild(value, rest) for value in self.values)


def function_of(given: Any) -> Callable[..., Any]:
    """Return ``given`` if it is a function; raise ArgumentError if it is not."""
    if not callable(given):
        raise ArgumentError(
            f"the first argument is {given!r:.60}, of type {type(given).__name__}; pass a function: f in the place of "
            "f(x)"
        )
    function: Callable[..., Any] = given
    return function


def parameters_of(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """The parameters of a function; none if it has no signature."""
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {}


def names_of(function: Callable[..., Any], count: int) -> list[str]:
    """Parameter names for ``count`` arguments by position."""
    if isinstance(function, _Keywords):
        known = [*names_of(function.function, function.count), *function.names]
        return [*known, *(f"x{position}" for position in range(len(known), count))]
    if type(function) is types.FunctionType and not function.__dict__:
        # Without attributes such as __wrapped__ the code has the names, which takes less time than a signature.
        code = function.__code__
        own = code.co_argcount + code.co_kwonlyargcount
        if own == count and not code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
            return list(code.co_varnames[:own])
    names: list[str] = []
    for parameter in parameters_of(function).values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            names += [f"{parameter.name}{position}" for position in range(max(0, count - len(names)))]
        else:
            names.append(parameter.name)
    return (names + [f"x{position}" for position in range(len(names), count)])[:count]


def positional(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The call with all arguments by position; a wrapper passes keyword-only arguments."""
    if not kwargs:
        return function, args
    bound = _bound(function, args, kwargs)
    if not bound.kwargs:
        return function, bound.args
    return _Keywords(function, len(bound.args), tuple(bound.kwargs)), (*bound.args, *bound.kwargs.values())


def _bound(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> inspect.BoundArguments:
    name = name_of(function)
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        raise ArgumentError(f"{name} has no signature; pass its arguments by position") from None
    try:
        return signature.bind(*args, **kwargs)
    except TypeError as fault:
        unknown = (explained(name, each) for each in kwargs if each not in signature.parameters)
        raise next(filter(None, unknown), TypeError(f"{name}() {fault}")) from None


class _Keywords:
    """A function that takes its last arguments, which are keyword-only, by position."""

    def __init__(self, function: Callable[..., Any], count: int, names: tuple[str, ...]) -> None:
        self.function, self.names = function, names
        self.count = count
        functools.update_wrapper(self, function)

    def __call__(self, *args: Any) -> Any:
        keywords = dict(zip(self.names, args[self.count :], strict=True))
        return self.function(*args[: self.count], **keywords)


def sort_arguments(function: Callable[..., Any], args: tuple[Any, ...]) -> Arguments:
    """Find the leaves of ``args``."""
    leaves: list[Leaf] = []
    statics: list[Static] = []
    for position, (name, value) in enumerate(zip(names_of(function, len(args)), args, strict=True)):
        # Refuse iterators: the next call, which runs compiled code, would find them exhausted.
        if hasattr(type(value), "__next__") and type(value).__module__ in ("builtins", "itertools"):
            raise ArgumentError(
                f"argument {name} is a {type(value).__name__}, which can be iterated only once; pass a list"
            )
        for path, part in flatten(value):
            if is_leaf(part):
                leaves.append(Leaf(_checked(part, spelled(name, path)), position, name, path))
            else:
                _refuse_lookalikes(part, spelled(name, path))
                statics.append(Static(part, position, name, path))
    return Arguments(tuple(leaves), args, tuple(statics))


def _checked(value: Any, place: str) -> Any:
    if not isinstance(value, (np.ndarray, np.generic)) and not is_on_device(value):
        return value
    if isinstance(value, np.ndarray):
        plain(value, f"argument {place}")
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
    if not isinstance(value, type) and (hasattr(value, "__array__") or hasattr(value, "toarray")):
        module = package_of(type(value))
        method = {"pandas": ".to_numpy()", "scipy": ".toarray()", "torch": ".detach().numpy()"}.get(module)
        cure = f"{place}{method}" if method else f"np.asarray({place})"
        raise ArgumentError(f"argument {place} is a {module}.{type(value).__name__}; pass a NumPy array: {cure}")


def key_of(value: Any, leaves: list[Any]) -> Any:
    """The key of an argument for compiled code: type, dtype and shape of leaves, values of static parts."""
    kind = type(value)
    if kind is np.ndarray:
        leaves.append(value if value.dtype.isnative else _native(value))
        return value.dtype, value.shape
    if kind is float or kind is complex:
        leaves.append(value)
        return kind
    # A fast path for common structures; `children` would give the same.
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
