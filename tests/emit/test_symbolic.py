"""The symbolic stage: operation counts, agreement with NumPy, and what it must leave alone."""

from __future__ import annotations

import sys
from functools import reduce
from operator import add, mul

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import yota
from tests.optimize.tapes import agree, eight, evaluate, gradient, linear_power, names, tape_of
from yota.ir.printing import elements, operations, total
from yota.ir.tape import Tape
from yota.ir.types import TensorType
from yota.ir.verify import verify
from yota.optimize import pipeline
from yota.optimize.polynomials.importing import imported
from yota.optimize.polynomials.symbolic import optimise


def optimised(tape: Tape, **options: bool) -> Tape:
    return optimise(pipeline.run(tape, **options), **options)


def magnitudes(tape: Tape, arguments) -> list:
    """For each output, the size of what is added and subtracted on the way: rounding errors are relative to it."""
    values, sizes = dict(tape.constants), {v: np.abs(c) for v, c in tape.constants.items()}
    for entry, argument in zip(tape.inputs, arguments, strict=True):
        values[entry.variable], sizes[entry.variable] = argument, np.abs(argument)
    for op in tape.ops:
        inner = [values[operand] for operand in op.operands]
        values[op.result] = op.primitive.function(*inner, **dict(op.static))
        outer = [sizes[operand] for operand in op.operands]
        if op.name == "subtract":
            sizes[op.result] = outer[0] + outer[1]
        elif op.name == "negative":
            sizes[op.result] = outer[0]
        elif op.name in ("sin", "cos"):
            # Away from the real axis the sine and its slope are as large as cosh of the imaginary part.
            sizes[op.result] = (1 + outer[0]) * np.cosh(np.imag(inner[0]))
        elif op.name == "divide":
            sizes[op.result] = outer[0] * outer[1] / np.square(np.abs(inner[1]))
        else:
            sizes[op.result] = op.primitive.function(*outer, **dict(op.static))
    return [sizes[variable] for variable in tape.outputs]


def test_polynomial_of_eight_variables():
    tape = gradient(tape_of(eight, (8,)))
    found = optimised(tape)
    assert total(found) <= 42
    x = np.random.default_rng(0).normal(size=8)
    agree(evaluate(found, x), evaluate(tape, x), rtol=1e-10)


def test_powers_of_a_linear_form():
    tape = gradient(tape_of(linear_power, (4,)))
    found = optimised(tape)
    assert total(found) <= 15
    x = np.random.default_rng(0).normal(size=4)
    agree(evaluate(found, x), evaluate(tape, x), rtol=1e-10)


@pytest.mark.parametrize(
    ("function", "size", "most"),
    [
        (lambda x: x[0] ** 7, 1, 5),
        (lambda x: x[0] * x[1] + x[0] * x[2], 3, 2),
        (lambda x: x[0] * x[1] - x[2] * x[1], 3, 2),
        (lambda x: 2.0 * x[0] + 2.0 * x[1] + 2.0 * x[2], 3, 3),
        (lambda x: (-x[0]) * x[1] + (-x[2]), 3, 3),
        (lambda x: x[0] / x[1] * 2.0 - (-x[0]) / x[1], 3, 4),
        (lambda x: x[0] * x[1] * x[2] + x[0] * x[1] * x[3] + x[0] * x[1] * x[4], 5, 4),
        (lambda x: sum((x[0] ** 2 * x[k] for k in range(2, 13)), x[0] ** 2 * x[1]), 13, 13),
    ],
)
def test_counts_of_values(function, size, most):
    tape = tape_of(function, (size,))
    found = optimised(tape)
    assert total(found) <= most, found
    x = np.random.default_rng(0).normal(size=size)
    agree(evaluate(found, x), evaluate(tape, x), rtol=1e-12)


def test_quotients_of_one_denominator_share_a_division():
    x, y, z, t = values = np.random.default_rng(0).normal(size=4)
    tape = yota.trace(lambda x, y, z, t: (-3.0 * x * y * z / t, y * x / t, x / t, x / t**2), *values)[1]
    found = optimised(tape)
    assert operations(found)["divide"] == 2
    agree(evaluate(found, *values), [-3.0 * x * y * z / t, y * x / t, x / t, x / t**2], rtol=1e-15)


def test_gradient_of_a_product_of_eight():
    def function(x):
        product = x[0]
        for k in range(1, 8):
            product = product * x[k]
        return product

    assert total(optimised(gradient(tape_of(function, (8,))))) <= 19


def test_kahan_summation_is_untouched():
    def kahan(x):
        s, c = x[0], x[0] * 0.0
        for k in range(1, 8):
            y = x[k] - c
            t = s + y
            c = (t - s) - y
            s = t
        return s

    tape = tape_of(kahan, (8,))
    found = optimised(tape)
    random = np.random.default_rng(0)
    for _ in range(50):
        x = random.normal(size=8) * 10.0 ** random.integers(-12, 12, 8)
        assert evaluate(found, x)[0] == evaluate(tape, x)[0]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x[0] + 1.0) - 1.0,
        lambda x: x[0] - (x[0] - x[1]),
        lambda x: (x[0] + x[1]) - x[0],
        lambda x: (x[0] + x[1] * x[2]) - x[1] * x[2],
        lambda x: x[0] + (x[1] + x[2]) + (x[3] - (x[4] - x[5])),
        lambda x: 1e16 + x[0] + x[1] - 1e16,
        lambda x: (x[0] + x[1]) * (x[1] + x[0] + x[2]) - (x[2] + x[0] + x[1]),
    ],
)
def test_sums_keep_their_order(function):
    tape = tape_of(function, (6,))
    found = optimised(tape)
    random = np.random.default_rng(0)
    for _ in range(50):
        x = random.normal(size=6) * 10.0 ** random.integers(-9, 9, 6)
        assert evaluate(found, x)[0] == evaluate(tape, x)[0]


def test_nothing_is_expanded():
    found = optimised(tape_of(lambda x: (x[0] + x[1]) * (x[0] - x[1]), (2,)))
    assert sorted(operations(found)) == ["add", "multiply", "subtract"]


@pytest.mark.parametrize("value", [0.0, -0.0, np.inf, -np.inf, np.nan])
def test_special_values_of_plain_sums_and_products(value):
    tape = tape_of(lambda x: (x[0] * 3.0 * x[1], x[0] - x[1], -(x[1] * x[0]), 0.0 * x[0], x[1] - x[0] * 2.0), (2,))
    found = optimised(tape)
    for other in (1.0, -2.0, 0.0):
        x = np.array([value, other])
        np.testing.assert_array_equal(evaluate(found, x), evaluate(tape, x))
        # Zeros of opposite sign compare equal; their reciprocals do not.
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(1 / np.array(evaluate(found, x)), 1 / np.array(evaluate(tape, x)))


def test_coefficients_never_overflow():
    tape = tape_of(lambda x: 1e300 * (1e300 * (x[0] * x[1])), (2,))
    x = np.array([1e-300, 1e-300])
    agree(evaluate(optimised(tape), x), evaluate(tape, x))


def test_strict_leaves_the_value_alone():
    tape = gradient(tape_of(eight, (8,)))
    found = optimised(tape, strict=True)
    assert names(found).count("power") == 8
    random = np.random.default_rng(0)
    for _ in range(20):
        x = random.normal(size=8)
        mine, theirs = evaluate(found, x), evaluate(tape, x)
        assert mine[0] == theirs[0]
        agree(mine, theirs, rtol=1e-9)


def test_arrays_of_one_shape():
    def function(x, y, s):
        return (3.0 * x * s * y + 2.0 * (x * y) * (s * s) - y * x * x).sum()

    tape = tape_of(function, (100,), (100,), ())
    plain = pipeline.run(tape)
    found = optimise(plain)
    assert elements(found) < elements(plain)
    arguments = [np.random.default_rng(0).normal(size=shape) for shape in (100, 100, None)]
    agree(evaluate(found, *arguments), evaluate(tape, *arguments), rtol=1e-10)


def test_scalars_are_combined_before_arrays():
    tape = tape_of(lambda x, s, t: (x * s) * t, (100,), (), ())
    found = optimise(tape)
    assert elements(found) == 101
    assert names(found) == ["multiply", "multiply"]


def test_broadcasting_ops_are_left_alone():
    tape = tape_of(lambda x, y: x * y * x + y * x, (5, 1), (1, 4))
    found = optimise(tape)
    arguments = [np.random.default_rng(0).normal(size=shape) for shape in ((5, 1), (1, 4))]
    agree(evaluate(found, *arguments), evaluate(tape, *arguments), rtol=1e-12)


def test_single_precision_stays():
    single = TensorType(np.dtype("float32"), (50,))
    tape = tape_of(lambda x, y, s: x * 2.0 * y * s + x * y * 3.0, single, single, "weak")
    found = optimise(tape)
    x = np.linspace(1, 2, 50, dtype=np.float32)
    (result,) = evaluate(found, x, x, 0.3)
    assert result.dtype == np.float32
    agree([result], evaluate(tape, x, x, 0.3), rtol=1e-5)


def test_weak_results_stay_weak():
    tape = tape_of(lambda a, b: (a * b + a * 3.0, (a - b) * np.float64(2)), "weak", "weak")
    found = optimise(tape)
    for mine, original in zip(found.outputs, tape.outputs, strict=True):
        assert found.types[mine] == tape.types[original]


STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["add", "subtract", "multiply", "multiply", "negative", "square", "cube", "scale", "ratio", "sin", "same"]
        ),
        st.integers(0, 100),
        st.integers(0, 100),
        st.sampled_from([2.0, -3.0, 0.5, 1.5, -1.0, 6.0]),
    ),
    min_size=3,
    max_size=25,
)


SCALED_TWICE = [("add", 0, 0, 2.0), ("same", 0, 1, 2.0), ("add", 0, 0, 2.0), ("add", 0, 5, 2.0), ("same", 5, 4, 0.5)]
"""A sum that is read once, by a product that is read twice and brings the factor back to one."""

SINE_FAR_FROM_REAL = [
    ("scale", 0, 0, 6.0),
    ("multiply", 0, 4, 2.0),
    ("multiply", 0, 0, 2.0),
    ("add", 0, 6, 2.0),
    ("add", 0, 7, 2.0),
    ("add", 0, 5, 2.0),
    ("sin", 9, 0, 2.0),
]
"""Its imaginary part is so large that the last bit of what it is taken of shows."""


def program(steps):
    def function(x):
        pool = [x[k] for k in range(4)]
        for name, i, j, number in steps:
            a, b = pool[i % len(pool)], pool[j % len(pool)]
            if name in ("add", "subtract", "multiply"):
                found = a.call(name, b)
            elif name in ("negative", "square", "sin"):
                found = a.call(name)
            elif name == "cube":
                found = a**3
            elif name == "scale":
                found = number * a
            elif name == "ratio":
                found = a / (b * b + 2.0)
            else:
                found = a * number + b * number
            pool.append(found)
        return pool[-1] + pool[-2] * pool[-3]

    return function


@settings(max_examples=80)
@example(SCALED_TWICE, False, 0)
@example([("add", 0, 0, 2.0), ("add", 0, 0, 2.0), ("subtract", 0, 0, 2.0)], False, 0)
@given(STEPS, st.booleans(), st.integers(0, 1000))
def test_random_programs(steps, strict, seed):
    tape = gradient(tape_of(program(steps), (4,)))
    plain = pipeline.run(tape, strict=strict, verify=verify)
    found = verify(optimise(plain, strict=strict))
    assert elements(found) <= elements(plain)
    x = np.random.default_rng(seed).uniform(-1.2, 1.2, size=4)
    with np.errstate(all="ignore"):
        sizes = magnitudes(tape, [x])
        for mine, theirs, size in zip(evaluate(found, x), evaluate(tape, x), sizes, strict=True):
            scale = np.maximum(np.sum(size), 1e-290)
            if np.isfinite(scale) and scale < 1e100:
                assert np.all(np.abs(mine - theirs) <= 1e-11 * scale)
    if strict:
        np.testing.assert_array_equal(evaluate(found, x)[0], evaluate(tape, x)[0])


def _chain(count: int) -> Tape:
    def function(x):
        s = x[0]
        for k in range(count):
            s = s * x[k % 8] * 0.1 + x[(k * 3) % 8] * 1.5 * x[(k * 5 + 1) % 8]
        return s

    return pipeline.run(gradient(tape_of(function, (8,))))


def _steps(tape: Tape) -> int:
    """Calls of Python and C functions while a tape is optimised: no other process on the machine can slow them down."""
    count = 0

    def note(*_):
        nonlocal count
        count += 1

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        optimise(tape)
    finally:
        sys.setprofile(before)
    return count


def test_work_grows_linearly():
    small, large = _chain(85), _chain(850)
    assert len(small) > 1000
    assert len(large) > 10_000
    assert _steps(large) <= 12 * len(large) / (10 * len(small)) * _steps(small)


def _product(x):
    return reduce(mul, (x[k] for k in range(20)))


def _all_pairs(x):
    return reduce(add, (x[i] * x[j] for i in range(20) for j in range(i)))


@pytest.mark.parametrize("function", [_product, _all_pairs])
def test_work_on_an_op_is_bounded(function):
    """Also in products of many factors, and in long sums of which all terms have factors in common."""
    tape = pipeline.run(gradient(tape_of(function, (20,))))
    assert _steps(tape) <= 450 * len(tape)


@settings(max_examples=60)
@example(SCALED_TWICE, 0)
@example(SINE_FAR_FROM_REAL, 0)
@given(STEPS, st.integers(0, 1000))
def test_random_programs_of_complex_numbers(steps, seed):
    tape = tape_of(program(steps), TensorType(np.dtype("complex128"), (4,)))
    found = optimised(tape)
    assert elements(found) <= elements(pipeline.run(tape))
    random = np.random.default_rng(seed)
    x = random.uniform(0.5, 1.5, 4) + 1j * random.uniform(0.5, 1.5, 4)
    with np.errstate(all="ignore"):
        sizes = magnitudes(tape, [x])
    for mine, theirs, size in zip(evaluate(found, x), evaluate(tape, x), sizes, strict=True):
        if np.isfinite(theirs) and np.isfinite(size):
            assert abs(mine - theirs) <= 1e-10 * size


def test_complex_coefficients_and_exponents():
    kind = TensorType(np.dtype("complex128"), (3,))
    tape = tape_of(lambda z: (2j * z[0] * z[1] + 2j * z[0] * z[2], z[0] ** (1 + 1j), z[1] ** 3 * -1.0), kind)
    found = optimised(tape)
    assert total(found) <= 8
    z = np.array([1 + 2j, 0.5 - 1j, 2 + 0.25j])
    agree(evaluate(found, z), evaluate(tape, z), rtol=1e-13)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_sum_that_grows_term_by_term_is_there_once(sign, monkeypatch):
    """Else effort and memory would grow with the square of its length."""

    def f(x):
        total = 0.0
        for number in range(1, 201):
            total = sign * (total + number * x[number % 4] ** 2 * x[number % 3])
        return total

    counts = []

    def counted(*args):
        system = imported(*args)
        counts.append(len(system.sums))
        return system

    monkeypatch.setattr("yota.optimize.polynomials.symbolic.imported", counted)
    tape = pipeline.run(tape_of(f, (4,)))
    x = np.random.default_rng(0).uniform(0.5, 1.5, 4)
    agree(evaluate(optimise(tape, values=0), x), [f(x)])
    assert counts[0] == 1


@pytest.mark.parametrize("target", ["numpy", "c"])
def test_decisions_are_those_of_numpy(target):
    """A common factor that is pulled out rounds otherwise, by which a comparison would go another way."""
    points = np.random.default_rng(0).normal(size=(1000, 2))
    apart = [(a, b) for a, b in points.tolist() if 3.0 * a + 3.0 * b < 3.0 * (a + b)]
    x, bound = np.array(apart[0]), 3.0 * apart[0][0] + 3.0 * apart[0][1]

    def branch(x):
        total = x[0] * 3.0 + x[1] * 3.0
        return total * x[0] if total > bound else total * x[1]

    def chosen(x):
        total = x[0] * 3.0 + x[1] * 3.0
        return np.where(total > bound, total * x[0], total * x[1])

    for f in (branch, chosen):
        compiled = yota.value_and_grad(f, target=target)
        for point in (x, x + 1.0, x):
            agree([compiled(point)[0]], [f(point)], rtol=1e-14)
