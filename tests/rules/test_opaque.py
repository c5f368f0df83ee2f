"""Rules of opaque functions: linear ones, operands with defaults, fixed extents, real arrays, adjoints of zero."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import yota
from yota.errors import DifferentiationError, RuleError, TracingError
from yota.rules.proof.checker import prove_file

X = np.array([0.3, -0.2, 1.1])


def softplus(x, beta=1.0):
    return np.logaddexp(0.0, beta * x) / beta


def cubed(x):
    return np.power(x, 3)


def cubed_vjp(v, x):
    return v * 3 * np.power(x, 2)


def squared_length(x):
    return np.einsum("i,i->", x, x)


def rounded(x, u):
    return x + 0.0 * np.floor(u)


def curved_vjp(v, x):
    return v * v * x


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    module = types.ModuleType("opaque")
    for each in (softplus, cubed, cubed_vjp, squared_length, rounded, curved_vjp):
        setattr(module, each.__name__, each)
    monkeypatch.setitem(sys.modules, "opaque", module)
    # Rules of a test are not those of the next.
    registry = yota.rules.registry
    monkeypatch.setattr(registry, "_default", registry.registry().copy())
    return module


def written(tmp_path: Path, *rules: str) -> Path:
    path = tmp_path / "opaque.rules"
    path.write_text("\n".join(["# yota rules 1", '"""Opaque functions."""', "", *rules]))
    return path


SOFTPLUS = """
@elementwise("opaque.softplus")
def softplus(x: Real, beta: Real(0, oo) = 1.0) -> y:
    \"\"\"Within 1e30 ulps: the terms of the partial by beta cancel.\"\"\"
    y = logaddexp(0, beta * x) / beta
"""
CUBED = """
@linear("opaque.cubed_vjp")
def cubed_vjp(v: RealArray, x: RealArray) -> z: ...

@tensor("opaque.cubed")
def cubed(x: RealArray) -> y:
    d[x] = cubed_vjp(d[y], x)
"""
TWICE = CUBED.replace(
    "-> z: ...",
    """-> z:
    d[v] = cubed_vjp(d[z], x)
    d[x] = d[z] * v * 6 * x""",
)


def test_operands_with_defaults_are_differentiated_by_too(library: Any, tmp_path: Path) -> None:
    yota.load_rules(written(tmp_path, SOFTPLUS))
    (left,) = yota.grad(lambda x: np.sum(library.softplus(x)), X)[1].gradients
    np.testing.assert_allclose(left, 1 / (1 + np.exp(-X)), rtol=1e-14)
    for call in (lambda x, b: np.sum(library.softplus(x, b)), lambda x, b: np.sum(library.softplus(x, beta=b))):
        _, (by_x, by_beta) = yota.grad(call, X, 2.0)
        np.testing.assert_allclose(by_x, 1 / (1 + np.exp(-2 * X)), rtol=1e-14)
        slope = np.imag(np.sum(np.log1p(np.exp((2 + 1e-30j) * X)) / (2 + 1e-30j))) / 1e-30
        assert by_beta == pytest.approx(slope, rel=1e-12)


def test_a_default_that_is_another_than_the_function_s_is_refused(library: Any, tmp_path: Path) -> None:
    yota.load_rules(written(tmp_path, SOFTPLUS.replace("= 1.0", "= 2.0")))
    with pytest.raises(TracingError, match=r"opaque\.softplus has beta=1\.0 by default, and its rule \(.*\) 2\.0"):
        yota.grad(lambda x: np.sum(library.softplus(x)), X)


def test_primals_with_defaults_are_functions_with_defaults() -> None:
    made = yota.diffrule("""
    @elementwise
    def tempered(x: Real, beta: Real(0, oo) = 1.0) -> y:
        y = log1p(exp(beta * x)) / beta
    """)
    np.testing.assert_allclose(made(X), np.log1p(np.exp(X)), rtol=1e-15)
    np.testing.assert_allclose(made(X, beta=2.0), np.log1p(np.exp(2 * X)) / 2, rtol=1e-15)
    (found,) = yota.grad(lambda x: np.sum(made(x)), X)[1].gradients
    np.testing.assert_allclose(found, 1 / (1 + np.exp(-X)), rtol=1e-14)


@pytest.mark.parametrize(
    "head, message",
    [
        ("def f(x: Real, b: Real = 'a') -> y:", "the default of an operand is a number"),
        ("def f(x: Array = 1.0, *xs: Array) -> y:", r"an operand ahead of `\*xs` has no default"),
        ("def f(x: Array[-3]) -> y:", "a dimension is a name or an extent"),
        ("def f(x: Array[3.0]) -> y:", "a dimension is a name or an extent"),
    ],
)
def test_heads_that_mean_nothing_are_refused(head: str, message: str) -> None:
    with pytest.raises(RuleError, match=message):
        yota.diffrule(f'@tensor("opaque.f")\n{head}\n    d[x] = d[y]\n')


def test_a_linear_function_is_an_adjoint(library: Any, tmp_path: Path) -> None:
    path = written(tmp_path, CUBED)
    report = prove_file(path)
    assert report.held, report
    assert "linear in its first operand" in {each.law for each in report.findings}
    yota.load_rules(path)
    (found,) = yota.grad(lambda x: np.sum(library.cubed(x)), X)[1].gradients
    np.testing.assert_allclose(found, 3 * X**2, rtol=1e-15)
    with pytest.raises(DifferentiationError, match=r"cubed_vjp has no derivative by x: its rule is @linear"):
        yota.hessian(lambda x: np.sum(library.cubed(x)))(X)


def test_a_linear_function_may_have_adjoints_of_its_own(library: Any, tmp_path: Path) -> None:
    path = written(tmp_path, TWICE)
    assert prove_file(path).held
    yota.load_rules(path)
    found = yota.hessian(lambda x: np.sum(library.cubed(x)))(X)
    np.testing.assert_allclose(found, np.diag(6 * X), rtol=1e-14)


def test_what_is_called_linear_and_is_not_is_found(library: Any, tmp_path: Path) -> None:
    report = prove_file(written(tmp_path, CUBED.replace("cubed_vjp", "curved_vjp")))
    wrong = {(each.rule, each.law) for each in report.findings if each.status == "wrong"}
    assert ("curved_vjp", "linear in its first operand") in wrong


def test_an_opaque_adjoint_is_refused_with_the_decorator_that_mends_it(library: Any) -> None:
    text = CUBED.replace("@linear", "@tensor").replace(
        "-> z: ...", "-> z:\n    d[v] = d[z] * x\n    d[x] = d[z] * v * v"
    )
    assert yota.diffrule(text)
    opaque = CUBED.replace("@linear", "@tensor").replace("-> z: ...", "-> z:\n    d[v] = d[z] * v * x\n    d[x] = 0")
    with pytest.raises(RuleError, match=r'if cubed_vjp is linear in its first operand:\n@linear\("opaque.cubed_vjp"\)'):
        yota.diffrule(opaque)


def test_fixed_extents_are_those_of_operands(library: Any, tmp_path: Path) -> None:
    rule = '@tensor("opaque.squared_length")\ndef squared_length(x: RealArray[3]) -> y:\n    d[x] = 2 * x * d[y]\n'
    path = written(tmp_path, rule)
    assert prove_file(path).held
    yota.load_rules(path)
    np.testing.assert_allclose(yota.grad(lambda x: library.squared_length(x), X)[1][0], 2 * X)
    with pytest.raises(DifferentiationError, match=r"got x of shape \(4,\), and its rule \(.*\) is for Array\[3\]"):
        yota.grad(lambda x: library.squared_length(x), np.ones(4))
    with pytest.raises(DifferentiationError, match="no derivative by a complex x"):
        yota.grad(lambda x: np.real(library.squared_length(x)), X + 1j)


def test_a_zero_adjoint_is_an_array_of_zeros(library: Any, tmp_path: Path) -> None:
    rule = '@tensor("opaque.rounded")\ndef rounded(x: Array, u: RealArray) -> y:\n    d[x] = d[y]\n    d[u] = 0\n'
    path = written(tmp_path, rule)
    report = prove_file(path)
    assert report.held, report.findings
    wrong = rule.replace("d[x] = d[y]\n    d[u] = 0", "d[x] = 0\n    d[u] = d[y]")
    assert not prove_file(written(tmp_path, wrong)).held
    yota.load_rules(written(tmp_path, rule))
    _, (left, right) = yota.grad(lambda x, u: np.sum(library.rounded(x, u)), X, X)
    assert left.tolist() == [1.0] * 3 and right.tolist() == [0.0] * 3
