"""The law that operands may lie and stretch as they like: broadcast, 0-d, empty and strided ones, in generated code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from yota.errors import RuleError
from yota.proof.compiled import FAULTS, gradient, results
from yota.proof.findings import Finding, failed, finding
from yota.proof.places import drawn
from yota.rules import trials
from yota.rules.model import Rule
from yota.rules.registry import Registry
from yota.rules.sampling import statics

__all__ = ["layouts"]


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
        except FAULTS as fault:
            yield failed(rule, law, shapes, fault)
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
    compiled = gradient(rule, given, keywords, weights[()], registry, result=number)
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
