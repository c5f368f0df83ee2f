"""CUDA for all sizes: kernels take sizes, agree with yota at each, compile, and refuse what cannot be had."""

from __future__ import annotations

import subprocess
import sys
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


def unused(x, y):
    return np.sum(x) / len(y)


CASES: list[tuple[Any, dict[str, str], list[tuple[int, ...]]]] = [
    (mean_square, {"x": "float64[N,M]", "y": "float64[N,M]"}, [(1, 1), (3, 70), (200, 90)]),
    (rosenbrock, {"x": "float64[N]"}, [(2,), (3,), (1000,)]),
    (softmax, {"X": "float64[N,K]"}, [(1, 2), (40, 3), (5, 300)]),
    (network, {"W": "float32[H,D]", "b": "float32[H]", "x": "float32[D,B]"}, [(1, 1, 1), (7, 20, 33)]),
    (unused, {"x": "float64[N]", "y": "float64[M]"}, [(1, 4), (300, 2)]),
]


def arguments(specs: dict[str, str], sizes: tuple[int, ...]) -> list[Any]:
    found, known = [], {}
    for spec in specs.values():
        kind, _, extents = spec.rstrip("]").partition("[")
        for name in extents.split(","):
            known.setdefault(name, sizes[len(known)] if len(known) < len(sizes) else 0)
        found.append(RANDOM.normal(size=tuple(known[name] for name in extents.split(","))).astype(kind))
    return found


@needs_compiler
@pytest.mark.parametrize(("f", "specs", "sizes"), CASES, ids=lambda case: getattr(case, "__name__", ""))
def test_values_and_gradients_at_all_sizes(device: Any, f: Any, specs: Any, sizes: Any) -> None:
    launched = loaded(yota.generate(f, specs, target="cuda").files[f"{f.__name__}.py"])
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


@needs_compiler
def test_sizes_and_shapes_are_checked(device: Any) -> None:
    launched = loaded(yota.generate(rosenbrock, {"x": "float64[N]"}, target="cuda").files["rosenbrock.py"])
    with pytest.raises(ValueError, match="sizes must be N >= 2"):
        launched.rosenbrock(on_device(np.ones(1)))
    with pytest.raises(ValueError, match="sizes must be"):
        launched.rosenbrock(3.0)
    pair = loaded(yota.generate(mean_square, CASES[0][1], target="cuda").files["mean_square.py"])
    with pytest.raises(TypeError, match=r"y must be a CuPy array, float64\(2, 3\)"):
        pair.mean_square(on_device(np.ones((2, 3))), on_device(np.ones((3, 2))))


@needs_compiler
def test_files_check_themselves(device: Any, capsys: pytest.CaptureFixture[str]) -> None:
    for f, specs, _ in CASES[:2]:
        launched = loaded(yota.generate(f, specs, target="cuda", self_test=True).files[f"{f.__name__}.py"])
        launched._self_test()
        assert "agrees with differences" in capsys.readouterr().out


@needs_nvrtc
def test_nvrtc_compiles_them() -> None:
    for architecture in VIRTUAL[:1]:
        for f, specs, _ in CASES:
            found = compiled(str(yota.generate(f, specs, target="cuda")), architecture)
            assert found.succeeded and not found.log, found.log[:3000]


def test_functions_in_cpp_take_and_check_sizes() -> None:
    text = str(yota.generate(network, CASES[3][1], target="cuda"))
    assert "network_workspace(int64_t H, int64_t D, int64_t B)" in text
    assert "if (H < 1 || D < 1 || B < 1)\n        return cudaErrorInvalidValue;" in text
    assert "Sizes must be H >= 1, D >= 1, B >= 1." in text


def test_the_python_file_is_formatted(tmp_path: Any) -> None:
    text = yota.generate(network, CASES[3][1], target="cuda").files["network.py"]
    (tmp_path / "network.py").write_text(text)
    command = [sys.executable, "-m", "ruff", "format", "--isolated", "--diff", "--line-length", "100", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def gridded(x):
    return np.sum(x * np.linspace(0.0, 1.0, len(x)))


def sorted_sum(x):
    return np.sum(np.cumsum(x))


def test_what_cannot_be_had_says_so() -> None:
    with pytest.raises(ArgumentError, match=r"the array np.linspace\(.* depends on sizes.*pass it as an argument"):
        yota.generate(gridded, {"x": "float64[N]"}, target="cuda")
    with pytest.raises(CodegenError, match=r"numpy.cumsum is beyond kernels"):
        yota.generate(sorted_sum, {"x": "float64[N]"}, target="cuda")
