"""Scalar code: what it looks like, and that it gives NumPy's results, infinities and NaNs included."""

from __future__ import annotations

import itertools
import timeit
import warnings

import numpy as np
import pytest
from hypothesis import given, settings

import yota
from tests.emit.test_symbolic import STEPS, program
from tests.optimize.tapes import FLOAT, Traced, agree, eight, evaluate, gradient, tape_of
from yota.emit.python import straight_code as expressions
from yota.emit.python.scalar import is_scalar, scalar_source
from yota.ir.primitive import Primitive
from yota.ir.tape import Tape, TapeBuilder
from yota.ir.types import TensorType, type_of
from yota.optimize import pipeline
from yota.optimize.polynomials.symbolic import optimise
from yota.run.machine.python import load
from yota.run.machine.signals import StaleTape

VALUES = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e308, -1e308, 5e-324, np.inf, -np.inf, np.nan]


def compiled(tape: Tape, **options: bool):
    found = optimise(pipeline.run(tape, **options), **options)
    assert is_scalar(found)
    return load(scalar_source(found, **options))


def results(found) -> tuple:
    return found if isinstance(found, tuple) else (found,)


def identical(mine, theirs) -> None:
    """Equal values, NaN with NaN, and equal signs of zeros; the last bit of a function may differ."""
    for a, b in zip(results(mine), theirs, strict=True):
        a, b = np.asarray(a, float), np.asarray(b, float)
        np.testing.assert_allclose(a, b, rtol=1e-14, atol=0)
        zeros = (b == 0) & (a == 0)
        np.testing.assert_array_equal(np.signbit(a)[zeros], np.signbit(b)[zeros])


def test_source_of_the_polynomial():
    source = scalar_source(optimise(pipeline.run(gradient(tape_of(eight, (8,))))))
    lines = source.text.splitlines()
    assert "def eight(x):" in lines
    assert "    x0, x1, x2, x3, x4, x5, x6, x7 = x.tolist()" in lines
    assert "try:" not in source.text
    assert max(map(len, lines)) <= 110
    assert source.entry == "eight"


def test_polynomial_is_as_fast_as_by_hand():
    def by_hand(x):
        x0, x1, x2, x3, x4, x5, x6, x7 = x.tolist()
        c, b, e, d = x7 * x7, x5 * x5, x4 * x4, x6 * x6
        c3, b3, e3, d3 = 3.0 * c, 3.0 * b, 3.0 * e, 3.0 * d
        u, v, p, q = x7 * (c - b3), x5 * (c3 - b), x4 * (e - d3), x6 * (e3 - d)
        w, t, r, s = c3 - b3, 6.0 * x5 * x7, e3 - d3, 6.0 * x6 * x4
        value = x2 * u + x0 * v + x3 * p + x1 * q - 1.2342523
        return value, np.array([v, q, u, p, x3 * r + x1 * s, x0 * w - x2 * t, x1 * r - x3 * s, x2 * w + x0 * t])

    generated = compiled(gradient(tape_of(eight, (8,))))
    x = np.random.default_rng(0).normal(size=8)
    agree(generated(x), by_hand(x), rtol=1e-10)

    def seconds(function) -> float:
        return min(timeit.repeat(lambda: function(x), number=2000, repeat=9))

    assert seconds(generated) < 2 * seconds(by_hand)


UNARY = (
    "negative positive square absolute fabs sign floor ceil trunc rint sqrt exp expm1 exp2 log log2 log10 log1p sin cos"
    " tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh cbrt deg2rad rad2deg degrees radians reciprocal"
    " conjugate real"
).split()
BINARY = (
    "add subtract multiply divide power maximum minimum fmax fmin hypot arctan2 copysign fmod remainder floor_divide"
    " logaddexp heaviside nextafter"
).split()
DECISIONS = "less less_equal greater greater_equal equal not_equal logical_and logical_or".split()


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_number(name):
    tape = tape_of(lambda x: x[0].call(name), (1,))
    function = load(scalar_source(tape))
    for value in VALUES:
        x = np.array([value])
        identical(function(x), evaluate(tape, x))


@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_numbers(name):
    tape = tape_of(lambda x: x[0].call(name, x[1]), (2,))
    function = load(scalar_source(tape))
    with np.errstate(all="ignore"):
        powers = [np.float64(a) ** np.float64(b) for a, b in itertools.product(VALUES, VALUES)]
    for pair, raised in zip(itertools.product(VALUES, VALUES), powers, strict=True):
        x = np.array(pair)
        # np.power takes a square root for 0.5, unlike ** on NumPy's scalars, which is what a scalar tape was made from.
        expected = [raised] if name == "power" else evaluate(tape, x)
        identical(function(x), expected)


@pytest.mark.parametrize("name", DECISIONS)
def test_decisions(name):
    tape = tape_of(lambda x: (x[0].call(name, x[1]), x.apply("where", x[0].call(name, x[1]), x[0] + 1.0, x[1])), (2,))
    function = load(scalar_source(tape))
    for pair in itertools.product(VALUES, VALUES):
        x = np.array(pair)
        found = function(x)
        assert type(found[0]) is np.bool_
        identical(found, evaluate(tape, x))


@pytest.mark.parametrize("name", ["isnan", "isinf", "isfinite", "signbit", "logical_not"])
def test_tests(name):
    tape = tape_of(lambda x: x[0].call(name), (1,))
    function = load(scalar_source(tape))
    for value in VALUES:
        x = np.array([value])
        identical(function(x), evaluate(tape, x))


def test_no_warning_and_no_exception_for_infinities():
    tape = gradient(tape_of(lambda x: (x[0] / x[1]).call("log") * x[2].call("exp") + x[3].call("sin"), (4,)))
    function = compiled(tape)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        value, adjoint = function(np.array([1.0, 0.0, 1000.0, np.inf]))
    assert np.isnan(value)
    assert adjoint.shape == (4,)


def test_python_numbers_in_and_out():
    function = compiled(tape_of(lambda a, b: a / b + a * 3, "weak", "weak"))
    assert type(function(1.5, 2.0)) is float
    assert function(1.5, 2.0) == 5.25
    assert function(1.0, 0.0) == np.inf
    assert type(function(1.0, 0.0)) is float


def test_numpy_numbers_in_and_out():
    function = compiled(tape_of(lambda a: a * a, ()))
    assert type(function(np.float64(3))) is np.float64


def test_results_of_two_dimensions():
    tape = tape_of(lambda x: (x * 2.0, x.call("reshape", shape=(4,))), (2, 2))
    function = compiled(tape)
    x = np.arange(4.0).reshape(2, 2)
    agree(function(x), evaluate(tape, x))
    assert function(x.T)[1].tolist() == [0, 2, 1, 3]
    assert function(x)[0].flags.owndata or function(x)[0].base is not x


@pytest.mark.parametrize("dtype", ["float32", "complex128", "complex64", "float16", "int64", "int32"])
def test_other_types_are_kept(dtype):
    tape = tape_of(lambda x: (x[0] * x[1] + 2, x[0] - x[1]), TensorType(np.dtype(dtype), (2,)))
    function = compiled(tape)
    x = np.array([3, 5], dtype)
    found = function(x)
    for result, variable in zip(found, tape.outputs, strict=True):
        assert type_of(result) == tape.types[variable]
    agree(found, evaluate(tape, x))


def test_mixed_precision_is_promoted_as_numpy_does():
    single = TensorType(np.dtype("float32"), (2,))
    tape = tape_of(
        lambda x, y, s: (x.apply("multiply", np.float64(1), x[0]), x[0] * y[0], x[1] * s, s * s), single, (2,), "weak"
    )
    function = load(scalar_source(tape))
    arguments = np.float32([0.1, 0.2]), np.array([0.3, 0.4]), 1.5
    found, expected = function(*arguments), evaluate(tape, *arguments)
    assert [type(each) for each in found] == [np.float64, np.float64, np.float32, float]
    assert list(found) == expected


def test_long_sparse_gradients():
    function = compiled(gradient(tape_of(lambda x: x[3] * x[500], (1000,))))
    value, adjoint = function(np.arange(1000.0))
    assert value == 1500
    assert np.flatnonzero(adjoint).tolist() == [3, 500]


def test_guards_come_first():
    builder = TapeBuilder("f")
    x = Traced(builder, builder.input(TensorType(FLOAT, (2,)), 0, "x"))
    product = x[0].call("exp") * x[1]
    builder.guard(x[0].call("greater", 0).variable, True, "bool")
    builder.guard(x[1].call("less", 0).variable, False, "bool")
    builder.guard((x[1] * 2).variable, 3, "int")
    builder.guard((x[1] * 4).variable, 6.0, "float")
    tape = pipeline.run(builder.finish([product.variable]))
    source = scalar_source(tape)
    assert source.guards == 4
    function = load(source)
    agree([function(np.array([1.0, 1.5]))], [np.exp(1.0) * 1.5])
    for number, x in enumerate([[-1, 1.5], [1, -1.5], [1, 2.5], [1, 1.6]]):
        with pytest.raises(StaleTape) as caught:
            function(np.array(x))
        assert caught.value.index == number
    assert source.text.index("raise") < source.text.index("exp(x")
    with pytest.raises(StaleTape):
        function(np.array([np.nan, 1.5]))


def test_names_do_not_collide():
    tape = tape_of(lambda exp, np, x, x0: exp * np.call("exp") + x[0] * x0 + x[1], (), (), (2,), ())
    function = compiled(tape)
    agree([function(1.0, 2.0, [3.0, 4.0] @ np.eye(2), 5.0)], [np.exp(2.0) + 15 + 4])


def test_functions_of_the_users_are_passed_by_name():
    triple = Primitive("triple", None, True, lambda x: 3 * x)
    builder = TapeBuilder("f")
    x = builder.input(TensorType(FLOAT), 0, "x")
    source = scalar_source(builder.finish([builder.emit(triple, (x,))]))
    assert source.constants == {"triple": triple.function}
    assert load(source)(2.0) == 6.0


def test_functions_of_scipy_are_imported():
    special = pytest.importorskip("scipy.special")
    logistic = Primitive("expit", "scipy.special.expit", True, special.expit)
    builder = TapeBuilder("f")
    x = builder.input(TensorType(FLOAT), 0, "x")
    source = scalar_source(builder.finish([builder.emit(logistic, (x,))]))
    assert "import scipy.special\n" in source.text
    assert load(source)(0.0) == 0.5


def test_keywords_are_passed_on():
    def shifted(x, *, by, brackets, marker):
        assert brackets == "{0}"
        assert marker is given
        return x + by

    given = object()
    primitive = Primitive("shifted", None, True, shifted)
    builder = TapeBuilder("f")
    x = builder.input(TensorType(FLOAT), 0, "x")
    keywords = {"by": -3, "brackets": "{0}", "marker": given}
    source = scalar_source(builder.finish([builder.emit(primitive, (x,), keywords, TensorType(FLOAT))]))
    assert "by=-3" in source.text
    assert load(source)(2.0) == -1.0


@pytest.mark.parametrize("branch", [0, -1, 3])
def test_branches_of_a_function_of_scipy(branch):
    special = pytest.importorskip("scipy.special")
    primitive = Primitive("lambertw", "scipy.special.lambertw", True, special.lambertw)
    builder = TapeBuilder("f")
    x = builder.input(TensorType(np.dtype(complex)), 0, "x")
    source = scalar_source(builder.finish([builder.emit(primitive, (x,), {"k": branch, "tol": 1e-8})]))
    assert load(source)(-0.2 + 0.1j) == special.lambertw(-0.2 + 0.1j, branch)


@pytest.mark.parametrize("strict", [False, True])
def test_long_programs_compile(strict):
    def function(x):
        s = x[0]
        for k in range(3000):
            s = s * x[k % 8] + 0.5
        return s

    tape = tape_of(function, (8,))
    x = np.random.default_rng(0).uniform(size=8)
    agree([compiled(tape, strict=strict)(x)], evaluate(tape, x), rtol=1e-12)


def test_long_sums_compile():
    def function(x):
        s = x[0]
        for k in range(1, 2000):
            s = s + x[k]
        return s

    tape = tape_of(function, (2000,))
    x = np.random.default_rng(0).uniform(size=2000)
    assert compiled(tape)(x) == evaluate(tape, x)[0]


def test_which_tapes_are_scalar():
    assert is_scalar(tape_of(lambda x: x[0] * x[1], (2,)))
    assert not is_scalar(tape_of(lambda x: x * x, (2,)))
    assert not is_scalar(tape_of(lambda x: x.sum(), (2,)))
    assert not is_scalar(tape_of(lambda x: (x, x[0]), (2,)))


def test_sources_are_deterministic():
    texts = {scalar_source(optimise(pipeline.run(gradient(tape_of(eight, (8,)))))).text for _ in range(3)}
    assert len(texts) == 1


@settings(max_examples=150)
@given(STEPS)
def test_random_programs_at_special_values(steps):
    """The text against the tape that it was made from, so that every infinity has to be the same."""
    tape = optimise(pipeline.run(gradient(tape_of(program(steps), (4,)))))
    function = load(scalar_source(tape))
    for x in ([0.5, -1.5, 2.0, 0.25], [0.0, -0.0, 1.0, np.inf], [np.nan, 1.0, -1e200, 1e200]):
        mine, theirs = function(np.array(x)), evaluate(tape, np.array(x))
        for a, b in zip(mine, theirs, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=0)


@settings(max_examples=60)
@given(STEPS)
def test_strict_values_are_numpys_to_the_bit(steps):
    tape = gradient(tape_of(program([step for step in steps if step[0] != "cube"]), (4,)))
    function = compiled(tape, strict=True)
    x = np.random.default_rng(1).normal(size=4)
    np.testing.assert_array_equal(function(x)[0], evaluate(tape, x)[0])


def test_a_comparison_of_comparisons_is_no_chain_of_python() -> None:
    def f(x):
        return np.where((x[0] > 0) != (x[1] < 0.4), x[0] * x[1], 0.5 * x[0])

    found = yota.value_and_grad(f)
    for x in itertools.product((-0.5, 0.0, 0.5), repeat=2):
        assert found(np.array(x))[0] == f(np.array(x)), x


def _long(x):
    return sum(x[number] / (x[number + 1] + 2.0) for number in range(30))


def _branch(x):
    return x[0] / x[1] if x[0] > 0.1 else x[1]


SHARED = [
    (lambda x: x[0] / (x[1] + 2.0) - x[2] / x[0], True),
    (_long, True),
    (_branch, True),
    (lambda x: np.where(x[0] > 0.1, x[0] / x[1], np.inf), False),
    (lambda x: np.exp(x[0]) / x[1], False),
    (lambda x: x[0] / x[1] + np.inf * x[2] ** 3, False),
]


@pytest.mark.parametrize(("function", "shared"), SHARED)
def test_statements_of_both_bodies_are_what_each_would_write_by_itself(function, shared, monkeypatch) -> None:
    agreed = []

    def agrees(self, other, decide=expressions._Writer._agrees):
        agreed.append(decide(self, other))
        return agreed[-1]

    x = np.linspace(0.5, 1.5, 31)
    monkeypatch.setattr(expressions._Writer, "_agrees", agrees)
    text = yota.value_and_grad(lambda x: function(x)), yota.hvp(lambda x: function(x))
    text[0](x), text[1](x, x)
    monkeypatch.setattr(expressions._Writer, "_agrees", lambda self, other: False)
    alone = yota.value_and_grad(lambda x: function(x)), yota.hvp(lambda x: function(x))
    alone[0](x), alone[1](x, x)
    assert [each.source for each in text] == [each.source for each in alone]
    assert agreed == [shared] * 2
