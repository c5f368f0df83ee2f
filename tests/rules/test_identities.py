"""Partials that follow from the primal as formulas: what is right is seen at once, what is wrong never passes."""

import random

import pytest

from tests.rules.ulps import excess
from yota.rules.algebras.residues import PRIME, UnclearError, follows, number, raised
from yota.rules.language.model import Call, Literal, Name, Parameter, Rule
from yota.rules.language.model import Domain as Set
from yota.rules.language.rule_text import show
from yota.rules.language.syntax import parse
from yota.rules.proof.mutants import mutants
from yota.rules.registry import registry

KNOWN = registry()
X = Parameter("x", Set("real", 0.1, 3.0))
P = Parameter("p", Set("real", 0.5, 2.0))


def rule_of(primal, written, parameters="x: Real(0, oo), p: Real"):
    _, (rule,) = parse(f"@elementwise\ndef f({parameters}) -> y:\n    y = {primal}\n    d[y, x] = {written}")
    return rule


@pytest.mark.parametrize(
    ("primal", "written"),
    [
        ("x**p", "p * x**(p - 1)"),
        ("x**p", "p * y / x"),
        ("x**1.5", "1.5 * x**0.5"),
        ("(1 + x)**1.5", "1.5 * y / (1 + x)"),
        ("x**0.5", "0.5 / y"),
        ("2**x", "y * log(2)"),
        ("sqrt(1 + x * x)", "x / y"),
        ("sqrt(1 + x * x)", "x * y / (1 + x * x)"),
        ("(1 + x * x)**0.5", "x / sqrt(1 + x * x)"),
        ("sin(pi * x) / pi", "cos(pi * x)"),
        ("where(x > 1, x * x, 2 * x - 1)", "where(x > 1, 2 * x, 2)"),
        ("tanh(log(x)) * p", "p * (1 - tanh(log(x)) ** 2) / x"),
        ("floor(x) * x", "floor(x)"),
        ("exp(x) / (1 + exp(x))", "y / (1 + exp(x))"),
    ],
)
def test_what_follows_is_seen(primal, written):
    rule = rule_of(primal, written)
    # What a rule says for the stability of its form is not seen; then the numbers have to show it.
    assert follows(rule, "y", "x", KNOWN) or "tanh" in primal
    assert not follows(rule_of(primal, f"{written} + 1e-30 * x"), "y", "x", KNOWN)
    for mutant in mutants(rule, KNOWN):
        if mutant.left == "d[y, x]":
            assert not follows(mutant.rule, "y", "x", KNOWN) or abs(excess(mutant.rule, "x", AT, KNOWN)) < 4, mutant


AT = {"x": 1.7, "p": 0.6}


@pytest.mark.parametrize(
    ("primal", "written"),
    [
        ("sqrt(x * x)", "1"),
        ("absolute(x)", "1"),
        ("where(x > 1, x, 1)", "1"),
        ("where(x > 1, x, 1)", "0"),
        ("x**p", "p * x**p"),
        ("exp(x)", "exp(p)"),
        ("real(x)", "2"),
        ("3.141592653589793 * x", "3.141592653589792"),
        ("log(2) * x", "0.6931471805599453"),
    ],
)
def test_what_is_wrong_or_unclear_does_not_pass(primal, written):
    assert not follows(rule_of(primal, written), "y", "x", KNOWN)


def test_a_users_function_is_trusted_only_with_a_primal():
    known = KNOWN.copy()
    _, (given,) = parse('@elementwise("mine.g")\ndef g(x: Real) -> y:\n    d[y, x] = 3 * x')
    _, (plain,) = parse("@elementwise\ndef h(x: Real) -> y:\n    y = x * sin(x)")
    known = known.with_rules([given, plain])
    assert not follows(rule_of("g(x)", "3 * x"), "y", "x", known)
    assert follows(rule_of("h(2 * x)", "2 * sin(2 * x) + 4 * x * cos(2 * x)"), "y", "x", known)


def test_functions_that_call_each_other_often_are_left_to_numbers():
    text = "".join(f"@elementwise\ndef f{n + 1}(x: Real) -> y:\n    y = f{n}(x) * f{n}(x)\n\n" for n in range(40))
    _, rules = parse(f"@elementwise\ndef f0(x: Real) -> y:\n    y = x\n\n{text}")
    assert not follows(rule_of("f40(x)", "1"), "y", "x", KNOWN.with_rules(rules))


def drawn(draw, depth):
    """An expression in x and p, with values at all positive numbers."""
    if depth == 0 or draw.random() < 0.1:
        return draw.choice([Name("x"), Name("p")])
    one, other = drawn(draw, depth - 1), drawn(draw, depth - 1)
    return draw.choice(
        [
            Call("add", (one, other)),
            Call("multiply", (one, other)),
            Call("divide", (one, Call("add", (Literal(1), Call("square", (other,)))))),
            Call("power", (Call("exp", (Call("sin", (one,)),)), Literal(draw.choice([1.5, -2, 0.5])))),
            Call(draw.choice(["sin", "arctan", "tanh", "negative"]), (one,)),
            Call("where", (Call("greater", (one, other)), one, other)),
        ]
    )


@pytest.mark.parametrize("seed", range(60))
def test_derived_partials_follow_and_wrong_ones_do_not(seed):
    draw = random.Random(seed)
    plain = Rule("elementwise", "f", None, (X, P), ("y",), primal={"y": drawn(draw, 3)})
    partial = KNOWN.partial(plain, "x")
    rule = Rule("elementwise", "f", None, (X, P), ("y",), primal=plain.primal, partials={("y", "x"): partial})
    assert follows(rule, "y", "x", KNOWN), show(plain.primal["y"])
    for mutant in mutants(rule, KNOWN):
        if mutant.left != "d[y, x]" or not follows(mutant.rule, "y", "x", KNOWN):
            continue
        assert abs(excess(mutant.rule, "x", AT, KNOWN)) < 1e3, mutant


def test_residues():
    assert number(0.5) * 2 % PRIME == 1
    assert raised(None, 5, -1) * 5 % PRIME == 1
    for wrong in (float("nan"), float("inf"), "x", 2j):
        with pytest.raises(UnclearError):
            number(wrong)
    for value, exponent in ((0, -1), (5, 0.5), (5, float("inf"))):
        with pytest.raises(UnclearError):
            raised(None, value, exponent)
