"""Plain Python loops, which become loops of the tape, against the same functions run by Python."""

from __future__ import annotations

import numpy as np
import pytest

import yota
from tests.loops.programs import Program
from yota.transform.rolling import roll

RNG = np.random.default_rng(0)
X = RNG.normal(size=120)


def sine(x):
    x = x[:10]
    for _ in range(400):
        x = x + 0.001 * np.sin(x)
    return np.sum(x)


def chained(x):
    return sum(100 * (x[i - 1] ** 2 - x[i]) ** 2 + (x[i - 1] - 1) ** 2 for i in range(1, len(x)))


def stacked(x):
    x = x[:7]
    states = []
    for i in range(350):
        x = x + 0.01 * i * np.cos(x)
        states.append(x)
    return np.sum(np.stack(states) ** 2) + np.sum(states[17])


def delayed(x):
    a, b, c = x[0], x[1], x[2]
    for _ in range(250):
        a, b, c = b, c, 0.3 * (a + c) + 0.01 * np.sin(b)
    return a * b + c


def filled(x):
    y = np.zeros((3, 200), x.dtype)
    for i in range(200):
        y[:, 199 - i] = np.sin(x[i % 7 + 1] * x[:3]) * (0.1 * i)
    for i in range(1, 200):
        y[2, i] = y[2, i - 1] * 0.5 + y[1, i] * x[3]
    return np.sum(y**2)


def differs(x):
    total = 0
    for i in range(600):
        total = total + (x[5] if i == 300 else x[i % 11]) * np.cos(total)
    return total


def kahan(x):
    total = lost = 0.0
    for k in range(300):
        part = x[k % 5] * 1e-3 - lost
        after = total + part
        lost = (after - total) - part
        total = after
    return total


def triangular(x):
    total = 0.0
    for i in range(50):
        for j in range(i):
            total = total + x[i] * np.sin(x[j])
    return total


def windowed(x):
    kernel, total = np.array([0.2, 0.3, 0.5]), 0.0
    for i in range(2, 110):
        total = 0.5 * total + np.sin(x[i - 2 : i + 1] @ kernel) * np.sum(x[i : i + 4] * np.array([1.0, 2.0, 3.0, 4.0]))
        total = total + np.max(x[i // 2 : i // 2 + 2]) * x[i] + np.sum(x[3:5] ** 2)
    return total


ORDER = np.random.default_rng(5).integers(0, 5, 250)


def columns(x):
    table, state = x[:20].reshape(4, 5), x[20:24]
    for place in ORDER:
        state = 0.9 * state + np.sin(state) * table[:, place]
    return np.sum(state)


def listed(x):
    y = [0.0, 1]
    for i in range(300):
        y.append(x[i % 100] + 0.5 * y[-1] - 0.3 * y[-2])
    return np.sum(np.array(y) ** 2)


def seasonal(x):
    y = [x[i] for i in range(6)]
    for _ in range(400):
        y.append(0.9 * y[-6] + 0.1 * np.sin(y[-1]))
    return y[-1] + y[-3]


def transposed(x):
    mixing, state = np.arange(15.0).reshape(5, 3) / 30, x[:3]
    for i in range(150):
        state = np.sin(state @ mixing.T @ mixing) + np.array([[1.0, i], [0.5, 2.0], [3.0, 0.1]]).T[0] * x[4]
    return np.sum(state)


PLAIN = [sine, chained, stacked, delayed, filled, differs, kahan, triangular, columns, listed, seasonal, transposed]


def loops_of(function, *args):
    tape = roll.run(yota.trace(function, *args)[1])
    return [op.keyword("region").trips for op in tape.ops if op.regions]


@pytest.mark.parametrize("function", PLAIN, ids=lambda each: each.__name__)
def test_value_and_gradient(function):
    assert loops_of(function, X)
    plain = function(X)
    direction = RNG.normal(size=X.shape)
    slope = function(X + 1e-30j * direction).imag / 1e-30
    options = {"target": "c"} if function in (delayed, differs) else {"strict": function is not chained}
    value, gradient = yota.value_and_grad(function, **options)(X)
    assert value == plain if options.get("strict") else value == pytest.approx(plain, rel=1e-12)
    assert gradient @ direction == pytest.approx(slope, rel=1e-9)


ROWS = np.abs(RNG.normal(size=(210, 3))) + 0.1


def emitted(logits):
    belief, found = np.full(3, 1 / 3), 0.0
    for t in range(len(ROWS)):
        belief = (belief @ np.exp(logits)) * ROWS[t]
        found = found + np.log(np.sum(belief))
        belief = belief / np.sum(belief)
    return found


def layers(weights, x):
    for each in weights:
        x = np.tanh(each @ x) + 0.1 * np.sin(x)
    return np.sum(x)


@pytest.mark.parametrize("target", ["numpy", "c"])
def test_rows_of_a_captured_array_and_of_a_list(target):
    rng = np.random.default_rng(3)
    logits = rng.normal(size=(3, 3))
    gradient = yota.value_and_grad(emitted, target=target, strict=target == "numpy")
    value, slope = gradient(logits)
    assert "loop" in gradient.tape.operations
    np.testing.assert_allclose(value, emitted(logits), rtol=0 if target == "numpy" else 1e-13)
    direction = rng.normal(size=(3, 3))
    np.testing.assert_allclose(np.sum(slope * direction), emitted(logits + 1e-30j * direction).imag / 1e-30, rtol=1e-11)
    ROWS[7] *= 2.0
    np.testing.assert_allclose(gradient(logits)[0], emitted(logits), rtol=1e-13)
    weights, x = list(0.5 * rng.normal(size=(220, 2, 2))), X[:2]
    gradient = yota.value_and_grad(layers, target=target)
    value, slopes = gradient(weights, x)
    assert "loop" in gradient.tape.operations
    moved = [each + 1e-30j * (number == 150) for number, each in enumerate(weights)]
    np.testing.assert_allclose(value, layers(weights, x), rtol=1e-13)
    np.testing.assert_allclose(np.sum(slopes[(150,)]), layers(moved, x).imag / 1e-30, rtol=1e-10, atol=1e-300)


def test_what_is_carried_is_found():
    assert loops_of(sine, X) == [400]
    assert loops_of(chained, X) == [119]
    assert loops_of(delayed, X) == [250]
    tape = roll.run(yota.trace(delayed, X)[1])
    (region,) = [op.keyword("region") for op in tape.ops if op.regions]
    assert (region.carries, region.slices) == (3, 0)


def test_a_list_that_begins_with_numbers_is_one_array():
    assert len(roll.run(yota.trace(listed, X)[1]).ops) < 40


def test_decisions_in_each_iteration_stay():
    def f(x):
        for i in range(300):
            x = x * 1.01 if x[i % 3] > 0 else x * 0.99
        return np.sum(x)

    assert not loops_of(f, X[:3])
    assert yota.value_and_grad(f)(X[:3])[0] == pytest.approx(f(X[:3]))
    assert yota.value_and_grad(f)(-X[:3])[0] == pytest.approx(f(-X[:3]))


def test_what_was_written_is_carried():
    def f(x):
        y = np.zeros((400, 2))
        y[0] = x[:2]
        for i in range(1, 400):
            y[i] = np.sin(y[i - 1]) + x[i % 100]
        return np.sum(y**2)

    (region,) = [op.keyword("region") for op in roll.run(yota.trace(f, X)[1]).ops if op.regions]
    assert region.body.types[region.body.outputs[0]].shape == (2,)
    assert yota.value_and_grad(f, strict=True)(X)[0] == f(X)


def test_sums_over_elements_are_array_code():
    g = yota.value_and_grad(chained)
    assert g(X)[0] == pytest.approx(chained(X), rel=1e-12)
    assert "np.add.accumulate" in g.source
    assert "    for " not in g.source


def test_sums_in_reverse_read_whole_expressions():
    def f(x):
        y = np.zeros(400)
        for i in range(399, 0, -1):
            y[i] = np.tanh(x[0] * i)
        return np.sum(y**2 / 7)

    value, gradient = yota.value_and_grad(f)(X[:2])
    trips = np.arange(1, 400)
    bends = np.tanh(X[0] * trips)
    assert value == pytest.approx(f(X[:2]))
    assert gradient == pytest.approx([np.sum(2 * bends / 7 * (1 - bends**2) * trips), 0])


def test_dtype_changes():
    def f(x):
        for i in range(400):
            if i == 3:
                x = x.astype(np.float32)
            x = x + 0.1 * np.sin(x) * i
        return np.sum(x)

    value, gradient = yota.value_and_grad(f)(X[:4])
    assert loops_of(f, X[:4]) == [397]
    assert value.dtype == np.float32
    assert gradient.dtype == np.float64
    assert yota.value_and_grad(f, strict=True)(X[:4])[0] == f(X[:4])


def test_what_is_beside_the_value():
    def path(x):
        found = []
        for _ in range(300):
            x = x + 0.01 * np.sin(x) * x[::-1]
            found.append(x[0])
        return np.sum(x), (np.array(found), x)

    (value, aux), _ = yota.value_and_grad(path, has_aux=True, strict=True)(X[:3])
    expected, others = path(X[:3])
    assert value == expected
    for one, other in zip(aux, others, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("target", ["numpy", "c"])
def test_integers_beyond_the_dtype(target):
    def f(x):
        total = 2**63 * x[0]
        for i in range(256):
            total = total + np.sin(x[i % 5]) * (i * 10**17) + np.cos(x[i % 3]) * 3**i
        return total

    value, gradient = yota.value_and_grad(f, target=target)(X)
    slope = f(X + 1e-30j * np.ones(120)).imag / 1e-30
    assert value == pytest.approx(f(X), rel=1e-12)
    assert np.sum(gradient) == pytest.approx(slope, rel=1e-9)


def test_random_programs():
    assert sum(Program(seed).check() for seed in range(12)) > 2


def test_random_programs_in_generated_code():
    assert all(Program(seed).check(["numpy", "c"]) for seed in (57, 60, 71))
    assert Program(913949).check(["numpy"])


@pytest.mark.parametrize("target", ["numpy", "c"])
def test_windows_that_move(target):
    assert loops_of(windowed, X)
    tape = yota.trace(windowed, X)[1]
    assert roll.run(tape).play(X) == tape.play(X) == windowed(X)
    value, gradient = yota.value_and_grad(windowed, target=target)(X)
    assert value == pytest.approx(windowed(X), rel=1e-12)
    direction = np.random.default_rng(5).normal(size=X.shape)
    moved = [windowed(X + side * direction) for side in (1e-6, -1e-6)]
    assert gradient @ direction == pytest.approx((moved[0] - moved[1]) / 2e-6, rel=1e-7)


def diffused(x):
    for _ in range(40):
        y = np.zeros_like(x)
        y[1:-1] = x[2:] - 2 * x[1:-1] + x[:-2]
        x = x + 0.1 * y
    return np.sum(x**2)


def recurrent(x):
    a, b = np.ones_like(x), x
    total = a + b
    for k in range(40):
        a, b = b, 2 * x * b - a
        total = total + b / (k + 1)
    return np.sum(total)


@pytest.mark.parametrize(("f", "is_loop"), [(diffused, True), (recurrent, False)])
def test_short_loops_stay_loops_unless_they_are_elementwise(f, is_loop):
    """Straight elementwise code is one pass over the elements; a loop over it would be a pass for each trip."""
    tape = roll.run(yota.trace(f, X)[1])
    assert any(op.regions for op in tape.ops) == is_loop
    np.testing.assert_allclose(tape.play(2 * X), f(2 * X), rtol=1e-13)


def padded(x):
    for _ in range(6):
        x = x + 0.1 * (np.pad(x, 1, mode="wrap")[2:] - np.roll(x, 1)) * np.sum(x[:9])
    return np.sum(x**2)


def test_few_trips_over_arrays_are_a_loop_in_c():
    """An index array that trips share, as that of `np.pad`, is a constant of the body, and C reads it there."""
    straight, found = yota.value_and_grad(padded), yota.value_and_grad(padded, target="c")
    value, slope = found(X)
    assert value == pytest.approx(padded(X), rel=1e-13)
    direction = np.random.default_rng(6).normal(size=X.shape)
    assert slope @ direction == pytest.approx(padded(X + 1e-30j * direction).imag * 1e30, rel=1e-11)
    assert "loop" in found.tape.operations
    assert "Kernels in C: " in found.source
    assert "_loop0" in found.source.partition("Kernels in C: ")[2].partition("\n")[0]
    straight(X)
    assert "loop" not in straight.tape.operations


@pytest.mark.parametrize("n", [20, 40, 60])
def test_neighbours_of_neighbours_of_small_arrays(n):
    """Stages of a method of Runge and Kutta, each of which reads neighbours, are compiled in seconds."""
    x = np.random.default_rng(n).normal(size=n)

    def system(x):
        for _ in range(3):
            stage = x
            for part in (0.5, 0.5, 1.0, 0.2):
                slope = (np.roll(stage, -1) - np.roll(stage, 2)) * np.roll(stage, 1) - stage
                stage = x + 0.01 * part * slope
            x = stage
        return np.sum(x**2)

    value, slope = yota.value_and_grad(system, target="c")(x)
    direction = np.random.default_rng(6).normal(size=n)
    assert value == pytest.approx(system(x), rel=1e-13)
    assert slope @ direction == pytest.approx(system(x + 1e-30j * direction).imag * 1e30, rel=1e-10)


@pytest.mark.parametrize("target", ["numpy", "c"])
def test_carried_arrays_that_change_places(target):
    def f(x, y, z):
        a, b, c = yota.scan(lambda s, _: ((s[1], s[2] * 0.9 + np.sin(s[0]), s[0]), None), (x, y, z), length=21)[0]
        return np.sum(a * b) + np.sum(c**2)

    args = [RNG.normal(size=30) for _ in range(3)]
    kept = [each.copy() for each in args]
    value, slopes = yota.value_and_grad(f, wrt=("x", "y", "z"), target=target)(*args)
    np.testing.assert_allclose(value, f(*args), rtol=1e-13)
    for number, slope in enumerate(slopes):
        direction = RNG.normal(size=30)
        moved = [each + 1e-30j * direction * (number == k) for k, each in enumerate(args)]
        np.testing.assert_allclose(np.sum(slope * direction), f(*moved).imag * 1e30, rtol=1e-11)
    np.testing.assert_array_equal(args, kept)
