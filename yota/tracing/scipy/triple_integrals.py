"""Triple integrals of smooth functions, by products of Gauss-Legendre rules."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from yota.tracing.implementations import calls_back
from yota.tracing.scipy.quadrature import Sampled, diverges, number_of
from yota.tracing.trace import Trace
from yota.tracing.untyped import np

_TOLERANCE = 1e-9
_GRIDS = (8, 12, 18, 27)
"""Nodes along each axis of a triple integral."""


@calls_back("scipy.integrate", "tplquad")
def _triple(
    trace: Trace,
    func: Callable[..., Any],
    a: Any,
    b: Any,
    gfun: Any,
    hfun: Any,
    qfun: Any,
    rfun: Any,
    args: Any = (),
    epsabs: float = 0.0,
    epsrel: float = 0.0,
) -> Any:
    """By products of Gauss-Legendre rules, of which two must agree."""
    last = None
    for count in _GRIDS:
        nodes, weights = np.polynomial.legendre.leggauss(count)
        axes = [np.ravel(each) for each in np.meshgrid(*[(nodes + 1) / 2] * 3, indexing="ij")]
        weight = np.ravel(math.prod(np.meshgrid(*[weights / 2] * 3, indexing="ij")))
        places: list[Any] = []
        for share, low, high in zip(axes, (a, gfun, qfun), (b, hfun, rfun), strict=True):
            low, high = (_limit(each, places, len(share)) for each in (low, high))
            if not bool(np.all(np.isfinite(low + high))):
                raise trace.unrecorded("scipy.integrate.tplquad with limits that are not finite", "Cut it off.")
            places.append(low + (high - low) * share)
            weight = weight * (high - low)
        values = Sampled(functools.partial(_at, func, places[::-1], args))(np.arange(count**3))
        value, size = np.sum(weight * values), np.sum(np.abs(weight * values))
        if last is not None and bool(np.abs(value - last) <= _TOLERANCE * size):
            return value, _TOLERANCE * float(number_of(size))
        last = value
    raise diverges(trace)


def _limit(limit: Any, places: Sequence[Any], count: int) -> Any:
    """A limit at all nodes, which may be a function of the outer variables."""
    if not callable(limit):
        return limit * np.ones(count)
    return Sampled(lambda node: _at(limit, places, (), node) + 0.0 * places[0][node])(np.arange(count))


def _at(function: Callable[..., Any], places: Sequence[Any], args: Sequence[Any], node: Any) -> Any:
    return function(*(each[node] for each in places), *args)
