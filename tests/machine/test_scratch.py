"""Scratch arrays of functions that nobody calls any more are given back when others are made."""

from __future__ import annotations

import gc
from collections import deque
from typing import Any

import numpy as np
import pytest

import yota
from yota.run.machine import python


def filled(size: int) -> deque[Any]:
    memory = np.empty(size // 8)
    return deque([(memory, memory.reshape(2, -1), memory[::2])])


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pools but those of the test, and a bound of 1 kB."""
    monkeypatch.setattr(python, "_pools", [])
    monkeypatch.setattr(python, "_MOST_BYTES", 1024)


@pytest.mark.usefixtures("apart")
def test_the_oldest_are_emptied_first() -> None:
    pools = [deque() for _ in range(4)]
    for pool in pools:
        python._bound(pool)
        pool.extend(filled(512))
    assert [len(pool) for pool in pools] == [0, 1, 1, 1]
    python._bound(deque())
    assert [len(pool) for pool in pools] == [0, 0, 1, 1]


@pytest.mark.usefixtures("apart")
def test_pools_of_functions_that_are_gone_are_forgotten() -> None:
    pool = filled(512)
    python._bound(pool)
    del pool
    gc.collect()
    python._bound(deque())
    assert len(python._pools) == 1


@pytest.mark.usefixtures("apart")
def test_a_function_whose_arrays_were_given_back_goes_on() -> None:
    def f(x: Any) -> Any:
        return np.sum(np.tanh(x @ x.T) @ x)

    both = yota.value_and_grad(f)
    points = [np.linspace(-1.0, 1.0, rows * 40).reshape(rows, 40) for rows in (60, 61, 62)]
    first = [both(point) for point in points]
    kept = [len(known()) for known in python._pools]
    assert kept == [0, 0, 1]
    for point, (value, gradient) in zip(points, first, strict=True):
        again = both(point)
        assert again[0] == value
        assert np.array_equal(again[1], gradient)
