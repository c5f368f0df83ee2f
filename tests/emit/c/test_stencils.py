"""Steps of stencils: each is computed once, however many there are, and every array is in memory once."""

from __future__ import annotations

import numpy as np
import pytest

import yota
from tests.emit.compiled import needs_compiler
from yota.optimize.pipeline import run
from yota.schedule.nests.groups import Group, schedule
from yota.schedule.nests.pull import Pull
from yota.schedule.nests.scatter_forms import read_where_written

STEPS = 12


def in_place(u0):
    u = u0.copy()
    for _ in range(STEPS):
        u[1:-1] += 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
    return np.sum(u**2)


def anew(u0):
    u = u0
    for _ in range(STEPS):
        v = np.zeros_like(u)
        v[1:-1] = u[1:-1] + 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
        u = v
    return np.sum(u**2)


def around(u0):
    u = u0
    for _ in range(STEPS):
        u = u + 0.1 * (np.roll(u, 1) - 2 * u + np.roll(u, -1))
    return np.sum(u**2)


def waves(u0):
    u, v = u0.copy(), np.zeros_like(u0)
    for _ in range(STEPS):
        change = -4 * u
        change[1:] += u[:-1]
        change[:-1] += u[1:]
        change[:, 1:] += u[:, :-1]
        change[:, :-1] += u[:, 1:]
        v += 0.1 * change
        u += 0.1 * v
    return np.sum(u**2)


@needs_compiler
@pytest.mark.parametrize(("f", "shape"), [(in_place, (300,)), (anew, (300,)), (around, (300,)), (waves, (17, 19))])
def test_gradients(f, shape):
    x = np.random.default_rng(0).normal(size=shape)
    direction = np.random.default_rng(1).normal(size=shape)
    value, gradient = yota.value_and_grad(f, target="c")(x)
    shifted = f(x + 1e-30j * direction)  # the functions are polynomials: exact
    np.testing.assert_allclose(value, f(x), rtol=1e-13)
    np.testing.assert_allclose(np.sum(gradient * direction), shifted.imag * 1e30, rtol=1e-11)


@pytest.mark.parametrize("f", [in_place, anew, around])
def test_kernels_are_linear_in_the_steps(f):
    """No kernel reaches far back, and a step has few of them."""
    _, g = yota.grad(f, np.ones(300))
    tape = read_where_written(run(g.tape))
    groups = [step for step in schedule(tape).steps if isinstance(step, Group)]
    assert len(groups) <= 4 * STEPS
    assert max(len(root.visited) for group in groups for root in group.roots) <= 80


def added(x):
    return x + np.roll(x, 1)


def turned(x):
    return np.concatenate([x[1:], x[:1]]) * x


def scaled(x):
    return np.roll(x, 3) * 1.01


def inner(x):
    return np.concatenate([x[:1], x[1:-1] + 0.1 * (x[2:] - x[:-2]), x[-1:]])


def plane(x):
    u = x.reshape(20, -1)
    return (u + 0.1 * (np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1) - 4 * u)).ravel()


def times(step, count):
    def f(x):
        for _ in range(count):
            x = step(x)
        return np.sum(x * x)

    return f


@pytest.mark.parametrize(
    ("step", "size", "counts"),
    [
        (added, 300, (10, 40)), (turned, 300, (10, 40)), (inner, 300, (10, 40)), (plane, 300, (5, 20)),
        (scaled, 300, (40, 160)), (scaled, 1040, (40, 160)),
    ],
)  # fmt: skip
def test_scheduling_is_linear_in_the_steps(step, size, counts, monkeypatch):
    made, requests = Pull._made, []

    def counted(self, *request):
        requests[-1] += 1
        return made(self, *request)

    monkeypatch.setattr(Pull, "_made", counted)
    for count in counts:
        value, tape = yota.trace(times(step, count), np.ones(size))
        requests.append(0)
        schedule(read_where_written(run(tape)))
    few, many = requests
    assert many < 9 * few  # quadratic would be 16


@needs_compiler
@pytest.mark.parametrize(
    ("step", "size", "count"),
    [(added, 300, 30), (turned, 300, 30), (inner, 300, 30), (plane, 300, 5), (scaled, 1040, 30)],
)
def test_long_chains(step, size, count):
    x = np.random.default_rng(0).normal(size=size) * 1e-9 + 1
    f = times(step, count)
    value, gradient = yota.value_and_grad(f, target="c")(x)
    direction = np.random.default_rng(1).normal(size=size)
    shifted = f(x + 1e-30j * direction)  # polynomials again
    np.testing.assert_allclose(value, f(x), rtol=1e-12)
    np.testing.assert_allclose(np.sum(gradient * direction), shifted.imag * 1e30, rtol=1e-9)


@needs_compiler
def test_kernels_compute_a_long_recurrence_again_rather_than_store_each_step():
    """Chebyshev coefficients by Clenshaw's recurrence: two steps are needed for each, so a tree of them is huge."""
    x = np.linspace(0.1, 0.9, 2000)

    def f(x):
        newer, older = 0.0 * x, 0.0 * x
        for step in range(30):
            newer, older = x * newer - older + 0.5**step, newer
        return newer

    def both(x):
        return np.sum(f(x)[1:] ** 2) + np.sum(f(x)[::3])

    value, gradient = yota.grad(both, x, target="c")
    assert gradient.source.count("_loops(\n") <= 10
    shifted = both(x + 1e-30j * np.cos(x))
    np.testing.assert_allclose(np.sum(gradient[0] * np.cos(x)), shifted.imag * 1e30, rtol=1e-10)
