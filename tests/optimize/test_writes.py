"""Reads of arrays that were written before go to what was written, or past the writes that went elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import yota
from yota.optimize.pipeline import run
from yota.rules.registry import registry
from yota.transform.reverse.backward import gradient_tape

ENTRIES = [0, 1, -1, 2, slice(None), slice(1, None), slice(None, 2), slice(None, None, 2), slice(None, None, -1)]
INDICES = st.tuples(st.sampled_from(ENTRIES), st.sampled_from(ENTRIES), st.sampled_from(ENTRIES[:5]))


STEPS = st.lists(st.tuples(st.booleans(), INDICES, st.integers(0, 3)), min_size=2, max_size=9)


def played(f: Any, x: Any) -> Any:
    """Value and gradient, the tape with its adjoints passed through all passes and played op by op."""
    _, tape = yota.trace(f, x)
    found = gradient_tape(tape, [tape.inputs[0].variable], registry())
    results = run(found.tape).play(x)
    return results if isinstance(results, tuple) else (results, np.zeros_like(x))


@settings(max_examples=80)
@given(STEPS, st.booleans())
def test_random_writes_and_reads(steps: list[tuple[bool, Any, int]], fresh: bool) -> None:
    check(written(steps, fresh), played)


@settings(max_examples=6)
@given(STEPS, st.booleans())
def test_random_writes_and_reads_in_generated_code(steps: list[tuple[bool, Any, int]], fresh: bool) -> None:
    check(written(steps, fresh), lambda f, x: yota.value_and_grad(f)(x))


def written(steps: list[tuple[bool, Any, int]], fresh: bool) -> Any:
    """A function that writes into an array and reads from it as ``steps`` say."""

    def f(x: Any) -> Any:
        y = np.zeros(x.shape) if fresh else x * 1.0
        total = 0.0
        for number, (writes, index, form) in enumerate(steps):
            part = x[index] * (number + 1.5)
            if not writes:
                total = total + np.sum(np.sin(y[index]) * part)
            elif form == 0:
                y[index] = part
            elif form == 1:
                y[index] = x[0, 0, 0] * number
            elif form == 2:
                y[index] *= 0.5
            elif part.ndim:
                y[index] = part[..., :1]
        return total + np.sum(y * y)

    return f


def check(f: Any, way: Any) -> None:
    """Hold value and gradient against NumPy and central differences."""
    x = np.random.default_rng(0).normal(size=(4, 5, 3))
    value, gradient = way(f, x)
    np.testing.assert_allclose(value, f(x), rtol=1e-12, atol=1e-12)
    direction = np.random.default_rng(1).normal(size=x.shape)
    step = 1e-5
    slope = (f(x + step * direction) - f(x - step * direction)) / (2 * step)
    np.testing.assert_allclose(np.sum(gradient * direction), slope, rtol=1e-6, atol=1e-6)


def rows(x: Any) -> Any:
    y = np.zeros_like(x)
    for i in range(len(x) - 1):
        y[i] = x[i] * x[i + 1]
    return np.sum(y * x)


@pytest.mark.parametrize("count", [5, 200])
def test_written_rows_are_read_where_they_come_from(count: int) -> None:
    """The adjoint of a chain of writes is read from its end: no write makes a copy of the whole array."""
    tape = run(yota.grad(rows, np.ones((count, 40)))[1].tape)
    names = [op.name for op in tape.ops]
    assert names.count("setitem") <= count - 1
    assert len(names) < 12 * count
    x = np.random.default_rng(0).normal(size=(count, 40))
    gradient = yota.gradient(rows)(x)
    expected = np.zeros_like(x)
    expected[:-1] += x[:-1] * x[1:] * 2
    expected[1:] += x[:-1] ** 2
    np.testing.assert_allclose(gradient, expected, rtol=1e-13)


def in_parts(*cuts: int) -> Any:
    """A function that fills an array part by part along each axis, the last part first."""

    def f(x: Any) -> Any:
        y, z = np.empty_like(x), np.empty_like(x)
        for low, high in reversed([*zip((0, *cuts), (*cuts, 6), strict=True)]):
            y[low:high] = x[6 - high : 6 - low] ** (low + 2)
            z[:, low:high] = x[:, 6 - high : 6 - low] ** (low + 3)
        return np.sum(y**2 * x) + np.sum(z**2 * x)

    return f


def edges(x: Any) -> Any:
    y = np.empty_like(x)
    y[1:-1], y[0], y[-1] = x[2:] * x[:-2], x[1] ** 2, x[0] * x[1]
    return np.sum(y**2 * x)


def twice(x: Any) -> Any:
    y = np.empty_like(x)
    y[:3] = x[:3] ** 2
    y[:3] = y[:3] * x[1:4]
    y[3:] = x[:3]
    y[:3] += x[3:]
    return np.sum(y**2 * x)


def broadcast(x: Any) -> Any:
    """Numbers, rows and columns are written at one place of an axis."""
    y, z = np.zeros((6, 6, 2), x.dtype), np.zeros((6, 4, 6), x.dtype)
    y[:, :, 0], y[..., 1] = x[:, :1], x[2]
    z[:, 0], z[:, 1], z[:, 2:] = x[:, 3, None], x[0, 0], x[:, None]
    return np.sum(y**2 * x[..., None]) + np.sum(z**3 * x[:, None])


def apart(x: Any) -> Any:
    return np.sum(x[:3] ** 2) + np.sum(x[:3] ** 3) + np.sum(x[3:] ** 2)


def with_gap(x: Any) -> Any:
    y = np.ones_like(x)
    y[4:], y[:3] = x[:2] ** 2, x[1:4]
    return np.sum(y**2 * x)


@pytest.mark.parametrize(
    ("f", "joins"),
    [
        (in_parts(2), True),
        (in_parts(1, 4), True),
        (edges, True),
        (twice, True),
        (broadcast, True),
        (with_gap, False),
        (apart, False),
        (lambda x: np.sum(np.roll(x, 2, 0) * np.roll(x, -1, 1) * x), True),
        (lambda x: np.sum(np.gradient(x, axis=0) ** 2 * x), True),
    ],
    ids=["two", "three", "edges", "twice", "broadcast", "gap", "apart", "roll", "gradient"],
)
def test_writes_side_by_side_are_joined(f: Any, joins: bool) -> None:
    x = np.random.default_rng(0).uniform(0.5, 1.5, (6, 6))
    value, gradient = played(f, x)
    np.testing.assert_allclose(value, f(x), rtol=1e-13)
    directions = np.random.default_rng(1).normal(size=(4, 6, 6))
    slopes = [f(x + 1e-30j * each).imag * 1e30 for each in directions]
    np.testing.assert_allclose([np.sum(gradient * each) for each in directions], slopes, rtol=1e-11)
    tape = run(yota.trace(f, x)[1], until="simplify")
    assert any(op.name == "concatenate" for op in tape.ops) == joins


def test_arrays_filled_with_one_number_are_one_constant() -> None:
    def f(x: Any) -> Any:
        for _ in range(5):
            y = np.zeros_like(x)
            y[1:-1] = x[2:] * x[:-2]
            z = np.full(x.shape, 2.0)
            z[0] = x[0]
            x = y + z * np.pad(x[1:], (0, 1), constant_values=2.0)
        return np.sum(x)

    x = np.random.default_rng(0).uniform(0.5, 1.5, 70)
    value, tape = yota.trace(f, x)
    assert sum(1 for each in tape.constants.values() if np.ndim(each)) == 3
    np.testing.assert_array_equal(value, f(x))
    np.testing.assert_array_equal(tape.play(2 * x), f(2 * x))
