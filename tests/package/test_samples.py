"""Arguments at which functions are traced and generated code is tested: made up, or given by the user."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import yota
from tests.emit.compiled import needs_compiler
from tests.generated import loaded
from tests.package.test_c import COMPILERS, built
from tests.package.test_sizes_in_c import called
from yota.errors import ArgumentError
from yota.package.examples import Integers

RANDOM = np.random.default_rng(5)


def lennard_jones(x, pairs):
    apart = x[pairs[:, 0]] - x[pairs[:, 1]]
    inverse = 1.0 / np.sum(apart**2, axis=1) ** 3
    return np.sum(4.0 * (inverse**2 - inverse))


def bonded(x, i, j):
    return np.sum(1.0 / np.sqrt(np.sum((x[i] - x[j]) ** 2, axis=1)))


def logarithm(x):
    return np.sum(np.log(x - 2.0))


def slope(f: Any, x: np.ndarray, *others: Any) -> np.ndarray:
    """The gradient by complex steps."""
    found = np.empty_like(x)
    for place in np.ndindex(x.shape):
        moved = x.astype(complex)
        moved[place] += 1e-30j
        found[place] = np.imag(f(moved, *others)) / 1e-30
    return found


@pytest.mark.parametrize("shape", [(1,), (5,), (2, 2), (7, 2), (4, 3), (0,), (0, 2), (3, 0), (2, 3, 2)])
def test_integers_are_indices_that_differ(shape: tuple[int, ...]) -> None:
    both = Integers.beside([(np.dtype(np.float64), (6, 3)), (np.dtype(np.int64), shape)])
    one, other = both.array(shape), both.array(shape)
    assert one.shape == shape
    assert np.all((one >= 0) & (one < 3))
    assert np.all(one != other)
    if len(shape) > 1:
        assert np.all(np.diff(one, axis=-1) != 0)


@needs_compiler
@pytest.mark.parametrize("f", [lennard_jones, bonded])
def test_distances_over_index_lists_for_all_sizes(f: Any, tmp_path: Path) -> None:
    specs = {"x": "float64[N,3]", "pairs": "int64[P,2]"}
    if f is bonded:
        specs = {"x": "float64[N,3]", "i": "int64[P]", "j": "int64[P]"}
    module = yota.generate(f, specs, target="c", self_test=True)
    library = built(module, tmp_path, COMPILERS[-1])
    x = RANDOM.normal(size=(9, 3))
    pairs = np.array([[0, 8], [3, 1], [8, 2], [0, 1]])
    others = (pairs,) if f is lennard_jones else (pairs[:, 0].copy(), pairs[:, 1].copy())
    value, gradient = np.zeros(()), np.empty_like(x)
    assert called(library, f"{f.__name__}_value_and_gradient", (9, 4), [x, *others], [value, gradient]) == 0
    assert value == pytest.approx(f(x, *others), rel=1e-12)
    np.testing.assert_allclose(gradient, slope(f, x, *others), rtol=1e-11)


@pytest.mark.parametrize("extents", ["[N,3] [P,2]", "[20,3] [20,2]"])
def test_a_module_with_integers_tests_itself(extents: str, tmp_path: Path) -> None:
    x, pairs = extents.split()
    file = tmp_path / "made.py"
    yota.generate(lennard_jones, {"x": f"float64{x}", "pairs": f"int64{pairs}"}, self_test=True).write(file)
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("lennard_jones_value_and_gradient: agrees with"), done.stderr
    # What is wrong is found: a gradient that is off by a thousandth.
    text = file.read_text()
    line = "    gradients: tuple[Any, ...] = found if isinstance(found, tuple) else (found,)\n"
    assert line in text
    file.write_text(text.replace(line, f"    found = found * 1.001\n{line}"))
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, check=False)
    assert "AssertionError: the slope is" in done.stderr


def test_a_self_test_without_a_value_says_so(tmp_path: Path) -> None:
    file = tmp_path / "made.py"
    yota.generate(logarithm, {"x": "float64[3]"}, self_test=True).write(file)
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, check=False)
    assert "the value is not finite at the point tried" in done.stderr


@needs_compiler
@pytest.mark.parametrize("target", ["numpy", "c"])
def test_samples_are_where_a_function_is_traced_and_tested(target: str, tmp_path: Path) -> None:
    seen: list[int] = []

    def sample(N: int) -> dict[str, Any]:
        seen.append(N)
        return {"x": 3.0 + np.arange(N)}

    def guarded(x):
        if np.any(x <= 2.0):
            raise ValueError("below the domain")
        return np.sum(np.log(x - 2.0))

    with pytest.raises((ValueError, ArgumentError), match="below the domain"):
        yota.generate(guarded, {"x": "float64[N]"}, target=target)
    module = yota.generate(guarded, {"x": "float64[N]"}, target=target, sample=sample)
    assert len(set(seen)) > 3
    x = np.array([2.5, 4.0, 9.0])
    if target == "numpy":
        np.testing.assert_allclose(loaded(str(module)).guarded_gradient(x), 1 / (x - 2.0), rtol=1e-14)
    else:
        gradient = np.empty(3)
        library = built(module, tmp_path, COMPILERS[-1])
        assert called(library, "guarded_gradient", (3,), [x], [gradient]) == 0
        np.testing.assert_allclose(gradient, 1 / (x - 2.0), rtol=1e-14)


@pytest.mark.parametrize(
    "sample, message",
    [
        (lambda N: {"x": np.zeros(N + 1)}, r"gives float64\[\d+\] for x at N=\d+, not float64\[N\]"),
        (lambda N: {"y": np.zeros(N)}, "gives 'y'; the arguments are x"),
        (lambda N: np.zeros(N), "gives a ndarray; it must give a dict"),
        (lambda M: {"x": np.zeros(M)}, r"is called as <lambda>\(N=\d+\)"),
        (lambda N: {"x": np.zeros(N, complex)}, r"gives complex128\[\d+\] for x"),
    ],
)
def test_samples_that_do_not_fit_are_refused(sample: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        yota.generate(logarithm, {"x": "float64[N]"}, sample=sample)
