"""Kernels that do the same are written once; products of small matrices are theirs."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import yota
from tests.emit.compiled import needs_compiler

pytestmark = needs_compiler

RANDOM = np.random.default_rng(0)
W, X = 0.3 * RANDOM.standard_normal((30, 30)), RANDOM.standard_normal((30, 30))


def gradient(function: Callable[..., Any], *arguments: Any, strict: bool = False) -> tuple[Any, Any]:
    return yota.grad(function, *arguments, target="c", strict=strict)


def differences(function: Callable[..., Any], x: np.ndarray, direction: np.ndarray) -> float:
    """The derivative of a function of complex numbers too, to all digits."""
    return float(np.imag(function(x + 1e-30j * direction)) / 1e-30)


def kernels(source: str) -> list[str]:
    """Names of the kernels that the compiled file has."""
    return re.findall(r"^(\w+)_call\(", source, re.MULTILINE)


def steps(x: np.ndarray) -> Any:
    for _ in range(12):
        x = np.tanh(W @ x) + 0.1 * x
    return np.sum(x * x)


def test_steps_of_a_loop_share_kernels() -> None:
    value, g = gradient(steps, X)
    direction = RANDOM.standard_normal(X.shape)
    np.testing.assert_allclose(value, steps(X), rtol=1e-13)
    np.testing.assert_allclose(np.sum(g[0] * direction), differences(steps, X, direction), rtol=1e-10)
    names = kernels(g.source)
    assert len(names) == len(set(names)) <= 10
    assert max(g.source.count(f"= {name}(") for name in names) >= 10


TABLE = np.linspace(-1.0, 1.0, 30)


@pytest.mark.parametrize(
    "changes",
    [
        (lambda y: np.sin(y) * 2.0, lambda y: np.sin(y) * 3.0),
        (lambda y: np.sin(y) - y, lambda y: y - np.sin(y)),
        (lambda y: np.sin(y), lambda y: np.cos(y)),
        (lambda y: y[::-1] * y, lambda y: y[:, ::-1] * y, lambda y: y.T * y),
        (lambda y: y * TABLE, lambda y: y * TABLE[::-1]),
    ],
    ids=["constants", "order", "functions", "keywords", "tables"],
)
def test_what_differs_is_not_shared(changes: tuple[Callable[[Any], Any], ...]) -> None:
    def each(x: np.ndarray) -> Any:
        x = W @ x
        for change in (*changes, *changes):
            x = W @ change(x)
        return np.sum(x)

    value, g = gradient(each, X)
    direction = RANDOM.standard_normal(X.shape)
    np.testing.assert_allclose(value, each(X), rtol=1e-10)
    np.testing.assert_allclose(np.sum(g[0] * direction), differences(each, X, direction), rtol=1e-8)


def test_arguments_keep_their_names() -> None:
    """An error about an index names that one, not another that is used alike."""

    def both(x: np.ndarray, rows: np.ndarray, others: np.ndarray) -> Any:
        first = W @ np.sin(x[rows])
        return np.sum(W @ np.sin(first[others]))

    inside, outside = np.arange(30)[::-1].copy(), np.full(30, 30)
    compiled = yota.trace(both, X, inside, inside)[1].compile(target="c")
    np.testing.assert_allclose(compiled(X, inside, inside), both(X, inside, inside))
    for bad, name in (((inside, outside), "others"), ((outside, inside), "rows")):
        with pytest.raises(IndexError, match=rf"\b{name}\b"):
            compiled(X, *bad)


@pytest.mark.parametrize(
    ("left", "right", "dtype"),
    [
        ((4, 4), (4, 4), "complex128"),
        ((3, 5), (5,), "float32"),
        ((5,), (5, 3), "float64"),
        ((6,), (6,), "float64"),
        ((2, 3, 3), (3, 3), "float64"),
        ((0, 3), (3, 2), "float64"),
    ],
)
def test_small_products_need_no_numpy(left: tuple[int, ...], right: tuple[int, ...], dtype: str) -> None:
    def function(a: np.ndarray, b: np.ndarray, z: np.ndarray) -> Any:
        return np.sum(np.abs(np.exp(a * 0.1) @ b + 1.0) ** 2) + np.sum(np.abs(z * z))

    # The array at the end keeps the rest from becoming straight-line code.
    a, b, z = (RANDOM.standard_normal(shape).astype(dtype) for shape in (left, right, (3000,)))
    if dtype == "complex128":
        a, b = a + 1j * RANDOM.standard_normal(left), b - 1j * RANDOM.standard_normal(right)
    value, g = gradient(function, a, b, z)
    assert a.size == 0 or not re.search(r"matmul| @ (?!b \+ 1)", g.source)
    expected, theirs = yota.grad(function, a, b, z)
    tolerance = 1e-4 if dtype == "float32" else 1e-11
    np.testing.assert_allclose(value, expected, rtol=tolerance)
    for mine, other in zip(g, theirs, strict=True):
        assert mine.dtype == other.dtype
        np.testing.assert_allclose(mine, other, rtol=tolerance, atol=tolerance)


def chain(a: np.ndarray, x: np.ndarray) -> Any:
    p = a
    for _ in range(6):
        p = a @ p @ a.T + 0.1 * p
    return np.sum(p * p) + np.sum(np.sin(x))


def test_chains_of_small_products_are_computed_once() -> None:
    a, x = 0.4 * RANDOM.standard_normal((6, 6)), RANDOM.standard_normal(2000)
    value, g = gradient(chain, a, x)
    assert "matmul" not in g.source
    np.testing.assert_allclose(value, chain(a, x), rtol=1e-12)
    direction = RANDOM.standard_normal(a.shape)
    exact = differences(lambda b: chain(b, x), a, direction)
    np.testing.assert_allclose(np.sum(g[0] * direction), exact, rtol=1e-10)


def test_strict_values_have_the_bits_of_numpy() -> None:
    a, x = 0.4 * RANDOM.standard_normal((6, 6)), RANDOM.standard_normal(2000)
    value, _ = gradient(chain, a, x, strict=True)
    assert value == chain(a, x)
