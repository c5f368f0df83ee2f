"""Matrix products in generated code: columns times rows, single elements, transposed factors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import yota
from tests.emit.programs import Writer
from yota.emit.targets.numpy import generate
from yota.run.machine.python import load


def turned(write: Writer, x: int) -> int:
    return write("transpose", x, axes=(1, 0))


def product(left: tuple[int, ...], right: tuple[int, ...], dtype: Any = float, strict: bool = False) -> tuple[str, Any]:
    """Source and result of a product by a transposed factor, and what NumPy gives."""
    write = Writer()
    a, b = write.input("a", left, dtype), write.input("b", right[::-1], dtype)
    source = generate(write.finish(write("matmul", a, turned(write, b))), strict=strict)
    random = np.random.default_rng(0)
    x, y = random.normal(size=left).astype(dtype), random.normal(size=right[::-1]).astype(dtype)
    found, wanted = load(source)(x, y), x @ y.T
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=2e-5 if found.dtype.itemsize == 4 else 1e-13, atol=1e-5)
    return source.text, found


@pytest.mark.parametrize(
    ("left", "right", "copied"),
    [
        ((512, 32), (32, 32), True),
        ((64, 2), (2, 2), True),
        ((63, 32), (32, 32), False),
        ((2000, 128), (128, 64), False),
        ((512, 32), (32, 1), False),
        ((3, 512, 32), (32, 32), False),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_transposed_factors_of_small_products_are_copied_in_order(
    left: tuple[int, ...], right: tuple[int, ...], copied: bool, dtype: str
) -> None:
    assert ("b.T.copy()" in product(left, right, dtype)[0]) == copied


@pytest.mark.parametrize("dtype", [complex, np.int64])
def test_other_numbers_are_left_to_numpy(dtype: Any) -> None:
    assert "a @ b.T\n" in product((512, 32), (32, 32), dtype)[0]


def test_strict_values_are_left_to_numpy() -> None:
    assert "a @ b.T\n" in product((512, 32), (32, 32), strict=True)[0]
    assert "a @ b.T\n" in product((512, 1), (1, 32), strict=True)[0]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_column_times_a_row_is_a_product_of_elements(dtype: str) -> None:
    text, _ = product((512, 1), (1, 32), dtype)
    assert "a * b.T\n" in text


def test_what_is_not_finite_goes_through_columns_times_rows() -> None:
    write = Writer()
    a, b = write.input("a", (4, 1)), write.input("b", (1, 3))
    function = load(generate(write.finish(write("matmul", a, b))))
    x, y = np.array([[np.inf], [np.nan], [0.0], [2.0]]), np.array([[0.0, np.inf, -1.0]])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(function(x, y), x @ y)


def test_inner_products_of_vectors_have_gradients_without_products_of_matrices() -> None:
    x, y = np.arange(5.0), np.arange(5.0) ** 2
    for f in (np.inner, lambda a, b: np.tensordot(a, b, axes=1), lambda a, b: (a[None] @ b[:, None])[0, 0]):
        value, g = yota.grad(lambda a, b, f=f: 3 * f(a, b), x, y)
        assert value == 3 * np.inner(x, y)
        np.testing.assert_array_equal(g[0], 3 * y)
        np.testing.assert_array_equal(g[1], 3 * x)
        assert g.source.count(" @ ") + g.source.count("np.matmul") <= 1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize(
    ("shape", "by_ones"), [((600, 3), True), ((70, 64), True), ((3, 64, 5), True), ((600, 65), False)]
)
@pytest.mark.parametrize("order", ["C", "F", "gaps"])
def test_sums_of_short_rows_are_products_by_ones(
    shape: tuple[int, ...], by_ones: bool, keepdims: bool, dtype: str, order: str
) -> None:
    write = Writer()
    x = write.input("x", shape, dtype)
    source = generate(write.finish(write("sum", x, axis=(len(shape) - 1,), keepdims=keepdims)))
    assert ("ones" in source.text) == by_ones
    values = np.random.default_rng(0).normal(size=(*shape[:-1], 2 * shape[-1])).astype(dtype)
    values = values[..., ::2] if order == "gaps" else np.array(values[..., : shape[-1]], order=order)  # type: ignore[call-overload]
    values[1, ..., 1], values[2, ..., 0] = np.inf, np.nan
    found, exact = load(source)(values), values.astype(np.longdouble).sum(axis=-1, keepdims=keepdims)
    assert (found.dtype, found.shape) == (values.dtype, exact.shape)
    np.testing.assert_allclose(found, exact, rtol=0, atol=np.finfo(dtype).eps * 8 * shape[-1])


def test_strict_sums_of_short_rows_are_numpys() -> None:
    write = Writer()
    x = write.input("x", (600, 3))
    assert "ones" not in generate(write.finish(write("sum", x, axis=(1,))), strict=True).text
