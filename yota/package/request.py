"""What was asked for, and the same with one axis for any number of further ones."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from yota.errors import ArgumentError
from yota.ir.callables import name_of
from yota.package.size_checks import compared, gradients_of, is_single
from yota.package.size_recordings import quietly
from yota.package.subject import Call, subject_of
from yota.run.gradient_layout import Wrt


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """A request; see `yota.export.generate`."""

    call: Call
    target: str
    name: str | None
    wrt: Wrt
    wanted: tuple[str, ...]
    license: str
    self_test: bool
    strict: bool
    extension: bool
    command: tuple[str, ...] | None
    stem: str | None = None
    laid_out: bool = True
    """Whether long lines of a module are broken, as in a file that is read."""

    def __post_init__(self) -> None:
        if self.self_test and "gradient" not in self.wanted:
            raise ArgumentError("self_test checks the gradient; add 'gradient' to with_")

    @property
    def wish(self) -> str:
        """What the function should be called."""
        return self.name or name_of(self.call.function)


_RANKS = (0, 2, 3)
"""Numbers of further axes at which the function must do what it does with one."""
_EXTENTS = (3, 2, 4)


def axes(count: int) -> tuple[str, ...]:
    """Names of the extents of ``count`` further axes.

    >>> axes(2)
    ('further0', 'further1')
    """
    return tuple(f"further{number}" for number in range(count))


def name_of_rest(call: Call) -> str:
    """The name of the one axis that stands for the further ones of ``call``; empty if it has none."""
    name = "rest" if call.open else ""
    while name in call.dimensions():
        name += "_"
    return name


def flattened(request: Request) -> Request:
    """``request`` with one axis, called as `name_of_rest` says, for the further ones.

    Raises ArgumentError if the function does something else with further axes than with one of as many elements.
    """
    call = request.call
    if not call.open:
        return request
    name = name_of_rest(call)
    flat = call.with_axes((name,))
    for count in _RANKS:
        known = {each: 5 + 2 * place for place, each in enumerate(call.dimensions())}
        further = dict(zip(axes(count), _EXTENTS, strict=False))
        ranked = call.with_axes(axes(count))
        one = _results(ranked, known | further, ranked, known | further, request.wrt)
        other = _results(flat, known | {name: math.prod(further.values())}, ranked, known | further, request.wrt)
        # Without axes an element by itself is a scalar, which has a gradient; an array of one element has none.
        pairs = [] if one is None or other is None else [pair for pair in zip(one, other, strict=True) if all(pair)]
        if one is not None and (not pairs or not all(_same(*pair) for pair in pairs)):
            raise ArgumentError(
                f"with {count} axes in the place of `...` the function does something else than with one that has as "
                "many elements, as code for any number of axes must. Write the axes out, as in float64[B,N,M]"
            )
    return replace(request, call=flat)


def further_axes(call: Call, sizes: Sequence[str]) -> list[str]:
    """What the size is, of all the ``sizes`` that functions take, that the specs of ``call`` do not name."""
    if not call.open:
        return []
    known = call.dimensions()
    (name,) = (size for size in dict.fromkeys(sizes) if size not in known)
    return [f"`{name}` is how many elements the axes have together that `...` stands for: 1 if there are none."]


def _results(
    call: Call, size: Mapping[str, int], like: Call, sizes: Mapping[str, int], wrt: Wrt
) -> tuple[Sequence[Any], Sequence[Any]] | None:
    """Values and gradients at the elements of ``like``; None where the function has no value."""
    function, arguments = call.arguments(size)
    values = [leaf.value for leaf in like.arguments(sizes)[1].leaves]
    given = [np.reshape(value, np.shape(leaf.value))[()] for value, leaf in zip(values, arguments.leaves, strict=True)]
    try:
        value = quietly(function, arguments.rebuild(given))
    except Exception:  # noqa: BLE001
        return None
    if isinstance(value, tuple) or np.ndim(value):
        return value if isinstance(value, tuple) else (value,), ()
    return (value,), gradients_of(subject_of(call, wrt, size), given)


def _same(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """Whether elements agree; None stands for no derivative."""
    try:
        for pair in zip(one, other, strict=True):
            left, right = (np.ravel([] if each is None else each) for each in pair)
            compared(right, left, "", single=is_single([left]))
    except (ArgumentError, ValueError):
        return False
    return True
