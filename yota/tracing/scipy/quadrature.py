"""Integrals of the functions that SciPy is given, also within each other.

Integrals are recorded as sums over nodes that are chosen as the function is recorded. H. Takahasi, M. Mori, Double
exponential formulas for numerical integration, Publ. RIMS 9 (1974): a change of variable takes singularities at the
ends away; Gauss-Legendre rules on panels, halved where they are too coarse, sum the rest. An integral within another
one is evaluated for all nodes of that one at once, by an axis for each of them.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

from yota.tracing.forms import Trace, is_tracer, np
from yota.tracing.scipy import moving_branches
from yota.tracing.scipy.callbacks import around, concrete_function
from yota.tracing.scipy.sampled import Coarse, Sampled, column, number_of
from yota.tracing.scipy.weighted_integrals import Unweighted, weighted

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_COUNT = len(_NODES)
_SERIES = np.polynomial.legendre.legvander(_NODES, _COUNT - 1) * np.outer(_WEIGHTS, np.arange(_COUNT) + 0.5)
"""What the values of a panel are multiplied by for the coefficients of their Legendre series."""
_FINEST = _SERIES[:, -2:]
_ENDS = _SERIES @ np.polynomial.legendre.legvander([-1.0, 1.0], _COUNT - 1).T
"""The same for the series at both ends."""
_WIDEST = 4.5
"""The range of the new variable: beyond it, weights are below 1e-60."""
_ROUNDED = 2.0**-50
"""What part of an end the old variable is away from it at the least."""
_SMALL, _TOLERANCE, _GUARDED, _NARROW = 1e-20, 1e-9, 1e-6, 1e-6
_MOST = 300
"""Panels."""
_TINY, _LOST = 1e-290, 1e-100
"""Integrals below are not resolved: their values have few digits, or they are such parts of others beside them."""
_depth = contextvars.ContextVar("_depth", default=0)
_SHORTEST, _BENT, _MOVED = 2.0**-44, 1e-5, 1e-6
"""What part of the range a panel is at the least; what part of its range of values, and that of all of them, must not
be left to its last coefficients."""


def quad(trace: Trace, func: Any, a: Any, b: Any, args: Any = (), *rest: Any, **others: Any) -> Any:
    """The integral, and a bound of its error, from a sum over nodes; a guard says whether others need more."""
    others.update(zip(("epsabs", "epsrel", "limit", "points", "weight", "wvar"), rest, strict=False))
    args, points = args if isinstance(args, tuple) else (args,), others.pop("points", None)
    if others.pop("complex_func", False):
        parts = [
            quad(trace, lambda *given, part=part: part(func(*given)), a, b, args, points=points, **others)
            for part in (np.real, np.imag)
        ]
        return tuple(real + 1j * imaginary for real, imaginary in zip(*parts, strict=True))
    if others.get("weight"):
        with contextlib.suppress(Unweighted):
            plain = functools.partial(quad, trace)
            return weighted(trace, plain, lambda x: func(x, *args), a, b, others["weight"], others.get("wvar"))
        raise diverges(trace)
    if _depth.get() > 2 or len(around.get()) < _depth.get() == 2:
        raise trace.unrecorded(
            "scipy.integrate.quad within two others, for one node after another, or within three",
            "Integrate one of them by a formula, or write the integrand for arrays.",
        )
    ends = [a, *sorted(points if points is not None else ()), b]
    token = _depth.set(_depth.get() + 1)
    try:
        with moving_branches.integral(trace):
            found = [_between(trace, lambda x: func(x, *args), low, high) for low, high in itertools.pairwise(ends)]
    finally:
        _depth.reset(token)
    value = sum(value for value, _, _ in found)
    for point, (_, _, before), (_, _, after) in zip(ends[1:-1], found[:-1], found[1:], strict=True):
        if not is_tracer(point) and moving_branches.lie_between(before, after):
            value = _moved(trace, lambda x: func(x, *args), point, value)
    error = sum(error for _, error, _ in found)
    return value.item() if np.size(value) == 1 and hasattr(value, "item") else value, error


def _moved(trace: Trace, function: Callable[[Any], Any], point: float, total: Any) -> Any:
    """An integral over a branch that is at a plain ``point``, and moves away from it with the arguments."""
    near = point + _NARROW * max(abs(point), 1.0) * np.array([-1.0, -0.1, 0.1, 1.0])
    values = np.asarray(Sampled(concrete_function(trace, function))(near))
    # A kink leaves less of a difference the closer both sides are.
    wide, close = np.abs(values[3] - values[0]), np.abs(values[2] - values[1])
    if np.any(close > np.maximum(wide / 2, 1e-12 * np.max(np.abs(values), axis=0))):
        raise trace.refuse(
            f"scipy.integrate.quad has an integrand that jumps at {point}, one of points=, and elsewhere for other "
            "arguments: there is no derivative here.",
            "Compute that point from the arguments.",
        )
    return trace.ruled("_with_kinks", total)


def _between(trace: Trace, function: Callable[[Any], Any], a: Any, b: Any) -> tuple[Any, float, moving_branches.Sides]:
    is_finite = [bool(np.all(np.isfinite(each))) for each in (a, b)]
    if bool(np.all(a == b)) and not (is_finite[0] and is_tracer(b - a)):
        return 0.0, 0.0, {}
    if not np.shape(b - a) and bool(a > b):
        value, *rest = _between(trace, function, b, a)
        return -value, *rest
    ends = [each if fine else _infinity(each) for each, fine in zip((a, b), is_finite, strict=True)]
    plain = Sampled(concrete_function(trace, function))
    low, high = map(number_of, ends)
    if any(is_tracer(end) and _is_infinite(plain, x) for end, x in zip(ends, (low, high), strict=True)):
        raise trace.refuse(
            "scipy.integrate.quad has a traced limit at which the integrand is infinite, and so may the derivative be.",
            "If the singularity moves with the limit, integrate over the distance from it: the limit is 0 then.",
        )
    if all(is_finite) and bool(np.all(np.abs(b - a) <= _NARROW * np.abs(a))):
        # Where the old variable is rounded to an end, too much of the range would be left out.
        halves, cut = np.reshape((b - a) / 2, (*np.shape(b - a), 1)), 0.0
        nodes = _NODES
        with moving_branches.integrand(trace) as branches:
            rows = _rows(Sampled(function)((a + b) / 2 + (b - a) / 2 * column(nodes, b - a)))
    else:
        nodes, halves = _nodes(_panels(trace, lambda t: _transformed(plain, t, low, high), low, high))
        with moving_branches.integrand(trace) as branches:
            values = _transformed(Sampled(function, plain.takes_arrays), nodes, *ends)
        rows, cut = _rows(values), abs(values[0]) + abs(values[-1])
    sides = branches.sides(nodes)
    size = np.sum(np.abs(halves) * (np.abs(rows) @ _WEIGHTS), axis=-1)
    rough = np.sum(np.abs(halves)[..., None] * np.abs(rows @ _FINEST), axis=(-2, -1)) + cut
    if not bool(np.all(rough <= _GUARDED * size + _negligible(size))):
        raise diverges(trace)
    # QUADPACK's bound, from how much the last coefficients hold.
    size, rough = (np.asarray(number_of(each), float) for each in (size, rough))
    share = np.divide(200 * rough, size, out=np.zeros_like(rough), where=size != 0)
    total = np.sum(halves * (rows @ _WEIGHTS), axis=-1)
    total = trace.ruled("_with_kinks", total) if moving_branches.lie_between(sides) else total
    return total, float(np.max(size * np.minimum(_TOLERANCE, share**1.5))), sides


def _negligible(sizes: Any) -> Any:
    return _TINY + _LOST * np.max(sizes) if np.ndim(sizes) and len(sizes) > 1 else _TINY


def _infinity(end: Any) -> float:
    (sign,) = set(np.ravel(np.sign(number_of(end))))
    return math.copysign(math.inf, sign)


def _rows(values: Any) -> Any:
    """The values of each panel, which came one after another along the first axis, along the last one."""
    rows = np.reshape(values, (-1, _COUNT, *np.shape(values)[1:]))
    return np.moveaxis(rows, (0, 1), (-2, -1)) if np.ndim(rows) > 2 else rows


def _is_infinite(function: Sampled, x: Any) -> bool:
    with np.errstate(all="ignore"):
        try:
            return bool(np.all(np.isfinite(x))) and bool(np.any(np.isinf(function(np.asarray(x)[None]))))
        except ArithmeticError:
            return False


def _transformed(function: Callable[[Any], Any], t: Any, a: Any, b: Any) -> Any:
    """The integrand by the new variable."""
    outer = np.empty(around.get())
    t = column(t, outer)
    u, slope = math.pi / 2 * np.sinh(t), math.pi / 2 * np.cosh(t)
    infinite = [not np.shape(each) and bool(np.isinf(number_of(each))) for each in (a, b)]
    if all(infinite):
        return function(np.sinh(u)) * (slope * np.cosh(u))
    if infinite[1]:
        return function(a + np.exp(u)) * (slope * np.exp(u))
    if infinite[0]:
        return function(b - np.exp(-u)) * (slope * np.exp(-u))
    part = 1 / (1 + np.exp(2 * np.abs(u)))
    x = np.where(u < 0, a + (b - a) * part, b - (b - a) * part)
    return function(x) * ((b - a) * (2 * slope * part * (1 - part)))


def _reach(end: Any, other: Any) -> float:
    """How far the new variable ranges towards an end: short of where the old one is rounded to that."""
    with np.errstate(divide="ignore"):
        far = np.where(np.isfinite(other), np.sqrt(np.abs(other - end) / (_ROUNDED * np.abs(end))), 1.0)
        far = far if np.all(np.isfinite(other)) else 1 / (_ROUNDED * np.abs(end))
        least = np.arcsinh(2 / math.pi * np.log(np.maximum(far, 1.0)))
    return float(np.max(np.clip(least, 0.5, _WIDEST))) if np.all(np.isfinite(end)) else _WIDEST


def _panels(trace: Trace, integrand: Callable[[Any], Any], a: Any, b: Any) -> list[float]:
    """The ends of panels on which the integrand is resolved, over the range where it is not negligible."""
    count = 73 if around.get() else 145
    grid = np.linspace(-_reach(a, b), _reach(b, a), count)
    seen = np.reshape(np.abs(integrand(grid)), (count, -1))
    finite = np.isfinite(seen).all(axis=1)
    if not finite.any():
        raise diverges(trace)
    seen[~finite] = -1.0
    middle, peak = int(np.argmax(seen.sum(axis=1))), seen.max(axis=0)
    ample = np.flatnonzero((seen > _SMALL * peak).any(axis=1))
    broken = np.flatnonzero(~finite)
    low = max([max(ample[0] - 1, 0) if ample.size else 0, *(place + 1 for place in broken if place < middle)])
    high = min(
        [min(ample[-1] + 1, count - 1) if ample.size else count - 1, *(place - 1 for place in broken if place > middle)]
    )
    edges = list(np.linspace(grid[low], grid[high], 5))
    shortest = _SHORTEST * (edges[-1] - edges[0])
    for _ in range(60):
        nodes, halves = _nodes(edges)
        # Integrals around this one come first, then panels, then their nodes.
        rows = np.reshape(_rows(integrand(nodes)), (-1, len(halves), _COUNT))
        rough = np.abs(rows @ _FINEST).sum(axis=2)
        size = np.sum(halves * (np.abs(rows) @ _WEIGHTS), axis=1)[:, None]
        size = size + _negligible(size)
        if not np.all(np.isfinite(size)):
            raise diverges(trace)
        # The derivative needs more than the integral: a kink may move.
        spread, most = np.ptp(rows, axis=2), _MOVED * (peak + _negligible(peak))[:, None]
        bent = np.any((rough > _BENT * spread) & (spread > most), axis=0)
        # A jump may lie between the nodes of two panels.
        torn = np.any(np.abs(np.diff(np.reshape(rows @ _ENDS, (len(rows), -1)))[:, 1::2]) > most, axis=0)
        bent[:-1] |= torn
        bent[1:] |= torn
        is_coarse = np.sum(halves * rough, axis=1)[:, None] > _TOLERANCE * size
        coarse = np.any((halves * rough > _TOLERANCE * size / len(halves)) & is_coarse, axis=0)
        chosen = np.flatnonzero((coarse | bent) & (halves > shortest))
        if not chosen.size:
            if np.any(bent) or np.any(coarse):
                raise diverges(trace)
            return edges
        if len(edges) > _MOST:
            break
        edges = sorted([*edges, *(0.5 * (edges[place] + edges[place + 1]) for place in chosen)])
    raise diverges(trace)


def _nodes(edges: Sequence[float]) -> tuple[Any, Any]:
    """The nodes of all panels, one panel after another, and half of the width of each."""
    begin, end = np.asarray(edges[:-1]), np.asarray(edges[1:])
    halves = (end - begin) / 2
    return np.ravel((begin + end)[:, None] / 2 + halves[:, None] * _NODES), halves


class Divergent(Exception):
    """No nodes are enough for an integral, also not where its branches are seen."""


UNRESOLVED = "Split the interval by points= where it jumps or is steep, or give the function that integrates a rule."


def diverges(trace: Trace, name: str = "quad") -> Exception:
    """The refusal of an integral."""
    if around.get():
        return Coarse()
    if trace.reads:
        return Divergent()
    return trace.refuse(f"scipy.integrate.{name} of a traced integrand does not converge.", UNRESOLVED)


def is_nested() -> bool:
    """Whether an integral is recorded around this call."""
    return _depth.get() > 0
