"""CUDA for all sizes: kernels take sizes, agree with yota at each, compile, and refuse what cannot be had."""

from __future__ import annotations

import shutil
import subprocess
import sys
from functools import cache
from typing import Any

import numpy as np
import pytest

import yota
from tests.cuda.device import device, on_device
from tests.cuda.hosted import needs_compiler
from tests.cuda.nvrtc import VIRTUAL, compiled, needs_nvrtc
from tests.generated import loaded
from yota.errors import ArgumentError, CodegenError

__all__ = ["device"]

RANDOM = np.random.default_rng(9)


def mean_square(x, y):
    return np.mean((x - y) ** 2)


def rosenbrock(x):
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def softmax(X):
    e = np.exp(X - np.max(X, axis=1, keepdims=True))
    return -np.sum(np.log(e[:, 0] / np.sum(e, axis=1))) + np.sum(np.sum(X, axis=0) ** 2)


def network(W, b, x):
    return np.mean(np.tanh(W @ x + b[:, None]) ** 2) * np.sqrt(len(b))


def gridded(x):
    return np.sum(x * np.sin(np.linspace(0.0, 1.0, len(x)))) + np.sum(x[:1] * np.hanning(len(x)))


def pairs(X):
    row, column = np.triu_indices(len(X), 1)
    return np.sum(np.sqrt(1 + np.sum((X[row] - X[column]) ** 2, axis=1)))


def every_other(x):
    return np.sum(x[np.arange(len(x))[::2]] ** 2) * (len(x) // 2 + 1)


def before(x):
    """Positions that come from sizes count from the end too."""
    return x[0] * (len(x) % 3) + np.sum(x[np.arange(len(x)) - 1] * x)


def ridge(A, start):
    back = np.arange(len(start))[::-1]
    return np.sum((A + 0.1 * np.eye(len(A))) ** 2) * start[back][0] + np.sum(np.tri(len(A)) * A)


def unused(x, y):
    return np.sum(x) / len(y)


def by_columns(X):
    """What all rows have in common comes once for each row: a size is a factor."""
    return np.sum((X - X.sum(0)) / (1 + X[0] ** 2))


def scaled(x):
    """Numbers that come from sizes are computed in Python too."""
    n = len(x)
    return np.sum(x) * x.dtype.type(np.log(n)) + np.sum(x**2) / x.dtype.type(np.sqrt(n)) - n * (n - 1) // 2 * x[0]


CASES: list[tuple[Any, dict[str, str], list[tuple[int, ...]]]] = [
    (mean_square, {"x": "float64[N,M]", "y": "float64[N,M]"}, [(1, 1), (3, 70), (200, 90)]),
    (rosenbrock, {"x": "float64[N]"}, [(2,), (3,), (1000,)]),
    (softmax, {"X": "float64[N,K]"}, [(1, 2), (40, 3), (5, 300)]),
    (network, {"W": "float32[H,D]", "b": "float32[H]", "x": "float32[D,B]"}, [(1, 1, 1), (7, 20, 33)]),
    (unused, {"x": "float64[N]", "y": "float64[M]"}, [(1, 4), (300, 2)]),
    (gridded, {"x": "float64[N]"}, [(1,), (2,), (700,)]),
    (every_other, {"x": "float64[N]"}, [(1,), (2,), (701,)]),
    (pairs, {"X": "float64[N,3]"}, [(1,), (9,)]),
    (before, {"x": "float64[N]"}, [(1,), (2,), (300,)]),
    (ridge, {"A": "float64[N,N]", "start": "float64[M]"}, [(1, 1), (3, 7), (40, 300)]),
    (by_columns, {"X": "float64[N,M]"}, [(1, 1), (2, 3), (30, 200)]),
    (scaled, {"x": "float64[N]"}, [(1,), (2,), (700,)]),
    (scaled, {"x": "float32[N]"}, [(1,), (2,), (30,)]),
]


def arguments(specs: dict[str, str], sizes: tuple[int, ...]) -> list[Any]:
    found, known = [], {}
    rest = iter(sizes)
    for spec in specs.values():
        kind, _, extents = spec.rstrip("]").partition("[")
        for name in extents.split(","):
            known[name] = known.get(name) or (int(name) if name.isdigit() else next(rest))
        found.append(RANDOM.normal(size=tuple(known[name] for name in extents.split(","))).astype(kind))
    return found


@cache
def generated(f: Any, *specs: tuple[str, str]) -> Any:
    return yota.generate(f, dict(specs), target="cuda")


@needs_compiler
@pytest.mark.parametrize(("f", "specs", "sizes"), CASES, ids=lambda case: getattr(case, "__name__", ""))
def test_values_and_gradients_at_all_sizes(device: Any, f: Any, specs: Any, sizes: Any) -> None:
    launched = loaded(generated(f, *specs.items()).files[f"{f.__name__}.py"])
    for each in sizes:
        given = arguments(specs, each)
        found = getattr(launched, f"{f.__name__}_value_and_gradient")(*map(on_device, given))
        # Traced for just these arguments.
        expected, gradients = yota.value_and_grad(f, wrt=tuple(range(len(given))))(*given)
        tolerance = 2e-5 if given[0].dtype == np.float32 else 1e-11
        for result, wanted in zip(found, (expected, *gradients), strict=True):
            scale = max(1.0, float(np.max(np.abs(wanted))))
            np.testing.assert_allclose(np.asarray(result), wanted, rtol=tolerance, atol=tolerance * scale)
        value = getattr(launched, f.__name__)(*map(on_device, given))
        np.testing.assert_allclose(np.asarray(value), expected, rtol=tolerance)


def weighted(x, w, rest):
    return np.sum(np.tanh(x.T * w) ** 2) * np.sum(rest)


OPEN = {"x": "float64[B,...]", "w": "float64[B]", "rest": "float64[...]"}


@needs_compiler
def test_any_number_of_further_axes(device: Any, capsys: pytest.CaptureFixture[str]) -> None:
    module = yota.generate(weighted, OPEN, target="cuda", self_test=True)
    assert "is how many elements the axes have together that `...` stands for" in str(module)
    launched = loaded(module.files["weighted.py"])
    launched._self_test()
    assert "agrees with differences" in capsys.readouterr().out
    for further in ((), (5,), (3, 2), (2, 1, 3)):
        given = [RANDOM.normal(size=shape) for shape in ((4, *further), (4,), further)]
        given = [np.asarray(each) for each in given]
        found = launched.weighted_value_and_gradient(*map(on_device, given))
        # NumPy's `T` is of all axes: the weights are along the first one.
        moved = np.moveaxis(given[0], 0, -1)
        factor = np.sum(given[2])
        t = np.tanh(moved * given[1])
        by_moved = 2 * t * (1 - t**2) * factor
        wanted = (
            np.sum(t**2) * factor,
            np.moveaxis(by_moved * given[1], -1, 0),
            np.sum((by_moved * moved).reshape(-1, 4), axis=0),
            np.full(further, np.sum(t**2)),
        )
        for result, each in zip(found, wanted, strict=True):
            assert np.shape(result) == np.shape(each)
            np.testing.assert_allclose(np.asarray(result), each, rtol=1e-11, atol=1e-12)
    with pytest.raises(TypeError, match=r"rest(_1)? must be a CuPy array, float64\(3, 2\)"):
        launched.weighted(on_device(np.ones((4, 3, 2))), on_device(np.ones(4)), on_device(np.ones((2, 3))))
    with pytest.raises(ArgumentError, match="returns an array, of which code in CUDA for any number of axes"):
        yota.generate(lambda x: x * 2, {"x": "float64[B,...]"}, target="cuda", with_=("value",))


@needs_compiler
def test_sizes_and_shapes_are_checked(device: Any) -> None:
    launched = loaded(generated(rosenbrock, ("x", "float64[N]")).files["rosenbrock.py"])
    with pytest.raises(ValueError, match="sizes must be N >= 2"):
        launched.rosenbrock(on_device(np.ones(1)))
    with pytest.raises(ValueError, match="sizes must be"):
        launched.rosenbrock(3.0)
    pair = loaded(generated(mean_square, *CASES[0][1].items()).files["mean_square.py"])
    with pytest.raises(TypeError, match=r"y must be a CuPy array, float64\(2, 3\)"):
        pair.mean_square(on_device(np.ones((2, 3))), on_device(np.ones((3, 2))))


@needs_compiler
def test_files_check_themselves(device: Any, capsys: pytest.CaptureFixture[str]) -> None:
    module = yota.generate(mean_square, CASES[0][1], target="cuda", self_test=True)
    loaded(module.files["mean_square.py"])._self_test()
    assert "agrees with differences" in capsys.readouterr().out


@needs_nvrtc
def test_nvrtc_compiles_them() -> None:
    for architecture in VIRTUAL[:1]:
        for f, specs, _ in CASES:
            found = compiled(str(generated(f, *specs.items())), architecture, "--Ofast-compile=max")
            assert found.succeeded and not found.log, found.log[:3000]


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="there is no nvcc")
def test_nvcc_compiles_the_launchers(tmp_path: Any) -> None:
    (tmp_path / "pairs.cu").write_text(str(yota.generate(pairs, {"X": "float64[N,3]"}, target="cuda")))
    command = ["nvcc", "-std=c++17", "-Werror", "all-warnings", "-c", "pairs.cu", "-o", "object"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:3000]


def test_functions_in_cpp_take_and_check_sizes() -> None:
    text = str(generated(network, *CASES[3][1].items()))
    assert "network_workspace(int64_t H, int64_t D, int64_t B)" in text
    assert "if (H < 1 || D < 1 || B < 1)\n        return cudaErrorInvalidValue;" in text
    assert "Sizes must be H >= 1, D >= 1, B >= 1." in text


def test_the_python_file_is_formatted(tmp_path: Any) -> None:
    text = generated(network, *CASES[3][1].items()).files["network.py"]
    (tmp_path / "network.py").write_text(text)
    command = [sys.executable, "-m", "ruff", "format", "--isolated", "--diff", "--line-length", "100", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def sorted_sum(x):
    return np.sum(np.cumsum(x))


def test_what_cannot_be_had_says_so() -> None:
    with pytest.raises(CodegenError, match=r"numpy.cumsum is beyond kernels"):
        yota.generate(sorted_sum, {"x": "float64[N]"}, target="cuda")
