"""Wrong versions of rules, each with one coefficient, sign or order of arguments changed, and whether that is found."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from yota.rules.algebras.evaluate import CONDITIONS
from yota.rules.language.display import show
from yota.rules.language.model import Call, Expression, Literal, Rule, refusal
from yota.rules.language.statics import STATIC_FUNCTIONS
from yota.rules.macros import MACROS
from yota.rules.proof import adjoints, conventions, partials
from yota.rules.proof import value_forms as forms
from yota.rules.proof.findings import FAULTS, Finding
from yota.rules.registry import Registry

_OFF = 1.001
_OPPOSITE = {"add": "subtract", "subtract": "add"}
_COMMUTE = frozenset(
    "add multiply equal not_equal logical_and logical_or logical_xor hypot maximum minimum fmax fmin".split()
)


@dataclass(frozen=True, slots=True, eq=False)
class Mutant:
    """A wrong rule.

    rule: the rule with the fault.
    left: which derivative has it.
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
        laws = (forms.solved(rule, known, count), adjoints.directions(rule, known), adjoints.types(rule, known))
    else:
        laws = (
            forms.shared(rule, known, count),
            forms.solved(rule, known, count),
            partials.formulas(rule, known, count),
            conventions.kinks(rule, known),
            conventions.ends(rule, known),
            adjoints.complex_directions(rule, known),
        )
    try:
        return any(not found.held for found in itertools.chain(*laws))
    except FAULTS:
        return True
