"""Plain loops whose trips decide by traced values, run over arrays, write arrays in place, or may raise errors."""

from __future__ import annotations

import numpy as np
import pytest

import yota

N = 200
NOISE = np.random.default_rng(0).normal(size=(N, 3))
ORDER = np.random.default_rng(1).integers(0, 20, N)
X = np.array([0.3141, 0.2239, 0.4713])


def two_ways(x):
    state = x[0]
    for _ in range(N):
        if state > 0.1:
            state = state - 0.05 * x[1] * state
        else:
            state = state + 0.1 * x[2]
    return state


def several_ways(x):
    state, total = x[0], 0.0
    for i in range(N):
        state = state + 0.3 * NOISE[i, 0] * x[1]
        if state > 1.0:
            state = 1.0
        elif state < -1.0:
            state = -1.0
        total += state * x[2]
    return total


def piecewise(value, x):
    if value > 0.2:
        return np.log(value) * x[1]
    if value < -0.3:
        return x[0] * value
    return value * value


def called(x):
    total = 0.0
    for i in range(N):
        total = 0.9 * total + piecewise(NOISE[i, 1] * x[2], x)
    return total


def left_out(x):
    total = 0.0
    for i in range(N):
        if NOISE[i, 0] * x[0] < 0:
            continue
        total = total + np.sqrt(NOISE[i, 0] * x[0]) * x[1] / NOISE[i, 0]
    return total


def by_number(x):
    total = 0.0
    for i in range(N):
        if i % 10 == 0:
            total = total * x[0]
        if i > 0 and NOISE[i, 0] > NOISE[i - 1, 0]:
            total = total + x[1] * NOISE[i, 0]
        total = total + x[2]
    return total


def expressions(x):
    total = 0.0
    for i in range(N):
        total = 0.5 * total + (x[0] * NOISE[i, 0] if 0 < total < 1 else x[1])
        total = total + max(x[0] * NOISE[i, 1], 0.0) + min(total, x[1], 0.1) + abs(NOISE[i, 2] * x[2])
        if not (total > 0.5 or total < -0.5):
            total = total * 1.1
    return total


def whole_arrays(x):
    state = x * 1.0
    for i in range(N):
        if np.sum(state) > 1.0:
            state = state * 0.5
        else:
            state = state + 0.05 * NOISE[i] * x[0] + 0.02
    return np.sum(state * state)


def rows(x):
    path = np.zeros((N, 3))
    path[0] = x
    for i in range(N - 1):
        force = -1.0 * path[i] if path[i, 0] > 0 else 0.5 * path[i] * x[1]
        path[i + 1] = path[i] + 0.01 * force + 0.001 * NOISE[i]
    return np.sum(path * path)


def named_in_a_branch(x):
    one, other = x[0], x[1]
    for i in range(N):
        if one > other:
            one, other = other, one + 0.1 * NOISE[i, 0]
        else:
            part = other * 0.5
            other = other - part
    return one * other + part


def in_place(x):
    state, kept = x * 1.0, np.zeros(3)
    view = state[1:]
    for i in range(N):
        if NOISE[i, 0] * x[0] > 0:
            state *= 0.99
        else:
            state += 0.01
        kept += view[0]
    return np.sum(state) + np.sum(kept)


def exchanged(x):
    one = np.zeros(20) + x[0]
    other, same = one.copy(), one
    one[3] = x[1]
    for _ in range(N + 1):
        other[1:-1] = one[1:-1] + 0.1 * (one[2:] - 2 * one[1:-1] + one[:-2]) + 0.01 * x[2]
        one, other = other, one
    return np.sum(one**2) + 3 * np.sum(other**3) + np.sum(same)


def turned(x):
    one, other, third = x * 1.0, x * 2.0, x * 3.0
    for _ in range(N + 2):
        one += 0.001 * other
        one, other, third = other, third, one
    return np.sum(one) + 2 * np.sum(other**2) + 3 * np.sum(third**3)


def by_output(x):
    state, scratch = x.copy(), np.zeros(3)
    for _ in range(N):
        np.multiply(state, 0.999, out=scratch)
        np.add(scratch, 0.001 * x[0], out=state)
    return np.sum(state) + np.sum(scratch**2)


def counted(x):
    count, state = 0, x[0]
    for _ in range(N):
        if state > 0.5:
            count += 1
            state = state * 0.5
        state = state + 0.1 * x[1]
    return state * count


def checked(x):
    state = x[0]
    for _ in range(N):
        if state > 1e6:
            raise ValueError("too large")
        state = state + 0.001 * x[1]
    return state


def numbered(x):
    total = 0.0
    for i, (noise, row) in enumerate(zip(NOISE[:, 0], NOISE, strict=False), 1):
        total = total * 0.9 + np.sum(row * x) / i if noise > 0 else total * 0.8
    return total + noise * x[0] + i * x[1] + row[0] * x[2]


def reverse(x):
    total = 0.0
    for i in reversed(range(N)):
        total = total * 0.5 * np.tanh(x[0]) + NOISE[i, 0] * x[1]
    return total


def over_traced(x):
    total = 0.0
    for value, row in zip(np.sin(np.arange(N) * 0.01 * x[0]), np.outer(np.arange(N) * 0.01, x)[::-1], strict=True):
        total = 0.5 * total + value * value * x[1] + np.sum(row)
    return total


def at_positions(x):
    table = NOISE[:20, 0] * x[0] + x[1] * NOISE[:20, 1] ** 2
    total, counts = 0.0, np.zeros(20)
    for place in ORDER:
        total = 0.99 * total + np.sin(table[place]) * x[2]
        counts[place] += total
    return total + np.sum(counts**2)


LOOPED = (
    *(two_ways, several_ways, called, left_out, by_number, expressions, whole_arrays, rows, named_in_a_branch),
    *(exchanged, turned, by_output, counted, checked, numbered, reverse, over_traced, at_positions),
)


def differences(function, point):
    return [(function(point + step) - function(point - step)) / 2e-6 for step in 1e-6 * np.eye(3)]


@pytest.mark.parametrize("target", ["numpy", "c"])
@pytest.mark.parametrize("function", LOOPED)
def test_one_trip_is_recorded(function, target, recorded):
    derivative = yota.value_and_grad(yota.interpreted(function), target=target)
    for point in (X, X * 1.0301):
        value, gradient = derivative(point)
        assert value == pytest.approx(function(point), rel=1e-12)
        np.testing.assert_allclose(gradient, differences(function, point), rtol=1e-6, atol=1e-7)
    assert any(recorded)


def test_aliases_of_what_a_branch_writes_are_seen():
    value, gradient = yota.value_and_grad(yota.interpreted(in_place))(X)
    assert value == pytest.approx(in_place(X), rel=1e-12)
    np.testing.assert_allclose(gradient, differences(in_place, X), rtol=1e-6)


def test_an_error_of_a_later_trip_is_raised():
    derivative = yota.gradient(yota.interpreted(checked))
    derivative(X)
    with pytest.raises(ValueError, match="too large"):
        derivative(np.array([0.3, 1e10, 0.5]))


def test_an_error_of_an_element_of_an_array_is_raised():
    def root(value):
        if value < 0:
            raise ValueError("negative")
        return np.sqrt(value)

    def roots(x):
        return np.sum(np.array([root(x[0] + 0.01 * i) for i in range(N)]))

    derivative = yota.gradient(yota.interpreted(roots))
    np.testing.assert_allclose(derivative(X), differences(roots, X), rtol=1e-6, atol=1e-6)
    with pytest.raises(ValueError, match="negative"):
        derivative(-X)


def test_branches_that_are_not_taken_have_no_part_in_derivatives():
    def roots(x):
        total = 0.0
        for i in range(N):
            place = x[0] - 0.01 * i
            if place > 0:
                total = total + np.sqrt(place) * x[1] + np.log(place)
            else:
                total = total - place * x[2]
        return total

    point = np.array([0.505, 0.2, 0.5])
    for derivative in (yota.gradient, yota.hessian):
        found = derivative(yota.interpreted(roots))(point)
        reference = roots if derivative is yota.gradient else yota.gradient(yota.interpreted(roots))
        np.testing.assert_allclose(found, differences(reference, point), rtol=1e-4, atol=1e-6)
        assert np.all(np.isfinite(found))


def test_many_decisions_are_one_tape():
    def walk(x):
        state = x[0]
        for i in range(300):
            if state > 0.5:
                state = state * 0.9
            state = state + 0.02 * x[1] + 0.05 * NOISE[i % N, 0]
        return state

    derivative = yota.value_and_grad(walk)
    for number in range(8):
        point = X + 0.05 * number
        value, gradient = derivative(point)
        assert value == pytest.approx(walk(point), rel=1e-12)
        np.testing.assert_allclose(gradient, differences(walk, point), rtol=1e-6, atol=1e-8)
    # The first trips are recorded one by one.
    assert len(derivative.info().compilations) <= 4
