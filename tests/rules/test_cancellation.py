"""What sympy would cancel is found, in the outermost part that loses something."""

import pytest

from yota.errors import RuleError
from yota.rules.language.syntax import parse
from yota.rules.registry import registry


@pytest.mark.parametrize(
    ("primal", "part"),
    [
        ("(x + 1) - 1", "x + 1 - 1"),
        ("exp(x + s - x)", "x + s - x"),
        ("s * x / s", "s * x / s"),
        ("where(x > 1, x, s * sin(x) - sin(x) * s + x)", "s * sin(x) - sin(x) * s + x"),
        ("square(x) * reciprocal(x * x)", "square(x) * reciprocal(x * x)"),
    ],
)
def test_what_cancels_is_found(primal, part):
    source, rules = parse(f"@elementwise\ndef f(x: Real, s: Real) -> y:\n    y = {primal}\n")
    with pytest.raises(RuleError, match="a part of this cancels") as caught:
        registry().copy().take([(source, rules)])
    assert f"found: {part}\n" in str(caught.value)


@pytest.mark.parametrize("primal", ["(x + 1) * (x - 1)", "x - s + 2 * s * x", "expm1(log1p(x))", "sin(x) - sin(s)"])
def test_what_stays_is_not(primal):
    source, rules = parse(f"@elementwise\ndef f(x: Real(0, 1), s: Real) -> y:\n    y = {primal}\n")
    registry().copy().take([(source, rules)])
