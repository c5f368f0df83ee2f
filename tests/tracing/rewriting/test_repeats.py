"""A ``while`` on traced values is one loop of the tape, for every number of trips; or it is recorded step by step."""

from __future__ import annotations

import numpy as np
import pytest

import yota

STARTS = np.random.default_rng(0).uniform(0.3, 8.0, 40)
SEEN: list[float] = []


def cube(x, a):
    return x**3 - a


def slope(x):
    return 3 * x * x


def newton(a, x):
    while abs(cube(x, a)) > 1e-12:
        x = x - cube(x, a) / slope(x)
    return x


def counted(a, x):
    trips, change = 0, 1.0
    while change > 1e-12 and trips < 50:
        new = 0.5 * (x + a / x)
        change = abs(new - x)
        x = new
        trips += 1
    return x + 0.001 * a * trips


def several(a, x):
    place, speed, time = np.array([1.0, 0.5]) * x, np.zeros(2), 0.0
    while np.sum(place**2) < 400.0 * x:
        step = 0.1 * a * place
        speed = speed + step
        place = place + 0.1 * speed
        time = time + 0.1
    return np.sum(place * speed) + time * a


def nested(a, x):
    total = 0.0
    while total < 10 * a:
        y = x
        while y > 0.5:
            y = y * 0.5
        total = total + y + a
        x = x * 1.1
    return total * x


def value_of(function, *args):
    return float(function(*args))


@pytest.mark.parametrize("function", [newton, counted, several], ids=lambda each: each.__name__)
@pytest.mark.parametrize("options", [{}, {"target": "c"}], ids=["numpy", "c"])
def test_one_tape_for_every_number_of_trips(function, options):
    gradient = yota.value_and_grad(yota.interpreted(function), **options)
    for start in STARTS:
        value, found = gradient(2.0, float(start))
        assert value == pytest.approx(value_of(function, 2.0, start), rel=1e-12)
        step = 1e-6
        moved = [value_of(function, 2.0 + side * step, start) for side in (1, -1)]
        assert found == pytest.approx((moved[0] - moved[1]) / (2 * step), rel=1e-4)
    assert "loop" in gradient.tape.operations
    assert "1 compiled, 40 calls" in str(gradient.info())


def test_loops_within_loops():
    gradient = yota.value_and_grad(yota.interpreted(nested))
    for start in STARTS[:9]:
        value, found = gradient(2.0, float(start))
        assert value == pytest.approx(nested(2.0, start), rel=1e-13)
        moved = [nested(2.0 + side * 1e-6, start) for side in (1, -1)]
        assert found == pytest.approx((moved[0] - moved[1]) / 2e-6, rel=1e-5)


def left(a, x):
    while True:
        x = x - cube(x, a) / slope(x)
        if abs(cube(x, a)) < 1e-12:
            break
    return x


def noted(a, x):
    while abs(cube(x, a)) > 1e-12:
        SEEN.append(1.0)
        x = x - cube(x, a) / slope(x)
    return x + a * len(SEEN)


def told(a, x):
    SEEN.append(0.0)
    return abs(cube(x, a))


def told_of(a, x):
    while told(a, x) > 1e-12:
        x = x - cube(x, a) / slope(x)
    return x + a * len(SEEN)


def printed(a, x):
    while abs(cube(x, a)) > 1e-12:
        print("trip")
        x = x - cube(x, a) / slope(x)
    return x


def known_only_there(a, x):
    while abs(cube(x, a)) > 1e-12:
        last = cube(x, a)
        x = x - last / slope(x)
    return x + last


def written(a, x):
    y = z = np.array([x, a])
    while y[0] < 9.0:
        y *= a
    return np.sum(y * z)


def chosen(a, x):
    while x > 1.0:
        x = x * 0.4 if x > 4.0 else x - 0.3
    return x * a


@pytest.mark.parametrize(
    "function", [left, noted, told_of, printed, known_only_there, written, chosen], ids=lambda each: each.__name__
)
def test_what_does_more_than_compute_is_recorded_step_by_step(function, capsys):
    SEEN.clear()
    plain = value_of(function, 2.0, 7.0)
    kept, text = list(SEEN), capsys.readouterr().out
    SEEN.clear()
    value, found = yota.value_and_grad(yota.interpreted(function))(2.0, 7.0)
    assert (kept, text) == (SEEN, capsys.readouterr().out)
    assert value == pytest.approx(plain, rel=1e-13)
    moved = []
    for side in (1, -1):
        SEEN.clear()
        moved.append(value_of(function, 2.0 + side * 1e-6, 7.0))
    assert found == pytest.approx((moved[0] - moved[1]) / 2e-6, rel=1e-4)


def restarted(a, x):
    for _ in range(3):
        x = newton(a, x + 1.0)
    return x


def broken_off(a, x):
    for k in range(100):
        change = cube(x, a) / slope(x) * (1 - 0.1 / (k + 5))
        if abs(change) < 1e-13 * abs(x):
            break
        x = x - change
    else:
        return x * a
    return x + 0.001 * k * a


def returned(a, x):
    for _ in range(60, 0, -1):
        x, before = 0.5 * (x + a / x), x
        if abs(x - before) < 1e-12:
            found = x * a
            return found * before
    raise RuntimeError("no root")


def forever(a, x):
    trips = 0
    while True:
        x = x - cube(x, a) / slope(x)
        if abs(cube(x, a)) < 1e-12:
            break
        trips += 1
    return x * (a + trips)


def stopped(a, x):
    total = 0.0
    for k in range(3, 40, 2):
        total = total + a / (k + x)
        if total > 1.2 * x:
            break
        total = total * 1.01 + 0.001 * k
    else:
        total = total * x
    return total


LOOPS = [newton, counted, several, restarted, broken_off, returned, forever]


def test_a_loop_that_also_ends_by_its_range():
    gradient = yota.value_and_grad(stopped)
    for start in STARTS:
        value, found = gradient(2.0, float(start))
        assert value == pytest.approx(stopped(2.0, start), rel=1e-13)
        assert found == pytest.approx(stopped(2.0 + 1e-30j, start).imag / 1e-30, rel=1e-12)
    assert "loop" in gradient.tape.operations


def taylor(a, x):
    product, k, total, term = 1, 0, 1.0, 1.0
    while abs(term) > 1e-17:
        k += 1
        product *= k
        term = (a * x) ** k / product
        total = total + term
    return total


def quartered(a, x):
    total = 0.0
    for k in range(200):
        total = total + a * x / 4**k
        if x * 1e12 < 4**k:
            break
    return total


@pytest.mark.parametrize("function", [taylor, quartered], ids=lambda each: each.__name__)
def test_whole_numbers_that_outgrow_64_bits_are_those_of_python(function):
    gradient = yota.value_and_grad(function)
    for start in (0.1, 0.2, 1.0, 3.0, 8.0):
        start = start * (1e9 if function is quartered else 1.0)
        value, found = gradient(2.0, start)
        assert value == pytest.approx(value_of(function, 2.0, start), rel=1e-13)
        assert found == pytest.approx(function(2.0 + 1e-30j, start).imag / 1e-30, rel=1e-12)


@pytest.mark.parametrize("function", LOOPS, ids=lambda each: each.__name__)
@pytest.mark.parametrize("options", [{}, {"target": "c", "dynamic": True}], ids=["auto", "c"])
def test_plain_functions_are_recorded_from_their_sources_where_loops_end_by_values(function, options):
    gradient = yota.value_and_grad(function, **options)
    for start in STARTS:
        value, found = gradient(2.0, float(start))
        assert value == pytest.approx(value_of(function, 2.0, start), rel=1e-12)
        assert found == pytest.approx(function(2.0 + 1e-30j, start).imag / 1e-30, rel=1e-10)
    assert "loop" in gradient.tape.operations
    assert "2 compiled, 40 calls" in str(gradient.info())


def test_decisions_that_are_no_loop_of_values_are_recorded_as_before():
    def signs(x):
        return sum(each if each > 0 else np.sin(each) ** 3 * each for each in x)

    gradient = yota.value_and_grad(signs, dynamic=True)
    for x in np.random.default_rng(1).normal(size=(8, 5)):
        value, found = gradient(x)
        assert value == pytest.approx(signs(x), rel=1e-13)
        wanted = np.where(x > 0, 1.0, np.sin(x) ** 2 * (3 * x * np.cos(x) + np.sin(x)))
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
    assert "loop" not in gradient.tape.operations
