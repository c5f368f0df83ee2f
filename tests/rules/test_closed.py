"""What is shown to be a derivative as a formula is one; what is not, or is on one side of a choice only, is not."""

import pytest

from tests.rules.ulps import excess
from yota.rules.algebras.sympy_functions import exactly
from yota.rules.language.syntax import parse
from yota.rules.proof.mutants import mutants
from yota.rules.registry import registry

KNOWN = registry()
SHOWN = [
    ("tan", "x"),
    ("arcsinh", "x"),
    ("hypot", "a"),
    ("logaddexp", "b"),
    ("power", "p"),
    ("absolute", "x"),
    ("erf", "x"),
]
SHOWN += [("expit", "x"), ("tanh", "x"), ("cbrt", "x"), ("divide", "b"), ("floor", "x")]


@pytest.mark.parametrize(("name", "parameter"), SHOWN)
def test_shipped_rules(name, parameter):
    (rule,) = KNOWN.rules(name)
    parameter = parameter if parameter in {each.name for each in rule.operands} else rule.operands[0].name
    assert exactly(rule, rule.results[0], parameter, KNOWN)
    at = {each.name: 0.37 + 0.21 * place for place, each in enumerate(rule.operands)}
    for mutant in mutants(rule, KNOWN):
        if mutant.left == f"d[{rule.results[0]}, {parameter}]" and exactly(
            mutant.rule, rule.results[0], parameter, KNOWN
        ):
            assert excess(mutant.rule, parameter, at, KNOWN) < 4, mutant


def rule_of(primal, written):
    _, (rule,) = parse(f"@elementwise\ndef f(x: Real, p: Real) -> y:\n    y = {primal}\n    d[y, x] = {written}")
    return rule


@pytest.mark.parametrize(
    ("primal", "written"),
    [
        ("sin(x)**2", "sin(2 * x)"),
        ("sqrt(x * x)", "sign(x)"),
        ("where(x > 0, x, -x)", "where(x > 0, 1, -1)"),
        ("tanh(x) * p", "p / cosh(x)**2"),
        ("exp(x) * exp(p)", "exp(x + p)"),
    ],
)
def test_what_holds_for_each_sign_and_side_is_shown(primal, written):
    assert exactly(rule_of(primal, written), "y", "x", KNOWN)


@pytest.mark.parametrize(
    ("primal", "written"),
    [
        ("sqrt(x * x)", "1"),
        ("absolute(x)", "1"),
        ("x * x", "where(x > 1, 2 * x, 2 * x + 1)"),
        ("x * x", "where(x > 1, where(p > 1, 2 * x + 1, 2 * x), 2 * x)"),
        ("x * x", "where(x > 1, 2 * x, where(p > 1, 2 * x, 2 * x + 1))"),
        ("x * x", "where(x == x, 2 * x + 1, 2 * x)"),
        ("x * x", "where(sin(x)**2 + cos(x)**2 == 1, 2 * x + 1, 2 * x)"),
        ("x * x", "where(floor(x) == 0, 2 * x + 1, 2 * x)"),
        ("x * x", "where(absolute(x) == x, 2 * x + 1, 2 * x)"),
        ("sin(x)**2", "sin(2 * x) + 1e-30"),
        ("floor(x)", "1"),
    ],
)
def test_what_is_wrong_somewhere_is_not(primal, written):
    assert not exactly(rule_of(primal, written), "y", "x", KNOWN)


def test_long_formulas_are_left_to_numbers():
    (rule,) = KNOWN.rules("hyp2f1")
    assert not exactly(rule, "y", "x", KNOWN)
    terms = " + ".join(f"sin({number} * x) * cos({number + 1} * x)" for number in range(40))
    wrong = rule_of(terms, terms)
    assert not exactly(wrong, "y", "x", KNOWN)
