"""Implementation of `yota.grad`: look up or create the compiled form of the function, and evaluate it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from yota.errors import ArgumentError
from yota.ir.callables import name_of
from yota.ir.tape import Tape
from yota.run.derivatives.calling import form_of
from yota.run.derivatives.differentiated import Differentiated
from yota.run.device import captor_of
from yota.run.options import Dynamic
from yota.run.result import GradResult
from yota.run.specialise import Target
from yota.structures import is_on_device, mapped
from yota.tracing.captures import copied
from yota.tracing.current import current


def evaluated(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    target: Target,
    dynamic: Dynamic,
    has_aux: bool,
) -> tuple[Any, GradResult]:
    """Value of ``f`` and its gradient by every argument."""
    form = form_of(Differentiated, f, None, target, dynamic=dynamic, has_aux=has_aux)
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
    dynamic: Dynamic,
    has_aux: bool,
) -> tuple[Any, GradResult]:
    """Value of ``f``, which may be an array, and the gradient of ``sum(seed * f)``."""

    def weighted(seed: Any, *arguments: Any, **keywords: Any) -> Any:
        value = f(*arguments, **keywords)[0] if has_aux else f(*arguments, **keywords)
        if np.ndim(seed) and np.shape(seed) != np.shape(value):
            name = name_of(f)
            raise ArgumentError(
                f"the seed has shape {np.shape(seed)}, but {name} returns shape {np.shape(value)}; pass a seed of that "
                "shape"
            )
        return np.sum(np.real(np.conjugate(seed) * value))

    weights = seed if is_on_device(seed) else np.asarray(seed)
    _, g = evaluated(weighted, (weights, *args), kwargs, target, dynamic, False)
    return f(*mapped(args, copied), **mapped(dict(kwargs), copied)), GradResult(g.gradients[1:], g.tape, g.source)
