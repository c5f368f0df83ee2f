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


@settings(max_examples=80, deadline=None)
@given(STEPS, st.booleans())
def test_random_writes_and_reads(steps: list[tuple[bool, Any, int]], fresh: bool) -> None:
    check(written(steps, fresh), played)


@settings(max_examples=6, deadline=None)
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
