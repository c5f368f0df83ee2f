"""What `yota.grad` does when it is called: the form of the function is found or made, and evaluated."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from yota.compilation.device import captor_of
from yota.compilation.specialise import Target
from yota.derivatives.differentiated import Differentiated, with_receiver
from yota.errors import ArgumentError
from yota.ir.callables import Derived, name_of
from yota.ir.tape import Tape
from yota.result import GradResult
from yota.runtime.cache import Table
from yota.structures import is_on_device
from yota.tracing.state import current
from yota.watching.captured import Captured

__all__ = ["evaluated", "seeded"]

_known = Table(most=128)
"""Differentiated forms that were made, the latest used last."""


def evaluated(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    target: Target,
    dynamic: bool,
    has_aux: bool,
) -> tuple[Any, GradResult]:
    """Value of ``f`` and its gradient by every argument."""
    form = _differentiated(f, target, dynamic, has_aux)
    if current() is not None:
        value, gradients = form.traced(args, dict(kwargs))
        return value, GradResult(gradients, Tape("", (), {}, (), (), {}), "")
    prepared, function, positions, leaves = form.prepare(args, dict(kwargs))
    (value, gradients), chosen = prepared(function, positions, leaves)
    captor = captor_of(prepared, chosen, leaves) if prepared.target.name == "cuda" else None
    return value, GradResult(gradients, chosen.gradient.tape, chosen.source, captor)


def seeded(
    f: Callable[..., Any],
    seed: Any,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    target: Target,
    dynamic: bool,
    has_aux: bool,
) -> tuple[Any, GradResult]:
    """Value of ``f``, which may be an array, and the gradient of a result whose derivative by it is ``seed``."""

    def weighted(seed: Any, *arguments: Any, **keywords: Any) -> Any:
        value = f(*arguments, **keywords)[0] if has_aux else f(*arguments, **keywords)
        if np.ndim(seed) and np.shape(seed) != np.shape(value):
            name = name_of(f)
            raise ArgumentError(
                f"the seed has shape {np.shape(seed)}, and what {name} returns has shape {np.shape(value)}; pass a "
                "seed of that shape"
            )
        return np.sum(np.real(np.conjugate(seed) * value))

    weights = seed if is_on_device(seed) else np.asarray(seed)
    _, g = evaluated(weighted, (weights, *args), kwargs, target, dynamic, False)
    return f(*args, **kwargs), GradResult(g.gradients[1:], g.tape, g.source)


def _differentiated(function: Callable[..., Any], target: Target, dynamic: bool, has_aux: bool) -> Differentiated:
    plain, hidden = with_receiver(function)
    # A lambda that is written in a loop is a new function in each round, with the same code and captured values.
    key = (_sameness(plain), target, dynamic, has_aux, tuple(map(_place, hidden)))
    found: Differentiated | None = _known.pop(key, None)
    if found is None:
        found = Differentiated(function, None, target, dynamic=dynamic, has_aux=has_aux)
    elif found.function is not plain:
        captured = Captured(plain)
        if not found.captured.agrees(captured):
            found = Differentiated(function, None, target, dynamic=dynamic, has_aux=has_aux)
        found.adopt(plain, captured)
    _known.insert(key, found)
    return found.bound(hidden)


def _sameness(function: Any) -> Any:
    """What functions have in common that differ in nothing but what they captured, or were partially applied to."""
    if isinstance(function, functools.partial):
        return _sameness(function.func), len(function.args), tuple(function.keywords)
    if isinstance(function, types.MethodType):
        return _sameness(function.__func__), id(function.__self__)
    if isinstance(function, Derived):
        make, (made_of, *rest), options = function.recipe
        return function if rest or options else (make, _sameness(made_of))
    return getattr(function, "__code__", function)


def _place(value: Any) -> int | None:
    """An argument that a partial function or a method supplies; numbers and arrays are read at each call."""
    return None if isinstance(value, (int, float, complex, np.ndarray)) else id(value)
