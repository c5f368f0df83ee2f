"""Laws of adjoints: along random directions, their shapes and dtypes, and in generated code."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from yota.errors import DifferentiationError, RuleError
from yota.ir.types import type_of
from yota.proof.compiled import FAULTS, differentiable, gradient, random_like, results
from yota.proof.findings import Finding, failed, finding, first_line, unmeasured
from yota.proof.specimens import Specimen, specimens
from yota.rules import trials
from yota.rules.model import Rule
from yota.rules.registry import Registry
from yota.rules.sampling import statics
from yota.rules.statics import normalised

__all__ = ["code", "complex_directions", "directions", "types"]

_DIRECTION = 1e-6
_LINEAR = 1e-12


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
            except (AssertionError, *FAULTS) as fault:
                yield Finding(
                    rule.name, name, law, "failed", f"{rule.file}:{rule.line}, {specimen}", False, first_line(fault)
                )
                return
            if not error <= worst.get(name, (-1.0, ""))[0]:
                worst[name] = error, str(specimen)
    for name, (error, place) in worst.items():
        yield finding(rule, name, law, error, _DIRECTION, place=place)
    if not known:
        yield unmeasured(rule, "", law, "no operands could be made up from the pattern")


def linearity(rule: Rule, registry: Registry) -> Iterator[Finding]:
    """That a ``@linear`` function is linear in its first operand, at random combinations."""
    law, worst, place = "linear in its first operand", 0.0, ""
    known = specimens(rule, registry)
    for specimen in known:
        error = trials.linear_error(rule, specimen.operands, specimen.keywords, registry)
        if not error <= worst:
            worst, place = error, str(specimen)
    if known:
        yield finding(rule, rule.linear, law, worst, _LINEAR, place=place)
    else:
        yield unmeasured(rule, rule.linear, law, "no operands could be made up from the pattern")


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
                yield failed(rule, law, specimen, RuleError(fault))
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
            yield unmeasured(rule, "", law, f"refused: {first_line(fault)}")
            return
        except FAULTS as fault:
            yield failed(rule, law, specimen, fault)
            return
        if not error <= worst:
            worst, place = error, str(specimen)
    yield finding(rule, "", law, worst, 1e-9, place=place)


def _code_error(rule: Rule, specimen: Specimen, registry: Registry, result: int) -> float:
    given = [_strided(operand) for operand in specimen.operands]
    values = results(rule, given, specimen.keywords, registry)
    if values[result].dtype.kind not in "fc":
        return 0.0
    weights = random_like(np.random.default_rng(2), values[result])[()]
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
