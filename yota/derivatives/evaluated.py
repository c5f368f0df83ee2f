"""What `yota.grad` does when it is called: the form of the function is found or made, and evaluated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from yota.compilation.device import captor_of
from yota.compilation.specialise import Target
from yota.derivatives.differentiated import Differentiated, with_receiver
from yota.errors import ArgumentError
from yota.ir.callables import name_of
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
    f: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], target: Target, dynamic: bool
) -> tuple[Any, GradResult]:
    """Value of ``f`` and its gradient by every argument."""
    form = _differentiated(f, target, dynamic)
    if current() is not None:
        value, gradients = form.traced(args, dict(kwargs))
        return value, GradResult(gradients, Tape("", (), {}, (), (), {}), "")
    prepared, function, positions, leaves = form.prepare(args, dict(kwargs))
    (value, gradients), chosen = prepared(function, positions, leaves)
    captor = captor_of(prepared, chosen, leaves) if prepared.target.name == "cuda" else None
    return value, GradResult(gradients, chosen.gradient.tape, chosen.source, captor)


def seeded(
    f: Callable[..., Any], seed: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], target: Target, dynamic: bool
) -> tuple[Any, GradResult]:
    """Value of ``f``, which may be an array, and the gradient of a result whose derivative by it is ``seed``."""

    def weighted(seed: Any, *arguments: Any, **keywords: Any) -> Any:
        value = f(*arguments, **keywords)
        if np.ndim(seed) and np.shape(seed) != np.shape(value):
            name = name_of(f)
            raise ArgumentError(
                f"the seed has shape {np.shape(seed)}, and what {name} returns has shape {np.shape(value)}; pass a "
                "seed of that shape"
            )
        return np.sum(np.real(np.conjugate(seed) * value))

    weights = seed if is_on_device(seed) else np.asarray(seed)
    _, g = evaluated(weighted, (weights, *args), kwargs, target, dynamic)
    return f(*args, **kwargs), GradResult(g.gradients[1:], g.tape, g.source)


def _differentiated(function: Callable[..., Any], target: Target, dynamic: bool) -> Differentiated:
    plain, hidden = with_receiver(function)
    # A lambda that is written in a loop is a new function in each round, with the same code and captured values.
    key = (getattr(plain, "__code__", plain), target, dynamic, tuple(map(id, hidden)))
    found: Differentiated | None = _known.pop(key, None)
    if found is None:
        found = Differentiated(function, None, target, dynamic=dynamic)
    elif found.function is not plain:
        captured = Captured(plain)
        if not found.captured.agrees(captured):
            found = Differentiated(function, None, target, dynamic=dynamic)
        found.adopt(plain, captured)
    _known.insert(key, found)
    return found
