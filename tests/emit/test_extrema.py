"""Adjoints of extrema count their ties, and write a number at few places instead of choosing at each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import yota
from tests.emit.programs import Writer
from yota.emit.targets.numpy import generate
from yota.run.machine.python import load

LENGTH = 3000


def points(kind: str, dtype: Any = float) -> np.ndarray[Any, Any]:
    x = np.random.default_rng(0).normal(size=LENGTH).astype(dtype)
    if kind == "ties":
        x = np.round(x).clip(-2, 2)
    if kind == "all":
        x[:] = 1.5
    if kind == "infinite":
        x[[5, 7]], x[9] = np.inf, -np.inf
    if kind == "nan":
        x[11] = np.nan
    return x


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["apart", "ties", "all", "infinite", "nan"])
@pytest.mark.parametrize("shape", [(LENGTH,), (60, 50), (1, LENGTH), (60, 5, 10)])
def test_ties_share(kind: str, shape: tuple[int, ...], dtype: str) -> None:
    x = points(kind, dtype).reshape(shape)
    value, g = yota.grad(lambda x: 3 * np.max(x) - np.min(x) * np.sum(np.where(x < 0.0, x, 0.0)), x)
    assert "count_nonzero" in g.source
    top, bottom = x == np.max(x), x == np.min(x)
    below = x < 0.0
    with np.errstate(all="ignore"):
        spread = np.sum(np.where(below, x, 0), dtype=np.longdouble)
        wanted = np.zeros(shape, np.longdouble)
        wanted[top] += np.longdouble(3) / np.count_nonzero(top)
        wanted[bottom] -= spread / np.count_nonzero(bottom)
        wanted += np.where(below, -np.min(x).astype(np.longdouble), 0)
    assert g[0].dtype == x.dtype
    np.testing.assert_allclose(g[0], wanted.astype(dtype), rtol=1e-5 if dtype == "float32" else 1e-13)


def counted(write: Writer, mask: int, dtype: str, **static: Any) -> int:
    return write("sum", write("astype", mask, dtype=np.dtype(dtype)), **static)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(500_000, 2), (20, 30)])
@pytest.mark.parametrize("axis", [(0,), (1,), (0, 1)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_masks_are_counted(shape: tuple[int, ...], axis: tuple[int, ...], keepdims: bool, dtype: str) -> None:
    write = Writer()
    x = write.input("x", shape)
    mask = write("less", write("exp", x), 1.2)
    function = load(generate(write.finish(counted(write, mask, dtype, axis=axis, keepdims=keepdims))))
    values = np.random.default_rng(1).normal(size=shape)
    wanted = np.sum(np.exp(values) < 1.2, axis=axis, keepdims=keepdims)
    np.testing.assert_array_equal(function(values), wanted.astype(dtype))
    assert function(values).dtype == dtype


def test_a_cast_that_is_read_elsewhere_stays() -> None:
    write = Writer()
    x = write.input("x", (LENGTH,))
    cast = write("astype", write("greater", x, 0.0), dtype=np.dtype(float))
    function = load(generate(write.finish(write("sum", cast), cast)))
    values = points("apart")
    count, found = function(values)
    assert count == np.sum(values > 0)
    np.testing.assert_array_equal(found, (values > 0).astype(float))


@pytest.mark.parametrize(
    ("name", "build"),
    [
        ("another array", lambda write, x: (write("equal", x, write("max", write("negative", x))), 0)),
        ("one axis", lambda write, x: (write("equal", x, write("max", x, axis=(1,), keepdims=True)), 0)),
        ("not zero", lambda write, x: (write("equal", x, write("max", x)), 1.0)),
        ("minus zero", lambda write, x: (write("equal", x, write("max", x)), -0.0)),
        ("another order", lambda write, x: (write("less", x, write("max", x)), 0)),
    ],
)
def test_other_choices_stay(name: str, build: Callable[[Writer, int], tuple[int, Any]]) -> None:
    write = Writer()
    x, number = write.input("x", (LENGTH, 2)), write.input("number", ())
    mask, other = build(write, x)
    tape = write.finish(write("where", mask, number, write.constant(other)))
    assert "np.zeros(" not in generate(tape).text
