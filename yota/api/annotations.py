"""Annotations of parts of a function that reverse mode treats in a way of their own: `stop_gradient`, `checkpoint`."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

import numpy as np

from yota.ir.callables import Derived
from yota.ir.catalog import primitive
from yota.tracing.current import current
from yota.tracing.loops import scan
from yota.tracing.results import taken_apart

__all__ = ["checkpoint", "stop_gradient"]

P = ParamSpec("P")
R = TypeVar("R")


def stop_gradient(x: R) -> R:
    """``x`` itself, as a constant for every derivative.

    Parameters
    ----------
    x
        A number, an array, or a structure of them.

    Returns
    -------
    Any
        The same value; nothing is differentiated through it, in any order.

    Examples
    --------
    >>> import numpy as np
    >>> import yota
    >>> yota.gradient(lambda x: np.sum(x * stop_gradient(x)))(np.array([2.0, 3.0]))
    array([2., 3.])
    """
    trace = current()
    if trace is None:
        return x
    parts: list[object] = []
    form = taken_apart("stop_gradient", x, parts)
    stop = primitive("stop_gradient")
    return cast(R, form.filled([trace.apply(stop, (each,), {}) if trace.varies(each) else each for each in parts]))


def checkpoint(f: Callable[P, R]) -> Callable[P, R]:
    """``f``, of which a derivative keeps the arguments alone and computes the rest once more.

    A gradient needs the intermediate values of the whole function, and has all of them in memory at once. Those of
    ``f`` are there only while the reverse pass is at ``f``. The price is one more evaluation of ``f``. Long loops are
    bounded by ``yota.configure(memory=...)`` without this.

    Parameters
    ----------
    f
        Takes and gives numbers, arrays, and structures of them.

    Returns
    -------
    Callable
        The same function; where nothing is traced it calls ``f``.

    Raises
    ------
    TracingError
        If ``f`` branches on a traced value, see `scan`, or writes into an argument.

    Examples
    --------
    >>> import numpy as np
    >>> import yota
    >>> layer = checkpoint(lambda w, x: np.tanh(w @ x))
    >>> yota.gradient(lambda w: np.sum(layer(w, layer(w, np.ones(2)))))(np.zeros((2, 2)))
    array([[0., 0.],
           [0., 0.]])
    """

    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        trace = current()
        if trace is None:
            return f(*args, **kwargs)
        parts: list[object] = []
        name = f"checkpoint({getattr(f, '__name__', 'f')})"
        form = taken_apart(name, (args, kwargs), parts)
        # What a trip reads from a row is not computed ahead of the reverse loop, as an invariant would be. A row is no
        # Python number, which gives way to the dtype of an array.
        rows = {
            number: np.asarray(each)[np.newaxis]
            for number, each in enumerate(parts)
            if trace.varies(each) and not trace.builder.types[trace.lift(each)].weak
        }

        def trip(carry: object, row: dict[int, object]) -> tuple[object, R]:
            inner = current()
            assert inner is not None
            given, keywords = form.filled([row.get(number, each) for number, each in enumerate(parts)])
            before = [inner.lift(each) for each in row.values()]
            result = f(*given, **keywords)
            if before != [inner.lift(each) for each in row.values()]:
                raise inner.refuse(f"{name} writes into an argument.", "Copy the argument, and write into the copy.")
            return carry, result

        _, found = scan(trip, (), rows, length=1)
        results: list[np.ndarray] = []
        shape = taken_apart("checkpoint", found, results)
        return cast(R, shape.filled([each[0] for each in results]))

    return cast(Callable[P, R], Derived((checkpoint, (f,), {}), f, call=call))
