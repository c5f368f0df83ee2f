"""Calls of compiled derivatives at the least cost: the generated function is found by the types of the arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from yota.differentiated import Differentiated
from yota.runtime.dispatch import offer, quick, watch
from yota.tracing.state import current

__all__ = ["caller"]

_MOST_DIRECT = 256


def caller(form: Differentiated) -> Callable[..., Any]:
    """A function of the arguments that gives what ``form`` gives; inside of a trace it is recorded."""
    direct: dict[Any, Callable[..., Any]] = {}
    changed = form.captured.changed if form.captured else None
    array = np.ndarray

    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal changed
        if changed is not None:
            if changed():
                direct.clear()
                form.table.clear()
            if front is not call and front.forms:  # type: ignore[attr-defined]
                watch(front, form.captured.identities())
        if not kwargs:
            # One array is by far the most frequent call, and a comprehension would cost as much as all the rest.
            found = direct.get(
                (args[0].dtype, args[0].shape)
                if len(args) == 1 and type(args[0]) is array
                else tuple([(a.dtype, a.shape) if type(a) is array else type(a) for a in args])
            )
            if found is not None:
                return found(*args)
        if current() is not None:
            return form.traced(args, kwargs)
        prepared, function, positions, leaves = form.prepare(args, kwargs)
        result, _ = prepared(function, positions, leaves)
        if changed is None and form.captured:  # what the function reads shows when it runs
            changed = form.captured.changed
        if not kwargs and prepared.direct is not None and len(direct) < _MOST_DIRECT:
            kinds = tuple((a.dtype, a.shape) if type(a) is array else type(a) for a in args)
            direct[kinds[0] if len(args) == 1 and type(args[0]) is array else kinds] = prepared.direct
            if front is not call and watch(front, form.captured.identities()):
                offer(front, prepared.direct, args)
        return result

    front: Callable[..., Any] = quick(call) if form.target.name == "c" else call
    return front
