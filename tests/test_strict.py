"""With strict=True the value has the bits that NumPy gives, however arrays lie in memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import yota
from tests.generated import loaded

INDEX = np.array([2, 0, 1, 2, 2, 1])
WEIGHTS = np.random.default_rng(7).normal(size=(38, 38))[::2]

CALLS = """np.sum(np.take(x, INDEX, axis=1))
np.sum(np.broadcast_to(x[:1], x.shape).copy())
np.sum(np.array(np.broadcast_to(x[:1], x.shape)))
np.sum(x.copy('F')) + np.sum(np.copy(x)) + np.sum(x.astype(x.dtype)) + np.sum(np.asfortranarray(x))
np.tensordot(np.broadcast_to(x[0], x.shape), x, 2)
np.power(x[0, 0], 3) + np.power(abs(x[0, 1]), 0.3)
np.sum(np.repeat(x, 3, axis=1)) + np.sum(np.pad(x, 1, mode='edge')) + np.sum(np.roll(x, 1, axis=1))
np.sum(np.delete(x, 1, axis=1)) + np.sum(np.insert(x, 1, 2.0, axis=1)) + np.sum(np.append(x, x))
np.linalg.norm(x) + np.linalg.norm(x[0]) + np.sum(np.linalg.norm(x, 3, axis=1))
np.sum(np.abs(np.linalg.svd(x, full_matrices=False)[0])) + np.sum(np.abs(np.linalg.qr(x)[1]))
np.sum(np.add.reduceat(x, [0, 1], axis=0)) + np.logaddexp.reduce(x[0])
np.sum(x, where=x > 0) + np.mean(x, where=x > 0) + np.nanmean(x, axis=1)[0] + np.nanvar(x)
np.sum(np.sort(x, axis=0)) + np.sum(np.partition(x, 1, axis=1)) + np.median(x) + np.percentile(x, 33.0)
np.einsum('ij,ij,ij->', x, x, x) + np.sum(np.einsum('ij,jk,kl->il', x, x.T, x, optimize=True))
np.einsum('ii', x[:3, :3]) + np.trace(x) + np.vdot(x, x) + np.sum(np.vecdot(x, x))
np.sum(np.dot(x, x[0])) + np.dot(x[:, 0], x[:, 1]) + np.inner(x[0], x[1]) + np.sum(np.linalg.multi_dot([x.T, x, x.T]))
np.sum(np.lib.stride_tricks.sliding_window_view(x, 2, axis=0) * 1.1)
np.sum(np.lib.stride_tricks.sliding_window_view(x, 2, axis=1))
np.sum(np.convolve(x[:, 0], x[0])) + np.interp(0.3, np.linspace(0, 1, len(x)), x[:, 0]) + np.sum(np.vander(x[0]))
np.sum(np.meshgrid(x[0], x[:, 0])[1]) + np.sum(np.gradient(x)[1]) + np.sum(np.cov(x))
np.sum(np.array([row * 2 for row in x])) + np.sum(np.array([[v, v * 2] for v in x[0]])) + np.sum(np.r_[x[0], x[1]])
np.sum(np.tensordot(WEIGHTS, x, axes=([1], [0]))) + np.sum(np.take(WEIGHTS, INDEX, axis=1) * x[0, 0])
math.sin(x[0, 0]) * math.exp(x[0, 1]) + math.hypot(x[1, 0], x[1, 1]) + x[0, 0] ** 3 + abs(x[0, 0]) ** 1.7
np.sum(np.maximum(x, 0.0) / (1.0 + np.exp(-x))) * np.std(x) + np.ptp(x) + np.average(x, weights=x**2)""".split("\n")

LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "rows": lambda x: x,
    "columns": np.asfortranarray,
    "slices": lambda x: np.repeat(np.repeat(x, 2, 0), 3, 1)[::2, 1::3],
    "backwards": lambda x: x[::-1, ::-1],
    "single": lambda x: x.astype(np.float32).T.copy().T,
}


def same_bits(found: Any, expected: Any) -> None:
    assert np.asarray(found).dtype == np.asarray(expected).dtype
    assert np.asarray(found).tobytes() == np.asarray(expected).tobytes(), found - expected


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("text", CALLS)
def test_calls(text: str, layout: str) -> None:
    f = eval(f"lambda x: {text}", globals())
    x = LAYOUTS[layout](np.random.default_rng(1).normal(size=(38, 19)))
    value, gradient = yota.value_and_grad(f, strict=True)(x)
    same_bits(value, f(x))
    tolerance = 1e-8 if x.dtype == np.float64 else 2e-3
    np.testing.assert_allclose(gradient, yota.gradient(f)(x), rtol=tolerance, atol=tolerance)


def writes(x: Any) -> Any:
    y = np.zeros_like(x)
    y += x
    y[:, ::2] *= 2
    z = y[:, ::2]
    z -= 1
    y.T[0] = 3
    y[y > 0] = x[y > 0] * 0.5
    np.add.at(y, [0, 0, 1], x[:3])
    y.sort(axis=0)
    w = y.copy()
    w[[0, 0, 1]] = x[3:6]
    np.multiply(y, w, out=w)
    np.put(w, [3], x[0, 0])
    return np.sum(z * 1.1) + np.sum(y * y) + np.sum(w)


def branches(x: Any) -> Any:
    total = 0.0
    for row in x[:4]:
        total += np.sum(np.sort(row)) if np.sum(row) > 0 else np.sum(row**3)
    return total


@pytest.mark.parametrize("target", ["numpy", "c"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("f", [writes, branches, lambda x: np.sum(2 * x + x.T.copy().T)])
def test_programs(f: Callable[[Any], Any], layout: str, target: str) -> None:
    x = LAYOUTS[layout](np.random.default_rng(1).normal(size=(38, 19)))
    same_bits(yota.value_and_grad(f, strict=True, target=target)(x)[0], f(x))


@pytest.mark.parametrize("target", ["numpy", "c"])
@pytest.mark.parametrize("name", ["absolute", "square", "reciprocal", "conjugate", "negative"])
def test_complex_numbers(name: str, target: str) -> None:
    parts = np.random.default_rng(3).normal(size=(2, 400)) * np.exp(np.random.default_rng(4).normal(size=(2, 400)))
    x = parts[0] + 1j * parts[1]

    def f(x: Any) -> Any:
        return np.max(np.real(getattr(np, name)(x))) + np.real(getattr(np, name)(x * x[::-1] / (x * x)))[7]

    for shift in range(0, 400, 40):
        same_bits(yota.value_and_grad(f, strict=True, target=target)(np.roll(x, shift))[0], f(np.roll(x, shift)))


def powers(a: Any, b: Any) -> Any:
    return a**3 + b**1.7 + abs(a) ** 0.3 + 2.5**b + b**-2 + math.sin(a) * math.exp(b) + np.power(a, 3) + np.tanh(b)


@pytest.mark.parametrize("kind", [float, np.float64, np.float32])
def test_numbers(kind: Callable[[float], Any]) -> None:
    form = yota.value_and_grad(powers, strict=True)
    for a, b in np.random.default_rng(3).uniform(0.1, 3.0, (50, 2)):
        same_bits(form(kind(a), kind(b))[0], powers(kind(a), kind(b)))


def test_guards_hold_for_what_is_called() -> None:
    def f(x: Any) -> Any:
        return np.sum(np.sort(x)) if np.linalg.norm(x) > 1.0 else np.sum(x)

    form = yota.value_and_grad(f, strict=True, dynamic=True)
    for scale in (1.0, 1e-3, 2.0, 1e-4):
        x = scale * np.arange(1.0, 9.0)
        same_bits(form(x)[0], f(x))


def test_arrays_from_outside_are_read_afresh() -> None:
    weights = np.random.default_rng(0).normal(size=(30, 30))

    def f(x: Any) -> Any:
        return np.sum(weights * x[0]) + np.linalg.norm(weights @ x)

    x = np.random.default_rng(1).normal(size=30)
    form = yota.value_and_grad(f, strict=True)
    same_bits(form(x)[0], f(x))
    weights *= 1.5
    same_bits(form(x)[0], f(x))


def test_a_standalone_module() -> None:
    def f(x: Any) -> Any:
        return np.sum(np.take(x, [2, 0, 1], axis=1)) * np.linalg.norm(x)

    x = np.random.default_rng(1).normal(size=(38, 19))
    module = loaded(str(yota.generate(f, (x,), strict=True, name="f")))
    same_bits(module.f(x), f(x))


@pytest.mark.parametrize("rows", [5, 40])
def test_matrices_by_columns_from_outside(rows: int) -> None:
    X = np.column_stack([np.ones(rows), np.linspace(0.0, 1.0, rows), np.sin(np.arange(rows))])
    by_columns = np.asfortranarray(X**2)

    def f(b: Any) -> Any:
        weights = np.exp(X @ b)
        return np.sum(np.linalg.inv(X.T @ (X * weights[:, None])) @ (X.T @ weights)) + np.sum(by_columns @ b)

    module = loaded(str(yota.generate(f, (np.zeros(3),), strict=True, name="f")))
    compiled = yota.value_and_grad(f, strict=True)
    for b in np.random.default_rng(1).normal(size=(40, 3)):
        for value in (module.f(b), module.f_value_and_gradient(b)[0], compiled(b)[0]):
            same_bits(value, f(b))


@pytest.mark.parametrize("target", ["numpy", "c"])
def test_contractions_whose_slope_has_another_layout(target: str) -> None:
    def f(a: Any, b: Any) -> Any:
        return np.sum(np.einsum("cijkl,ockl->oij", a, b))

    compiled = yota.value_and_grad(f, strict=True, target=target)
    for seed in range(20):
        a, b = (np.random.default_rng(seed).normal(size=shape) for shape in ((1, 6, 6, 3, 3), (3, 1, 3, 3)))
        same_bits(compiled(a, b)[0], f(a, b))


STEPS = [
    "{a} + {b}",
    "{a} * {b}[::-1]",
    "np.take({a}, np.arange({a}.shape[1])[::-1], axis=1)",
    "{a}.copy('F')",
    "np.broadcast_to({a}[:1], {a}.shape)",
    "np.reshape({a}, {a}.shape, order='F')",
    "{a}.T.reshape({a}.shape)",
    "np.roll({a}, 1, axis=1) * 1.0",
    "np.stack([{a}, {b}], axis=2)[..., 0]",
    "np.where({a} > 0, {a}, {b})",
    "np.tensordot({a}, {b}.T @ {b}, axes=1) * 0.01",
    "np.sort({a}, axis=0)",
    "{a} - np.mean({a}, axis=0)",
]


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=5),
    st.sampled_from(list(LAYOUTS)),
    st.sampled_from([(4, 5), (37, 19), (1, 7), (300, 3), (3, 300)]),
)
def test_random_programs(steps: list[tuple[str, int, int]], layout: str, shape: tuple[int, int]) -> None:
    lines, names = [], ["x"]
    for step, a, b in steps:
        lines.append(f"    v{len(names)} = " + step.format(a=names[a % len(names)], b=names[b % len(names)]))
        names.append(f"v{len(names)}")
    space: dict[str, Any] = {"np": np}
    exec("\n".join(["def f(x):", *lines, f"    return np.sum({names[-1]}) + np.sum({names[-1]} * {names[-2]})"]), space)
    x = LAYOUTS[layout](np.random.default_rng(5).normal(size=shape))
    same_bits(yota.value_and_grad(space["f"], strict=True)(x)[0], space["f"](x))


def test_a_sum_of_one_negative_zero() -> None:
    def f(x: Any) -> Any:
        return np.sum(x * 2.0)

    for x in (np.array([[-0.0]]), np.array([-0.0])):
        same_bits(yota.value_and_grad(f, strict=True)(x)[0], f(x))
