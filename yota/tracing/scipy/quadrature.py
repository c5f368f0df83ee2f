"""Integrals of the functions that SciPy is given; triple ones by products of Gauss rules.

Integrals are recorded as sums over nodes that are chosen as the function is recorded. H. Takahasi, M. Mori, Double
exponential formulas for numerical integration, Publ. RIMS 9 (1974): a change of variable takes singularities at the
ends away; Gauss-Legendre rules on panels, halved where they are too coarse, sum the rest.
"""

from __future__ import annotations

import contextvars
import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

from yota.tracing.forms import Trace, calls_back, is_tracer, np
from yota.tracing.scipy.callbacks import concrete_function

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
_DEEPEST = 2
"""How many integrals may be nested: with three, nodes are millions."""
_depth = contextvars.ContextVar("_depth", default=0)
_SHORTEST, _BENT, _MOVED = 2.0**-44, 1e-5, 1e-6
"""What part of the range a panel is at the least; what part of its range of values, and that of all of them, must not
be left to its last coefficients."""


@calls_back("scipy.integrate", "quad")
def _quad(
    trace: Trace, func: Any, a: Any, b: Any, args: Any = (), full_output: int = 0, *rest: Any, **others: Any
) -> Any:
    """The integral, and a bound of its error, from a sum over nodes; a guard says whether others need more."""
    others.update(zip(("epsabs", "epsrel", "limit", "points", "weight", "wvar"), rest, strict=False))
    args, points = args if isinstance(args, tuple) else (args,), others.pop("points", None)
    if others.pop("complex_func", False):
        parts = [
            _quad(trace, lambda *given, part=part: part(func(*given)), a, b, args, full_output, points=points, **others)
            for part in (np.real, np.imag)
        ]
        return tuple(real + 1j * imaginary for real, imaginary in zip(*parts, strict=True))
    wave = {"cos": np.cos, "sin": np.sin}.get(others.get("weight") or "")
    if wave is not None and bool(np.isfinite(a)) and bool(np.isfinite(b)):
        others.pop("weight")
        return _quad(trace, lambda x: func(x, *args) * wave(others["wvar"] * x), a, b, (), full_output)
    if full_output or others.get("weight"):
        raise trace.unrecorded(
            "scipy.integrate.quad with full_output, or a weight that is no wave between finite limits",
            "Leave it out, or write the weight into the integrand.",
        )
    if _depth.get() == _DEEPEST:
        raise trace.unrecorded("scipy.integrate.quad within two others", "Integrate one of them by a formula.")
    ends = [a, *sorted(points if points is not None else ()), b]
    token = _depth.set(_depth.get() + 1)
    try:
        found = [_between(trace, lambda x: func(x, *args), low, high) for low, high in itertools.pairwise(ends)]
    finally:
        _depth.reset(token)
    value = sum(value for value, _ in found)
    return value.item() if hasattr(value, "item") else value, sum(error for _, error in found)


def _between(trace: Trace, function: Callable[[Any], Any], a: Any, b: Any) -> tuple[Any, float]:
    if bool(a == b) and not (bool(np.isfinite(a)) and is_tracer(b - a)):
        return 0.0, 0.0
    if bool(a > b):
        value, error = _between(trace, function, b, a)
        return -value, error
    ends = [each if bool(np.isfinite(each)) else math.copysign(math.inf, number_of(each)) for each in (a, b)]
    plain = Sampled(concrete_function(trace, function))
    low, high = map(number_of, ends)
    if any(is_tracer(end) and _is_infinite(plain, x) for end, x in zip(ends, (low, high), strict=True)):
        raise trace.refuse(
            "scipy.integrate.quad has a traced limit at which the integrand is infinite, and so may the derivative be.",
            "If the singularity moves with the limit, integrate over the distance from it: the limit is 0 then.",
        )
    if math.isfinite(high - low) and bool(b - a <= _NARROW * np.abs(a)):
        # Where the old variable is rounded to an end, too much of the range would be left out.
        halves, cut = np.reshape((b - a) / 2, (1,)), 0.0
        rows = Sampled(function)((a + b) / 2 + (b - a) / 2 * _NODES)[None]
    else:
        nodes, halves = _nodes(_panels(trace, lambda t: _transformed(plain, t, low, high), low, high))
        values = _transformed(Sampled(function, plain.takes_arrays), nodes, *ends)
        rows, cut = np.reshape(values, (-1, _COUNT)), abs(values[0]) + abs(values[-1])
    size = np.sum(halves * (np.abs(rows) @ _WEIGHTS))
    rough = np.sum(halves[:, None] * np.abs(rows @ _FINEST)) + cut
    if not bool(rough <= _GUARDED * size):
        raise diverges(trace)
    # QUADPACK's bound, from how much the last coefficients hold.
    size, rough = float(number_of(size)), float(number_of(rough))
    error = size * min(_TOLERANCE, (200 * rough / size) ** 1.5) if size else 0.0
    return np.sum(halves * (rows @ _WEIGHTS)), error


def _is_infinite(function: Sampled, x: float) -> bool:
    with np.errstate(all="ignore"):
        try:
            return math.isfinite(x) and bool(np.isinf(function(np.array([x]))[0]))
        except ArithmeticError:
            return False


def number_of(value: Any) -> Any:
    """What a value is, which may be traced."""
    return value._value() if is_tracer(value) else value


class Sampled:
    """A function for arrays of nodes: at once if it takes arrays, else one after another; None to find out."""

    def __init__(self, function: Callable[[Any], Any], takes_arrays: bool | None = None) -> None:
        self._function, self.takes_arrays = function, takes_arrays

    def __call__(self, x: Any) -> Any:
        """The values at the nodes, one after another."""
        found = self._at_once(x) if self.takes_arrays in (True, None) else None
        if self.takes_arrays is None:
            self.takes_arrays = found is not None and self._agrees(x, number_of(found))
        if found is not None and self.takes_arrays:
            return found
        rows = [np.ravel(self._function(each)) for each in x]
        if any(len(row) != 1 for row in rows):
            raise TypeError("scipy.integrate.quad takes an integrand that gives one number")
        return np.concatenate(rows)

    def _at_once(self, x: Any) -> Any:
        try:
            found = self._function(x)
        except (ValueError, TypeError):
            return None
        return found if np.shape(found) == x.shape else None

    def _agrees(self, x: Any, found: Any) -> bool:
        """Whether it gives the same for some numbers by themselves."""
        probes = [0, len(x) // 2, len(x) - 1]
        one = [np.ravel(number_of(self._function(x[place]))) for place in probes]
        return all(np.size(each) == 1 for each in one) and bool(
            np.allclose(found[probes], np.concatenate(one), rtol=1e-12, equal_nan=True)
        )


def _transformed(function: Callable[[Any], Any], t: Any, a: Any, b: Any) -> Any:
    """The integrand by the new variable."""
    u, slope = math.pi / 2 * np.sinh(t), math.pi / 2 * np.cosh(t)
    if a == -math.inf and b == math.inf:
        return function(np.sinh(u)) * (slope * np.cosh(u))
    if b == math.inf:
        return function(a + np.exp(u)) * (slope * np.exp(u))
    if a == -math.inf:
        return function(b - np.exp(-u)) * (slope * np.exp(-u))
    part = 1 / (1 + np.exp(2 * np.abs(u)))
    x = np.where(u < 0, a + (b - a) * part, b - (b - a) * part)
    return function(x) * ((b - a) * (2 * slope * part * (1 - part)))


def _reach(end: float, other: float) -> float:
    """How far the new variable ranges towards an end: short of where the old one is rounded to that."""
    if not (math.isfinite(end) and end):
        return _WIDEST
    least = _ROUNDED * abs(end)
    u = 0.5 * math.log(abs(other - end) / least) if math.isfinite(other) else -math.log(least)
    return min(max(math.asinh(2 * u / math.pi), 0.5), _WIDEST)


def _panels(trace: Trace, integrand: Callable[[Any], Any], a: float, b: float) -> list[float]:
    """The ends of panels on which the integrand is resolved, over the range where it is not negligible."""
    grid = np.linspace(-_reach(a, b), _reach(b, a), 145)
    seen = np.abs(integrand(grid))
    finite = np.isfinite(seen)
    if not finite.any():
        raise diverges(trace)
    middle = int(np.argmax(np.where(finite, seen, -1.0)))
    ample = np.flatnonzero(finite & (seen > _SMALL * seen[middle]))
    broken = np.flatnonzero(~finite)
    low = max([max(ample[0] - 1, 0) if ample.size else 0, *(place + 1 for place in broken if place < middle)])
    high = min([min(ample[-1] + 1, 144) if ample.size else 144, *(place - 1 for place in broken if place > middle)])
    edges = list(np.linspace(grid[low], grid[high], 5))
    peak, shortest = seen[middle], _SHORTEST * (edges[-1] - edges[0])
    for _ in range(60):
        nodes, halves = _nodes(edges)
        rows = np.reshape(integrand(nodes), (-1, _COUNT))
        rough = np.abs(rows @ _FINEST).sum(axis=1)
        size = float(np.sum(halves * (np.abs(rows) @ _WEIGHTS)))
        if not math.isfinite(size):
            raise diverges(trace)
        # The derivative needs more than the integral: a kink may move.
        spread = np.ptp(rows, axis=1)
        bent = (rough > _BENT * spread) & (spread > _MOVED * peak)
        # A jump may lie between the nodes of two panels.
        torn = np.abs(np.diff(np.ravel(rows @ _ENDS))[1::2]) > _MOVED * peak
        bent[:-1] |= torn
        bent[1:] |= torn
        coarse = (halves * rough > _TOLERANCE * size / len(rough)) & (np.sum(halves * rough) > _TOLERANCE * size)
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


def diverges(trace: Trace, name: str = "quad") -> Exception:
    """The refusal of an integral."""
    return trace.refuse(
        f"scipy.integrate.{name} of a traced integrand does not converge.",
        "Split the interval by points= where it jumps or is steep, or give the function that integrates a rule.",
    )


_GRIDS = (8, 12, 18, 27)
"""Nodes along each axis of a triple integral."""


@calls_back("scipy.integrate", "tplquad")
def _triple(
    trace: Trace, func: Any, a: Any, b: Any, gfun: Any, hfun: Any, qfun: Any, rfun: Any, *rest: Any, **named: Any
) -> Any:
    """By products of Gauss-Legendre rules, of which two must agree."""
    args, last = rest[0] if rest else named.get("args", ()), None
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
