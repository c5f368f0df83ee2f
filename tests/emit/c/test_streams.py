"""Large results, which are written past the caches: the same bits as in caches, wherever they start and end."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import yota
from tests.emit.c.test_random import SHAPES
from tests.emit.compiled import needs_compiler
from tests.emit.programs import arguments, check, evaluate, tapes
from yota.emit.c import frame
from yota.emit.c.c_plan import Part
from yota.emit.render import render
from yota.emit.targets.c import generate
from yota.run.machine import compiler, native

pytestmark = needs_compiler

WRITES = "write_past_caches(d_x"
EDGES = [100, 127, 128, 129, 1003]
TYPES = ["float32", "complex128", "complex64"]


@pytest.fixture
def streaming(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every result counts as large, and goes to three threads."""
    monkeypatch.setattr(frame, "_LARGE", 1)
    monkeypatch.setattr("yota.emit.c.kernels._WORTH_THREADS", 1)
    monkeypatch.setenv("YOTA_NUM_THREADS", "3")


def quartic(x: Any) -> Any:
    return np.sum(x**4 - 3.0 * x)


@pytest.mark.parametrize("less, past", [(0, True), (1, False)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_results_are_written_past_the_caches_from_one_size_on(dtype: Any, less: int, past: bool) -> None:
    x = np.full(frame._LARGE // np.dtype(dtype).itemsize - less, 0.5, dtype)
    _, found = yota.grad(quartic, x, target="c")
    assert (WRITES in found.source) is past
    np.testing.assert_array_equal(found[0], dtype(-2.5))


def points(x: Any) -> Any:
    return x[0] * x[1] ** 2 - x[2] * x[1] + 1.0


def test_all_that_one_loop_writes_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(0).normal(size=(100, 3))
    monkeypatch.setattr(frame, "_LARGE", 100 * 4 * 8)
    each = yota.batch(yota.value_and_grad(points), target="c")
    each(x)
    assert each.source.count("write_past_caches(") == 3
    monkeypatch.setattr(frame, "_LARGE", 100 * 4 * 8 + 1)
    each.clear()
    each(x)
    assert "write_past_caches(" not in each.source


@pytest.mark.parametrize("count, dtype", [*((count, "float64") for count in EDGES), *((129, dtype) for dtype in TYPES)])
@pytest.mark.usefixtures("streaming")
def test_ragged_ends(count: int, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(count)
    x = random.normal(size=(count, 3)).astype(dtype)
    if dtype.startswith("complex"):
        x = x + (1j * random.normal(size=x.shape)).astype(dtype)
    made = []
    for _ in range(2):
        function = yota.batch(lambda p: np.array([points(p), p[0] * p[2]]), target="c")
        function.clear()
        made.append(function(x))
        assert ("write_past_caches(" in function.source) is (len(made) == 1)
        monkeypatch.setattr(frame, "_LARGE", 1 << 60)
    np.testing.assert_array_equal(*made)
    assert made[0].dtype == dtype


@pytest.mark.parametrize("threads", ["1", "2", "5"])
@pytest.mark.parametrize("count", [129, 1003])
@pytest.mark.usefixtures("streaming")
def test_rows_and_sums_in_threads(count: int, threads: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YOTA_NUM_THREADS", threads)
    x = np.random.default_rng(1).normal(size=(3, count))
    value, found = yota.grad(lambda x: np.sum(points(x)), x, target="c")
    assert found.source.count(WRITES) == 3
    expected, (gradient,) = yota.grad(lambda x: np.sum(points(x)), x)
    np.testing.assert_allclose(value, expected, rtol=1e-13)
    np.testing.assert_allclose(found[0], gradient, rtol=1e-13)
    again, (other,) = yota.grad(lambda x: np.sum(points(x)), x, target="c")
    assert again == value
    np.testing.assert_array_equal(other, found[0])


@settings(max_examples=8, suppress_health_check=list(HealthCheck), derandomize=True)
@given(data=st.data())
@pytest.mark.usefixtures("streaming")
def test_random_programs(data: Any) -> None:
    tape = data.draw(tapes(SHAPES[data.draw(st.sampled_from(["long", "blocks", "empty"]))], "float64"))
    values = arguments(tape)
    source = generate(tape)
    note(source.text)
    check(tape, native.load(source)(*values), evaluate(tape, *values))


@pytest.mark.usefixtures("streaming")
def test_what_is_no_row_of_places_is_written_in_its_place() -> None:
    function = yota.value_and_grad(lambda x: np.sum(x[::2] ** 3), target="c")
    x = np.random.default_rng(2).normal(size=500)
    _, gradient = function(x)
    np.testing.assert_allclose(gradient[::2], 3.0 * x[::2] ** 2, rtol=1e-14)
    np.testing.assert_array_equal(gradient[1::2], 0.0)


def test_blocks_of_many_results_are_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame, "_LARGE", 1)
    x = np.random.default_rng(2).normal(size=(300, 3)) + 0.0j
    for elements, rounds in ((16, 128), (17, 64), (128, 16), (129, 0)):
        function = yota.batch(lambda p, n=elements: np.array([p[k % 3] * (k + 2.0) for k in range(n)]), target="c")
        np.testing.assert_array_equal(function(x), x[:, np.arange(elements) % 3] * np.arange(2, elements + 2))
        assert ("write_past_caches(" in function.source) is (rounds > 0)
        assert f"block += {rounds}" in function.source or not rounds


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The inline functions, compiled so that they can be called."""
    folder: Path = tmp_path_factory.mktemp("streams")
    part = Part("c/parts/past_caches.c.jinja", "unsigned char", "", "extern")
    text = render(part.template, part=part)
    (folder / "past.c").write_text(f"#include <stddef.h>\n#include <string.h>\n{text}")
    compiler.find().compile(folder / "past.c", folder / "past.so")
    found = ctypes.CDLL(str(folder / "past.so"))
    found.at_hand.restype = ctypes.c_void_p
    found.at_hand.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    found.write_past_caches.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
    found.write_past_caches.restype = None
    return found


def test_blocks_of_any_size_may_start_anywhere(library: ctypes.CDLL) -> None:
    random = np.random.default_rng(3)
    held, place = random.integers(1, 255, 600, np.uint8), np.zeros(800, np.uint8)
    for start in range(65):
        for size in (0, 1, 63, 64, 65, 127, 128, 200, 512):
            place[...] = 255
            from_, to = held.ctypes.data + start % 3, place.ctypes.data + start
            where = library.at_hand(from_, to)
            assert where in (from_, to)
            if where == to:
                ctypes.memmove(to, from_, size)
            library.write_past_caches(to, where, size)
            library.finish_writing()
            np.testing.assert_array_equal(place[start : start + size], held[start % 3 : start % 3 + size])
            assert np.all(place[:start] == 255) and np.all(place[start + size :] == 255)
