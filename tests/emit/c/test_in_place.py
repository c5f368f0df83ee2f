"""Writes into arrays in place: what is read afterwards is what stood there before, where the function says so."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import yota
from tests.emit.compiled import needs_compiler
from tests.emit.in_place import KINDS, agree

TARGETS = ("numpy", pytest.param("c", marks=needs_compiler))


@pytest.fixture(params=["usual", "low"])
def limits(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits as they are, and so low that short arrays are cut into pieces, shared by threads, and streamed."""
    if request.param == "low":
        lower_limits(monkeypatch)


def lower_limits(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("yota.schedule.blocked.fuse.CACHE_BYTES", 1 << 13)
    patch.setattr("yota.emit.python.storage.WORKSPACE_BYTES", 64)
    patch.setattr("yota.emit.c.frame._LARGE", 1 << 10)
    patch.setattr("yota.emit.c.kernels.WORTH_KEEPING", 1 << 10)
    patch.setattr("yota.emit.c.kernels._WORTH_THREADS", 1)
    patch.setattr("yota.emit.c.kernels.WORTH_RELEASING", 1)
    patch.setenv("YOTA_NUM_THREADS", "2")


def _every_second(x: Any) -> Any:
    v = x / (x**2 + 0.5)
    v[::2] *= 1.5
    return np.sum(v[::2]) + np.sum(v**2)


def _at_indices(x: Any) -> Any:
    places = np.random.default_rng(0).integers(0, 4096, 777)
    v = 1 / (1 + np.exp(-x))
    v[places] += 0.5
    return np.mean(np.sin(v))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("f", "length"), [(_every_second, 65536), (_at_indices, 4096)])
def test_each_element_of_a_gradient_has_the_value_from_before_the_write(f: Any, length: int, target: str) -> None:
    x = np.random.default_rng(1).normal(size=length)
    found = yota.gradient(f, target=target)(x)
    step = 1e-6
    for place in (*range(12), length - 2, length - 1):
        moved = np.zeros(length)
        moved[place] = step
        np.testing.assert_allclose(found[place], (f(x + moved) - f(x - moved)) / (2 * step), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("start", [0, 1000, 2000])
def test_random_writes_have_right_gradients(start: int, target: str, limits: None) -> None:
    for number in range(start, start + (1 if target == "c" else 2)):
        agree(number, target, longest=20_000)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", KINDS[1:])
def test_random_writes_have_right_jacobians_and_second_derivatives(kind: str, target: str) -> None:
    agree(3000, target, kind, longest=5_000)


@needs_compiler
def test_elements_chosen_side_by_side_are_read_whatever_the_choice() -> None:
    """GCC 12.2 takes the mask of other elements for what it reads on one side of a choice alone."""
    random = np.random.default_rng(1)
    x, mask = random.normal(size=(128, 4)), random.random(size=(128, 4)) < 0.02

    def f(x: Any) -> Any:
        v = np.tanh(x)
        v[:, 1:] = v[:, 1:] / (v[:, 1:] ** 2 + 0.5)
        v[mask] = 0.75
        v[105:119, 1:4] /= x[105:119, 1:4] ** 2 + 1.5
        return np.mean(v[::2])

    both = yota.value_and_grad(f, target="c")
    assert np.isclose(both(x)[0], f(x), rtol=1e-12)
    chosen = re.findall(r"\? 0\.75 : (\S+)", both.source)
    assert chosen and not any("[" in text for text in chosen)
