"""How many of the wrong versions of the rules of a file the proof finds, and why the others are not wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from yota.rules.language.model import Rule
from yota.rules.language.syntax import parse_all
from yota.rules.laws import trials
from yota.rules.laws.sampling import defaults, points
from yota.rules.loading import read_file
from yota.rules.proof import conventions, partials
from yota.rules.proof import value_forms as forms
from yota.rules.proof.compiled_rule import differentiable, results
from yota.rules.proof.findings import FAULTS
from yota.rules.proof.libraries import import_used, imported
from yota.rules.proof.mutants import Mutant, detected, mutants
from yota.rules.proof.sample_points import Point, corners, doubles, edges, spread
from yota.rules.proof.specimens import Specimen, specimens
from yota.rules.registry import Registry, registry


@dataclass(slots=True)
class Survey:
    """How many faults were planted in the rules of a file, and how many the proof found.

    same: those that change no value by more than the rule may be off anyway, such as the 1 of ``x / where(x == 0, 1,
        z)``, with what shows it.
    """

    file: str
    planted: int = 0
    found: int = 0
    same: dict[str, str] = field(default_factory=dict)
    missed: list[str] = field(default_factory=list)

    @property
    def share(self) -> float:
        """Percentage found of those that have an effect."""
        return 100.0 * self.found / max(self.found + len(self.missed), 1)

    def data(self) -> dict[str, Any]:
        """The survey in plain Python, for JSON."""
        return {
            "file": self.file,
            "planted": self.planted,
            "found": self.found,
            "without effect": dict(self.same),
            "missed": list(self.missed),
        }


def survey(
    path: Path,
    shown: Callable[[Sequence[Rule]], Iterator[Rule]] = iter,
    keep: Callable[[int], bool] = lambda number: True,
) -> Survey:
    """Plant every fault in every rule of a file; ``keep`` chooses among them by number."""
    _, rules, _ = parse_all(read_file(path), str(path))
    known = registry()
    imported(path, rules)
    if any(not known.knows(rule.name) for rule in rules):
        known = known.with_rules(rules)
        import_used(rules, known)
    found = Survey(str(path))
    number = 0
    for rule in shown(rules):
        for mutant in mutants(rule, known) if rule.kind != "nodiff" else ():
            number += 1
            if not keep(number):
                continue
            found.planted += 1
            if detected(mutant, known):
                found.found += 1
            elif reason := without_effect(mutant, rule, known):
                found.same[f"{mutant} (fault {number})"] = reason
            else:
                found.missed.append(str(mutant))
    return found


def without_effect(mutant: Mutant, rule: Rule, known: Registry) -> str:
    """Why no derivative differs by more than is allowed anyway, as far as many points show; empty where one does."""
    if mutant.left == "0":
        same = all(each.held for each in forms.solved(mutant.rule, known, 24))
        return "the equation has the same root" if same else ""
    if rule.kind == "tensor":
        calls = specimens(rule, known)
        same = all(_same_adjoints(mutant.rule, rule, specimen, known) for specimen in calls)
        return f"all {len(calls)} calls give the same adjoints" if same else ""
    if _is_whole(rule, mutant, known):
        return "the result is a whole number, of which nobody asks for a derivative"
    if mutant.left in rule.results:
        return "the form has the same values" if forms.equal(rule, mutant.rule, mutant.left, known) else ""
    allowed = max(partials.allowance(rule)[0] * 2.0**-52, 1e-12)
    result, name = (part.strip() for part in mutant.left[2:-1].split(","))
    inside, outside = _telling(rule, result, name, known)
    if _differ(mutant.rule, rule, name, result, inside, known, allowed, may_be_nan=False):
        return ""
    if _differ(mutant.rule, rule, name, result, outside, known, allowed, may_be_nan=True):
        return ""
    return f"the same within {allowed:.0e} at {len(inside)} points, and the same or not a number at {len(outside)} ends"


def _differ(
    wrong: Rule,
    rule: Rule,
    name: str,
    result: str,
    places: list[Point],
    known: Registry,
    allowed: float,
    *,
    may_be_nan: bool,
) -> bool:
    """Whether two versions of a partial are apart by more than is allowed at some point."""
    if not places:
        return False
    points = {each: np.array([place[each] for place in places]) for each in places[0]}
    try:
        given = points if len(places) > 1 else doubles(places[0])
        one, other = (np.asarray(trials.partial(each, name, given, known, result)) for each in (wrong, rule))
    except FAULTS:
        # A function may refuse an array, or some of its elements.
        return len(places) > 1 and any(
            _differ(wrong, rule, name, result, [each], known, allowed, may_be_nan=may_be_nan) for each in places
        )
    with np.errstate(all="ignore"):
        close = abs(one - other) <= allowed * np.maximum(abs(other), 1e-280)
    return bool(np.any(np.isfinite(other) & ~close & ~(may_be_nan & np.isnan(one))))


@lru_cache(maxsize=8)
def _telling(rule: Rule, result: str, name: str, known: Registry) -> tuple[list[Point], list[Point]]:
    """Points over the whole domain with corners, and ends at which the proof says what is right."""
    places = spread(rule, known, 200, seed=3)
    for point, plain in corners(rule, known):
        # Where both sides have no slope in the middle, any value is a convention that nothing depends on.
        if plain or (
            conventions.borders(rule, known, point) and _tells(conventions.kink_error, rule, result, name, point, known)
        ):
            places.append(point)
    return places, [
        point
        for point, inwards in edges(rule, known)
        if _tells(conventions.end_error, rule, result, name, point, inwards.get(name, 0), known)
    ]


def _tells(error: Callable[..., float | None], *arguments: Any) -> bool:
    """Whether the proof has an error at a point."""
    try:
        return error(*arguments) is not None
    except FAULTS:
        return False


def _is_whole(rule: Rule, mutant: Mutant, known: Registry) -> bool:
    """Whether the result is a whole number, of which nobody asks for a derivative."""
    place = next(points(rule, known, 1))
    found = results(rule, list(place.values()), defaults(rule), known)
    number = rule.results.index(mutant.left[2:].partition(",")[0])
    return found[number].dtype.kind not in "fc"


def _same_adjoints(wrong: Rule, rule: Rule, specimen: Specimen, known: Registry) -> bool:
    found = results(rule, specimen.operands, specimen.keywords, known)
    random = np.random.default_rng(4)
    seeds = tuple(random.standard_normal(each.shape).astype(each.dtype) for each in found)
    for position in differentiable(rule, specimen.operands):
        try:
            one, other = (
                np.asarray(trials.adjoint(each, position, specimen.operands, specimen.keywords, seeds, known))
                for each in (wrong, rule)
            )
        except FAULTS:
            return False
        if not np.allclose(one, other, rtol=1e-12, atol=1e-14):
            return False
    return True
