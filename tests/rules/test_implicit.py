"""Functions that an equation defines: their partials, their proof, and Newton's method in generated code."""

import sys
import types

import mpmath
import numpy as np
import pytest

import yota
from tests.rules.implicit_proofs import proved
from yota.errors import DifferentiationError
from yota.rules.proof.checker import prove_file
from yota.rules.proof.mutants import detected, mutants
from yota.rules.proof.partials import solved
from yota.rules.registry import registry

RULE = """
@implicit("orbits.kepler")
def kepler(M: Real(-pi, pi), e: Real(0, 0.9)) -> E:
    E = M + e * sin(M)
    0 == E - e * sin(E) - M
"""
ALONE = RULE.replace('("orbits.kepler")', "").replace("def kepler", "def anomaly")
M, ECCENTRICITY = np.linspace(-3.0, 3.0, 20), np.linspace(0.01, 0.85, 20)


def kepler(M, e):
    E = M + e * np.sin(M)
    for _ in range(40):
        E = E - (E - e * np.sin(E) - M) / (1 - e * np.cos(E))
    return E


def module_of(monkeypatch, name, function):
    """A module that has the function."""
    module = types.ModuleType(name)
    setattr(module, function.__name__, function)
    function.__module__ = name
    monkeypatch.setitem(sys.modules, name, module)
    return module


@pytest.fixture
def known(monkeypatch):
    module_of(monkeypatch, "orbits", kepler)
    return registry().with_rules(())


def exact(m, e):
    return mpmath.findroot(lambda E: E - e * mpmath.sin(E) - m, m + e * mpmath.sin(m))


def test_partials_against_50_digits():
    anomaly = yota.diffrule(ALONE)
    both = yota.value_and_grad(lambda m, e: np.sum(anomaly(m, e)), wrt=(0, 1))
    value, (by_m, by_e) = both(M, ECCENTRICITY)
    with mpmath.workdps(40):
        points = [(mpmath.mpf(m), mpmath.mpf(e)) for m, e in zip(M, ECCENTRICITY, strict=True)]
        assert abs(value - sum(exact(*point) for point in points)) < 1e-13
        for point, *found in list(zip(points, by_m, by_e, strict=True))[::5]:
            for number, order in zip(found, ((1, 0), (0, 1)), strict=True):
                right = mpmath.diff(exact, point, order)
                assert abs(number - right) <= 1e-12 * abs(right)


def test_a_start_that_does_not_lead_to_a_root_gives_nan():
    lost = yota.diffrule("@implicit\ndef lost(a: Real) -> y:\n    y = 1\n    0 == y * y + 1 + a * a\n")
    assert np.isnan(lost(np.float64(0.5)))
    zero = yota.diffrule("@implicit\ndef zero(a: Real) -> y:\n    y = a\n    y * (1 + y * y) == a\n")
    assert zero(np.array([0.0, 2.0])) == pytest.approx([0.0, 1.0], abs=1e-15)


@pytest.mark.parametrize(
    ("start", "equation"),
    [("x + 1", "0 == square(y - x)"), ("x * (1 + 1e-4)", "0 == square(y - x)"), ("1", "0 == exp(1e5 * (y - x))")],
)
def test_a_multiple_root_and_a_slope_without_root_give_nan(start, equation):
    name = f"multiple{len(start)}{len(equation)}"
    function = yota.diffrule(f"@implicit\ndef {name}(x: Real) -> y:\n    y = {start}\n    {equation}\n")
    with np.errstate(all="ignore"):
        for dtype in (np.float32, np.float64):
            assert np.all(np.isnan(function(np.array([1.0, 2.0], dtype))))


def test_a_number_as_start_takes_the_precision_of_the_operands():
    omega = yota.diffrule("@implicit\ndef omega(x: Real) -> y:\n    y = 1\n    0 == y * exp(y) - x\n")
    found = omega(np.array([2.0], np.float32))
    assert found.dtype == np.float32 and found[0] == pytest.approx(0.8526055, rel=1e-6)


def test_a_rule_file_is_proved(tmp_path, known):
    path = tmp_path / "my.rules"
    path.write_text(f"# yota rules 1\n{RULE}")
    found = prove_file(path)
    assert found.held, (found.faults, [each for each in found.findings if not each.held])
    laws = {each.law for each in found.findings}
    assert {"root of the equation, ulp", "formula, 50 digits", "second order"} <= laws


def test_faults_in_the_equation_are_found(known):
    known.define(RULE)
    (rule,) = known.rules("kepler")
    assert all(each.held for each in solved(rule, known, 6))
    planted = [each for each in mutants(rule, known) if "M - (E" not in each.change]
    assert len(planted) == 3
    assert all(detected(each, known, 6) for each in planted)


def test_a_function_that_misses_the_root_is_found(known, monkeypatch):
    monkeypatch.setattr(sys.modules["orbits"], "kepler", lambda M, e: kepler(M, e) * (1 + 1e-9))
    known.define(RULE)
    assert not all(each.held for each in solved(known.rules("kepler")[0], known, 6))


def test_standalone_code_takes_newtons_steps(monkeypatch):
    planets = types.ModuleType("planets")
    planets.kepler = lambda M, e: M + 0 * e
    monkeypatch.setitem(sys.modules, "planets", planets)
    yota.diffrule(RULE.replace("orbits.kepler", "planets.kepler").replace("def kepler", "def planets_kepler"))
    text = str(yota.generate(lambda m: np.sum(planets.kepler(m, 0.1)), {"m": "float64[8]"}, target="c"))
    assert text.count("sin(") > 16


BALANCE = """
@implicit("flows.balance")
def balance(A: RealArray[n, n], b: RealArray[n], c: Real, *, power: Static = 3) -> y:
    0 == matmul(A, y) + c * y**power - b
"""


def balance(A, b, c, power=3):
    y = np.zeros(np.shape(b))
    for _ in range(60):
        y = y - np.linalg.solve(A + np.diag(c * power * y ** (power - 1)), A @ y + c * y**power - b)
    return y


@pytest.fixture
def flows(monkeypatch):
    return module_of(monkeypatch, "flows", balance)


@pytest.mark.parametrize("target", ["numpy", "c"])
@pytest.mark.parametrize("size", [1, 3, 9])
def test_the_adjoint_of_arrays_is_one_linear_system(flows, size, target):
    random = np.random.default_rng(size)
    yota.diffrule(BALANCE)
    A, b, weights = random.normal(size=(size, size)) + 5 * np.eye(size), random.normal(size=size), np.arange(size) + 1.0
    loss = lambda A, b, c: np.sum(weights * flows.balance(A, b, c))
    value, (by_A, by_b, by_c) = yota.value_and_grad(loss, wrt=(0, 1, 2), target=target)(A, b, 0.7)
    y = balance(A, b, 0.7)
    slopes = np.linalg.inv(A + np.diag(2.1 * y**2))
    adjoint = slopes.T @ weights
    assert value == pytest.approx(np.sum(weights * y), rel=1e-14)
    np.testing.assert_allclose(by_b, adjoint, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(by_A, -np.outer(adjoint, y), rtol=1e-12, atol=1e-14)
    assert by_c == pytest.approx(-adjoint @ y**3, rel=1e-12)
    np.testing.assert_allclose(yota.jacobian(flows.balance, wrt=1)(A, b, 0.7), slopes, rtol=1e-12, atol=1e-14)
    bent = yota.hessian(loss, wrt=1, target=target)(A, b, 0.7)
    np.testing.assert_allclose(bent, -slopes.T @ np.diag(4.2 * y * adjoint) @ slopes, rtol=1e-10, atol=1e-13)


def test_one_variable_as_two_operands(flows):
    yota.diffrule(BALANCE.replace("c: Real", "c: RealArray[n]"))
    b = np.array([1.0, 2.0, 0.5])
    loss = lambda b: np.sum(flows.balance(np.eye(3), b, b))
    y = balance(np.eye(3), b, b)
    np.testing.assert_allclose(yota.gradient(loss)(b), (1 - y**3) / (1 + 3 * b * y**2), rtol=1e-13)


def test_keywords_and_batches_of_arrays(flows):
    yota.diffrule(BALANCE)
    A = np.array([[3.0, 1.0], [0.0, 2.0]])
    slope = yota.gradient(lambda b: np.sum(flows.balance(A, b, 0.5, power=2)))
    points = np.array([[1.0, 2.0], [0.3, 0.4]])
    wanted = [np.linalg.solve((A + np.diag(balance(A, b, 0.5, 2))).T, np.ones(2)) for b in points]
    np.testing.assert_allclose([slope(b) for b in points], wanted, rtol=1e-12)
    np.testing.assert_allclose(yota.batch(slope)(points), wanted, rtol=1e-12)


def test_an_equation_of_elements_may_have_any_shape(monkeypatch):
    roots = types.ModuleType("roots")
    roots.cubic = np.cbrt
    monkeypatch.setitem(sys.modules, "roots", roots)
    yota.diffrule('@implicit("roots.cubic")\ndef cubic(a: Array) -> y:\n    y**3 == a\n')
    a = np.arange(1.0, 7.0).reshape(2, 3)
    found = yota.gradient(lambda a: np.sum(a * roots.cubic(a)))(a)
    np.testing.assert_allclose(found, 4 / 3 * np.cbrt(a), rtol=1e-13)
    assert yota.gradient(lambda a: roots.cubic(a))(8.0) == pytest.approx(1 / 12, rel=1e-14)


def test_arrays_without_derivative(flows, monkeypatch):
    yota.diffrule(BALANCE)
    with pytest.raises(DifferentiationError, match=r"flows\.balance.*is for real arrays"):
        yota.gradient(lambda z: np.real(flows.balance(np.eye(2) * z, np.ones(2), 0.0)[0]))(1 + 1j)
    monkeypatch.setattr(flows, "balance", lambda A, b, c, power=3: 0 * b)
    yota.diffrule(BALANCE)
    with pytest.raises(DifferentiationError, match=r"flows\.balance has no derivative here: the Jacobian .* singular"):
        yota.gradient(lambda b: np.sum(flows.balance(np.zeros((2, 2)), b, 1.0)))(np.zeros(2))
    monkeypatch.setattr(flows, "balance", lambda A, b, c, power=3: b + 1.0)
    yota.diffrule(BALANCE)
    with pytest.raises(DifferentiationError, match="did not converge"):
        yota.gradient(lambda b: np.sum(flows.balance(np.eye(2), b, 1.0)))(np.ones(2))
    yota.diffrule(BALANCE.replace("matmul(A, y) + c * y**power - b", "sum(y) - sum(b)"))
    with pytest.raises(DifferentiationError, match=r"has the shape \(\), and its result \(2,\)"):
        yota.gradient(lambda b: np.sum(flows.balance(np.eye(2), b, 1.0)))(np.ones(2))


def test_rules_of_arrays_are_proved(tmp_path, flows):
    proved(tmp_path, BALANCE, "balance", 4)


def test_an_array_that_misses_the_root_is_found(flows, monkeypatch):
    monkeypatch.setattr(flows, "balance", lambda A, b, c, power=3: balance(A, b, c, power) * (1 + 1e-6))
    known = registry().with_rules(())
    known.define(BALANCE)
    assert not all(each.held for each in solved(known.rules("balance")[0], known, 6))
