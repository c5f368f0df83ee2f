"""Functions that an equation defines: their partials, their proof, and Newton's method in generated code."""

import sys
import types

import mpmath
import numpy as np
import pytest

import yota
from yota.rules.proof.checker import prove_file
from yota.rules.proof.mutants import detected, mutants
from yota.rules.proof.value_forms import solved
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


@pytest.fixture
def known(monkeypatch):
    module = types.ModuleType("orbits")
    module.kepler = kepler
    kepler.__module__ = "orbits"
    monkeypatch.setitem(sys.modules, "orbits", module)
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
