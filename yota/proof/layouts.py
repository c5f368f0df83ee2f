"""The law that operands may lie and stretch as they like: broadcast, 0-d, empty and strided ones, in generated code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from yota.errors import RuleError
from yota.proof.compiled import gradient, results
from yota.proof.findings import Finding, measured
from yota.proof.places import drawn
from yota.rules import trials
from yota.rules.model import Rule
from yota.rules.registry import Registry
from yota.rules.sampling import defaults

__all__ = ["layouts"]

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
