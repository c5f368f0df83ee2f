"""Loops over large arrays: what each trip makes anew, and values that nothing refers to any more."""

import numpy as np

import yota
from yota.tracing import trace as tracing

START = np.random.default_rng(0).normal(size=(96, 96))


def wave(speed):
    now = before = START
    for _ in range(300):
        around = np.roll(now, 1, 0) + np.roll(now, -1, 0) + np.roll(now, 1, 1) + np.roll(now, -1, 1)
        now, before = 2 * now - before + 0.1 * speed * (around - 4 * now), now
    return np.sum(now**2)


def test_zeros_that_each_trip_makes_are_not_stacked(monkeypatch):
    monkeypatch.setattr("yota.transform.rolling.iterations.LARGEST_STACK", 1 << 20)
    speed = np.full(START.shape, 0.9)
    found = yota.value_and_grad(wave)
    value, slope = found(speed)
    assert "loop" in found.tape.operations
    assert value == wave(speed)
    step = np.random.default_rng(1).normal(size=speed.shape)
    # The truncation error of the central difference is below 1e-7 of the slope.
    ahead, back = (wave(speed + h * step) for h in (1e-6, -1e-6))
    np.testing.assert_allclose(np.sum(slope * step), (ahead - back) / 2e-6, rtol=1e-6)


def test_values_that_nothing_refers_to_are_freed(monkeypatch):
    monkeypatch.setattr(tracing, "_SWEPT", 1 << 20)
    most = 0

    def chain(x):
        nonlocal most
        kept = x
        for _ in range(200):
            x = np.sin(x) + kept
            held = sum(value.nbytes for value in x._trace.values.values() if isinstance(value, np.ndarray))
            most = max(most, held)
        return np.sum(x * kept)

    x = np.linspace(0.1, 1.0, 20_000)
    value, g = yota.grad(chain, x)
    assert most < 16 * x.nbytes
    y = z = x.astype(complex) + 1e-30j
    for _ in range(200):
        z = np.sin(z) + y
    slope = np.imag(z * y) / 1e-30
    np.testing.assert_allclose(g[0], slope, rtol=1e-12)
    assert value == float(np.sum(z.real * x))


def test_small_views_keep_no_large_array(monkeypatch):
    monkeypatch.setattr(tracing, "_SWEPT", 1 << 20)
    most = 0

    def turned(x):
        nonlocal most
        for _ in range(200):
            x = np.sin(np.roll(x, 1)) + x[:1]
            arrays = [each for each in x._trace.values.values() if isinstance(each, np.ndarray)]
            owners = {id(each if each.base is None else each.base): each for each in arrays}
            most = max(most, sum(each.nbytes if each.base is None else each.base.nbytes for each in owners.values()))
        return np.sum(x**2)

    x = np.linspace(0.1, 1.0, 20_000)
    value, g = yota.grad(turned, x)
    assert most < 20 * x.nbytes
    z = x.astype(complex) + 1e-30j
    for _ in range(200):
        z = np.sin(np.roll(z, 1)) + z[:1]
    np.testing.assert_allclose(np.sum(g[0]), np.sum(np.imag(z**2)) / 1e-30, rtol=1e-12)
    assert value == float(np.sum(z.real**2))


def test_a_freed_value_is_computed_again(monkeypatch):
    monkeypatch.setattr(tracing, "_SWEPT", 1 << 20)
    seen = []

    def function(x):
        first = x * 3.0
        variable, trace = first._variable, first._trace
        first = x
        for _ in range(20):
            first = first + x
        seen.append(variable in trace.values)
        np.testing.assert_array_equal(trace.values[variable], np.full(20_000, 6.0))
        return np.sum(first)

    yota.grad(function, np.full(20_000, 2.0))
    assert seen == [False]
