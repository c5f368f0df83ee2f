"""The leaves to differentiate by, and the form of the gradient that the caller receives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from yota.errors import ArgumentError
from yota.ir.callables import name_of
from yota.run.arguments import Arguments, names_of, parameters_of
from yota.structures import is_on_device

Wrt = int | str | tuple[int | str, ...] | None
"""Positions and names of arguments to differentiate by; None for all that have a derivative."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The derivatives to compute.

    order: 1 for the Jacobian, 2 for the Hessian.
    with_value: whether to include the value, and with a Hessian the gradient.
    sparse: whether entries are returned as a vector without zeros.
    joined: whether a structured result is joined to one vector, with its form as first output.
    """

    order: int = 1
    with_value: bool = False
    sparse: bool = False
    joined: bool = False


@dataclass(frozen=True, slots=True)
class Layout:
    """The conversion of adjoints to the caller's gradient.

    single: whether the caller receives one gradient and not a tuple.
    slots: for each leaf its argument and field path.
    wanted: indices of the leaves to differentiate by.
    boxed: indices of leaves that are 0-d arrays, whose adjoints must be arrays too.
    """

    positions: tuple[int, ...]
    single: bool
    slots: tuple[tuple[int, tuple[Any, ...]], ...]
    wanted: tuple[int, ...]
    boxed: frozenset[int]

    def shaped(self, leaves: Sequence[int], adjoints: Sequence[Any]) -> Any:
        """The adjoints of ``leaves`` by argument; structures become dicts by field path."""
        found: dict[int, Any] = {}
        for leaf in self.wanted:
            argument, path = self.slots[leaf]
            if path:
                found[argument] = {}
        for leaf, adjoint in zip(leaves, adjoints, strict=True):
            argument, path = self.slots[leaf]
            value = np.asarray(adjoint) if leaf in self.boxed and not is_on_device(adjoint) else adjoint
            if path:
                found[argument][path] = value
            else:
                found[argument] = value
        if self.single:
            return found.get(self.positions[0])
        return tuple([found.get(position) for position in self.positions])


def checked(wrt: Any) -> Wrt:
    """``wrt`` as positions and names."""
    if wrt is None or isinstance(wrt, str):
        return wrt
    if isinstance(wrt, tuple):
        return tuple(_place(each) for each in wrt)
    return _place(wrt)


def _place(wrt: Any) -> int | str:
    if isinstance(wrt, str):
        return wrt
    if isinstance(wrt, (int, np.integer)) and not isinstance(wrt, bool):
        return int(wrt)
    cure = f"; pass a tuple: wrt={tuple(wrt)!r}" if isinstance(wrt, (list, set, range)) else ""
    if isinstance(wrt, (float, np.ndarray)):
        cure = ". To evaluate the derivative, call what is made: yota.gradient(f)(x)"
    raise ArgumentError(
        f"wrt={wrt!r:.60} is a {type(wrt).__name__}; an argument is named by its position or its name, several by a "
        f"tuple{cure}"
    )


def layout_of(function: Callable[..., Any], wrt: Wrt, hidden: int, arguments: Arguments) -> Layout:
    """The layout for a call of ``function``, whose first ``hidden`` arguments are bound."""
    positions = _positions(function, wrt, hidden, len(arguments.values))
    wanted = tuple(
        index
        for index, leaf in enumerate(arguments.leaves)
        if leaf.argument in positions and np.asarray(leaf.value).dtype.kind in "fc"
    )
    found = {arguments.leaves[index].argument for index in wanted}
    missing = [position for position in positions if position not in found]
    if missing and (wrt is not None or len(missing) == len(positions)):
        raise _no_derivative(function, arguments, missing[0])
    return Layout(
        positions,
        isinstance(wrt, (int, str)),
        tuple((leaf.argument, leaf.path) for leaf in arguments.leaves),
        wanted,
        frozenset(index for index in wanted if _is_boxed(arguments.leaves[index].value)),
    )


def _is_boxed(value: Any) -> bool:
    return isinstance(value, np.ndarray) and not value.ndim


def _positions(function: Callable[..., Any], wrt: Wrt, hidden: int, count: int) -> tuple[int, ...]:
    if wrt is None:
        return tuple(range(hidden, count))
    names = names_of(function, count)
    visible = count - hidden
    found = []
    for each in wrt if isinstance(wrt, tuple) else (wrt,):
        if isinstance(each, str):
            if each not in names:
                raise _unknown(function, each, names[hidden:])
            found.append(names.index(each))
        else:
            if not -visible <= each < visible:
                raise _absent(function, each, visible, hidden)
            found.append(each % visible + hidden)
    return tuple(found)


def _absent(function: Callable[..., Any], wrt: int, visible: int, hidden: int) -> ArgumentError:
    known = parameters_of(function).items()
    names = [name for name, each in known if each.kind <= each.POSITIONAL_OR_KEYWORD][hidden:]
    if 0 <= wrt < len(names):
        return _missing(function, names[wrt], f"wrt={wrt}, the argument {names[wrt]!r}")
    return ArgumentError(f"wrt={wrt} is out of range: {name_of(function)} was called with {visible} arguments")


def _unknown(function: Callable[..., Any], wrt: str, names: Sequence[str]) -> ArgumentError:
    if wrt in parameters_of(function):
        return _missing(function, wrt, f"wrt={wrt!r}")
    return ArgumentError(f"wrt={wrt!r} is no argument of {name_of(function)}; it has {', '.join(names)}")


def _missing(function: Callable[..., Any], name: str, which: str) -> ArgumentError:
    known = parameters_of(function)[name]
    why = "is missing" if known.default is known.empty else "was left to its default, which is part of the function"
    return ArgumentError(f"{which} of {name_of(function)} {why}; pass it: {name}=...")


def _no_derivative(function: Callable[..., Any], arguments: Arguments, position: int) -> ArgumentError:
    name = names_of(function, len(arguments.values))[position]
    value = arguments.values[position]
    where = f"argument {name} of {name_of(function)}"
    if isinstance(value, (np.ndarray, np.generic)):
        return ArgumentError(f"{where} has dtype {value.dtype}, which carries no derivative; pass {name}.astype(float)")
    if isinstance(value, int):
        return ArgumentError(
            f"{where} is the {type(value).__name__} {value!r}, which is static; pass {float(value)!r} for a derivative"
        )
    return ArgumentError(
        f"{where} is a {type(value).__name__} without floating-point values; there is nothing to differentiate by"
    )


def only_leaf(layout: Layout, arguments: Arguments) -> int:
    """The only array or number to differentiate by."""
    if len(layout.wanted) != 1 or arguments.leaves[layout.wanted[0]].path:
        name = arguments.leaves[layout.wanted[0]].name
        raise ArgumentError(
            f"argument {name} is a structure; a matrix of derivatives is by one array. Write a function of that array, "
            f"such as lambda x: f({{**{name}, 'x': x}})"
        )
    return layout.wanted[0]
