"""Integrals by several variables: products of Gauss-Legendre rules."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from typing import Any

from yota.tracing.forms import Trace, calls_back, np
from yota.tracing.scipy.callbacks import concrete_function
from yota.tracing.scipy.quadrature import Sampled, number_of

_GRIDS, _LARGEST = (8, 12, 18, 27, 40), 30_000
"""Nodes along each axis; and of all axes."""
_TOLERANCE = 1e-10
_BOUNDS = {"epsabs", "epsrel", "limit"}
"""Options of `quad` that say when it ends."""


@calls_back("scipy.integrate", "nquad")
def _several(
    trace: Trace, func: Any, ranges: Any, args: Any = None, opts: Any = None, full_output: bool = False
) -> Any:
    """By products of rules, of which two must agree; else as SciPy does, by integrals within each other."""
    original = inspect.unwrap(sys.modules["scipy.integrate"].nquad)
    known = [each for each in (opts if isinstance(opts, (list, tuple)) else [opts]) if each]
    if full_output or len(ranges) == 1 or any(callable(each) or not _BOUNDS.issuperset(each) for each in known):
        return original(func, ranges, args, opts, full_output)
    sums = functools.partial(_sums, func, ranges, tuple(args or ()))
    plain, last = concrete_function(trace, sums), None
    for coarse, count in zip((0, *_GRIDS), _GRIDS, strict=False):
        if count ** len(ranges) > _LARGEST:
            break
        with np.errstate(all="ignore"):
            value, size = plain(count)
        if np.iscomplexobj(value) or not 0 < size < np.inf:
            break
        if last is not None and abs(value - last) <= _TOLERANCE * size:
            value, size = sums(count)
            if bool(np.abs(value - sums(coarse)[0]) <= 10 * _TOLERANCE * size):
                return value, _TOLERANCE * float(number_of(size))
        last = value
    return original(func, ranges, args, opts)


def _sums(func: Callable[..., Any], ranges: Sequence[Any], args: Sequence[Any], count: int) -> Any:
    """The integral, and that of the magnitude."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    places: list[Any] = []
    weight = np.ones(1)
    for limits in reversed(ranges):
        before = len(weight)
        low, high = _limits(limits, places, args, before)
        if not np.all(np.isfinite(number_of(low + high))):
            return np.full(2, np.nan)
        low, span, weight = (np.repeat(each, count) for each in (low, high - low, weight))
        places = [low + span * np.tile((nodes + 1) / 2, before), *(np.repeat(each, count) for each in places)]
        weight = weight * span * np.tile(weights / 2, before)
    values = weight * Sampled(functools.partial(_at, func, places, args))(np.arange(len(weight)))
    return np.stack([np.sum(values), np.sum(np.abs(values))])


def _limits(limits: Any, places: Sequence[Any], args: Sequence[Any], count: int) -> list[Any]:
    """Both limits at all nodes: numbers, or functions of the outer variables."""
    if not callable(limits):
        return [each * np.ones(count) for each in limits]
    if not places:
        return [each * np.ones(1) for each in limits(*args)]
    ends = (functools.partial(_end, limits, places, args, side) for side in (0, 1))
    return [Sampled(end)(np.arange(count)) for end in ends]


def _end(limits: Callable[..., Any], places: Sequence[Any], args: Sequence[Any], side: int, node: Any) -> Any:
    return _at(limits, places, args, node)[side]


def _at(function: Callable[..., Any], places: Sequence[Any], args: Sequence[Any], node: Any) -> Any:
    return function(*(each[node] for each in places), *args)
