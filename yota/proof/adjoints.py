"""Laws of adjoints: along random directions, shapes and dtypes, other layouts of memory, and the second order."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from yota.errors import DifferentiationError, RuleError, YotaError
from yota.ir.types import type_of
from yota.proof.compiled import LONG, Compiled, differentiable, gradient, results, second
from yota.proof.findings import Finding, finding
from yota.proof.places import drawn
from yota.proof.specimens import Specimen, specimens
from yota.rules import trials
from yota.rules.body import evaluate
from yota.rules.model import Rule
from yota.rules.registry import Registry
from yota.rules.sampling import statics
from yota.rules.statics import normalised

__all__ = ["code", "complex_directions", "directions", "layouts", "second_order", "types"]

_DIRECTION = 1e-6
_SECOND = 1e-5
_FAULTS = (YotaError, TypeError, ValueError, ArithmeticError, AttributeError, IndexError, np.linalg.LinAlgError)


def _name(rule: Rule, position: int) -> str:
    return rule.operands[min(position, len(rule.operands) - 1)].name


def directions(rule: Rule, registry: Registry) -> Iterator[Finding]:
    """Adjoints against central differences, one operand after the other, for each specimen."""
    law = "adjoint, random directions"
    worst: dict[str, tuple[float, str]] = {}
    known = specimens(rule, registry)
    for specimen in known:
        for position in differentiable(rule, specimen.operands):
            name = _name(rule, position)
            try:
                error = trials.direction_error(
                    rule,
                    specimen.operands,
                    specimen.keywords,
                    registry,
                    seed=1,
                    only=position,
                    symmetric=specimen.symmetric,
                )
            except (AssertionError, *_FAULTS) as fault:
                yield Finding(
                    rule.name, name, law, "failed", f"{rule.file}:{rule.line}, {specimen}", False, _first(fault)
                )
                return
            if not error <= worst.get(name, (-1.0, ""))[0]:
                worst[name] = error, str(specimen)
    for name, (error, place) in worst.items():
        yield finding(rule, name, law, error, _DIRECTION, place=place)
    if not known:
        note = "not measured: no operands could be made up from the pattern"
        yield finding(rule, "", law, 0.0, 0.0, note=note)


def complex_directions(rule: Rule, registry: Registry) -> Iterator[Finding]:
    """Partials of an elementwise rule at complex points, where all of its operands are complex."""
    kinds = [each.domain.kind for each in rule.operands if each.domain is not None]
    if not kinds or set(kinds) != {"complex"}:
        return
    random = np.random.default_rng(3)
    given = [0.4 + 0.3 * random.random(4) + 1j * (0.2 + 0.4 * random.random(4)) for _ in kinds]
    keywords = {name: value.value for name, value in statics(rule).items()}
    for position, operand in enumerate(rule.operands):
        error = trials.direction_error(rule, given, keywords, registry, only=position)
        yield finding(rule, operand.name, "partial, complex directions", error, _DIRECTION)


def types(rule: Rule, registry: Registry) -> Iterator[Finding]:
    """Each adjoint has its operand's shape and dtype, in single precision too."""
    law = "adjoint, shape and dtype"
    for specimen in specimens(rule, registry):
        for single in (False, True):
            given = tuple(_cast(operand) if single else np.asarray(operand) for operand in specimen.operands)
            fault = _mistyped(rule, given, specimen, registry)
            if fault:
                yield _failed(rule, law, specimen, RuleError(fault))
                return
    yield finding(rule, "", law, 0.0, 0.0)


def _cast(operand: Any) -> Any:
    array = np.asarray(operand)
    return array.astype({"f": np.float32, "c": np.complex64}.get(array.dtype.kind, array.dtype))


def _mistyped(rule: Rule, given: Sequence[Any], specimen: Specimen, registry: Registry) -> str:
    found = results(rule, given, specimen.keywords, registry)
    seeds = tuple(map(np.ones_like, found))
    for position in differentiable(rule, given):
        adjoint = np.asarray(
            trials.adjoint(rule, position, given, specimen.keywords, seeds if len(seeds) > 1 else seeds[0], registry)
        )
        own = np.asarray(given[position])
        # A real operand of a complex function: the engine takes the real part, and the precision counts.
        widest = max(each.real.dtype.itemsize for each in (own, *found))
        if adjoint.shape != own.shape or adjoint.real.dtype.itemsize > widest:
            return f"{adjoint.dtype}{list(adjoint.shape)} for an operand {own.dtype}{list(own.shape)}"
    return ""


def code(rule: Rule, registry: Registry) -> Iterator[Finding]:
    """Generated code for strided operands and axes counted from the back, against the rule's own adjoint."""
    law = "float64 code, strided, negative axes"
    worst, place = 0.0, ""
    for specimen, result in itertools.product(specimens(rule, registry), range(len(rule.results))):
        try:
            error = _code_error(rule, specimen, registry, result)
        except DifferentiationError as fault:
            yield finding(rule, "", law, 0.0, 0.0, note=f"refused: {_first(fault)}")
            return
        except _FAULTS as fault:
            yield _failed(rule, law, specimen, fault)
            return
        if not error <= worst:
            worst, place = error, str(specimen)
    yield finding(rule, "", law, worst, 1e-9, place=place)


def _code_error(rule: Rule, specimen: Specimen, registry: Registry, result: int) -> float:
    given = [_strided(operand) for operand in specimen.operands]
    values = results(rule, given, specimen.keywords, registry)
    if values[result].dtype.kind not in "fc":
        return 0.0
    weights = _random(np.random.default_rng(2), values[result])[()]
    seeds = tuple(weights if number == result else np.zeros_like(each) for number, each in enumerate(values))
    keywords = {name: _from_back(name, value, given) for name, value in specimen.keywords.items()}
    keywords = normalised(rule.name, keywords, tuple(map(type_of, given)))
    compiled = gradient(rule, given, keywords, weights, registry, result=result)
    worst = 0.0
    for position, found in zip(compiled.wanted, compiled(*given, weights), strict=True):
        own = np.asarray(given[position])
        expected = np.asarray(
            trials.adjoint(rule, position, given, specimen.keywords, seeds[0] if len(seeds) == 1 else seeds, registry)
        )
        expected = expected if own.dtype.kind == "c" else np.real(expected)
        found = np.zeros(own.shape) if found is None else np.asarray(found)
        if found.shape != own.shape or found.dtype.itemsize > own.dtype.itemsize:
            raise RuleError(f"{found.dtype}{list(found.shape)} for an operand {own.dtype}{list(own.shape)}")
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


def layouts(rule: Rule, registry: Registry) -> Iterator[Finding]:
    """Generated code for broadcast, 0-d, empty and strided operands, against one element at a time."""
    law = "broadcast, 0-d, empty, strided"
    worst, place = 0.0, ""
    keywords = {name: value.value for name, value in statics(rule).items()}
    places = drawn(rule, registry, 12)
    for shapes in _shapes(len(rule.operands)):
        given = [
            _shaped([place[each.name] for place in places], shape)
            for each, shape in zip(rule.operands, shapes, strict=True)
        ]
        try:
            error = max(_layout_error(rule, given, keywords, registry, number) for number in range(len(rule.results)))
        except _FAULTS as fault:
            yield _failed(rule, law, shapes, fault)
            return
        if not error <= worst:
            worst, place = error, f"shapes {', '.join(map(str, shapes))}"
    yield finding(rule, "", law, worst, 1e-12, place=place)


def _shapes(count: int) -> Iterator[tuple[tuple[int, ...], ...]]:
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


def _layout_error(rule: Rule, given: list[Any], keywords: dict[str, Any], registry: Registry, number: int) -> float:
    result = results(rule, given, keywords, registry)[number]
    weights = np.resize(np.array([1.0, -0.5, 2.0]), result.shape).astype(result.dtype)
    compiled = gradient(rule, given, keywords, weights[()], registry, result=number, once=True)
    worst = 0.0
    for position, adjoint in zip(compiled.wanted, compiled(*given, weights[()]), strict=True):
        own = np.asarray(given[position])
        if adjoint is None:
            continue
        adjoint = np.asarray(adjoint)
        if adjoint.shape != own.shape or adjoint.dtype != own.dtype:
            raise RuleError(f"{adjoint.dtype}{list(adjoint.shape)} for {own.dtype}{list(own.shape)}")
        whole = [np.array(each) for each in np.broadcast_arrays(*given)]
        point = {each.name: value for each, value in zip(rule.operands, whole, strict=True)}
        slope = (
            np.conjugate(trials.partial(rule, rule.operands[position].name, point, registry, rule.results[number]))
            * weights
        )
        slope = np.broadcast_to(slope if own.dtype.kind == "c" else np.real(slope), result.shape)
        expected = _summed(slope, own.shape)
        scale = np.maximum(_summed(abs(slope), own.shape), 1e-300)
        worst = max(worst, float(np.max(abs(adjoint - expected) / scale, initial=0.0)))
    return worst


def _summed(value: Any, shape: tuple[int, ...]) -> Any:
    extra = value.ndim - len(shape)
    axes = tuple(axis for axis in range(value.ndim) if axis < extra or shape[axis - extra] == 1 != value.shape[axis])
    return np.sum(value, axis=axes).reshape(shape)


def second_order(rule: Rule, registry: Registry) -> Iterator[Finding]:
    """The gradient of a directional derivative against central differences of the generated gradient."""
    law = "second order"
    worst, place = 0.0, ""
    for (given, keywords, symmetric), result in itertools.product(_calls(rule, registry), range(len(rule.results))):
        try:
            error = _second_error(rule, given, keywords, registry, symmetric, result)
        except DifferentiationError as fault:
            yield finding(rule, "", law, 0.0, 0.0, note=f"refused: {_first(fault)}")
            return
        except _FAULTS as fault:
            yield _failed(rule, law, Specimen(tuple(given), keywords), fault)
            return
        if not error <= worst:
            worst, place = error, str(Specimen(tuple(given), keywords))
    yield finding(rule, "", law, worst, _SECOND, place=place)


def _calls(rule: Rule, registry: Registry) -> Iterator[tuple[list[Any], dict[str, Any], bool]]:
    if rule.kind == "tensor":
        plain = (each for each in specimens(rule, registry) if _plain(rule, each, registry))
        for specimen in itertools.islice(plain, 2):
            yield list(specimen.operands), specimen.keywords, specimen.symmetric
        return
    found = drawn(rule, registry, 4)
    if found:
        columns = [np.resize([point[each.name] for point in found], LONG) for each in rule.operands]
        yield columns, {name: value.value for name, value in statics(rule).items()}, False


def _plain(rule: Rule, specimen: Specimen, registry: Registry) -> bool:
    """Whether the rule's conditions hold for all elements."""
    names = dict(zip((each.name for each in rule.operands), specimen.operands, strict=False))
    return all(np.all(evaluate(kink, names, registry)) for kink in rule.kinks)


def _second_error(
    rule: Rule, given: list[Any], keywords: dict[str, Any], registry: Registry, symmetric: bool, number: int
) -> float:
    result = results(rule, given, keywords, registry)[number]
    if result.dtype.kind not in "fc":
        return 0.0
    random = np.random.default_rng(5)
    weights = _random(random, result)[()]
    first = gradient(rule, given, keywords, weights, registry, result=number, once=True)
    found = first(*given, weights)
    active = [position for position, slope in zip(first.wanted, found, strict=True) if slope is not None]
    if not active:
        return 0.0
    along = {position: _random(random, given[position]) for position in active}
    if symmetric:
        along = {position: each + np.conjugate(np.swapaxes(each, -1, -2)) for position, each in along.items()}
    moves = list(along.values())
    bent = second(first, (*given, weights), moves, rule, registry)
    steep = dict(zip(bent.wanted, bent(*given, weights, *moves), strict=True))
    return max(_bend(first, given, weights, along, steep, position, along[position]) for position in active)


def _bend(
    first: Compiled,
    given: list[Any],
    weights: Any,
    along: dict[int, Any],
    steep: dict[int, Any],
    position: int,
    direction: Any,
) -> float:
    """How far a second derivative is from differences of the first one, by the operand at ``position``."""
    step = 1e-5

    def slope(shift: float) -> float:
        moved = [value + shift * direction if place == position else value for place, value in enumerate(given)]
        slopes = dict(zip(first.wanted, first(*moved, weights), strict=True))
        return sum(_inner(move, slopes[place]) for place, move in along.items())

    expected = (8 * (slope(step) - slope(-step)) - slope(2 * step) + slope(-2 * step)) / (12 * step)
    found = 0.0 if steep.get(position) is None else _inner(direction, steep[position])
    return abs(found - expected) / max(abs(found), abs(expected), abs(slope(0.0)), 1e-2)


def _inner(a: Any, b: Any) -> float:
    return float(np.sum(np.real(np.conjugate(a) * b)))


def _random(random: np.random.Generator, like: Any) -> Any:
    value = random.standard_normal(np.shape(like))
    if np.iscomplexobj(like):
        value = value + 1j * random.standard_normal(np.shape(like))
    return np.asarray(value, dtype=np.asarray(like).dtype)


def _failed(rule: Rule, law: str, place: Any, fault: BaseException) -> Finding:
    return Finding(rule.name, "", law, "failed", f"{Path(rule.file).name}:{rule.line}, {place}", False, _first(fault))


def _first(fault: BaseException) -> str:
    return (str(fault) or type(fault).__name__).splitlines()[0]
