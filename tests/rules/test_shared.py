"""Locals of rules: what a value and its slope share is computed once, and both keep their digits."""

import re
from dataclasses import replace

import mpmath
import numpy as np
import pytest
import scipy.special

import yota
from yota.ir.tape import TapeBuilder
from yota.ir.types import TensorType
from yota.optimize import inline
from yota.rules.language.model import Call, Literal
from yota.rules.proof.checker import prove_file
from yota.rules.proof.mutants import detected, mutants, without_effect
from yota.rules.proof.partials import shared
from yota.rules.registry import registry

FUNCTIONS = {
    "tanh": (np.tanh, mpmath.tanh, lambda x: mpmath.sech(x) ** 2),
    "sinh": (np.sinh, mpmath.sinh, mpmath.cosh),
    "cosh": (np.cosh, mpmath.cosh, mpmath.sinh),
    "expit": (scipy.special.expit, lambda x: 1 / (1 + mpmath.exp(-x)), lambda x: mpmath.sech(x / 2) ** 2 / 4),
    "log_expit": (scipy.special.log_expit, lambda x: -mpmath.log1p(mpmath.exp(-x)), lambda x: 1 / (1 + mpmath.exp(x))),
    "softplus": (
        lambda x: np.logaddexp(0, x),
        lambda x: mpmath.log1p(mpmath.exp(x)),
        lambda x: 1 / (1 + mpmath.exp(-x)),
    ),
}
BESSEL = {
    "i0": (scipy.special.i0, lambda x: mpmath.besseli(0, x), lambda x: mpmath.besseli(1, x)),
    "i1": (scipy.special.i1, lambda x: mpmath.besseli(1, x), lambda x: mpmath.besseli(1, x, 1)),
    "k0": (
        lambda x: scipy.special.k0(np.abs(x)),
        lambda x: mpmath.besselk(0, abs(x)),
        lambda x: -mpmath.sign(x) * mpmath.besselk(1, abs(x)),
    ),
    "k1": (
        lambda x: scipy.special.k1(np.abs(x)),
        lambda x: mpmath.besselk(1, abs(x)),
        lambda x: -mpmath.sign(x) * (mpmath.besselk(0, abs(x)) + mpmath.besselk(1, abs(x)) / abs(x)),
    ),
}
"""Pairs whose forms are for C alone."""
SIZES = [1e-300, 1e-9, 0.2, 0.624, 0.626, 1.0, 3.0, 19.0, 40.0, 300.0]
POINTS = np.array([*SIZES, *(-size for size in SIZES)] * 4)


@pytest.mark.parametrize(
    ("name", "target"),
    [*((name, "numpy") for name in FUNCTIONS), *((name, "c") for name in ("tanh", "sinh", "cosh", *BESSEL))],
)
def test_value_and_slope_keep_their_digits(name, target):
    function, exact, rate = {**FUNCTIONS, **BESSEL}[name]

    def loss(x, w):
        return np.sum(w * function(x)), function(x)

    both = yota.value_and_grad(loss, has_aux=True, target=target)
    (_, value), slope = both(POINTS, np.ones_like(POINTS))
    with mpmath.workdps(320):
        for x, *found in zip(POINTS[:20], value, slope, strict=False):
            for number, right in zip(found, (exact(mpmath.mpf(x)), rate(mpmath.mpf(x))), strict=True):
                off = abs(number - right)
                assert off <= 8 * 2.0**-52 * abs(right) or number == float(right), (x, number)


def loss(x):
    return np.sum(np.logaddexp(0, x) * np.tanh(x))


def test_the_part_is_computed_once():
    text = str(yota.generate(loss, {"x": "float64[200]"}))
    before, after = re.sub(r"# .*", "", text).split("def _loss_value_and_gradient")
    assert "np.exp(" not in before.split("def _loss(")[1]
    assert after.count("np.exp(") == after.count("np.log1p(") == 1
    assert "np.logaddexp(" not in after
    # More ops than a call of NumPy saves.
    assert "np.tanh(" in after


def inlined(*functions, dtype=np.float64, strict=False):
    builder = TapeBuilder("f")
    x = builder.input(TensorType(np.dtype(dtype), (64,)), 0, "x")
    found = [builder.emit(registry().primitive(name), (x,)) for name in functions]
    tape = inline.run(builder.finish(found), strict=strict, compiled=True)
    return [op.name for op in tape.ops]


def test_only_what_shares_a_part_is_rewritten():
    assert inlined("tanh") == ["tanh"]
    assert inlined("tanh", "sin") == ["tanh", "sin"]
    assert "cosh" not in inlined("tanh", "_sech")
    assert "tanh" not in inlined("tanh", "_sech")
    assert "tanh" in inlined("tanh", "_sech", strict=True)
    assert "tanh" in inlined("tanh", "_sech", dtype=np.complex128)


def test_a_hyperbolic_function_and_its_slope_take_one_exponential():
    assert not {"sinh", "cosh"} & set(inlined("sinh", "cosh"))
    both = yota.value_and_grad(lambda x: np.sum(np.sinh(x)), target="c")
    both(np.linspace(0.1, 1.0, 200))
    assert re.sub(r"/\*.*?\*/", "", both.source).count(" exp(") == 3  # with its declaration and the others of vectors
    assert inlined("sinh") == ["sinh"]
    assert inlined("sinh", "cosh", dtype=np.complex128) == ["sinh", "cosh"]


@pytest.mark.parametrize("target", ["numpy", "c"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_hyperbolic_functions_overflow_where_their_values_do(dtype, target):
    last = np.float32(89.4) if dtype == np.float32 else 710.47
    x = np.array([last, -last, 2 * last, -2 * last, np.inf, -np.inf, np.nan, 0.0, -0.0, 1e-30] * 7, dtype)
    for function in (np.sinh, np.cosh):
        both = yota.value_and_grad(lambda x: (np.sum(function(x)), function(x)), has_aux=True, target=target)  # noqa: B023
        (_, value), _ = both(x)
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(value, function(x), rtol=8 * np.finfo(dtype).eps)
            assert np.array_equal(np.signbit(value), np.signbit(function(x)))


def test_strict_values_have_numpys_bits():
    x = np.linspace(-30, 30, 999)
    value, _ = yota.value_and_grad(lambda x: np.sum(np.tanh(x)), strict=True)(x)
    assert value == np.sum(np.tanh(x))


def test_operands_of_two_precisions_keep_the_digits_of_the_larger():
    a, b = np.ones(3, np.float32), np.ones(3)
    both = yota.value_and_grad(lambda a, b: (np.sum(np.logaddexp(a, b)), np.logaddexp(a, b)), wrt=(0, 1), has_aux=True)
    (_, value), _ = both(a, b)
    np.testing.assert_allclose(value, np.logaddexp(a, b), rtol=1e-15)


USER = """# yota rules 1
@elementwise
def bump(x: Real) -> y:
    e = exp(-x * x)
    y = e * (1 + e)
    d[y, x] = {slope}
"""


def test_locals_of_a_users_rule(tmp_path):
    path = tmp_path / "my.rules"
    path.write_text(USER.format(slope="-2 * x * e * (1 + 2 * e)"))
    found = prove_file(path)
    assert found.held, [each for each in found.findings if not each.held]
    path.write_text(USER.format(slope="-2 * x * e * (1 + 2.001 * e)"))
    assert not prove_file(path).held


@pytest.mark.parametrize("name", ["tanh", "sinh", "cosh", "_sech", "_logistic", "logaddexp", "expit", *BESSEL])
def test_a_fault_in_the_form_is_found(name):
    (rule,) = registry().rules(name)
    assert all(each.held for each in shared(rule, registry(), 12))
    # SciPy's own functions are less exact.
    fault = Literal(1 + (1e-11 if name in BESSEL else 1e-14))
    wrong = replace(rule, shared={"y": Call("multiply", (fault, rule.shared["y"]))})
    assert not all(each.held for each in shared(wrong, registry(), 12))


def test_a_fault_of_a_form_that_no_value_shows_is_listed():
    (rule,) = registry().rules("sinh")
    missed = [each for each in mutants(rule, registry()) if each.left == "y" and not detected(each, registry())]
    assert [without_effect(each, rule, registry()) for each in missed] == ["the form has the same values"]
    wrong = replace(missed[0], rule=replace(rule, shared={"y": Call("multiply", (Literal(2), rule.shared["y"]))}))
    assert without_effect(wrong, rule, registry()) == ""


def test_a_form_with_another_zero_is_found():
    (rule,) = registry().rules("tanh")
    form = Call(
        "where", (Call("less", (rule.parts["e"], Literal(0))), Literal(0), Call("absolute", (rule.shared["y"],)))
    )
    wrong = replace(rule, shared={"y": Call("copysign", (form, rule.parts["e"]))})
    held = {each.law: each.held for each in shared(wrong, registry(), 4)}
    assert not held["shared form, zeros and infinities"]


def calls(function, name):
    """How often the code of value and slope calls a function."""
    both = yota.value_and_grad(lambda x: np.sum(function(x)))
    both(np.linspace(0.1, 1.0, 200))
    return re.sub(r"# .*", "", both.source).count(f"{name}(")


@pytest.mark.parametrize("name", ["i0e", "i1e"])
def test_what_the_body_of_another_rule_computes_is_a_part(name):
    function = getattr(scipy.special, name)
    assert calls(function, name) == 1
    x = np.linspace(-5.0, 5.0, 64)
    assert yota.value_and_grad(lambda x: np.sum(function(x)))(x)[0] == pytest.approx(np.sum(function(x)), rel=1e-15)


def test_the_normal_distribution_and_its_score_take_one_table():
    log_ndtr = scipy.special.log_ndtr
    assert calls(log_ndtr, "log_ndtr") == 0 and calls(log_ndtr, "erfcx") == 1
    both = yota.value_and_grad(lambda x, w: (np.sum(w * log_ndtr(x)), log_ndtr(x)), has_aux=True)
    x = np.array([-1e4, -40.0, -3.0, -1e-9, 0.0, 1e-9, 0.7, 5.0, 12.5, 30.0, 37.0] * 6)
    (_, value), slope = both(x, np.ones_like(x))
    with mpmath.workdps(700):
        for each, *found in list(zip(map(mpmath.mpf, x), value, slope, strict=True))[:11]:
            below = mpmath.erfc(-each / mpmath.sqrt(2)) / 2
            for number, right in zip(found, (mpmath.log(below), mpmath.npdf(each) / below), strict=True):
                assert abs(number - right) <= 8 * 2.0**-52 * abs(right), (each, number)


@pytest.mark.parametrize("name", ["j1", "i1", "y1"])
def test_slopes_of_bessel_functions_are_by_two_orders(name):
    function = getattr(scipy.special, name)
    assert not any(calls(function, other) for other in ("jv", "iv", "yn"))
    x = np.array([1e-100, 1e-9, 0.3, 1.9, 30.0, 600.0])
    slope = yota.gradient(lambda x: np.sum(function(x)))(x)
    exact = {"j1": mpmath.besselj, "i1": mpmath.besseli, "y1": mpmath.bessely}[name]
    for each, number in zip(x, slope, strict=True):
        right = (exact(0, each) + (1 if name == "i1" else -1) * exact(2, each)) / 2
        assert number == pytest.approx(float(right), rel=1e-12)
