"""Laws of generated code: for operands of all layouts, and differentiated again."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from yota.errors import RuleError
from yota.rules.algebras.emitted import evaluate
from yota.rules.language.model import Rule
from yota.rules.laws import trials
from yota.rules.laws.sampling import defaults
from yota.rules.laws.trials import inner, random_like
from yota.rules.proof.compiled_rule import LONG, gradient, results, second
from yota.rules.proof.findings import Finding, measured
from yota.rules.proof.sample_points import drawn
from yota.rules.proof.specimens import Specimen, specimens
from yota.rules.registry import Registry

_SECOND = 1e-5
_STEP = 1e-5
_Shapes = tuple[tuple[int, ...], ...]


def layouts(rule: Rule, registry: Registry) -> Iterator[Finding]:
    """Generated code for broadcast, 0-d, empty and strided operands, against one element at a time."""
    places = drawn(rule, registry, 12)
    columns = [[place[each.name] for place in places] for each in rule.operands]
    errors = (
        (f"shapes {', '.join(map(str, shapes))}", partial(_layout_error, rule, columns, shapes, registry))
        for shapes in _shapes(len(rule.operands))
    )
    yield measured(rule, "", "broadcast, 0-d, empty, strided", 1e-12, errors)


def _shapes(count: int) -> Iterator[_Shapes]:
    """Shapes of the operands: all alike, of which one stretches, of which one is empty.

    Arrays are long enough to be computed as such, and do not fall apart into numbers.
    """
    for shape in ((), (0, 3), (9, 8)):
        yield (shape,) * count
    if count > 1:
        yield ((9, 1), *((8,) for _ in range(count - 1)))
        yield (*((2, 1, 36) for _ in range(count - 1)), ())


def _shaped(values: Sequence[Any], shape: tuple[int, ...]) -> Any:
    """Numbers in ``shape``; an array does not lie in one piece."""
    filled = np.resize(np.asarray(values), (*shape[:-1], 2 * shape[-1]) if shape else (1,))
    return filled[..., ::2][...] if shape else filled[0]


def _layout_error(rule: Rule, columns: Sequence[Any], shapes: _Shapes, registry: Registry) -> float:
    given = [_shaped(values, shape) for values, shape in zip(columns, shapes, strict=True)]
    whole = [np.array(each) for each in np.broadcast_arrays(*given)]
    point = {each.name: value for each, value in zip(rule.operands, whole, strict=True)}
    worst = 0.0
    for number, result in enumerate(results(rule, given, defaults(rule), registry)):
        weights = np.resize(np.array([1.0, -0.5, 2.0]), result.shape).astype(result.dtype)
        compiled = gradient(rule, given, defaults(rule), weights[()], registry, result=number)
        for position, slope in zip(compiled.wanted, compiled(*given, weights[()]), strict=True):
            if slope is None:
                continue
            own, adjoint = np.asarray(given[position]), np.asarray(slope)
            if adjoint.shape != own.shape or adjoint.dtype != own.dtype:
                raise RuleError(f"{adjoint.dtype}{list(adjoint.shape)} for {own.dtype}{list(own.shape)}")
            name = rule.operands[position].name
            partials = np.conjugate(trials.partial(rule, name, point, registry, rule.results[number])) * weights
            partials = np.broadcast_to(partials if own.dtype.kind == "c" else np.real(partials), result.shape)
            scale = np.maximum(_summed(abs(partials), own.shape), 1e-300)
            error = abs(adjoint - _summed(partials, own.shape)) / scale
            worst = max(worst, float(np.max(error, initial=0.0)))
    return worst


def _summed(value: Any, shape: tuple[int, ...]) -> Any:
    extra = value.ndim - len(shape)
    axes = tuple(axis for axis in range(value.ndim) if axis < extra or shape[axis - extra] == 1 != value.shape[axis])
    return np.sum(value, axis=axes).reshape(shape)


def second_order(rule: Rule, registry: Registry) -> Iterator[Finding]:
    """The gradient of a directional derivative against central differences of the generated gradient."""
    cases = itertools.product(_calls(rule, registry), range(len(rule.results)))
    errors = ((call, partial(_second_error, rule, call, registry, result)) for call, result in cases)
    yield measured(rule, "", "second order", _SECOND, errors, may_refuse=True)


def _calls(rule: Rule, registry: Registry) -> Iterator[Specimen]:
    if rule.kind == "tensor":
        plain = (each for each in specimens(rule, registry) if _plain(rule, each, registry))
        yield from itertools.islice(plain, 2)
        return
    found = drawn(rule, registry, 4)
    if found:
        columns = (np.resize([point[each.name] for point in found], LONG) for each in rule.operands)
        yield Specimen(tuple(columns), defaults(rule))


def _plain(rule: Rule, specimen: Specimen, registry: Registry) -> bool:
    """Whether the rule's conditions hold for all elements."""
    names = dict(zip((each.name for each in rule.operands), specimen.operands, strict=False))
    return all(np.all(evaluate(kink, names, registry)) for kink in rule.kinks)


def _second_error(rule: Rule, call: Specimen, registry: Registry, number: int) -> float:
    given = call.operands
    result = results(rule, given, call.keywords, registry)[number]
    if result.dtype.kind not in "fc":
        return 0.0
    random = np.random.default_rng(5)
    weights = random_like(random, result)[()]
    first = gradient(rule, given, call.keywords, weights, registry, result=number)
    found = zip(first.wanted, first(*given, weights), strict=True)
    along = {position: random_like(random, given[position]) for position, slope in found if slope is not None}
    if not along:
        return 0.0
    if call.symmetric:
        along = {position: each + np.conjugate(np.swapaxes(each, -1, -2)) for position, each in along.items()}
    moves = list(along.values())
    bent = second(first, (*given, weights), moves, rule, registry)
    steep = dict(zip(bent.wanted, bent(*given, weights, *moves), strict=True))

    def off(position: int) -> float:
        """How far a second derivative is from differences of the first one, by one operand."""

        def slope(shift: float) -> float:
            moved = [each + shift * along[n] if n == position else each for n, each in enumerate(given)]
            slopes = dict(zip(first.wanted, first(*moved, weights), strict=True))
            return sum(inner(move, slopes[place]) for place, move in along.items())

        near, far = (slope(step) - slope(-step) for step in (_STEP, 2 * _STEP))
        expected = (8 * near - far) / (12 * _STEP)
        claimed = 0.0 if steep.get(position) is None else inner(along[position], steep[position])
        return abs(claimed - expected) / max(abs(claimed), abs(expected), abs(slope(0.0)), 1e-2)

    return max(map(off, along))
