"""Wrong versions of rules, whether the proof finds each, and why the others are not wrong."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from yota.rules.algebras.evaluate import CONDITIONS
from yota.rules.language.model import Call, Expression, Literal, Rule, refusal
from yota.rules.language.rule_text import show
from yota.rules.language.statics import STATIC_FUNCTIONS
from yota.rules.language.syntax import parse_all
from yota.rules.laws import trials
from yota.rules.laws.sampling import defaults, points
from yota.rules.loading import read_file
from yota.rules.macros import MACROS
from yota.rules.proof import adjoints, conventions, partials
from yota.rules.proof.checker import import_used, imported
from yota.rules.proof.compiled_rule import Specimen, differentiable, results, specimens
from yota.rules.proof.findings import FAULTS, Finding
from yota.rules.proof.sample_points import Point, corners, doubles, edges, spread
from yota.rules.registry import Registry, registry

_OFF = 1.001
_OPPOSITE = {"add": "subtract", "subtract": "add"}
_COMMUTE = frozenset(
    "add multiply equal not_equal logical_and logical_or logical_xor hypot maximum minimum fmax fmin".split()
)


@dataclass(frozen=True, slots=True, eq=False)
class Mutant:
    """A wrong rule."""

    rule: Rule
    left: str
    change: str

    def __str__(self) -> str:
        return f"{self.rule.name} ({Path(self.rule.file).name}:{self.rule.line}), {self.left}: {self.change}"


def mutants(rule: Rule, known: Registry) -> Iterator[Mutant]:
    """All wrong versions of what ``rule`` says; a partial that follows from the primal is not written anywhere."""
    for name, expression in rule.adjoints.items():
        if refusal(expression) is None:
            for wrong, change in _versions(expression):
                yield Mutant(replace(rule, adjoints={**rule.adjoints, name: wrong}), f"d[{name}]", change)
    if rule.equation is not None and rule.target is not None:
        for wrong, change in _parts(rule.equation):
            yield Mutant(replace(rule, equation=wrong), "0", change)
    for name, expression in rule.shared.items():
        for wrong, change in _versions(expression):
            yield Mutant(replace(rule, shared={**rule.shared, name: wrong}), name, change)
    if rule.kind == "elementwise":
        for result, name in partials.moving(rule, known):
            written = rule.partials.get((result, name))
            for wrong, change in _versions(written) if written is not None else ():
                wrongs = {**rule.partials, (result, name): wrong}
                yield Mutant(replace(rule, partials=wrongs), f"d[{result}, {name}]", change)


def _versions(expression: Expression) -> Iterator[tuple[Expression, str]]:
    """The expression as a whole, then each of its parts, made wrong."""
    if expression == Literal(0):
        yield Literal(1e-3), "1e-3 in the place of 0"
        return
    yield Call("multiply", (Literal(_OFF), expression)), "the whole off by 1e-3"
    yield Call("negative", (expression,)), "the whole with the other sign"
    yield from _parts(expression)


def _parts(expression: Expression) -> Iterator[tuple[Expression, str]]:
    if isinstance(expression, Literal):
        if isinstance(expression.value, (int, float, complex)) and not isinstance(expression.value, bool):
            changed = Literal(expression.value * _OFF if expression.value else 1e-3)
            yield changed, f"{show(changed)} in the place of {show(expression)}"
        return
    if not isinstance(expression, Call) or expression.function in STATIC_FUNCTIONS:
        return
    yield from _calls(expression)
    if expression.function in CONDITIONS:
        return
    for position, argument in enumerate(expression.arguments):
        # An exponent that is whole, a shape or an axis is no coefficient.
        if isinstance(argument, Literal) and expression.function in MACROS.keys() - {"branch", "phase"}:
            continue
        # The second argument of `branch` says on which side the first is, and nothing else.
        if expression.function == "branch" and position == 1:
            continue
        for wrong, change in _parts(argument):
            arguments = (*expression.arguments[:position], wrong, *expression.arguments[position + 1 :])
            yield replace(expression, arguments=arguments), change


def _calls(call: Call) -> Iterator[tuple[Expression, str]]:
    if call.function in _OPPOSITE and len(call.arguments) == 2:
        other = replace(call, function=_OPPOSITE[call.function])
        yield other, f"{show(other)[:60]} in the place of {show(call)[:60]}"
    if call.function == "negative":
        yield call.arguments[0], f"{show(call.arguments[0])[:60]} in the place of {show(call)[:60]}"
    first = 1 if call.function == "where" else 0
    pair = call.arguments[first : first + 2]
    if len(pair) == 2 and call.function not in _COMMUTE | MACROS.keys() and pair[0] != pair[1]:
        swapped = replace(call, arguments=(*call.arguments[:first], pair[1], pair[0], *call.arguments[first + 2 :]))
        yield swapped, f"{show(swapped)[:60]} in the place of {show(call)[:60]}"


def detected(mutant: Mutant, known: Registry, count: int = 16) -> bool:
    """Whether the proof finds the fault."""
    rule = mutant.rule
    laws: tuple[Iterator[Finding], ...]
    # Each is a generator, and those after the first that finds the fault do not start.
    if rule.kind == "tensor":
        laws = (partials.solved(rule, known, count), adjoints.directions(rule, known), adjoints.types(rule, known))
    else:
        laws = (
            partials.shared(rule, known, count),
            partials.solved(rule, known, count),
            partials.formulas(rule, known, count),
            conventions.kinks(rule, known),
            conventions.ends(rule, known),
            adjoints.complex_directions(rule, known),
        )
    try:
        return any(not found.held for found in itertools.chain(*laws))
    except FAULTS:
        return True


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


def survey(path: Path, shown: Callable[[Sequence[Rule]], Iterator[Rule]] = iter) -> Survey:
    """Plant every fault in every rule of a file."""
    _, rules, _ = parse_all(read_file(path), str(path))
    known = registry()
    imported(path, rules)
    if any(not known.knows(rule.name) for rule in rules):
        known = known.with_rules(rules)
        import_used(rules, known)
    found = Survey(str(path))
    for rule in shown(rules):
        for mutant in mutants(rule, known) if rule.kind != "nodiff" else ():
            found.planted += 1
            if detected(mutant, known):
                found.found += 1
            elif reason := without_effect(mutant, rule, known):
                found.same[f"{mutant} (fault {found.planted})"] = reason
            else:
                found.missed.append(str(mutant))
    return found


def without_effect(mutant: Mutant, rule: Rule, known: Registry) -> str:
    """Why no derivative differs by more than is allowed anyway, as far as many points show; empty where one does."""
    if mutant.left == "0":
        measured = rule.kind != "tensor" or specimens(rule, known)
        same = measured and all(each.held for each in partials.solved(mutant.rule, known, 24))
        return "the equation has the same root" if same else ""
    if rule.kind == "tensor":
        calls = specimens(rule, known)
        same = all(_same_adjoints(mutant.rule, rule, specimen, known) for specimen in calls)
        return f"all {len(calls)} calls give the same adjoints" if same else ""
    if mutant.left in rule.results:
        return "the form has the same values" if partials.equal(rule, mutant.rule, mutant.left, known) else ""
    place = next(points(rule, known, 1))
    found = results(rule, list(place.values()), defaults(rule), known)
    number = rule.results.index(mutant.left[2:].partition(",")[0])
    if found[number].dtype.kind not in "fc":
        return "the result is a whole number, of which nobody asks for a derivative"
    allowed = max(partials.allowance(rule)[0] * 2.0**-52, 1e-12)
    result, name = (part.strip() for part in mutant.left[2:-1].split(","))
    inside, outside = _telling(rule, result, name, known)

    def slopes(point: Any) -> list[Any]:
        return [np.asarray(trials.partial(each, name, point, known, result)) for each in (mutant.rule, rule)]

    if any(_differ(slopes, places, allowed, may_be_nan=places is outside) for places in (inside, outside)):
        return ""
    return f"the same within {allowed:.0e} at {len(inside)} points, and the same or not a number at {len(outside)} ends"


def _differ(slopes: Callable[[Any], list[Any]], places: list[Point], allowed: float, *, may_be_nan: bool) -> bool:
    """Whether two versions of a partial are apart by more than is allowed at some point."""
    if not places:
        return False
    points = {each: np.array([place[each] for place in places]) for each in places[0]}
    try:
        one, other = slopes(points if len(places) > 1 else doubles(places[0]))
    except FAULTS:
        # A function may refuse an array, or some of its elements.
        return len(places) > 1 and any(_differ(slopes, [each], allowed, may_be_nan=may_be_nan) for each in places)
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
