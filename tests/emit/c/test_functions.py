"""Elementwise functions in C: NumPy's results with infinities, NaNs and signs of zeros, one by one and on vectors."""

from __future__ import annotations

import itertools
import platform
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.special
import sympy

import yota
from tests.emit.compiled import compiled, needs_compiler
from tests.emit.programs import Writer, evaluate
from yota.emit.c.dialect import C
from yota.emit.c.lines import comment
from yota.run.machine import native

pytestmark = needs_compiler

VALUES = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -2.5,
    3.0,
    20.0,
    -20.0,
    1e-9,
    710.0,
    -745.0,
    1e22,
    1e308,
    -1e308,
    5e-324,
    np.inf,
    -np.inf,
    np.nan,
]
UNARY = (
    "negative positive square absolute fabs sign floor ceil trunc rint sqrt exp expm1 exp2 log log2 log10 log1p sin cos"
    " tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh cbrt deg2rad rad2deg degrees radians reciprocal"
    " conjugate real sinc isnan isinf isfinite signbit logical_not"
).split()
BINARY = (
    "add subtract multiply divide power maximum minimum fmax fmin hypot arctan2 copysign fmod remainder floor_divide"
    " logaddexp heaviside less less_equal greater greater_equal equal not_equal logical_and logical_or"
).split()
COMPLEX = "negative square absolute exp log sqrt sin cos tan sinh cosh tanh conjugate real imag reciprocal".split()


EITHER_ZERO = ("maximum", "minimum", "fmax", "fmin")
"""Of two zeros with different signs NumPy takes one or the other, as the machine has it."""


def same(found: Any, expected: Any, ulps: float, signs: bool = True) -> None:
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.dtype == expected.dtype
    eps = np.finfo(found.dtype).eps if found.dtype.kind in "fc" else 0
    np.testing.assert_allclose(found, expected, rtol=ulps * eps, atol=0)
    if found.dtype.kind == "f" and signs:
        zeros = (found == 0) & (expected == 0)
        np.testing.assert_array_equal(np.signbit(found)[zeros], np.signbit(expected)[zeros])


def of_arrays(names: list[str], count: int, shape: tuple[int, ...], dtype: Any) -> Any:
    write = Writer()
    operands = [write.input(f"x{number}", shape, dtype) for number in range(count)]
    return write.finish(*(write(name, *operands) for name in names))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_functions_of_one_number(dtype: str) -> None:
    """Once as a vector loop, once as straight-line code."""
    with np.errstate(all="ignore"):
        values = np.array(VALUES * 3, dtype)
    tape = of_arrays(UNARY, 1, values.shape, dtype)
    found, expected = compiled(tape)(values), evaluate(tape, values)
    for name, mine, theirs in zip(UNARY, found, expected, strict=True):
        with np.errstate(all="ignore"):
            try:
                same(mine, theirs, 6)
            except AssertionError as error:
                raise AssertionError(name) from error
    single = of_arrays(UNARY, 1, (), dtype)
    function = compiled(single)
    for value in values[: len(VALUES)]:
        for mine, theirs in zip(function(value), evaluate(single, value), strict=True):
            assert type(mine) is type(theirs)
            same(mine, theirs, 6)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_functions_of_scipy(dtype: str) -> None:
    """Logistic functions: at both ends, in the middle, and where one half of a formula would overflow."""
    near = 0.5 + np.array([1e-3, -1e-6, 0.19, 0.21, -0.21, 0.49999])
    with np.errstate(all="ignore"):
        values = np.array([*VALUES, *near, -100.0, 90.0, 0.25, 1e-30], dtype)
    for f in (scipy.special.expit, scipy.special.log_expit, scipy.special.logit):
        function = yota.trace(lambda x, f=f: f(x), values)[1].compile(target="c")
        assert "_expit(" not in function.source and "_logit(" not in function.source
        found, limits = function(values), np.finfo(dtype)
        assert found.dtype == dtype
        # Some versions of SciPy lose the smallest numbers.
        np.testing.assert_allclose(found, f(values), rtol=6 * limits.eps, atol=limits.tiny)
        # So it may be that what vanishes has no sign to compare: log_expit comes to zero from below.
        vanished = (found == 0) & (values > 1)
        assert np.signbit(found[vanished]).all()


WHOLE = [0, 1, -1, 2, -7, 12, 2**31 - 1, -(2**31)]


@pytest.mark.parametrize("dtype", ["int64", "int32"])
def test_functions_of_whole_numbers(dtype: str) -> None:
    limits = np.iinfo(dtype)
    pairs = np.array(list(itertools.product([*WHOLE, limits.max, limits.min], repeat=2)), dtype).T.copy()
    names = ["remainder", "floor_divide", "maximum", "minimum"]
    tape = of_arrays(names, 2, pairs[0].shape, dtype)
    with np.errstate(all="ignore"):
        expected = evaluate(tape, *pairs)
    for mine, theirs in zip(compiled(tape)(*pairs), expected, strict=True):
        assert mine.dtype == theirs.dtype
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_functions_of_two_numbers(dtype: str) -> None:
    with np.errstate(all="ignore"):
        pairs = np.array(list(itertools.product(VALUES, VALUES)), dtype).T.copy()
    tape = of_arrays(BINARY, 2, pairs[0].shape, dtype)
    found, expected = compiled(tape)(*pairs), evaluate(tape, *pairs)
    for name, mine, theirs in zip(BINARY, found, expected, strict=True):
        try:
            same(mine, theirs, 8, name not in EITHER_ZERO)
        except AssertionError as error:
            raise AssertionError(name) from error


def test_powers_on_vectors() -> None:
    draw = np.random.default_rng(0)
    base = np.concatenate(
        [draw.uniform(0.5, 2, 600), 10 ** draw.uniform(-300, 300, 400), 1 + 1e-5 * draw.normal(size=400)]
    )
    exponent = np.concatenate([draw.uniform(-3, 3, 600), draw.uniform(-1, 1, 400), 1e7 * draw.normal(size=400)])
    function = yota.lambdify(sympy.symbols("x y"), sympy.sympify("x**y"), target="c")
    found = function(base, exponent)
    with mpmath.workdps(50):
        right = list(map(mpmath.power, map(mpmath.mpf, base), map(mpmath.mpf, exponent)))
        units = np.spacing(np.array(right, float))
        error = [
            abs(float((one - other) / unit)) for one, other, unit in zip(found, right, map(float, units), strict=True)
        ]
    own = b"pow_of_others" in Path(native.build(function.source).__file__).read_bytes()
    assert max(error) < (0.6 if own else 4)
    ends = np.arange(-1080.0, 1024.0)
    np.testing.assert_array_equal(function(np.full(ends.size, 2.0), ends), np.ldexp(1.0, ends.astype(int)))


@pytest.mark.parametrize("name", ["exp", "log", "expm1", "sinh", "tanh"])
def test_functions_on_vectors(name: str) -> None:
    draw = np.random.default_rng(0)
    if name == "log":
        parts = [2.0 ** draw.uniform(-1022, 1024, 900), draw.uniform(0.5, 2, 500), 1 + 1e-5 * draw.normal(size=200)]
    else:
        widest = 25 if name == "tanh" else 708
        parts = [draw.uniform(-widest, widest, 900), draw.normal(size=500), draw.uniform(-0.1, 0.1, 200)]
    x = np.concatenate(parts)
    function = yota.lambdify(sympy.Symbol("x"), sympy.sympify(f"{name}(x)"), target="c")
    with mpmath.workdps(50):
        right = [getattr(mpmath, name)(mpmath.mpf(each)) for each in x]
        units = map(float, np.spacing(np.abs(np.array(right, float))))
        error = [abs(float((one - other) / unit)) for one, other, unit in zip(function(x), right, units, strict=True)]
    own = f"{name}_of_others".encode() in Path(native.build(function.source).__file__).read_bytes()
    assert max(error) < ((0.8 if name in ("exp", "log") else 3.5) if own else 4)
    tiny, inf = np.finfo(float).smallest_subnormal, np.inf
    ends = [0.0, -0.0, 1.0, -1.0, inf, -inf, np.nan, 1e308, -1e308, tiny, 1e-310, 709.78, 709.79, -745.1, -745.2, -709]
    with np.errstate(all="ignore"):
        same(function(np.array(ends)), getattr(np, name)(ends), 3)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("size", [1, 3, 4, 7, 8, 15, 17, 33])
def test_choices_of_two_numbers_in_vectors_and_their_tails(dtype: str, size: int) -> None:
    """NaN, infinities and zeros at every place of a vector; equal zeros keep their sign."""
    special = [np.nan, 0.0, -0.0, np.inf, -np.inf, 1.5, -1.5]
    pairs = np.array(list(itertools.product(special, special)), dtype)
    tape = of_arrays(list(EITHER_ZERO), 2, (size,), dtype)
    function = compiled(tape)
    for first in range(len(pairs)):
        left, right = np.roll(pairs, -first, axis=0)[:size].T.copy()
        alike = np.signbit(left) == np.signbit(right)
        for name, found in zip(EITHER_ZERO, function(left, right), strict=True):
            expected = getattr(np, name)(left, right)
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected, err_msg=name)
            known = alike & ~np.isnan(expected)
            np.testing.assert_array_equal(np.signbit(found)[known], np.signbit(expected)[known], err_msg=name)


@pytest.mark.parametrize("dtype", ["complex128", "complex64"])
def test_complex_functions(dtype: str) -> None:
    parts = np.random.default_rng(0).uniform(-2, 2, (2, 50))
    values = (parts[0] + 1j * parts[1]).astype(dtype)
    tape = of_arrays(COMPLEX, 1, values.shape, dtype)
    for mine, theirs in zip(compiled(tape)(values), evaluate(tape, values), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=100 * np.finfo(dtype).eps)
        assert mine.dtype == theirs.dtype
    pairs = of_arrays(["add", "subtract", "multiply", "divide", "equal"], 2, values.shape, dtype)
    for mine, theirs in zip(compiled(pairs)(values, values[::-1]), evaluate(pairs, values, values[::-1]), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=20 * np.finfo(dtype).eps)


def test_complex_products_with_infinities_are_numpys() -> None:
    special = [complex(a, b) for a, b in itertools.product([0.0, -0.0, 1.0, np.inf, -np.inf, np.nan], repeat=2)]
    left, right = (np.array(side) for side in zip(*itertools.product(special, special), strict=True))
    tape = of_arrays(["multiply"], 2, left.shape, complex)
    np.testing.assert_array_equal(compiled(tape)(left, right), evaluate(tape, left, right)[0])


@pytest.mark.parametrize("dtype", ["complex128", "complex64"])
def test_complex_reciprocals_have_the_bits_of_numpys(dtype: str) -> None:
    special = [complex(a, b) for a, b in itertools.product([0.0, -0.0, 1.5, -0.3, np.inf, -np.inf, np.nan], repeat=2)]
    values = np.array(special, dtype)
    tape = of_arrays(["reciprocal"], 1, values.shape, dtype)
    with np.errstate(all="ignore"):
        expected = np.reciprocal(values)
    found = compiled(tape)(values)
    for mine, theirs in ((found.real, expected.real), (found.imag, expected.imag)):
        np.testing.assert_array_equal(mine, theirs)
        known = ~np.isnan(theirs)
        np.testing.assert_array_equal(np.signbit(mine)[known], np.signbit(theirs)[known])


@pytest.mark.parametrize("dtype", ["complex128", "complex64"])
def test_complex_numbers_are_true_by_either_part(dtype: str) -> None:
    parts = [0.0, -0.0, 2.0, np.nan]
    left, right = (
        np.array(side, dtype)
        for side in zip(*itertools.product([complex(a, b) for a in parts for b in parts], repeat=2), strict=True)
    )
    for name, operands in (("logical_not", (left,)), ("logical_and", (left, right)), ("logical_or", (left, right))):
        tape = of_arrays([name], len(operands), left.shape, dtype)
        np.testing.assert_array_equal(compiled(tape)(*operands), getattr(np, name)(*operands))


def test_choices_do_not_mix_what_was_not_chosen_in() -> None:
    write = Writer()
    x = write.input("x", (100,))
    tape = write.finish(write("where", write("greater", x, 0.0), write("log", x), write("exp", x)))
    values = np.linspace(-1, 1, 100)
    np.testing.assert_allclose(compiled(tape)(values), evaluate(tape, values)[0], rtol=1e-14)


def test_sums_are_as_accurate_as_numpys() -> None:
    write = Writer()
    x = write.input("x", (300_001,), "float32")
    tape = write.finish(write("sum", x))
    values = np.random.default_rng(0).normal(size=300_001).astype("float32") + np.float32(10)
    exact = float(np.sum(values.astype(np.longdouble)))
    found = compiled(tape)(values)
    assert type(found) is np.float32
    assert abs(float(found) - exact) <= abs(float(np.sum(values)) - exact) + np.spacing(np.float32(exact))


@pytest.mark.parametrize("values", [[np.inf, 1.0], [np.inf, -np.inf], [np.nan, 1.0], [1e308, 1e308], [-np.inf, 2.0]])
def test_sums_of_what_is_not_finite(values: list[float]) -> None:
    write = Writer()
    x = write.input("x", (400,))
    tape = write.finish(*(write(name, x) for name in ("sum", "max", "min", "prod")))
    array = np.resize(np.array(values), 400)
    np.testing.assert_array_equal(compiled(tape)(array), evaluate(tape, array))


def test_empty_arrays() -> None:
    write = Writer()
    x = write.input("x", (0, 3))
    tape = write.finish(write("sum", x, axis=(0,)), write("multiply", x, 2.0), write("sum", x))
    for mine, theirs in zip(compiled(tape)(np.zeros((0, 3))), evaluate(tape, np.zeros((0, 3))), strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_remainders_near_multiples_and_of_large_quotients_are_exact(dtype: str) -> None:
    generator = np.random.default_rng(0)
    count = 20_000
    b = (generator.normal(size=count) * 10.0 ** generator.uniform(-5, 5, count)).astype(dtype)
    whole = np.rint(generator.normal(size=count) * 10.0 ** generator.uniform(0, 8, count))
    near = (whole * b).astype(dtype)
    for a in (near, np.nextafter(near, np.inf), np.nextafter(near, -np.inf), (b * 1e12).astype(dtype)):
        found = yota.batch(lambda a, b: np.remainder(a, b), target="c")(a, b)
        expected = np.remainder(a, b)
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


def test_comments_cannot_end_early() -> None:
    for text in ("a */ int x; /*", "??/", "line \\", "*/*/*/", "\x00\n*/", "é", "??" * 5):
        found = comment(text)
        assert found.count("*/") == 1 and found.endswith("*/")
        assert found.count("/*") == 1 and "\n" not in found and "??" not in found
        assert not found[:-3].rstrip().endswith("\\")


@pytest.mark.parametrize("value", [0.1, -0.0, 1e308, 5e-324, 3.0, 1e22])
def test_literals_are_exact(value: float) -> None:
    assert float(C.literal(value, np.dtype(float))) == value
    single = np.float32(value) if abs(value) < 1e38 else np.float32(3)
    assert np.float32(float(C.literal(single, np.dtype("float32")).rstrip("f"))) == single


def test_a_cosine_beside_a_sine_has_a_function_of_its_own():
    """GCC joins sine and cosine of one number to a call without a vector form."""
    x = np.linspace(-0.9, 0.9, 64)
    value, gradient = yota.grad(lambda x: np.sum(np.cos(x)), x, target="c")
    assert "cosine(x_i)" in gradient.source
    np.testing.assert_allclose(gradient[0], -np.sin(x), rtol=1e-14)


CHOICES = {
    "a rectifier": lambda x: np.sum(np.exp(np.maximum(x, 0)) * np.cos(x)),
    "a bump": lambda x: np.sum(np.exp(-(x**2)) * np.where(x > 0, np.sin(x), 0)),
    "an argument in a domain": lambda x: np.sum(np.sin(np.where(x > 0.5, x, 0.5)) * np.cos(np.where(x > 0.5, x, 0.5))),
    "a tent": lambda x: np.sum(np.maximum(0, 1 - np.abs(x)) * np.cos(3 * x)),
    "a minimum": lambda x: np.sum(np.exp(np.minimum(x, 1)) * np.sin(x)),
    "sinc": lambda x: np.sum(np.sinc(x)),
}


@pytest.mark.skipif(
    platform.machine() != "x86_64" or platform.libc_ver() < ("glibc", "2.35"),
    reason="the C library has no vector forms of these functions",
)
@pytest.mark.parametrize("name", CHOICES)
def test_loops_with_choices_call_the_vector_forms_of_functions(name: str) -> None:
    if not native.find().vector_flags:
        pytest.skip("other compilers than GCC choose by themselves")
    made = yota.value_and_grad(CHOICES[name], target="c")
    x = np.random.default_rng(0).normal(size=1001)
    _, slope = made(x)
    ends = ([CHOICES[name](np.array([each + side])) for each in x] for side in (1e-6, -1e-6))
    np.testing.assert_allclose(slope, np.subtract(*ends) / 2e-6, rtol=1e-6, atol=1e-6)
    assert b"_ZGV" in Path(native.build(made.source).__file__).read_bytes()
