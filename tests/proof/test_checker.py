"""What the proof of a user's file finds: every fault, by its law; what is right passes."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.special  # noqa: F401  (functions are looked up among loaded modules)

import yota
from yota.rules.proof.checker import prove_file
from yota.rules.proof.mutants import mutants, survey
from yota.rules.registry import registry
from yota.testing import check_rule


def report(tmp_path, *rules):
    path = tmp_path / "my.rules"
    path.write_text("# yota rules 1\n" + "\n".join(rules))
    return prove_file(path)


def wrong(found):
    return [(each.rule, each.law) for each in found.findings if not each.held]


RIGHT = """
@elementwise
def bell(x: Real, w: Real(0, oo)) -> y:
    y = exp(-w * x * x)

@elementwise
def halves(x: Real) -> (s, c):
    s = sin(0.5 * x)
    c = cos(0.5 * x)

@tensor
def energy(x: Array, *, axis: Static = None, keepdims: Static = False) -> y:
    y = sum(real(x * conjugate(x)), axis=axis, keepdims=keepdims)
    d[x] = 2 * x * unreduce(d[y], shape(x), axis, keepdims)
"""


def test_what_is_right_passes(tmp_path):
    found = report(tmp_path, RIGHT)
    assert found.held, wrong(found)
    assert found.rules == 3
    laws = {each.law for each in found.findings}
    assert {"formula", "float32 code, 50 digits", "second order", "adjoint, random directions"} <= laws
    places = [each.where for each in found.findings if each.law == "adjoint, random directions"]
    assert all("my.rules:" in place for place in places)
    assert found.data()["findings"][0]["rule"] == "bell"


@pytest.mark.parametrize(
    ("primal", "partial"),
    [
        ("0.1 * x**3", "0.3 * x * x"),
        ("x**(1 / 3)", "x**(-2 / 3) / 3"),
        ("log(2) * x**3", "3 * log(2) * x**2"),
        ("x**sqrt(2) * pi / 2", "x**(sqrt(2) - 1) * pi / sqrt(2)"),
        ("x * ndtr(x)", "ndtr(x) + x * exp(-0.5 * x * x) / sqrt(2 * pi)"),
    ],
)
@pytest.mark.parametrize("written", [True, False])
def test_numbers_in_a_formula_mean_what_is_written(tmp_path, primal, partial, written):
    rule = f"@elementwise\ndef f(x: Real(0, oo)) -> y:\n    y = {primal}\n"
    found = report(tmp_path, rule + f"    d[y, x] = {partial}\n" * written)
    assert found.held, (found.faults, wrong(found))
    wrong_one = report(tmp_path, rule + f"    d[y, x] = 1.0000001 * ({partial})\n")
    assert not wrong_one.held


def test_what_shipped_rules_speak_of_is_imported(tmp_path):
    path = tmp_path / "my.rules"
    path.write_text("# yota rules 1\n@elementwise\ndef swish(x: Real) -> y:\n    y = x * expit(x)\n")
    script = (
        "import pathlib, sys\n"
        "from yota.rules.proof.checker import prove_file\n"
        "assert 'scipy.special' not in sys.modules\n"
        f"found = prove_file(pathlib.Path({str(path)!r}), points=2)\n"
        "assert found.held and not any('not measured' in each.note for each in found.findings), found\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)


def test_all_faults_are_reported(tmp_path):
    found = report(
        tmp_path,
        "@elementwise\ndef f(x: Real, k: Real) -> y:\n    y = k * x**3",
        "    d[y, x] = 2 * k * x * x\n    d[y, k] = x * x",
        "@elementwise\ndef g(x: Real) -> y:\n    y = lenght(x)",
        "@elementwise\ndef h(x: Real -> y:\n    y = x",
        "@tensor\ndef t(x: Array) -> y:\n    y = sum(x)\n    d[x] = d[y] * d[y]",
        RIGHT,
    )
    assert [fault.splitlines()[0].split("my.rules:")[1].split(":")[0] for fault in found.faults] == [
        "11",
        "5",
        "6",
        "9",
        "16",
    ]
    assert "lenght" in found.faults[3]
    assert all("^" in fault for fault in found.faults)
    # The others are proved all the same.
    assert {each.rule for each in found.findings} == {"bell", "halves", "energy"}
    assert not found.held


KINK = """@elementwise
def f(x: Real) -> y:
    assert x != 0
    y = absolute(x)
    d[y, x] = where(x >= 0, 1, -1)
"""
CORNER = """@elementwise
def f(x: Real) -> y:
    y = x * x
    d[y, x] = 2 * x + where(x == 1, 0.01, 0)
"""
SHAPE = """@tensor
def f(x: Array) -> y:
    y = sum(x)
    d[x] = reshape(unreduce(d[y], shape(x), None, False), shape=-1)
"""
DTYPE = """@tensor
def f(x: Array) -> y:
    y = real(sum(x))
    d[x] = astype(unreduce(d[y], shape(x), None, False), dtype="float64")
"""
DIGITS = "@elementwise\ndef f(x: Real) -> y:\n    y = tanh(x)\n    d[y, x] = 1 - y * y\n"
SUM = "@tensor\ndef f(x: Array) -> y:\n    y = sum(x * x)\n    d[x] = {} * d[y]\n"


@pytest.mark.parametrize(
    ("rule", "law"),
    [
        (DIGITS, "float64 code, 50 digits"),
        (KINK, "kinks, mean of both sides"),
        (CORNER, "formula, 50 digits"),
        (SUM.format("2.01 * conjugate(x)"), "adjoint, random directions"),
        (SUM.format("2 * x"), "adjoint, random directions"),
        (SHAPE, "adjoint, random directions"),
        (DTYPE, "adjoint, shape and dtype"),
    ],
    ids=["digits", "kink", "corner", "coefficient", "conjugate", "shape", "dtype"],
)
def test_each_law_can_fail(rule, law, tmp_path):
    found = report(tmp_path, rule)
    assert not found.faults, found.faults
    assert ("f", law) in wrong(found)


def test_a_rule_may_state_how_many_digits_it_keeps(tmp_path):
    rule = '@elementwise\ndef f(x: Real) -> y:\n    """{}"""\n    y = sqrt(x * x + 1) - 1\n    d[y, x] = {}'
    lossy = "sqrt(x * x + 1) / x - 1 / (x * sqrt(x * x + 1))"
    found = report(tmp_path, rule.format("", lossy))
    assert ("f", "float64 code, 50 digits") in wrong(found)
    (note,) = {each.note for each in found.findings if each.law == "float64 code, 50 digits"}
    assert note.startswith("write d[y, x] in a form that keeps its digits, or say in the docstring")
    found = report(tmp_path, rule.format("Within 1e+3: near 0 it cancels.", lossy))
    assert ("f", "float64 code, 50 digits") in wrong(found)
    found = report(tmp_path, rule.format("Within 9.9e-1: near 0 it cancels.", lossy))
    assert not any(law == "float64 code, 50 digits" for _, law in wrong(found))
    assert "near 0 it cancels." in {each.note for each in found.findings}


TWO = """@elementwise
def f(x: Real) -> y:
    y = {}
    d[y, x] = {}
"""


@pytest.mark.parametrize(
    ("primal", "partial", "shown"),
    [
        ("sin(x)**2", "2 * sin(x) * cos(x)", "exact"),
        ("sin(x)**2", "sin(2 * x)", "exact"),
        ("arctan(x) - arctan(1 / x)", "2 / (1 + x * x)", "exact"),
        ("log_ndtr(x)", "exp(-0.5 * x * x) / sqrt(2 * pi) / ndtr(x)", "0"),
    ],
)
def test_what_is_shown_as_a_formula_says_so(primal, partial, shown, tmp_path):
    found = report(tmp_path, TWO.format(primal, partial))
    (formula,) = [each for each in found.findings if each.law.startswith("formula")]
    assert formula.held
    assert (formula.error == "exact") == (formula.law == "formula") == (shown == "exact"), formula


def test_a_function_that_is_not_loaded_cannot_be_proved(tmp_path):
    found = report(tmp_path, '@tensor("nowhere.at.all")\ndef f(x: Array) -> y:\n    d[x] = d[y]')
    (fault,) = found.faults
    assert fault.splitlines()[1:3] == ['    @tensor("nowhere.at.all")', "     ^"]
    assert "`nowhere.at` is not loaded" in fault and "--import nowhere.at" in fault
    assert not found.held and not found.findings


@pytest.mark.parametrize("kind", ["elementwise", "nodiff"])
def test_a_function_that_is_not_there_is_a_rule_that_never_fires(tmp_path, kind):
    body = "..." if kind == "nodiff" else "\n    d[y, x] = cos(x)"
    found = report(tmp_path, f'@{kind}("numpy.sinn")\ndef f(x: Real) -> y: {body}')
    (fault,) = found.faults
    assert "`numpy` has no function `sinn`, so that this rule can never fire" in fault
    assert fault.endswith(f'write: @{kind}("numpy.sin")')


def test_what_shipped_rules_are_for_is_imported(tmp_path):
    path = tmp_path / "my.rules"
    path.write_text(
        '# yota rules 1\n@elementwise("scipy.special.expit")\ndef f(x: Real) -> y:\n    d[y, x] = y * f(-x)\n'
    )
    script = (
        "import pathlib, sys\n"
        "from yota.rules.proof.checker import prove_file\n"
        "assert 'scipy.special' not in sys.modules\n"
        f"assert prove_file(pathlib.Path({str(path)!r}), points=2).held\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)


def test_a_function_of_the_users(tmp_path, monkeypatch):
    monkeypatch.setattr(np, "my_bump", lambda x: 1 / (1 + x * x), raising=False)
    rule = '@elementwise("numpy.my_bump")\ndef bump(x: Real) -> y:\n    d[y, x] = -2 * x * my_bump(x)'
    assert not report(tmp_path, rule).held


def test_check_rule():
    assert any(each.law == "kinks, mean of both sides" for each in check_rule("absolute", points=3))
    rule = registry().rules("square")[0]
    assert all(each.held for each in check_rule(rule, points=3))
    with pytest.raises(yota.errors.MissingRuleError):
        check_rule("nothing")


def test_check_rule_raises(monkeypatch):
    known = registry().copy()
    known.define("@elementwise\ndef lossy(x: Real) -> y:\n    y = tanh(x)\n    d[y, x] = 1 - y * y")
    monkeypatch.setattr("yota.rules.registry.registry", lambda: known)
    with pytest.raises(AssertionError, match=r"lossy x: float64 code, 50 digits: .* ulp"):
        check_rule("lossy")


def test_mutants_are_wrong_in_one_place():
    rule = registry().rules("divide")[0]
    shown = [mutant.change for mutant in mutants(rule, registry())]
    assert shown == [
        "the whole off by 1e-3",
        "the whole with the other sign",
        "b / 1 in the place of 1 / b",
        "1.001 in the place of 1",
        "the whole off by 1e-3",
        "the whole with the other sign",
        "b / -y in the place of -y / b",
        "y in the place of -y",
    ]


def test_a_survey_counts_what_is_found(tmp_path):
    path = tmp_path / "my.rules"
    path.write_text("# yota rules 1\n@elementwise\ndef f(x: Real) -> y:\n    y = x * x\n    d[y, x] = 2 * x\n")
    found = survey(path)
    assert (found.planted, found.found, found.same, found.missed, found.share) == (3, 3, {}, [], 100.0)


def test_what_no_value_shows_is_said_to_be_without_effect(tmp_path):
    path = tmp_path / "my.rules"
    path.write_text(
        "# yota rules 1\n@elementwise\ndef f(x: Real, z: Real(0, oo)) -> y:\n    y = x * log(z)\n"
        "    d[y, x] = log(z)\n    d[y, z] = x / where(x == 0, 1, z)\n"
    )
    found = survey(path)
    assert found.missed == []
    ((mutant, reason),) = found.same.items()
    assert "1.001 in the place of 1" in mutant
    assert "points" in reason


def test_ends_of_sets_count(tmp_path):
    rule = (
        "@elementwise\ndef f(x: Real(0, oo), p: Real) -> y:\n    y = x * x * sin(p)\n    d[y, p] = {}\n"
        "    d[y, x] = where(x == 0, {}, 2 * x * sin(p))\n"
    )
    assert report(tmp_path, rule.format("x * x * cos(p)", "0")).held
    for right, left in (("x * x * cos(p)", "0.001"), ("where(x == 0, 0.5, x * x * cos(p))", "0")):
        assert ("f", "ends, slope from inside") in wrong(report(tmp_path, rule.format(right, left)))
    # What is not a number claims nothing.
    assert report(tmp_path, rule.format("x * x * cos(p)", "log(x - 1)")).held
    assert not report(tmp_path, rule.format("x * x * cos(p)", "oo")).held


@pytest.mark.parametrize(
    "text",
    [
        "    @elementwise\ndef f(x: Real) -> y:\n    y = x",
        "def f(x: Real) -> y:    y = x",
        "@elementwise\ndef f(x: Real) -> y:\n    y = 0.1 * True",
        "@elementwise\ndef f(x: Real) -> y:\n    y = 3",
        "@elementwise\ndef f(x: Real) -> y:\n    y = Boolean\n    d[y, x] = cos(x)",
        "@elementwise\ndef f(x: Real) -> y:\n    y = where(x > 2**1000, x, 2**1000) * 1e300",
        (
            '@tensor("numpy.matmul")\ndef matmul(a: Array[k], b: Array[k, n]) -> y:\n'
            "    d[a] = matmul(conjugate(b), d[y])\n    d[b] = expand_dims(conjugate(a), exp(1)) * d[y]"
        ),
    ],
)
def test_strange_files_end_in_a_report(tmp_path, text):
    found = report(tmp_path, text)
    assert found.faults or found.findings
    assert all("my.rules:" in fault for fault in found.faults)
