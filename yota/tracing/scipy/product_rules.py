"""Integrals by several variables: products of Gauss-Legendre rules."""

from __future__ import annotations

import functools
import inspect
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

from yota.tracing.forms import Trace, calls_back, np
from yota.tracing.scipy.callbacks import concrete_function
from yota.tracing.scipy.sampled import Sampled, number_of

_GRIDS, _LARGEST = (8, 12, 18, 27, 40, 54, 72), 400_000
"""Nodes along each axis; and of all axes."""
_COARSE, _WIDEST, _SMALL = 24, 4.0, 1e-16
"""Nodes that show how far an integrand counts; the largest range of the variable in the place of one with an infinite
limit; what part of the largest value does not count."""
_TOLERANCE, _LOST = 1e-10, 1e-13
"""How far two rules may differ; what part of the integral may be at the last nodes towards infinite limits."""
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
    reaches = _reaches(trace, functools.partial(_values, func, ranges, tuple(args or ())), len(ranges))
    sums = functools.partial(_sums, func, ranges, tuple(args or ()), reaches=reaches)
    plain, last = concrete_function(trace, sums), None
    for coarse, count in zip((0, *_GRIDS), _GRIDS, strict=False):
        if count ** len(ranges) > _LARGEST:
            break
        with np.errstate(all="ignore"):
            value, size, edge = plain(count)
        if np.iscomplexobj(value) or not 0 < size < np.inf:
            break
        if last is not None and abs(value - last) <= _TOLERANCE * size and edge <= _LOST * size:
            value, size, edge = sums(count)
            differs = np.abs(value - sums(coarse)[0])
            if bool((differs <= 10 * _TOLERANCE * size) & (edge <= 10 * _LOST * size)):
                return value, _TOLERANCE * float(number_of(size))
        last = value
    return original(func, ranges, args, opts)


def _reaches(trace: Trace, values: Callable[..., Any], axes: int) -> list[float]:
    """For each axis, outermost first, how far the variable counts in the place of one with an infinite limit."""
    reaches = [_WIDEST] * axes
    if _COARSE**axes > _LARGEST:
        return reaches
    for _ in range(4):
        far: list[Any] = []
        with np.errstate(all="ignore"):
            found = np.abs(concrete_function(trace, lambda: values(_COARSE, reaches, far))())  # noqa: B023 -- called here
        if not np.all(np.isfinite(found)):
            break
        for axis in range(axes):
            if far[axis] is None:
                continue
            size = np.moveaxis(np.reshape(found, (_COARSE,) * axes), axis, 0).reshape(_COARSE, -1).max(axis=1)
            places, counts = np.abs(far[axis][:_COARSE]), size > _SMALL * size.max()
            between = np.max(np.abs(np.diff(places)))
            reaches[axis] = min(reaches[axis], np.max(places[counts], initial=0.0) + between)
    return reaches


def _sums(func: Callable[..., Any], ranges: Sequence[Any], args: Sequence[Any], count: int, reaches: Any) -> Any:
    """The integral, that of the magnitude, and what of this is at the last nodes towards infinite limits."""
    far: list[Any] = []
    values = _values(func, ranges, args, count, reaches, far)
    sizes = np.abs(values)
    last = functools.reduce(np.logical_or, [_is_last(t, len(values)) for t in far])
    return np.stack([np.sum(values), np.sum(sizes), np.sum(np.where(last, sizes, 0.0))])


def _is_last(t: Any, count: int) -> Any:
    """For each of ``count`` nodes, whether it is the last one of an axis towards an infinite limit."""
    if t is None:
        return np.zeros(count, bool)
    return np.repeat(np.abs(t) > (1 - 1e-9) * np.max(np.abs(t)), count // len(t))


def _values(
    func: Callable[..., Any], ranges: Sequence[Any], args: Sequence[Any], count: int, reaches: Any, far: Any
) -> Any:
    """The integrand at the nodes times their weights; the axis of the first range is the fastest one.

    far: takes the variable of each axis with an infinite limit, and None for others.
    """
    nodes, weights = np.polynomial.legendre.leggauss(count)
    places: list[Any] = []
    weight = np.ones(1)
    for limits, reach in zip(reversed(ranges), reaches, strict=True):
        before = len(weight)
        low, high, weight = (np.repeat(each, count) for each in (*_limits(limits, places, args, before), weight))
        here, slope, t = _placed(low, high, np.tile(nodes, before), reach)
        far.append(number_of(t))
        places = [here, *(np.repeat(each, count) for each in places)]
        weight = weight * slope * np.tile(weights, before)
    return weight * Sampled(functools.partial(_at, func, places, args))(np.arange(len(weight)))


def _placed(low: Any, high: Any, nodes: Any, reach: float) -> tuple[Any, Any, Any]:
    """Places between limits for nodes between -1 and 1, their slope, and what stands in the place of infinite ones."""
    ends = [number_of(each) for each in (low, high)]
    infinite = [bool(np.all(np.isinf(each))) for each in ends]
    if not any(infinite):
        return low + (high - low) * (nodes + 1) / 2, (high - low) / 2, None
    part = 1.0 if all(infinite) else 0.5
    t = reach * (nodes if all(infinite) else (nodes + 1) / 2)
    sign = np.sign(ends[1]) if infinite[1] else np.sign(ends[0])
    u, slope = math.pi / 2 * np.sinh(t), math.pi / 2 * np.cosh(t)
    start = 0.0 if all(infinite) else low if infinite[1] else high
    return start + sign * np.sinh(u), part * reach * (sign if infinite[1] else -sign) * slope * np.cosh(u), t


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
