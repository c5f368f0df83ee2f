"""Index arrays that are arguments: read by kernels, from the end where negative, and never past an axis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cuda.hosted import load, needs_compiler
from tests.cuda.nvrtc import ENDS, compiled, needs_nvrtc, unit
from tests.cuda.replayed import ADDRESSES, replayed
from yota.emit.targets.cuda import Form, generate
from yota.ir.inputs import Leaf
from yota.ir.tape import Tape
from yota.optimize.pipeline import run
from yota.rules.registry import registry
from yota.tracing.record import record
from yota.transform.reverse.backward import gradient_tape

RANDOM = np.random.default_rng(11)
X = RANDOM.standard_normal((50, 3))
ROW = RANDOM.standard_normal(50)


def gradient(name: str, function: Callable[..., Any], *arguments: Any) -> Tape:
    leaves = [Leaf(value, number, f"x{number}", ()) for number, value in enumerate(arguments)]
    tape = record(function, leaves, tuple, registry=registry()).tape
    wanted = [item.variable for item in tape.inputs if tape.types[item.variable].differentiable]
    return replace(run(gradient_tape(tape, wanted, registry()).tape), name=name)


def springs(x: Any, i: Any, j: Any) -> Any:
    apart = x[i] - x[j]
    return np.sum(np.sqrt(np.sum(apart * apart, axis=1) + 0.5))


def springs_slope(x: Any, i: Any, j: Any) -> Any:
    apart = x[i] - x[j]
    pull = apart / np.sqrt(np.sum(apart * apart, axis=1) + 0.5)[:, None]
    found = np.zeros_like(x)
    np.add.at(found, i, pull)
    np.add.at(found, j, -pull)
    return found


def lookup(x: Any, i: Any) -> Any:
    return np.sum(np.sin(x[i]) * x[i[::-1]])


def lookup_slope(x: Any, i: Any) -> Any:
    found = np.zeros_like(x)
    np.add.at(found, i, np.cos(x[i]) * x[i[::-1]])
    np.add.at(found, i[::-1], np.sin(x[i]))
    return found


def waves(z: Any, i: Any) -> Any:
    return np.sum(np.real(z[i] * np.conj(z[i])))


def waves_slope(z: Any, i: Any) -> Any:
    found = np.zeros_like(z)
    np.add.at(found, i, 2 * z[i])
    return found


def placed(x: Any, i: Any, v: Any) -> Any:
    y = x * 1.0
    y[i] = v
    return np.sum(y * y)


def placed_slope(x: Any, i: Any, v: Any) -> Any:
    found = 2 * x
    found[i] = 0
    return found, 2 * v


def signed(n: int, kind: Any = int) -> np.ndarray:
    return RANDOM.integers(-50, 50, n).astype(kind)


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...], Callable[..., Any]]] = {
    "springs": (springs, (X, signed(400), RANDOM.integers(0, 50, 400)), springs_slope),
    "narrow": (lookup, (ROW, signed(300, np.int32)), lookup_slope),
    "bytes": (lookup, (ROW, RANDOM.integers(0, 50, 300).astype(np.uint8)), lookup_slope),
    "other": (lookup, (ROW, signed(300, np.int16)), lookup_slope),
    "single": (lookup, (ROW.astype(np.float32), signed(300)), lookup_slope),
    "complex": (waves, (ROW + 1j, signed(70)), waves_slope),
    "placed": (placed, (ROW, np.array([3, -4, 17]), ROW[:3]), placed_slope),
}


def tape_of(name: str) -> Tape:
    function, values, _ = CASES[name]
    return gradient(name, function, *values)


def test_nothing_is_decided_about_indices() -> None:
    for name in CASES:
        if name == "placed":
            continue  # whether an index comes twice decides about the derivative
        source = generate(tape_of(name))
        assert "StaleTape" not in source.driver and "cp.min" not in source.driver
    source = generate(tape_of("springs"))
    assert source.code.count("within(") >= 3 and "check" not in source.code


@needs_compiler
def test_results_are_numpys() -> None:
    functions = load([generate(tape_of(name)) for name in CASES])
    for (name, (function, values, slope)), run_ in zip(CASES.items(), functions, strict=True):
        value, *found = run_(*values)
        wanted = slope(*values)
        near = 1e-12 if values[0].dtype.itemsize > 4 else 1e-5
        np.testing.assert_allclose(value, function(*values), rtol=near, atol=near, err_msg=name)
        for one, other in zip(found, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
            np.testing.assert_allclose(one, other, rtol=near, atol=near, err_msg=name)
        assert not run_.fault[0]


@needs_compiler
def test_indices_are_read_where_they_lie() -> None:
    wide = np.full(600, 10**6)
    wide[::2] = signed(300)
    tape = gradient("strided", lookup, ROW, wide[::2])
    (run_,) = load([generate(tape, [Form(), Form(strides=(2,))])])
    value, found = run_(ROW, wide[::2])
    np.testing.assert_allclose(value, lookup(ROW, wide[::2]))
    np.testing.assert_allclose(found, lookup_slope(ROW, wide[::2]), rtol=1e-12, atol=1e-12)


@needs_compiler
@pytest.mark.parametrize("bad", [50, -51, 2**40, -(2**62)])
def test_an_index_past_an_axis_is_told_and_reads_nothing(bad: int, tmp_path: Path) -> None:
    source = generate(tape_of("springs"))
    (run_,) = load([source])
    x, i, j = CASES["springs"][1]
    i = i.copy()
    i[123] = bad
    value, _ = run_(x, i, j)
    assert np.isnan(value) and run_.fault[0] == 1
    done = replayed([source], [run_], tmp_path, *ADDRESSES)
    assert done.returncode == 0, done.stderr[:3000]


@needs_compiler
def test_what_cupy_does_is_looked_at_too() -> None:
    source = generate(tape_of("placed"))
    assert "placed_check0" in source.driver
    (run_,) = load([source])
    x, i, v = CASES["placed"][1]
    with pytest.raises(IndexError):  # NumPy's own, where CuPy would have gone round
        run_(x, np.array([3, 50, 1]), v)
    assert run_.fault[0] == 1


@needs_nvrtc
@pytest.mark.parametrize("architecture", ENDS)
def test_kernels_compile_without_warnings(architecture: str) -> None:
    found = compiled(unit([generate(tape_of(name)) for name in CASES]), architecture, "--Ofast-compile=max")
    assert found.succeeded and not found.log, found.log[:4000]
