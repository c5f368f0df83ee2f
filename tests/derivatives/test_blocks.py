"""Derivatives by several arguments, against formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.emit.compiled import needs_compiler
from yota import batch, gradcheck, hessian, jacobian
from yota.errors import ArgumentError

TARGETS = ["numpy", pytest.param("c", marks=needs_compiler)]
RANDOM = np.random.default_rng(11)
X, A, C = RANDOM.standard_normal(3), RANDOM.standard_normal((2, 3)), 0.7


def loss(x: Any, a: Any, c: Any) -> Any:
    return np.sum((a @ x) ** 2) * c + np.sum(x**3) * c**2


def curved(x: Any, a: Any, c: Any) -> list[list[Any]]:
    """The blocks of the Hessian of the loss."""
    unit, image = np.eye(2), a @ x
    mixed = 2 * c * (np.einsum("ik,j->kij", a, x) + np.einsum("i,jk->kij", image, np.eye(3)))
    by_c = 2 * image @ a + 6 * c * x**2
    return [
        [2 * c * a.T @ a + 6 * c**2 * np.diag(x), mixed, by_c],
        [np.moveaxis(mixed, 0, -1), 2 * c * np.einsum("ik,j,l->ijkl", unit, x, x), 2 * np.outer(image, x)],
        [by_c, 2 * np.outer(image, x), 2 * np.sum(x**3)],
    ]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("wrt", [(0, 1, 2), ("x", "a", "c"), (2, "a"), (1,)])
def test_blocks_of_the_hessian(wrt: tuple[int | str, ...], target: str) -> None:
    places = [{"x": 0, "a": 1, "c": 2}.get(each, each) for each in wrt]  # type: ignore[call-overload]
    found, expected = hessian(loss, wrt, target=target)(X, A, C), curved(X, A, C)
    assert len(found) == len(wrt) and all(len(row) == len(wrt) for row in found)
    for row, one in zip(found, places, strict=True):
        for block, other in zip(row, places, strict=True):
            assert np.shape(block) == np.shape(expected[one][other])
            np.testing.assert_allclose(block, expected[one][other], rtol=1e-12, atol=1e-13)


def test_values_and_gradients_come_first() -> None:
    value, (by_x, by_c), ((_, block), _) = hessian(loss, (0, 2), with_value=True)(X, A, C)
    assert value == pytest.approx(loss(X, A, C), rel=1e-14)
    np.testing.assert_allclose(by_x, 2 * C * A.T @ (A @ X) + 3 * C**2 * X**2, rtol=1e-12)
    assert by_c == pytest.approx(np.sum((A @ X) ** 2) + 2 * C * np.sum(X**3), rel=1e-12)
    np.testing.assert_allclose(block, curved(X, A, C)[0][2], rtol=1e-12)


@pytest.mark.parametrize("target", TARGETS)
def test_jacobians(target: str) -> None:
    value, (by_c, by_a) = jacobian(lambda x, a, c: a @ x * c, ("c", "a"), with_value=True, target=target)(X, A, C)
    np.testing.assert_allclose(value, A @ X * C, rtol=1e-14)
    np.testing.assert_allclose(by_c, A @ X, rtol=1e-14)
    np.testing.assert_allclose(by_a, C * np.einsum("ik,j->ikj", np.eye(2), X), rtol=1e-14)


def test_blocks_are_sparse() -> None:
    n = 50
    (one, mixed), (other, last) = hessian(lambda x, y: np.sum(x[1:] ** 2 * y[:-1]) + np.sum(y**3), (0, 1), sparse=True)(
        np.full(n, 2.0), np.ones(n)
    )
    assert (one.nnz, mixed.nnz, other.nnz, last.nnz) == (n - 1, n - 1, n - 1, n)
    np.testing.assert_array_equal(mixed.toarray(), 4 * np.eye(n, k=-1))
    np.testing.assert_array_equal(other.toarray(), 4 * np.eye(n, k=1))


def test_over_many_points_and_inside_of_functions() -> None:
    points = RANDOM.standard_normal((2, 3))
    found = hessian(batch(loss, over=0), (0, 2))(points, A, C)
    for place, x in enumerate(points):
        np.testing.assert_allclose(found[0][1][place], curved(x, A, C)[0][2], rtol=1e-12)
    assert gradcheck(lambda x, c: np.sum(hessian(loss, (0, 2))(x, A, c)[0][1] ** 2), X, C)


def test_branches_are_followed() -> None:
    found = jacobian(lambda x, y: x * y if x > 0 else y**2, (0, 1), dynamic=True)
    assert [found(x, 3.0) for x in (2.0, -1.0, 4.0)] == [(3.0, 2.0), (0.0, 6.0), (3.0, 4.0)]


def test_what_is_no_argument_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"wrt=\(\) names no argument"):
        jacobian(loss, ())
    with pytest.raises(ArgumentError, match=r"wrt=\[0, 1\]: .*, as in wrt=\(0, 1\)"):
        hessian(loss, [0, 1])  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="wrt='q' is no argument"):
        jacobian(loss, (0, "q"))(X, A, C)
