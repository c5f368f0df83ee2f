"""Wrong versions of rules, each with one coefficient, sign or order of arguments changed, and whether that is found."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from yota.errors import YotaError
from yota.proof import adjoints, partials
from yota.proof.compiled import differentiable, results
from yota.proof.findings import Finding
from yota.proof.libraries import import_used, imported
from yota.proof.places import Point, corners, spread
from yota.proof.specimens import Specimen, specimens
from yota.rules import trials
from yota.rules.display import show
from yota.rules.macros import MACROS
from yota.rules.model import Call, Expression, Literal, Rule, refusal
from yota.rules.registry import Registry, registry
from yota.rules.sampling import points, statics
from yota.rules.source import read_file
from yota.rules.statics import STATIC_FUNCTIONS
from yota.rules.syntax import parse_all

__all__ = ["Mutant", "Survey", "detected", "mutants", "survey", "without_effect"]

_OFF = 1.001
_OPPOSITE = {"add": "subtract", "subtract": "add"}
_COMMUTE = frozenset(
    "add multiply equal not_equal logical_and logical_or logical_xor hypot maximum minimum fmax fmin".split()
)
_CONDITIONS = frozenset(
    "equal not_equal less less_equal greater greater_equal logical_and logical_or logical_not logical_xor".split()
)
_FAULTS = (YotaError, TypeError, ValueError, ArithmeticError, AttributeError, IndexError, np.linalg.LinAlgError)


@dataclass(frozen=True, slots=True, eq=False)
class Mutant:
    """A wrong rule.

    Parameters
    ----------
    rule
        The rule with the fault.
    left
        Which derivative has it.
    change
        What was changed.
    """

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
    if expression.function in _CONDITIONS:
        return
    for position, argument in enumerate(expression.arguments):
        # An exponent that is whole, a shape or an axis is no coefficient.
        if isinstance(argument, Literal) and not _is_coefficient(expression, position):
            continue
        if expression.function == "branch" and position == 1:
            # It says on which side the first argument is, and nothing else.
            continue
        for wrong, change in _parts(argument):
            arguments = (*expression.arguments[:position], wrong, *expression.arguments[position + 1 :])
            yield replace(expression, arguments=arguments), change


def _is_coefficient(call: Call, position: int) -> bool:
    return call.function not in MACROS or call.function in ("branch", "phase")


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
    laws: tuple[Callable[[], Iterator[Finding]], ...]
    if rule.kind == "tensor":
        laws = (lambda: adjoints.directions(rule, known), lambda: adjoints.types(rule, known))
    else:
        laws = (
            lambda: partials.formulas(rule, known, count),
            lambda: partials.kinks(rule, known),
            lambda: adjoints.complex_directions(rule, known),
        )
    try:
        return any(not found.held for law in laws for found in law())
    except _FAULTS:
        return True


@dataclass(slots=True)
class Survey:
    """How many faults were planted in the rules of a file, and how many the proof found.

    Parameters
    ----------
    same
        Those that change no value by more than the rule may be off anyway, such as the 1 of
        ``x / where(x == 0, 1, z)``.
    """

    file: str
    planted: int = 0
    found: int = 0
    same: int = 0
    missed: list[str] = field(default_factory=list)

    @property
    def share(self) -> float:
        """Percentage found of those that have an effect."""
        return 100.0 * self.found / max(self.planted - self.same, 1)

    def data(self) -> dict[str, Any]:
        """The survey in plain Python, for JSON."""
        return {
            "file": self.file,
            "planted": self.planted,
            "found": self.found,
            "without effect": self.same,
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
            elif without_effect(mutant, rule, known):
                found.same += 1
            else:
                found.missed.append(str(mutant))
    return found


def without_effect(mutant: Mutant, rule: Rule, known: Registry) -> bool:
    """Whether no derivative at many points, corners among them, differs by more than is allowed anyway."""
    if rule.kind == "tensor":
        return all(_same_adjoints(mutant.rule, rule, specimen, known) for specimen in specimens(rule, known))
    if _is_whole(rule, mutant, known):
        return True
    allowed = max(partials.allowance(rule)[0] * 2.0**-52, 1e-12)
    result, name = (part.strip() for part in mutant.left[2:-1].split(","))
    places = _telling(rule, result, name, known)
    try:
        points = {each: np.array([place[each] for place in places]) for each in places[0]}
        return not np.any(_differ(mutant.rule, rule, name, result, points, known, allowed))
    except (IndexError, *_FAULTS):
        return not any(_differs(mutant.rule, rule, name, result, place, known, allowed) for place in places)


@lru_cache(maxsize=8)
def _telling(rule: Rule, result: str, name: str, known: Registry) -> list[Point]:
    """Points over the whole domain, and corners."""
    places = spread(rule, known, 200, seed=3)
    for point, plain in corners(rule, known):
        # Where both sides have no slope in the middle, any value is a convention that nothing depends on.
        if plain or _has_kink_value(rule, result, name, point, known):
            places.append(point)
    return places


def _is_whole(rule: Rule, mutant: Mutant, known: Registry) -> bool:
    """Whether the result is a whole number, of which nobody asks for a derivative."""
    place = next(points(rule, known, 1))
    found = results(rule, list(place.values()), {name: value.value for name, value in statics(rule).items()}, known)
    number = rule.results.index(mutant.left[2:].partition(",")[0])
    return found[number].dtype.kind not in "fc"


def _has_kink_value(rule: Rule, result: str, name: str, point: Point, known: Registry) -> bool:
    try:
        return (
            partials.borders(rule, known, point) and partials.kink_error(rule, result, name, point, known) is not None
        )
    except _FAULTS:
        return False


def _same_adjoints(wrong: Rule, rule: Rule, specimen: Specimen, known: Registry) -> bool:
    found = results(rule, specimen.operands, specimen.keywords, known)
    random = np.random.default_rng(4)
    drawn = tuple(random.standard_normal(each.shape).astype(each.dtype) for each in found)
    seed = drawn if len(drawn) > 1 else drawn[0]
    for position in differentiable(rule, specimen.operands):
        try:
            one, other = (
                np.asarray(trials.adjoint(each, position, specimen.operands, specimen.keywords, seed, known))
                for each in (wrong, rule)
            )
        except _FAULTS:
            return False
        if not np.allclose(one, other, rtol=1e-12, atol=1e-14):
            return False
    return True


def _differs(wrong: Rule, rule: Rule, name: str, result: str, point: Point, known: Registry, allowed: float) -> bool:
    doubles = {key: np.float64(value) if isinstance(value, float) else value for key, value in point.items()}
    try:
        return bool(_differ(wrong, rule, name, result, doubles, known, allowed))
    except _FAULTS:
        return False


def _differ(wrong: Rule, rule: Rule, name: str, result: str, points: Point, known: Registry, allowed: float) -> Any:
    """Where two versions of a partial are apart by more than is allowed."""
    one, other = (np.asarray(trials.partial(each, name, points, known, result)) for each in (wrong, rule))
    with np.errstate(all="ignore"):
        close = abs(one - other) <= allowed * np.maximum(abs(other), 1e-280)
    return np.isfinite(other) & ~close
