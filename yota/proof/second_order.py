"""The law of the second order: generated code differentiated again, against differences of the first derivative."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import partial

import numpy as np

from yota.proof.compiled import LONG, gradient, results, second
from yota.proof.findings import Finding, measured
from yota.proof.places import drawn
from yota.proof.specimens import Specimen, specimens
from yota.rules.algebras.emitted import evaluate
from yota.rules.model import Rule
from yota.rules.registry import Registry
from yota.rules.sampling import defaults
from yota.rules.trials import inner, random_like

__all__ = ["second_order"]

_SECOND = 1e-5
_STEP = 1e-5


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
