"""Matrices of derivatives of arrays on the GPU: over many points one thread has one point's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import yota
from tests.cuda.device import device, on_device
from tests.cuda.hosted import needs_compiler
from tests.cuda.nvrtc import compiled, needs_nvrtc

__all__ = ["device"]

POINTS = np.random.default_rng(0).standard_normal((5003, 3))
A = np.random.default_rng(1).standard_normal((12, 7))
X = np.random.default_rng(2).standard_normal(7)


def arm(q: Any) -> Any:
    a, b, c = q[0], q[0] + q[1], q[0] + q[1] + q[2]
    return np.stack([np.cos(a) + 0.7 * np.cos(b), np.sin(c), q[2] * np.exp(-q[1] * q[1])])


def arm_slope(q: np.ndarray) -> np.ndarray:
    a, b, c = q[..., 0], q[..., 0] + q[..., 1], q[..., 0] + q[..., 1] + q[..., 2]
    zero, swing, bell = 0 * a, -0.7 * np.sin(b), np.exp(-(q[..., 1] ** 2))
    rows = [
        [-np.sin(a) + swing, swing, zero],
        [np.cos(c), np.cos(c), np.cos(c)],
        [zero, -2 * q[..., 1] * q[..., 2] * bell, bell],
    ]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def energy(q: Any) -> Any:
    return q[0] ** 3 * q[1] + q[1] * q[1] * q[2] + q[2] ** 4


def energy_bend(q: np.ndarray) -> np.ndarray:
    x, y, z = np.moveaxis(q, -1, 0)
    rows = [[6 * x * y, 3 * x**2, 0 * x], [3 * x**2, 2 * z, 2 * y], [0 * x, 2 * y, 12 * z**2]]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def dense(x: Any) -> Any:
    return np.tanh(A @ x)


def same(found: Any, expected: Any, near: float = 1e-12) -> None:
    assert type(found).__module__ == "cupy" and found.shape == expected.shape
    np.testing.assert_allclose(np.asarray(found.get()), expected, rtol=near, atol=near)


@needs_compiler
def test_of_one_point(device: Any) -> None:
    same(yota.jacobian(arm)(on_device(POINTS[0])), arm_slope(POINTS[0]))
    same(yota.hessian(energy)(on_device(POINTS[0])), energy_bend(POINTS[0]))
    value, matrix = yota.jacobian(arm, with_value=True)(on_device(POINTS[0]))
    same(value, arm(POINTS[0]))
    same(matrix, arm_slope(POINTS[0]))


@needs_compiler
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_of_many_points_one_thread_has_one(device: Any, kind: Any) -> None:
    near = 1e-12 if kind == np.float64 else 1e-4
    points = on_device(POINTS.astype(kind))
    device.launches.clear()
    found = yota.batch(yota.jacobian(arm))(points)
    same(found, arm_slope(POINTS), near)
    assert found.dtype == kind
    ((_, blocks, threads, arguments),) = device.launches
    assert threads * blocks >= len(POINTS) > threads * (blocks - 1)
    assert len(arguments) == 2, "zeros are written, and read from nowhere"
    same(yota.batch(yota.hessian(energy))(points), energy_bend(POINTS), near)
    same(yota.jacobian(yota.batch(arm))(points), arm_slope(POINTS), near)


@needs_compiler
def test_points_along_the_last_axis_and_where_they_lie(device: Any) -> None:
    found = yota.batch(yota.jacobian(arm), axis=-1)(on_device(POINTS.T))
    same(found, np.moveaxis(arm_slope(POINTS), 0, -1))
    wide = on_device(np.repeat(POINTS, 2, axis=1))
    same(yota.batch(yota.jacobian(arm))(wide[:, ::2]), arm_slope(POINTS))
    value, slope, bend = yota.batch(yota.hessian(energy, with_value=True))(on_device(POINTS[:100]))
    same(value, np.array([energy(q) for q in POINTS[:100]]))
    same(bend, energy_bend(POINTS[:100]))
    assert slope.shape == (100, 3)


@needs_compiler
def test_of_functions_of_whole_arrays(device: Any) -> None:
    expected = (1 - np.tanh(A @ X) ** 2)[:, None] * A
    value, found = yota.jacobian(dense, with_value=True)(on_device(X))
    same(value, dense(X))
    same(found, expected)
    matrix = on_device(np.linalg.inv(np.eye(7) + 0.1 * A[:7]))
    same(yota.jacobian(lambda m: np.linalg.inv(m) @ np.ones(7))(matrix).sum(axis=(1, 2)), -_inverted(matrix.get()))
    slope = yota.gradient(lambda x: np.sum(np.linalg.inv(np.eye(7) + np.outer(x, x) * 0.1)))
    bend = yota.hessian(lambda x: np.sum(np.linalg.inv(np.eye(7) + np.outer(x, x) * 0.1)))(on_device(X))
    same(bend, np.stack([(slope(X + step) - slope(X - step)) / 2e-6 for step in 1e-6 * np.eye(7)]), 1e-7)


def _inverted(matrix: np.ndarray) -> np.ndarray:
    """The derivative of ``inv(m) @ ones`` along a matrix of ones."""
    found = np.linalg.inv(matrix)
    return found @ np.ones((7, 7)) @ found @ np.ones(7)


@needs_nvrtc
def test_kernels_compile(device: Any) -> None:
    for form in (yota.batch(yota.jacobian(arm)), yota.batch(yota.hessian(energy))):
        form(on_device(POINTS))
        code = form.source[form.source.index("/*\n") :]
        found = compiled(code, "compute_90")
        assert found.succeeded and not found.log, found.log[:2000]
