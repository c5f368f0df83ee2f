"""Branches that run other arithmetic ops: one tape with selects, used for what was recorded only."""

from __future__ import annotations

import numpy as np
import pytest

import yota


def signs(x):
    total = 0.0
    for each in x:
        total += each if each > 0 else -each
    return total


def rectified(x):
    total = x[0] * 0.5
    for i in range(len(x)):
        total = total + (x[i] * 3.0 if x[i] > 0 else 0.0)
    return total


def huber(x):
    total = 0.0
    for i in range(len(x)):
        if abs(x[i]) < 0.7:
            total += 0.5 * x[i] ** 2
        else:
            total += 0.7 * (abs(x[i]) - 0.35)
    return total


def carried(x):
    """Each branch changes what the next one reads."""
    position, speed = x[0], x[1]
    for i in range(2, len(x)):
        speed = speed + 0.1 * x[i]
        if speed * x[i] < 0:
            speed = -0.5 * speed
        position = position + 0.1 * speed
    return position * position + speed


def swapped(x):
    total = x[0]
    for i in range(1, len(x)):
        low, high = (x[i], total) if x[i] < 0.3 else (total, x[i])
        total = low * 2.0 - high
    return total


CASES = [signs, rectified, huber, carried, swapped]


def slopes(f, x):
    """Derivatives by dual numbers."""
    rows = np.eye(x.size)
    return np.array([f([Dual(*pair) for pair in zip(x, row, strict=True)]).slope for row in rows])


class Dual:
    """A number and its slope by one argument."""

    def __init__(self, value, slope=0.0):
        self.value, self.slope = value, slope

    @staticmethod
    def of(other):
        return other if isinstance(other, Dual) else Dual(other)

    def __add__(self, other):
        other = self.of(other)
        return Dual(self.value + other.value, self.slope + other.slope)

    __radd__ = __add__

    def __neg__(self):
        return Dual(-self.value, -self.slope)

    def __sub__(self, other):
        return self + -self.of(other)

    def __mul__(self, other):
        other = self.of(other)
        return Dual(self.value * other.value, self.value * other.slope + self.slope * other.value)

    __rmul__ = __mul__

    def __pow__(self, power):
        return Dual(self.value**power, power * self.value ** (power - 1) * self.slope)

    def __abs__(self):
        return self if self.value >= 0 else -self

    def __gt__(self, other):
        return self.value > self.of(other).value

    def __lt__(self, other):
        return self.value < self.of(other).value


def tapes(found):
    """All tapes for the arguments that it was called with."""
    ((_, prepared),) = found.form.table.items()
    return prepared.tapes


@pytest.mark.parametrize(("target", "size"), [("numpy", 10), ("c", 4)])
@pytest.mark.parametrize("f", CASES)
def test_many_branches_take_one_tape(f, target, size):
    found = yota.value_and_grad(f, target=target)
    for x in np.random.default_rng(3).normal(size=(60, size)):
        value, gradient = found(x)
        np.testing.assert_allclose(value, f(x), rtol=1e-13, atol=1e-13)
        np.testing.assert_allclose(gradient, slopes(f, x), rtol=1e-11, atol=1e-11)
    assert len(tapes(found)) == 1


def test_second_derivatives_through_arms():
    found = yota.hessian(huber, dynamic=True)
    for x in np.random.default_rng(5).normal(size=(40, 4)):
        np.testing.assert_allclose(found(x), np.diag(np.where(abs(x) < 0.7, 1.0, 0.0)), atol=1e-14)


def guarded(x):
    """The arm that is not taken has no finite value."""
    return x[0] * x[1] if abs(x[1]) < 1e300 else x[0]


def test_an_arm_that_is_not_taken_may_overflow():
    found = yota.value_and_grad(guarded)
    for x, expected in (
        ([2.0, 3.0], [3.0, 2.0]),
        ([2.0, np.inf], [1.0, 0.0]),
        ([2.0, -4.0], [-4.0, 2.0]),
        ([2.0, 1e301], [1.0, 0.0]),
        ([0.0, np.inf], [1.0, 0.0]),
        ([5.0, np.inf], [1.0, 0.0]),
    ):
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal(found(np.array(x))[1], expected)


def test_ops_that_fail_outside_of_their_branch_keep_their_own_tape():
    def f(x):
        return sum(np.sqrt(each) if each > 0 else -each for each in x)

    found = yota.value_and_grad(f)
    for x in ([1.0, -4.0], [-1.0, 4.0], [-1.0, -4.0], [9.0, 4.0]):
        x = np.array(x)
        np.testing.assert_allclose(found(x)[1], [0.5 / np.sqrt(each) if each > 0 else -1.0 for each in x])
    assert len(tapes(found)) == 4


def test_values_of_strict_code_have_numpys_bits():
    found = yota.value_and_grad(carried, strict=True)
    for x in np.random.default_rng(7).normal(size=(30, 8)):
        assert found(x)[0] == carried(x)


def test_signed_zeros_and_float32_stay():
    found = yota.value_and_grad(lambda x: x[0] * 2.0 if x[1] > 0 else -x[0])
    for sign in (1.0, -1.0, 1.0, -1.0):
        value, _ = found(np.array([0.0, sign]))
        assert np.signbit(value) == (sign < 0)
        value, gradient = found(np.array([3.0, sign], np.float32))
        assert value.dtype == gradient.dtype == np.float32
        np.testing.assert_array_equal(gradient, np.float32([2.0 if sign > 0 else -1.0, 0.0]))


def test_a_call_that_records_an_arm_may_have_no_finite_value():
    def f(x):
        t = x[0] * 1.5
        t = t * t * t if x[1] > 0 else np.tanh(t) * t
        return x[2] + t

    found = yota.value_and_grad(f, dynamic=True)
    found(np.array([1.0, -1.0, 2.0]))
    value, gradient = found(np.array([np.inf, 1.0, 2.0]))
    assert value == np.inf
    np.testing.assert_array_equal(gradient, [np.inf, 0.0, 1.0])


def test_arms_with_results_of_other_types_keep_these():
    def f(x, y):
        t = np.sin(x) + x if y > 0 else x * 1.5
        return t * y + x

    found = yota.value_and_grad(f, dynamic=True)
    for y in (1.0, -1.0, 2.0, -2.0):
        assert type(found(0.5, y)[0]) is type(f(0.5, y))


def test_another_thread_may_replace_a_tape_before_its_arms_are_recorded():
    found = yota.value_and_grad(signs, dynamic=True)
    found(np.array([1.0, 1.0]))
    ((_, prepared),) = found.form.table.items()

    class Lock:
        """Lets another call in before the first one that waits."""

        def __enter__(self):
            prepared.owner.table.lock = known
            found(np.array([-1.0, 1.0]))
            known.__enter__()

        def __exit__(self, *error):
            known.__exit__(*error)

    known, prepared.owner.table.lock = prepared.owner.table.lock, Lock()
    value, gradient = found(np.array([1.0, -2.0]))
    assert value == 3.0
    np.testing.assert_array_equal(gradient, [1.0, -1.0])
