"""Plain ``for`` loops over ranges, and sums and arrays of comprehensions, that the source shows are one trip each."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

import yota

N = 300
TABLE = np.linspace(0.5, 1.5, N)
X = np.array([0.3, 0.7, 1.1])


class Drawing:
    """Something that draws, and counts, for itself."""

    def __init__(self):
        self.generator, self.count = np.random.default_rng(0), 0

    def draw(self):
        return self.generator.normal()

    def step(self):
        self.count += 1
        return self.count


def ahead_and_behind(x):
    path = np.sin(np.arange(N) * x[0])
    total = 0.0
    for i in range(1, N - 1):
        total = total + x[1] * path[i - 1] * path[i + 1] / (i + 2)
    return total


def tables(x):
    total = 0.0
    for i in range(N):
        total = total + x[i % 3] * TABLE[i] ** 2
    return total


def backwards(x):
    total = 0.0
    for i in range(N, 0, -2):
        total = total * 0.99 + x[i % 3] * i
    return total + i


def pairs(x):
    first, (second, third) = x[0], (x[1], np.array([x[2], 1.0]))
    state = second, third
    for _ in range(N):
        first, state = state[0], (0.5 * (first + state[0]), state[1] * 0.999 + first)
    return first + np.sum(state[1])


def nested(x):
    total = 0.0
    for i in range(80):
        for j in range(90):
            total = total + x[0] * np.sin(j * 0.1) + x[1] * i
    else:
        total = total * x[2]
    return total + i - j


def functions_of_the_number(x):
    total = 0.0
    for i in range(N):
        total = total + np.sin(x[0] * math.sqrt(i)) + math.exp(-i) * x[1] + x[2] ** (i * 0.01)
    return total


def sums(x):
    return sum(x[i % 3] * i for i in range(N)) + sum([x[0] ** 2 * i for i in range(1, N, 3)])


def arrays(x):
    one, two = np.array([x[0] * i for i in range(N)]), np.asarray([x * i for i in range(N)])
    return np.sum(one**2) + np.sum(two[:, ::2] * 1.5)


def written(x):
    path = np.zeros(N + 1, np.result_type(x))
    other = path[:]
    path[0] = x[0]
    for i in range(N):
        path[i + 1] = path[i] * 0.99 + x[1]
    return np.sum(other**2) + np.sum(path)


def coupled(x):
    place, speed = np.zeros(N, np.result_type(x)), np.zeros(N, np.result_type(x))
    place[0], speed[0] = x[0], x[1]
    for i in range(1, N):
        speed[i] = speed[i - 1] - 0.01 * x[2] * place[i - 1]
        place[i] = place[i - 1] + 0.01 * speed[i]
    return np.sum(place**2) + speed[-1]


def rows_and_columns(x):
    one, two = np.zeros((N, 2), np.result_type(x)), np.zeros((N, 2), np.result_type(x))
    one[0] = two[0] = x[:2]
    for i in range(N - 1):
        one[i + 1] = one[i] + 0.01 * np.array([one[i, 1], -x[2] * one[i, 0]])
        two[i + 1, 0] = two[i, 0] + 0.01 * two[i, 1]
        two[i + 1, 1] = two[i, 1] - 0.01 * x[2] * two[i + 1, 0]
    return np.sum(one) + np.sum(two**2)


def heat(x):
    state = np.zeros((N, 20), np.result_type(x))
    state[0] = np.sin(np.arange(20) * x[0])
    for i in range(N - 1):
        state[i + 1, 1:-1] = state[i, 1:-1] + 0.1 * x[1] * (state[i, 2:] - 2 * state[i, 1:-1] + state[i, :-2])
    return np.sum(state[-1] ** 2) + np.sum(state[::7, 3])


def recurrences(x):
    one, two = np.zeros(N, np.result_type(x)), np.zeros(2 * N + 2, np.result_type(x))
    one[0], one[1], two[-1] = x
    for i in range(2, N):
        one[i] = 0.5 * one[i - 1] + 0.3 * one[i - 2] + x[2]
    for i in range(N, 0, -1):
        two[2 * i] = two[2 * i + 1] * 0.5 + x[1]
        two[2 * i - 1] = two[2 * i] * 0.3
    return np.sum(one**2) + np.sum(two**2)


def updated(x):
    squares = np.empty(N, np.result_type(x))
    for i in range(N):
        squares[i] = 0.5
        squares[i] += x[0] * i
        squares[i] *= x[1]
    return np.sum(squares**2)


def choices(x):
    total = 0.0
    for i in range(N):
        if i % 3 == 0:
            total = total + x[0] * i
        else:
            total = total - x[1]
    return total


def aliases(x):
    path = x * 1.0
    other = path
    for _ in range(N):
        path += x * 0.1
    return np.sum(other**2)


def all_so_far(x):
    path, first = np.zeros(N, np.result_type(x)), np.zeros(3, np.result_type(x))
    path[0] = x[0]
    for i in range(1, N):
        path[i] = np.mean(path) * 0.5 + x[1]
    for i in range(1, N):
        path[i] = path[0] * i + path[i] + x[2]
    for i in range(N):
        first[1] = first[0] * 0.5 + x[0] * i
        first[0] = first[1] * 0.1
    return np.sum(path**2) + np.sum(first)


def somewhere(x):
    path, order = np.zeros(N, np.result_type(x)), np.random.default_rng(0).permutation(N)
    for i in range(N):
        path[order[i]] = x[0] * i
    return np.sum(path**2 * TABLE)


LOOPED = (
    *(ahead_and_behind, tables, backwards, pairs, nested, functions_of_the_number, sums, arrays),
    *(written, coupled, rows_and_columns, heat, recurrences, updated, choices, aliases, all_so_far, somewhere),
)


def lists(x):
    squares, total = [float(k * k % 7) for k in range(N)], 0.0
    for i in range(N):
        total = total + x[0] * squares[i]
    return total + sum(x[1] * squares[i] for i in range(N))


def whole_numbers(x):
    total, power, count = 0.0, 1, 0
    for _ in range(N):
        power *= 3
        count += 2
        total = total + x[0] * (1.0 / power) + x[1] * count
    return total * count


def large_numbers_in_an_array(x):
    return np.sum(np.array([x[0] / 3**i + x[1] for i in range(N)]))


def appended(x):
    found, value = [], x[0]
    for _ in range(N):
        value = value * 0.99 + x[1]
        found.append(value)
    return sum(each**2 for each in found)


def other_names(x):
    path = np.zeros(N, np.result_type(x))
    other, part = path, path[1:]
    path[0] = x[0]
    for i in range(1, N):
        path[i] = path[i - 1] * 0.9 + other[i - 1] * 0.05 + part[0]
    return np.sum(path**2)


def triangles(x):
    total = 0.0
    for i in range(N):
        for j in range(min(i, 3)):
            total = total + x[0] * j * 0.1
    return total


def before(x):
    last, total = None, 0.0
    for i in range(N):
        if last is not None:
            total = total + x[0] * last
        last = i
    return total


def draws(x):
    generator, other, old = np.random.default_rng(0), random.Random(0), np.random.RandomState(0)
    drawing, total = Drawing(), 0.0
    for _ in range(N):
        total = total + x[0] * generator.normal()
    for _ in range(N):
        total = total + x[1] * other.gauss(0, 1)
    for _ in range(N):
        total = total + x[2] * old.rand()
    for _ in range(N):
        total = total + x[0] * drawing.draw()
    return total + sum(x[1] * generator.normal() for i in range(N))


def counters(x):
    calls, drawing, total = 0, Drawing(), 0.0

    def count():
        nonlocal calls
        calls += 1
        return calls

    numbers, others = iter(range(N)), list(range(N))
    for _ in range(N):
        total = total + x[0] * count()
    for _ in range(N):
        total = total + x[1] * drawing.step()
    for _ in range(N):
        total = total + x[2] * next(numbers)
    for _ in range(N):
        total = total + x[0] * others.pop()
    return total


STEP_BY_STEP = (
    large_numbers_in_an_array, lists, whole_numbers, appended, triangles, before, draws, counters, other_names,
)  # fmt: skip


def slopes(function):
    return [function(X + step).imag / 1e-20 for step in 1e-20j * np.eye(3)]


@pytest.mark.parametrize("target", ["numpy", "c"])
@pytest.mark.parametrize("function", LOOPED)
def test_one_trip_is_recorded(function, target, recorded):
    value, gradient = yota.value_and_grad(yota.interpreted(function), target=target)(X)
    assert recorded and all(recorded)
    assert value == pytest.approx(function(X), rel=1e-13)
    np.testing.assert_allclose(gradient, slopes(function), rtol=1e-12)


@pytest.mark.parametrize("function", STEP_BY_STEP)
def test_what_one_trip_does_not_show_is_recorded_step_by_step(function, recorded):
    value, gradient = yota.value_and_grad(yota.interpreted(function))(X)
    assert not any(recorded)
    assert value == pytest.approx(function(X), rel=1e-13)
    np.testing.assert_allclose(gradient, slopes(function), rtol=1e-12)


def beyond(x):
    path = np.zeros(N)
    for i in range(N):
        path[i + 1] = x[0]
    return np.sum(path)


def divided(x):
    total = 0.0
    for i in range(N):
        total = total + x[0] * (1.0 / (i - 100))
    return total


def divided_in_an_array(x):
    return np.sum(np.array([x[0] * (1.0 / (i - 100)) for i in range(N)]))


def powers(x):
    total = 0.0
    for i in range(2000):
        total = total + x[0] * 2.0**i
    return total


@pytest.mark.parametrize(
    ("function", "error"),
    [
        (beyond, IndexError),
        (divided, ZeroDivisionError),
        (powers, OverflowError),
        (divided_in_an_array, ZeroDivisionError),
    ],
)
def test_errors_of_later_trips_are_raised(function, error):
    with pytest.raises(error):
        yota.gradient(yota.interpreted(function))(X)


def long(x):
    print("once")
    total = 0.0
    for i in range(20_000):
        total = total + x[0] * np.sin(x[1] * i)
    print("and once")
    return total + sum(x[i % 3] ** 2 for i in range(20_000))


def test_a_long_loop_is_recorded_by_one_trip_unasked(recorded, capsys):
    derivative = yota.value_and_grad(long)
    value, gradient = derivative(X)
    assert capsys.readouterr().out == "once\nand once\n"
    assert recorded == [True, True]
    assert value == pytest.approx(long(X), rel=1e-11)
    np.testing.assert_allclose(gradient, slopes(long), rtol=1e-10)
    assert len(derivative.tape) < 200


def prepared(x):
    squares, total = [float(k) for k in range(100)], 0.0
    for i in range(100):
        total = total + x[0] * squares[i]
    for i in range(20_000):
        total = total * 0.9 + x[1] * np.sin(x[2] * i)
    return total


def test_a_long_loop_behind_another_one(recorded):
    value, gradient = yota.value_and_grad(prepared)(X)
    assert recorded == [False, True]
    assert value == pytest.approx(prepared(X), rel=1e-11)
    np.testing.assert_allclose(gradient, slopes(prepared), rtol=1e-10, atol=1e-12)


def listed(x):
    values, total = [float(k % 7) for k in range(20_000)], 0.0
    for i in range(20_000):
        total = total * 0.9 + x[0] * values[i] * np.sin(x[1])
    return total


EVENTS: list[str] = []


def noted(x):
    EVENTS.append("begun")
    total = 0.0
    for _ in range(20_000):
        total = total + x[0]
    return total


@pytest.mark.parametrize("function", [noted, listed])
def test_other_long_loops_are_recorded_step_by_step(function, recorded):
    EVENTS.clear()
    value, gradient = yota.value_and_grad(function)(X)
    assert EVENTS in ([], ["begun"])
    assert not any(recorded)
    assert value == pytest.approx(function(X), rel=1e-12)
    np.testing.assert_allclose(gradient, slopes(function), rtol=1e-11, atol=1e-200)


@pytest.mark.parametrize("derivative", [yota.jacobian, yota.hessian])
def test_other_derivatives_of_long_loops(derivative, recorded):
    def function(x):
        total = x * 0.0
        for i in range(5_000):
            total = total * 0.9 + np.sin(x * i * 1e-3)
        return np.sum(total**2) if derivative is yota.hessian else total

    found = derivative(function)(X)
    assert any(recorded)
    rows = yota.gradient(yota.interpreted(function)) if derivative is yota.hessian else function
    differences = [(rows(X + step) - rows(X - step)) / 2e-6 for step in 1e-6 * np.eye(3)]
    np.testing.assert_allclose(found, np.transpose(differences), rtol=1e-6, atol=1e-8)
