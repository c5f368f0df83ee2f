"""Sparse derivatives of functions that gather elements and sum them up, against complex steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import yota
from tests.derivatives.test_compressed import complex_steps
from tests.emit.compiled import needs_compiler
from yota.transform.sparse import compression
from yota.transform.sparse.compression import Compression

scipy_sparse = pytest.importorskip("scipy.sparse")

Function = Callable[[Any], Any]
RANDOM = np.random.default_rng(31)
ONE, OTHER = RANDOM.integers(0, 24, (2, 60))
HEADS, TAILS = RANDOM.integers(0, 8, (2, 30))
TRIANGLES = RANDOM.integers(0, 24, (40, 3))
MASK = RANDOM.random(60) < 0.5
CAMERAS, POINTS = RANDOM.integers(0, 3, 30), RANDOM.integers(0, 5, 30)
BOTH = [pytest.param("numpy"), pytest.param("c", marks=needs_compiler)]


def summed(places: Any, parts: Any) -> Any:
    out = np.zeros(24, parts.dtype)
    np.add.at(out, places, parts)
    return out


def observed(x: Any) -> Any:
    camera, point = x[:9].reshape(3, 3)[CAMERAS], x[9:].reshape(5, 3)[POINTS]
    turned = np.cross(camera, point) + point * np.sum(camera * point, axis=1)[:, None]
    return np.ravel(turned[:, :2] / (3.0 + turned[:, 2:]))


def forces(x: Any) -> Any:
    apart = x.reshape(8, 3)[HEADS] - x.reshape(8, 3)[TAILS]
    each = apart * np.exp(-np.sum(apart**2, axis=1))[:, None]
    out = np.zeros_like(x.reshape(8, 3))
    np.add.at(out, HEADS, each)
    np.add.at(out, TAILS, -each)
    return out


def masked(x: Any) -> Any:
    flow = np.where(MASK, x[ONE] - x[OTHER], 0.0) ** 3
    return np.where(
        np.arange(24) % 3 == 0, 0.0, summed(ONE, flow) - 2.0 * summed(OTHER, np.linspace(0.5, 1.5, 60) * flow / 3.0)
    )


def assembled(x: Any) -> Any:
    own = x[TRIANGLES]
    return summed(TRIANGLES, own * np.sum(np.sin(own), axis=1)[:, None])


def shared(x: Any) -> Any:
    return x[0] * np.exp(x[1:][ONE % 23] * x[1]) + x[2]


def neighbours(x: Any) -> Any:
    return np.cos(x[:20, None] - x[TRIANGLES[:20]]) * x[:3]


def stencil(x: Any) -> Any:
    u = np.pad(x.reshape(4, 6), 1)
    flow = u[1:, 1:-1] * u[:-1, 1:-1]
    return (flow[1:] - flow[:-1] + u[1:-1, 2:] * u[1:-1, :-2]).ravel()


def written(x: Any) -> Any:
    u = np.zeros(30, x.dtype)
    u[3:27] = x
    u[0] = x[5]
    y = np.zeros(40, x.dtype)
    y[2:31] = u[1:] * u[:-1]
    y[4:8] += x[:4]
    return y[::-1]


def parts(x: Any) -> Any:
    one, other = x[ONE], x[OTHER]
    return np.concatenate([one * other, one, np.stack([other**2, 3.0 * x[ONE]], axis=1).ravel()])


# A function of 24 numbers, and how many products its Jacobian may take.
FUNCTIONS: dict[str, tuple[Function, int]] = {
    "observed": (observed, 2),
    "forces": (forces, 3),
    "masked": (masked, 1),
    "assembled": (assembled, 3),
    "shared": (shared, 1),
    "neighbours": (neighbours, 1),
    "stencil": (stencil, 2),
    "written": (written, 1),
    "parts": (parts, 2),
    "twice": (lambda x: summed(ONE, x[OTHER] ** 2) + summed(ONE, x[OTHER] ** 2), 1),
    "many numbers": (lambda x: np.stack([np.sin(k * x[0]) * x[1] ** k for k in range(6)]), 2),
    "transformed parameters": (lambda x: x[ONE % 22] * x[OTHER % 22] * np.exp(x[22]) + np.tanh(x[23]), 3),
    "long rows": (lambda x: np.concatenate([x[ONE] * x[OTHER], np.stack([np.sum(x**2), np.prod(x)])]), 3),
    "itself": (lambda x: x[1:] - np.sin(x[:-1]) * x[1:], 1),
    "only moved": (lambda x: x[ONE][::-2] + 0.0, 1),
    "differences": (lambda x: np.diff(np.diff(x) ** 2), 2),
    "none": (lambda x: x[ONE[:0]] * x[:0], 0),
}


@pytest.fixture(autouse=True)
def always_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("yota.run.derivatives.matrix_entries.straight_line", lambda *_, **__: None)


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Compression]]:
    """What was chosen."""
    found: list[Compression] = []
    original = compression.compression

    def recorded(*args: Any, **how: Any) -> Compression:
        found.append(original(*args, **how))
        return found[-1]

    monkeypatch.setattr("yota.run.derivatives.matrix_entries.compression", recorded)
    return found


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("target", BOTH)
def test_jacobian(name: str, target: str, taken: list[Compression]) -> None:
    f, most = FUNCTIONS[name]
    x = RANDOM.uniform(0.5, 1.5, 24)
    value, found = yota.jacobian(f, sparse=True, with_value=True, target=target)(x)
    np.testing.assert_allclose(value, f(x), rtol=1e-13)
    assert found.has_canonical_format
    np.testing.assert_allclose(found.toarray(), complex_steps(f, x), rtol=1e-11, atol=1e-13)
    assert taken[0].plan.number <= most


def bonds(x: Any) -> Any:
    apart = x.reshape(8, 3)[HEADS] - x.reshape(8, 3)[TAILS]
    return -0.5 * np.sum(np.exp(-np.sum(apart**2, axis=1)))


def angles(x: Any) -> Any:
    q = x.reshape(8, 3)
    one, other = q[:-2] - q[1:-1], q[2:] - q[1:-1]
    return np.sum(np.sum(one * other, axis=1) ** 2)


def angles_slope(x: Any) -> Any:
    q = x.reshape(8, 3)
    one, other = q[:-2] - q[1:-1], q[2:] - q[1:-1]
    size = 2.0 * np.sum(one * other, axis=1)[:, None]
    g = np.zeros_like(q)
    g[:-2] += size * other
    g[2:] += size * one
    g[1:-1] -= size * (one + other)
    return g.ravel()


def lists(x: Any) -> Any:
    q = x.reshape(8, 3)
    return np.sum(np.sum((q[:, None] - q[TRIANGLES[:8] % 8]) ** 2, axis=2) ** 2)


def lists_slope(x: Any) -> Any:
    q = x.reshape(8, 3)
    apart = q[:, None] - q[TRIANGLES[:8] % 8]
    each = 4.0 * np.sum(apart**2, axis=2)[..., None] * apart
    g = np.sum(each, axis=1)
    np.add.at(g, TRIANGLES[:8] % 8, -each)
    return g.ravel()


def scaled(x: Any) -> Any:
    """Bonds whose strength and length are functions of two more numbers."""
    apart = x[:22].reshape(11, 2)[HEADS] - x[:22].reshape(11, 2)[TAILS]
    return np.exp(x[22]) * np.sum(np.exp(-np.sum(apart**2, axis=1) * np.sin(x[23])))


def scaled_slope(x: Any) -> Any:
    apart = x[:22].reshape(11, 2)[HEADS] - x[:22].reshape(11, 2)[TAILS]
    square = np.sum(apart**2, axis=1)
    each = np.exp(x[22] - square * np.sin(x[23]))
    g = np.zeros((11, 2), x.dtype)
    pull = -2.0 * np.sin(x[23]) * each[:, None] * apart
    np.add.at(g, HEADS, pull)
    np.add.at(g, TAILS, -pull)
    return np.concatenate([g.ravel(), [np.sum(each), -np.cos(x[23]) * np.sum(square * each)]])


HESSIANS: dict[str, tuple[Function, Function, int]] = {
    "scaled": (scaled, scaled_slope, 6),
    "bonds": (bonds, lambda x: forces(x).ravel(), 3),
    "angles": (angles, angles_slope, 6),
    "lists": (lists, lists_slope, 3),
}


@pytest.mark.parametrize("name", HESSIANS)
@pytest.mark.parametrize("target", BOTH)
def test_hessian(name: str, target: str, taken: list[Compression]) -> None:
    f, slope, most = HESSIANS[name]
    x = RANDOM.uniform(0.5, 1.5, 24)
    value, gradient, found = yota.hessian(f, sparse=True, with_value=True, target=target)(x)
    np.testing.assert_allclose(value, f(x), rtol=1e-13)
    np.testing.assert_allclose(gradient, slope(x), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(found.toarray(), complex_steps(slope, x), rtol=1e-10, atol=1e-11)
    assert taken[0].plan.number <= most


def test_other_arguments_and_places_may_change(taken: list[Compression]) -> None:
    scale = np.array([2.0, 3.0, 5.0])

    def f(x: Any, where: Any, y: Any) -> Any:
        out = np.zeros(4)
        np.add.at(out, where, scale * x[where] ** 2 * y)
        return out

    jacobian = yota.jacobian(f, sparse=True)
    x, y = RANDOM.standard_normal(4), RANDOM.standard_normal(3)
    for where in (np.array([3, 1, 1]), np.array([0, 2, 3]), np.array([3, 1, 1])):
        scale[0] += 1.0
        expected = np.zeros((4, 4))
        np.add.at(expected, (where, where), 2.0 * scale * x[where] * y)
        np.testing.assert_allclose(jacobian(x, where, y).toarray(), expected)


def test_float32(taken: list[Compression]) -> None:
    x = RANDOM.uniform(0.5, 1.5, 24)
    found = yota.jacobian(forces, sparse=True)(x.astype(np.float32))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found.toarray(), complex_steps(forces, x), rtol=1e-4, atol=1e-5)
    assert taken[0].plan.number == 3


def test_branches_keep_their_conditions() -> None:
    """Ops that are added to a tape do not move its guards."""
    jacobian = yota.jacobian(lambda x: x[ONE] * x[OTHER] if x[0] > 0 else x[ONE] ** 2, sparse=True, dynamic=True)
    x = RANDOM.uniform(0.5, 1.5, 24)
    for sign in (1.0, -1.0, 1.0):
        expected = complex_steps(lambda z: z[ONE] * z[OTHER] if z[0].real > 0 else z[ONE] ** 2, sign * x)
        np.testing.assert_allclose(jacobian(sign * x).toarray(), expected, rtol=1e-12)


def test_matrices_that_are_not_sparse(taken: list[Compression]) -> None:
    def growth(x: Any) -> Any:
        return np.diff(x) ** 2 * x[1:]

    x = RANDOM.uniform(0.5, 1.5, 100)
    np.testing.assert_allclose(yota.jacobian(growth)(x), complex_steps(growth, x), rtol=1e-11, atol=1e-13)
    assert taken[0].plan.number == 1


@pytest.mark.parametrize("fault", ["moves", "factors"])
def test_planted_faults_are_seen(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if fault == "moves":
        original = compression.cuts

        def wrong(*args: Any) -> Iterator[Any]:
            for cut in original(*args):
                object.__setattr__(cut, "moves", cut.moves[::-1])
                yield cut

        monkeypatch.setattr(compression, "cuts", wrong)
    else:
        monkeypatch.setattr("yota.transform.sparse.linear_ops.mask", lambda *_: None)
        monkeypatch.setattr("yota.transform.sparse.cuts.factor", lambda *_: 1)
        monkeypatch.setattr("yota.transform.sparse.linear_ops.factor", lambda *_: 1)
    x = RANDOM.uniform(0.5, 1.5, 24)
    with pytest.raises((AssertionError, IndexError)):
        np.testing.assert_allclose(yota.jacobian(forces, sparse=True)(x).toarray(), complex_steps(forces, x), rtol=1e-9)
