"""Branches that differ in constants alone: one tape with selects, used for what was recorded only."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import yota
from yota.run import selects

STEP = 1e-6


def slope(f, x):
    """Central differences."""
    return np.array([(f(x + h) - f(x - h)) / (2 * STEP) for h in STEP * np.eye(x.size)])


def agrees(f, found, x) -> None:
    value, gradient = found(x)
    np.testing.assert_allclose(value, f(x), rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(gradient, slope(f, x), rtol=1e-5, atol=1e-6)


def tapes(found):
    """All tapes for the arguments that it was called with."""
    ((_, prepared),) = found.form.table.items()
    return prepared.tapes


def points(count, *, size, seed=0):
    x = np.random.default_rng(seed).normal(size=(count, size))
    return np.where(abs(x) < 1e-3, 0.5, x)


def signs(x):
    total = 0.0
    for i in range(len(x)):
        s = 1.0 if x[i] > 0 else -1.0
        total += s * x[i] ** 2
        c = 2.0 if x[i] < 1 else 3.0
        total += c * x[i]
    return total


def joint(x):
    table = [1.0, -2.0, 0.5, 5.0]
    c = table[(1 if x[0] > 0 else 0) + (2 if x[1] > 0 else 0)]
    return c * x[0] * x[1] + x[2]


def parity(x):
    odd = (x[0] > 0) ^ (x[1] > 0) ^ (x[2] > 0)
    return (1.0 if odd else -1.5) * x[0] * x[1] * x[2]


def plain_parity(x):
    odd = False
    for i in range(3):
        if x[i] > 0:
            odd = not odd
    return (1.0 if odd else -1.5) * x[0] * x[1] * x[2]


def ahead(x):
    """All branches come before all uses."""
    a, b, c = (1.0 if x[i] > 0 else 0.25 * (i - 3) for i in range(3))
    return a * x[0] ** 2 + b * x[1] ** 2 + c * x[2] ** 2 + a * b * c * x[0]


def masked(x):
    """A constant is zero for three of the four ways, where its derivative tells nothing of the other condition."""
    a = 1.0 if x[0] > 0 else 0.0
    b = a * (2.0 if x[1] > 0 else 3.0)
    return b * x[2] ** 2 + x[0]


def followed(x):
    """A branch on what a constant was chosen for."""
    s = 1.0 if x[0] > 0 else -1.0
    c = 2.0 if s * x[1] > 0 else 0.5
    return s * x[0] ** 2 + c * x[1] ** 2 + x[2]


def other_code(x):
    s = 1.0 if x[0] > 0 else -1.0
    tail = np.exp(x[1]) if x[1] > 0 else x[1] ** 3
    c = 2.0 if x[2] > 0 else 0.5
    return s * tail + c * x[2] ** 2


def powers(x):
    return x[0] ** (2.0 if x[1] > 0 else 3.0) + x[1] ** (2 if x[2] > 0 else 3) + x[2]


CASES = [joint, parity, plain_parity, ahead, masked, followed, other_code, powers]


@pytest.mark.parametrize(("target", "size"), [("numpy", 10), ("c", 4)])
def test_many_signs_take_one_tape(target, size):
    found = yota.value_and_grad(signs, target=target)
    for x in points(100, size=size):
        agrees(signs, found, x)
    assert len(tapes(found)) == 1
    # Two conditions for each element, each of which may be new once.
    assert len(found.info().compilations) <= 2 * size + 1
    assert "StaleTape" not in found.source


@pytest.mark.parametrize("f", CASES)
@pytest.mark.parametrize("dynamic", [True, "auto"])
def test_all_combinations_in_any_order(f, dynamic):
    corners = [np.array(signs) * [0.7, 0.9, 1.1] for signs in itertools.product((1, -1), repeat=3)]
    for seed in range(3):
        found = yota.value_and_grad(f, dynamic=dynamic)
        found.clear()
        order = np.random.default_rng(seed).permutation(8)
        for place in (*order, *reversed(order)):
            agrees(f, found, corners[place])


@pytest.mark.parametrize(("f", "target"), [*((f, "numpy") for f in CASES), (joint, "c"), (followed, "c")])
def test_matrices_in_any_order(f, target):
    def rows(x):
        return np.stack([f(x), f(x) * x[0]])

    def row_slopes(x):
        return np.array([slope(lambda z, i=i: rows(z)[i], x) for i in range(2)])

    matrix = yota.jacobian(rows, target=target)
    second = yota.hessian(f, target=target, dynamic=True)
    plain = yota.gradient(f, target=target)
    for place in np.random.default_rng(1).permutation(8):
        x = (1 - 2 * np.array([place & 1, place >> 1 & 1, place >> 2])) * [0.7, 0.9, 1.1]
        np.testing.assert_allclose(matrix(x), row_slopes(x), rtol=1e-5, atol=1e-6)
        curvature = np.array([(plain(x + h) - plain(x - h)) / (2 * STEP) for h in STEP * np.eye(3)])
        np.testing.assert_allclose(second(x), curvature, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("target", "size"), [("numpy", 10), ("c", 4)])
def test_jacobians_by_many_signs_take_one_tape(target, size):
    def rows(x):
        return np.array([each * 2.0 if each > 0 else each * 3.0 for each in x])

    matrix = yota.jacobian(rows, target=target)
    for x in points(100, size=size):
        np.testing.assert_array_equal(matrix(x), np.diag(np.where(x > 0, 2.0, 3.0)))
    assert len(tapes(matrix)) == 1
    assert len(matrix.info().compilations) <= size + 1


def test_constants_that_two_conditions_choose_together_are_not_guessed():
    found = yota.value_and_grad(joint)
    found.clear()
    for a, b in ((-1, -1), (1, -1), (-1, 1), (1, 1)):
        agrees(joint, found, np.array([a, b, 1.0]))
    assert len(tapes(found)) == 1


def test_other_code_keeps_its_own_tape():
    found = yota.value_and_grad(other_code)
    found.clear()
    for x in points(40, size=3):
        agrees(other_code, found, x)
    assert len({len(tape.gradient.tape.ops) for tape in tapes(found)}) > 1


def test_a_combination_is_recorded_once():
    runs = []

    def f(x):
        runs.append(None)
        return (1.0 if x[0] > 0 else -1.0) * x[0] ** 2 + (2.0 if x[1] > 0 else 3.0) * x[1]

    found = yota.value_and_grad(f)
    corners = [np.array(each, float) for each in itertools.product((1, -1), repeat=2)]
    for x in corners:
        found(x)
    count = len(runs)
    for x in corners * 3:
        found(x)
    assert len(runs) == count


SCALE = 2.0


def up(x):
    return SCALE * 1.0


def down(x):
    return SCALE * -1.0


def by_helpers(x):
    return (up(x) if x[0] > 0 else down(x)) * x[0] ** 2


def test_what_an_arm_reads_from_outside_is_watched(monkeypatch):
    found = yota.value_and_grad(by_helpers)
    for scale in (2.0, 7.0):
        monkeypatch.setattr(f"{__name__}.SCALE", scale)
        for x in (np.array([1.5]), np.array([-1.5])):
            agrees(by_helpers, found, x)


def test_arrays_from_outside_are_read_at_each_call():
    data = np.array([1.0, 2.0, 3.0])

    def f(x):
        return (1.0 if x[0] > 0 else -1.0) * np.sum(data * x**2)

    found = yota.value_and_grad(f)
    for _ in range(2):
        for x in points(6, size=3):
            agrees(f, found, x)
        data *= 2.0


def test_numbers_give_numbers():
    def f(a, b):
        return (1.5 if a > 0 else -1.5) * a * b

    merged, plain = yota.value_and_grad(f, (0, 1)), yota.value_and_grad(lambda a, b: 1.5 * a * b, (0, 1))
    for a, b in ((2.0, 3.0), (-2.0, 3.0), (2.0, -3.0)):
        value, parts = merged(a, b)
        factor = 1.5 if a > 0 else -1.5
        assert (value, *parts) == (factor * a * b, factor * b, factor * a)
        expected = plain(a, b)
        assert [type(each) for each in (value, *parts)] == [type(each) for each in (expected[0], *expected[1])]


def test_float32_stays():
    def f(x):
        return (1.5 if x[0] > 0 else -1.5) * np.sum(x**2)

    found = yota.value_and_grad(f)
    for sign in (1, -1, 1):
        value, gradient = found(np.array([sign, 2], np.float32))
        assert value.dtype == gradient.dtype == np.float32
        np.testing.assert_array_equal(gradient, np.float32(1.5 * sign * 2) * np.array([sign, 2], np.float32))


def test_strict_values_have_numpys_bits():
    found = yota.value_and_grad(signs, strict=True, dynamic=True)
    for x in points(8, size=3):
        assert found(x)[0] == signs(x)


def test_a_played_tape_refuses_what_was_not_recorded():
    found = yota.value_and_grad(ahead)
    found.clear()
    last = np.array([-0.7, 0.9, 1.1])
    for x in (np.array([0.7, 0.9, 1.1]), last):
        found(x)
    np.testing.assert_allclose(found.tape.play(last)[0], ahead(last))
    with pytest.raises(yota.errors.StaleTapeError):
        found.tape.play(-last)


def test_grad_shows_the_tape_of_its_call():
    for x in points(5, size=3):
        result = yota.grad(ahead, x, dynamic=True)
        value, g = result
        np.testing.assert_allclose(g.tape.play(x)[0], value)


def test_without_limits_on_recordings_nothing_is_wrong(monkeypatch):
    monkeypatch.setattr(selects, "_MOST_ROWS", 2)
    found = yota.value_and_grad(plain_parity, dynamic=True)
    found.clear()
    for x in points(40, size=3):
        agrees(plain_parity, found, x)
