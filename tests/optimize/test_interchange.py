"""Loops over large arrays that run for one block of elements after the other, against complex steps."""

from __future__ import annotations

import numpy as np
import pytest

import yota
from yota.emit.targets import c, numpy
from yota.ir.tape import Tape
from yota.optimize import interchange
from yota.transform.rolling import roll
from yota.transform.rolling.periods import Worth

RNG = np.random.default_rng(4)
DATA = RNG.normal(size=(40, 37))
TRIPS = 40


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    """Let loops of few trips over few elements be like large ones."""
    for name in ("LONG", "COMPILED"):
        monkeypatch.setattr(roll, name, Worth(trips=4, ops=8))
    monkeypatch.setattr(c, "_BLOCKS", interchange.Blocks(4, 8, 256))
    monkeypatch.setattr(numpy, "_BLOCKS", interchange.Blocks(4, 8, 256))


def logistic(x, r):
    for _ in range(TRIPS):
        x = r * x * (1 - x) + 0.01 * x
    return np.sum(x**2)


def grid(x, r):
    return logistic(x[:36].reshape(6, 6), r)


def coupled(x, r):
    """The derivative of each element depends on all of them."""
    for _ in range(TRIPS):
        x = r * x * (1 - x)
    return np.log(np.sum(x**2))


def summed(x, r):
    """Trips add up numbers, and keep one for each trip."""
    loss, seen, time = 0.0, [], 0.1 * r
    for k in range(TRIPS):
        x = np.where(x > 0.4, r * x * (1 - x), x + time)
        loss = loss * 0.99 + 0.5**k * np.sum((x - 0.3) ** 2)
        seen.append(np.sum(x))
        time = time * 0.9 + 0.01 * x.dtype.type(1)
    return loss + np.sum(np.stack(seen) ** 2) + time


def pair(x, r):
    """Carried arrays that change places, and one that starts as zeros."""
    u, v = x, np.zeros_like(x)
    for _ in range(TRIPS):
        u, v = v + 0.1 * np.sin(u), r * u - 0.05 * v
    return np.sum(u * v) + u[3]


def driven(x, r):
    """Each trip reads a row, and gives one."""
    found = []
    for k in range(TRIPS):
        x = 0.5 * x + r * np.cos(x) * DATA[k]
        found.append(x)
    return np.sum(np.stack(found) ** 3) / TRIPS


def twice(x, r):
    for _ in range(TRIPS):
        x = r * x * (1 - x)
    y = np.exp(-x) + 1
    for _ in range(TRIPS):
        y = 0.5 * (y + (x + 2) / y)
    return np.sum(y * x)


FUNCTIONS = [logistic, grid, coupled, summed, pair, driven, twice]
X, R = RNG.uniform(0.1, 0.9, 37), 2.9


def blocked(function, *args, target):
    """The compiled value and gradient, and the tapes with loops over blocks."""
    made: list[Tape] = []
    module = {"c": c, "numpy": numpy}[target]
    run = interchange.run

    def recorded(*given, **options):
        made.append(run(*given, **options))
        return made[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module.interchange, "run", recorded)
        value, slopes = yota.value_and_grad(function, wrt=("x", "r"), target=target)(*args)
    return value, slopes, [tape for tape in made if trips_of(tape)]


def trips_of(tape):
    """Of each loop over loops, how many blocks it goes through."""
    regions = [op.keyword("region") for op in tape.ops if op.regions]
    return [each.trips for each in regions if any(op.regions for op in each.body.ops)]


@pytest.mark.parametrize("target", ["numpy", "c"])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda each: each.__name__)
def test_value_and_gradient(function, target):
    value, (slopes, slope), tapes = blocked(function, X, R, target=target)
    assert tapes
    assert value == pytest.approx(function(X, R), rel=1e-12)
    step = RNG.normal(size=X.size)
    expected = function(X + 1e-30j * step, R + 2e-30j).imag * 1e30
    assert np.sum(slopes * step) + 2 * slope == pytest.approx(expected, rel=1e-10)


def test_single_precision():
    value, (slopes, slope), tapes = blocked(logistic, X.astype(np.float32), R, target="c")
    assert tapes
    assert value.dtype == slopes.dtype == np.float32
    expected = logistic(X + 0j, R + 1e-30j).imag * 1e30
    assert slope == pytest.approx(expected, rel=1e-3)


def test_blocks_leave_out_no_element():
    """Lengths that are a multiple of that of blocks, and others; all of them have the same elements."""
    for size in (33, 36):
        _, (slopes, _), (tape,) = blocked(logistic, X[:size], R, target="c")
        assert trips_of(tape) == [size // 4]
        moved = X[:size] + 0j
        moved[-1] += 1e-30j
        assert slopes[-1] == pytest.approx(logistic(moved, R).imag * 1e30, rel=1e-11)


@pytest.mark.parametrize("function", [logistic, coupled])
def test_what_trips_begin_with_is_kept_for_one_block(function):
    _, _, (tape,) = blocked(function, RNG.uniform(0.1, 0.9, 41), R, target="c")
    assert not any(tape.types[op.result].shape == (TRIPS, 41) for op in tape.ops)


def neighbours(x, r):
    for _ in range(TRIPS):
        x = r * x + 0.1 * np.roll(x, 1)
    return np.sum(x**2)


def normed(x, r):
    for _ in range(TRIPS):
        x = r * np.sin(x) / np.sqrt(np.sum(x**2))
    return np.sum(x**3)


@pytest.mark.parametrize("function", [neighbours, normed])
def test_trips_that_mix_elements_are_left(function):
    value, (slopes, _), tapes = blocked(function, X, 0.3, target="c")
    assert not tapes
    assert value == pytest.approx(function(X, 0.3), rel=1e-12)
    step = RNG.normal(size=X.size)
    assert np.sum(slopes * step) == pytest.approx(function(X + 1e-30j * step, 0.3).imag * 1e30, rel=1e-10)


def test_strict_values_stay_as_they_are():
    value, _ = yota.value_and_grad(logistic, strict=True)(X, R)
    assert value == logistic(X, R)
