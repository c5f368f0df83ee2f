"""Laws of adjoints along random directions, and of generated code: all layouts, and differentiated again."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from yota.errors import RuleError
from yota.ir.types import type_of
from yota.rules.algebras.emitted import evaluate
from yota.rules.language.model import Rule
from yota.rules.language.statics import normalised
from yota.rules.laws import trials
from yota.rules.laws.sampling import defaults
from yota.rules.laws.trials import inner, random_like
from yota.rules.proof.compiled_rule import LONG, Specimen, differentiable, gradient, results, second, specimens
from yota.rules.proof.findings import Finding, finding, measured, unmeasured
from yota.rules.proof.sample_points import drawn
from yota.rules.registry import Registry

_DIRECTION = 1e-6
_LINEAR = 1e-12
_NOTHING = "no operands could be made up from the pattern"


def directions(rule: Rule, registry: Registry) -> Iterator[Finding]:
    """Adjoints against central differences, one operand after the other, for each specimen."""
    law = "adjoint, random directions"
    known = specimens(rule, registry)
    moved: dict[str, list[tuple[Specimen, int]]] = {}
    for specimen in known:
        for position in differentiable(rule, specimen.operands):
            name = rule.operands[min(position, len(rule.operands) - 1)].name
            moved.setdefault(name, []).append((specimen, position))
    for name, cases in moved.items():
        errors = ((specimen, partial(_direction, rule, specimen, position, registry)) for specimen, position in cases)
        found = measured(rule, name, law, _DIRECTION, errors)
        yield found
        if found.error == "failed":
            return
    if not known:
        yield unmeasured(rule, "", law, _NOTHING)


def _direction(rule: Rule, specimen: Specimen, position: int, registry: Registry) -> float:
    given, keywords, symmetric = specimen.operands, specimen.keywords, specimen.symmetric
    pull = trials.adjoint if rule.equation is None else _generated
    return trials.direction_error(rule, position, given, keywords, registry, seed=1, symmetric=symmetric, adjoint=pull)


def _generated(
    rule: Rule, position: int, given: Sequence[Any], keywords: Any, seeds: Sequence[Any], registry: Registry
) -> Any:
    """The adjoint of one operand by generated code, for rules that do not write it."""
    found = gradient(rule, given, keywords, seeds[0], registry)
    return dict(zip(found.wanted, found(*given, seeds[0]), strict=True))[position]


def linearity(rule: Rule, registry: Registry) -> Iterator[Finding]:
    """That a ``@linear`` function is linear in its first operand, at random combinations."""
    law, known = "linear in its first operand", specimens(rule, registry)
    errors = ((each, partial(trials.linear_error, rule, each.operands, each.keywords, registry)) for each in known)
    yield measured(rule, rule.linear, law, _LINEAR, errors, otherwise=_NOTHING)


def complex_directions(rule: Rule, registry: Registry) -> Iterator[Finding]:
    """Partials of an elementwise rule at complex points, where all of its operands are complex."""
    if {each.domain.kind for each in rule.operands if each.domain is not None} != {"complex"}:
        return
    random = np.random.default_rng(3)
    given = [0.4 + 0.3 * random.random(4) + 1j * (0.2 + 0.4 * random.random(4)) for _ in rule.operands]
    for position in differentiable(rule, given):
        error = trials.direction_error(rule, position, given, defaults(rule), registry)
        yield finding(rule, rule.operands[position].name, "partial, complex directions", error, _DIRECTION)


def types(rule: Rule, registry: Registry) -> Iterator[Finding]:
    """Each adjoint has its operand's shape and dtype, in single precision too."""
    cases = itertools.product(specimens(rule, registry), (np.asarray, _single))
    errors = ((each, partial(_mistyped, rule, each, registry, cast)) for each, cast in cases)
    yield measured(rule, "", "adjoint, shape and dtype", 0.0, errors)


def _single(operand: Any) -> Any:
    array = np.asarray(operand)
    return array.astype({"f": np.float32, "c": np.complex64}.get(array.dtype.kind, array.dtype))


def _mistyped(rule: Rule, specimen: Specimen, registry: Registry, cast: Any) -> float:
    given = tuple(map(cast, specimen.operands))
    found = results(rule, given, specimen.keywords, registry)
    seeds = tuple(map(np.ones_like, found))
    for position in differentiable(rule, given):
        adjoint = _adjoint(rule, position, given, specimen, seeds, registry)
        # A real operand of a complex function: the engine takes the real part, and the precision counts.
        widest = max(each.real.dtype.itemsize for each in (given[position], *found))
        _refuse(adjoint, given[position], adjoint.real.dtype.itemsize > widest)
    return 0.0


def _adjoint(
    rule: Rule, position: int, given: Sequence[Any], specimen: Specimen, seeds: tuple[Any, ...], registry: Registry
) -> Any:
    pull = trials.adjoint if rule.equation is None else _generated
    return np.asarray(pull(rule, position, given, specimen.keywords, seeds, registry))


def _refuse(found: Any, own: Any, is_wrong: bool) -> None:
    if found.shape != own.shape or is_wrong:
        raise RuleError(f"{found.dtype}{list(found.shape)} for an operand {own.dtype}{list(own.shape)}")


def code(rule: Rule, registry: Registry) -> Iterator[Finding]:
    """Generated code for strided operands and axes counted from the back, against the rule's own adjoint."""
    cases = itertools.product(specimens(rule, registry), range(len(rule.results)))
    errors = ((each, partial(_code_error, rule, each, registry, result)) for each, result in cases)
    yield measured(rule, "", "float64 code, strided, negative axes", 1e-9, errors, may_refuse=True)


def _code_error(rule: Rule, specimen: Specimen, registry: Registry, result: int) -> float:
    given = [_strided(operand) for operand in specimen.operands]
    values = results(rule, given, specimen.keywords, registry)
    if values[result].dtype.kind not in "fc":
        return 0.0
    weights = trials.random_like(np.random.default_rng(2), values[result])[()]
    seeds = tuple(weights if number == result else np.zeros_like(each) for number, each in enumerate(values))
    keywords = {name: _from_back(name, value, given) for name, value in specimen.keywords.items()}
    keywords = normalised(rule.name, keywords, tuple(map(type_of, given)))
    compiled = gradient(rule, given, keywords, weights, registry, result=result)
    worst = 0.0
    for position, slope in zip(compiled.wanted, compiled(*given, weights), strict=True):
        own = np.asarray(given[position])
        expected = _adjoint(rule, position, given, specimen, seeds, registry)
        expected = expected if own.dtype.kind == "c" else np.real(expected)
        found = np.zeros(own.shape) if slope is None else np.asarray(slope)
        _refuse(found, own, found.dtype.itemsize > own.dtype.itemsize)
        scale = max(float(np.max(abs(expected), initial=0.0)), 1e-300)
        worst = max(worst, float(np.max(abs(found - expected), initial=0.0)) / scale)
    return worst


def _strided(operand: Any) -> Any:
    """The same elements, not in one piece."""
    array = np.asarray(operand)
    return np.repeat(array, 2, axis=-1)[..., ::2] if array.ndim else operand


def _from_back(name: str, value: Any, given: Sequence[Any]) -> Any:
    if name != "axis" or value is None or not np.ndim(given[0]):
        return value
    return tuple(each - np.ndim(given[0]) for each in value) if isinstance(value, tuple) else value


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
            _refuse(adjoint, own, adjoint.dtype != own.dtype)
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
