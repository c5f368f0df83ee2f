"""Partials that sympy derives from a primal, and the way there and back."""

import numpy as np
import pytest

from yota.errors import RuleError
from yota.rules.algebras.emitted import evaluate
from yota.rules.algebras.opaque import to_sympy
from yota.rules.algebras.readback import from_sympy
from yota.rules.language.rule_text import show
from yota.rules.language.syntax import read_expression
from yota.rules.registry import registry


def defined(right, parameters="x: Real"):
    known = registry().copy()
    known.define(f"@elementwise\ndef f({parameters}) -> y:\n    y = {right}")
    return known, known.rules("f")[0]


@pytest.mark.parametrize(
    ("right", "expected"),
    [
        ("x**3", "3 * square(x)"),
        ("1 / x", "-1 / square(x)"),
        ("x / 3", "1 / 3"),
        ("sqrt(x)", "0.5 / sqrt(x)"),
        ("tanh(x)", "square(_sech(x))"),
        ("x * exp(-x)", "exp(-x) - x * exp(-x)"),
        ("where(x > 0, x * x, 0)", "where(x > 0, 2 * x, 0)"),
        ("maximum(x, 0)", "where(x > 0, 1, where(x == 0, 0.5, 0))"),
        ("floor(x) * x", "floor(x)"),
        ("2**x", "2**x * log(where(2**x == 0, 1, 2))"),
        ("3", "0"),
        ("0.1 * x**3", "0.3 * square(x)"),
        ("x**(1 / 3)", "1 / (3 * x**(2 / 3))"),
        ("log(2) * x**3", "3 * log(2) * square(x)"),
        ("x**sqrt(2)", "sqrt(2) * x**(sqrt(2) - 1)"),
        ("exp(-x) / sqrt(2 * pi)", "-(exp(-x) / sqrt(2 * pi))"),
        ("x * floor(2.5)", "2"),
    ],
)
def test_derived(right, expected):
    known, rule = defined(right)
    found = show(known.partial(rule, "x"))
    assert found == expected


@pytest.mark.parametrize(
    "right",
    [
        "0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))",
        "log1p(exp(-absolute(x))) + maximum(x, 0)",
        "x**2.5 / (1 + x * k) - arctan2(x, k) * hypot(x, 1)",
        "sin(x)**2 * cos(k * x)**3 / (2 + sin(k))",
        "power(x, k) + k**x",
        "sqrt(1 + sqrt(1 + sqrt(1 + x * x)))",
        "minimum(x, k) * logaddexp(x, -k) + remainder(x, 3)",
    ],
)
def test_derived_against_a_central_difference(right):
    known, rule = defined(right, "x: Real(0, oo), k: Real(0, oo)")
    for name in ("x", "k"):
        names = {"x": np.float64(1.3), "k": np.float64(0.7)}
        ahead, back = ({**names, name: names[name] + step} for step in (1e-6, -1e-6))
        slope = (evaluate(rule.primal["y"], ahead, known) - evaluate(rule.primal["y"], back, known)) / 2e-6
        names["y"] = evaluate(rule.primal["y"], names, known)
        assert evaluate(known.partial(rule, name), names, known) == pytest.approx(slope, rel=1e-7, abs=1e-8)


def test_static_keywords_are_symbols():
    known, rule = defined("s * x**2", "x: Real, *, s: Static = 3")
    assert show(known.partial(rule, "x")) == "2 * s * x"


def test_a_function_of_the_user_differentiates_by_its_rule():
    known = registry().copy()
    known.define(
        "@elementwise\ndef g(x: Real) -> y:\n    y = x * x\n\n@elementwise\ndef f(x: Real) -> y:\n    y = sin(g(x))"
    )
    assert show(known.partial(known.rules("f")[0], "x")) == "2 * x * cos(g(x))"


def test_what_cannot_be_derived():
    known, rule = defined("astype(x, dtype='float32')")
    with pytest.raises(RuleError, match=r"the partial of f by x cannot be derived(.|\n)*\n    d\[y, x\] = "):
        known.partial(rule, "x")


@pytest.mark.parametrize(
    "text",
    [
        "x - y",
        "x * y / z",
        "-x",
        "x**3 - y",
        "exp(-x) + 1",
        "0.5 * x",
        "x / (y + 1)",
        "where(x > y, x, 2 * y)",
        "1 / (x * y)",
    ],
)
def test_there_and_back(text):
    expression = read_expression(text, frozenset("xyz"))
    back = from_sympy(to_sympy(expression, registry()))
    names = {"x": np.float64(1.25), "y": np.float64(0.5), "z": np.float64(-2)}
    assert evaluate(back, names, registry()) == evaluate(expression, names, registry())
