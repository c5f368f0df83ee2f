"""Arrays of indices as arguments of generated modules: any that NumPy takes, and an error for the others."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import yota
from tests.cuda.device import device, on_device
from tests.cuda.hosted import needs_compiler as needs_host
from tests.cuda.nvrtc import VIRTUAL, compiled, needs_nvrtc
from tests.emit.compiled import needs_compiler
from tests.generated import loaded
from tests.package.test_c import COMPILERS, STRICT, built, built_extension
from tests.package.test_sizes_in_c import called

__all__ = ["device"]

RANDOM = np.random.default_rng(11)
GRID = np.linspace(-1.0, 1.0, 9)


def picked(x, i):
    return np.sum(np.sin(x[i]) ** 2)


def piled(x, i):
    total = np.zeros(6)
    np.add.at(total, i, x)
    return np.sum(total**3)


def bonds(p, i, j):
    apart = p[i] - p[j]
    return np.sum(np.sqrt(np.sum(apart * apart, axis=1) + 1.0))


def edges(p, e):
    """Two columns of one array, and the same numbers on axes of different extents."""
    return np.sum(p[e[:, 0]] * p[e[:, 1]]) + np.sum(p[:, e[:, 0] % 2] ** 2)


def entries(a, i, j):
    return np.sum(a[i, j] ** 3 * a[1, i])


def following(x, i):
    return np.sum(x[i] * x[(i + 1) % len(x)]) + np.sum(np.take(x, i) * i)


def interpolated(x):
    """An index that comes from a number."""
    place = np.clip((x + 1) * 4, 0, 7.999)
    left = np.floor(place).astype(np.int64)
    part = place - left
    grid = np.array(GRID)
    return np.sum((1 - part) * grid[left] ** 2 + part * grid[left + 1] ** 2)


def normal(*shape: int) -> Any:
    return RANDOM.normal(size=shape)


def whole(high: int, *shape: int, dtype: str = "int64") -> Any:
    return RANDOM.integers(0 if dtype == "uint8" else -high, high, size=shape).astype(dtype)


CASES: list[tuple[Callable[..., Any], tuple[Any, ...], dict[str, str]]] = [
    (picked, (normal(5), whole(5, 40)), {"x": "float64[N]", "i": "int64[M]"}),
    (picked, (normal(5), whole(5, 1)), {}),
    (picked, (normal(300), whole(250, 700, dtype="uint8")), {"x": "float64[N]", "i": "uint8[M]"}),
    (piled, (normal(9), whole(6, 9, dtype="int32")), {"x": "float64[N]", "i": "int32[N]"}),
    (bonds, (normal(7, 3), whole(7, 25), whole(7, 25)), {"p": "float64[N,3]", "i": "int64[M]", "j": "int64[M]"}),
    (edges, (normal(8, 2), whole(8, 30, 2)), {"p": "float64[N,2]", "e": "int64[M,2]"}),
    (entries, (normal(4, 5), whole(4, 6), whole(5, 6)), {"a": "float64[N,K]", "i": "int64[M]", "j": "int64[M]"}),
    (following, (normal(5), whole(5, 3, 4)), {}),
    (interpolated, (RANDOM.uniform(-0.95, 0.95, size=50),), {"x": "float64[N]"}),
]
names = [f"{number}_{case[0].__name__}" for number, case in enumerate(CASES)]
fixed = pytest.mark.parametrize(("f", "args", "specs"), CASES, ids=names)
open_ = pytest.mark.parametrize(
    ("f", "args", "specs"),
    [case for case in CASES if case[2]],
    ids=[name for name, case in zip(names, CASES, strict=True) if case[2]],
)


def arguments(f: Callable[..., Any], args: tuple[Any, ...]) -> dict[str, Any]:
    return dict(zip(f.__code__.co_varnames, args, strict=False))


def sizes(args: tuple[Any, ...], specs: dict[str, str]) -> tuple[int, ...]:
    """What the named extents of ``specs`` are in ``args``, in order."""
    found: dict[str, int] = {}
    for value, spec in zip(args, specs.values(), strict=True):
        for name, extent in zip(spec.partition("[")[2].rstrip("]").split(","), value.shape, strict=True):
            if not name.isdigit():
                found.setdefault(name, extent)
    return tuple(found.values())


def expected(f: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, Any]:
    """Value and gradient by the first argument, from differences along the complex plane."""
    point = args[0].astype(complex)
    slope = np.zeros(args[0].shape)
    for place in np.ndindex(*args[0].shape):
        moved = point.copy()
        moved[place] += 1e-30j
        slope[place] = np.imag(_plain(f, moved, args[1:])) / 1e-30
    return f(*args), slope


def _plain(f: Callable[..., Any], point: Any, rest: tuple[Any, ...]) -> Any:
    if f is piled:
        total = np.zeros(6, complex)
        np.add.at(total, rest[0], point)
        return np.sum(total**3)
    if f is interpolated:
        left = np.floor(np.clip((point.real + 1) * 4, 0, 7.999)).astype(int)
        part = (point + 1) * 4 - left
        return np.sum((1 - part) * GRID[left] ** 2 + part * GRID[left + 1] ** 2)
    return f(point, *rest)


def agrees(found: Any, f: Callable[..., Any], args: tuple[Any, ...]) -> None:
    for one, other in zip(found, expected(f, args), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-13 * np.max(np.abs(other), initial=1.0))


@fixed
def test_in_numpy(f: Any, args: Any, specs: Any) -> None:
    for given in [arguments(f, args), *([specs] if specs else [])]:
        module = loaded(str(yota.generate(f, given)))
        agrees(getattr(module, f"{f.__name__}_value_and_gradient")(*args), f, args)


@needs_compiler
@fixed
def test_in_c(f: Any, args: Any, specs: Any, tmp_path: Path) -> None:
    library = built(yota.generate(f, arguments(f, args), target="c"), tmp_path, COMPILERS[0])
    value, slope = np.zeros(()), np.full_like(args[0], 7)
    assert called(library, f"{f.__name__}_value_and_gradient", (), list(args), [value, slope]) == 0
    agrees((value, slope), f, args)


@needs_compiler
@open_
def test_in_c_for_all_sizes(f: Any, args: Any, specs: Any, tmp_path: Path) -> None:
    library = built(yota.generate(f, specs, target="c"), tmp_path, COMPILERS[-1])
    small = tuple(each[:1] for each in args)
    for given in [args] if f in (entries, edges) else [args, small]:
        given = tuple(np.zeros_like(each) if each.dtype.kind != "f" and given is small else each for each in given)
        value, slope = np.zeros(()), np.full_like(given[0], 7)
        assert (
            called(library, f"{f.__name__}_value_and_gradient", sizes(given, specs), list(given), [value, slope]) == 0
        )
        agrees((value, slope), f, given)


@needs_compiler
@pytest.mark.parametrize("wrong", [5, -6, 2**62])
@pytest.mark.parametrize("specs", [{"x": "float64[5]", "i": "int64[4]"}, {"x": "float64[N]", "i": "int64[M]"}])
def test_what_is_out_of_bounds_is_told_before_anything_is_written(wrong: int, specs: Any, tmp_path: Path) -> None:
    module = yota.generate(picked, specs, target="c")
    assert "-3, with nothing written, if an index is out of bounds for its axis" in module.files["picked.h"]
    library = built(module, tmp_path)
    x, i = normal(5), np.array([0, -5, wrong, 4])
    value, slope = np.full((), 7.0), np.full(5, 7.0)
    extents = sizes((x, i), specs)
    assert called(library, "picked_value_and_gradient", extents, [x, i], [value, slope]) == -3
    assert called(library, "picked_gradient", extents, [x, i], [slope]) == -3
    assert value == 7
    assert np.all(slope == 7)


@needs_compiler
@pytest.mark.parametrize("specs", [{"x": "float64[5]", "i": "int64[4]"}, {"x": "float64[N]", "i": "int64[M]"}])
def test_the_extension_raises(specs: Any, tmp_path: Path) -> None:
    yota.generate(picked, specs, target="c", extension=True).write(tmp_path / "picked.c")
    extension = built_extension(tmp_path, "picked")
    x, i = normal(5), np.array([0, -5, 5, 4])
    with pytest.raises(IndexError, match="an index is out of bounds for its axis"):
        extension.picked(x, i)
    assert extension.picked(x, i[:2].repeat(2)) == pytest.approx(2 * picked(x, i[:2]))


@needs_compiler
def test_second_derivatives(tmp_path: Path) -> None:
    args = normal(5, 3), whole(5, 9), whole(5, 9)
    module = yota.generate(bonds, arguments(bonds, args), target="c", with_=("value", "gradient", "hessian", "hvp"))
    library = built(module, tmp_path)
    matrix, product, v = np.zeros((5, 3, 5, 3)), np.zeros((5, 3)), normal(5, 3)
    assert called(library, "bonds_hessian", (), list(args), [matrix]) == 0
    assert called(library, "bonds_hvp", (), [*args, v], [product]) == 0
    np.testing.assert_allclose(matrix, yota.hessian(bonds)(*args), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(product, np.tensordot(matrix, v, 2), rtol=1e-11, atol=1e-12)


@cache
def launched(f: Any, *specs: tuple[str, str]) -> Any:
    return yota.generate(f, dict(specs), target="cuda")


@needs_host
@fixed
def test_in_cuda(device: Any, f: Any, args: Any, specs: Any) -> None:
    given = specs if specs and f is not edges else arguments(f, args)
    module = loaded(yota.generate(f, given, target="cuda").files[f"{f.__name__}.py"])
    found = getattr(module, f"{f.__name__}_value_and_gradient")(*map(on_device, args))
    agrees(found, f, args)
    np.testing.assert_allclose(np.asarray(getattr(module, f.__name__)(*map(on_device, args))), found[0], rtol=1e-13)
    if f is not interpolated:
        module.check_indices()


@needs_nvrtc
@pytest.mark.parametrize("architecture", VIRTUAL)
def test_cuda_compiles(architecture: str) -> None:
    for f, given in ((picked, {"x": "float64[300]", "i": "uint8[700]"}), (entries, CASES[6][2])):
        found = compiled(str(launched(f, *given.items())), architecture, "--Ofast-compile=max")
        assert found.succeeded and not found.log, found.log[:3000]


@needs_host
@pytest.mark.parametrize("wrong", [6, -7, 2**62, -(2**63)])
@pytest.mark.parametrize("f", [picked, piled])
def test_cuda_tells_what_is_out_of_bounds(device: Any, f: Any, wrong: int) -> None:
    specs = {"x": "float64[5]", "i": "int64[4]"} if f is picked else {"x": "float64[4]", "i": "int64[4]"}
    module = loaded(launched(f, *specs.items()).files[f"{f.__name__}.py"])
    x, i = normal(5 if f is picked else 4), np.array([0, -5, wrong, 4])
    right = on_device(np.array([0, 1, -2, 0]))
    value, slope = getattr(module, f"{f.__name__}_value_and_gradient")(on_device(x), on_device(i))
    assert f is piled or np.isnan(value)
    with pytest.raises(IndexError, match="an index that was given before is out of bounds for its axis"):
        getattr(module, f.__name__)(on_device(x), right)
    agrees(getattr(module, f"{f.__name__}_value_and_gradient")(on_device(x), right), f, (x, np.asarray(right)))


@needs_host
def test_pieces_of_the_kernels_sort(device: Any) -> None:
    """What the launcher in C++ does between kernels, step by step."""
    module = loaded(yota.generate(piled, {"x": "float64[N]", "i": "int64[N]"}, target="cuda").files["piled.py"])
    stretches, pairs = module._kernel("sort_stretches"), module._kernel("sort_pairs")
    for count in (1, 2, 3, 700, 1024, 1025, 2048, 5000):
        keys = RANDOM.permutation(count).astype(np.uint64) << np.uint64(32)
        given = keys.copy()
        blocks = -(-count // 1024)
        stretches((blocks,), (512,), (keys, np.int64(count), np.int32(0)))
        size = 2048
        while size < 2 * count:
            pairs((3,), (256,), (keys, np.int64(count), np.int64(size), np.int32(1)))
            apart = size // 2
            while apart > 1024:
                pairs((3,), (256,), (keys, np.int64(count), np.int64(apart), np.int32(0)))
                apart //= 2
            stretches((blocks,), (512,), (keys, np.int64(count), np.int32(1)))
            size *= 2
        np.testing.assert_array_equal(keys, np.sort(given))


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="there is no nvcc")
def test_nvcc_compiles_it_alone(tmp_path: Path) -> None:
    (tmp_path / "bonds.cu").write_text(str(yota.generate(bonds, CASES[4][2], target="cuda")))
    command = ["nvcc", "-std=c++17", "-Werror", "all-warnings", "-c", "bonds.cu", "-o", "object"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[:3000]


_PROGRAM = """
#include "bonds.h"
#include <stdint.h>
#include <stdio.h>
int main(void)
{
    double p[9] = {0.5, 1, 2, 3, 4, 5, 6, 7, 9}, value = 7, gradient[9];
    int64_t i[4] = {0, -1, 2, 2}, j[4] = {1, -3, 2, 0};
    int right = bonds_value_and_gradient(SIZES p, i, j, &value, gradient);
    i[2] = INT64_MIN;
    int wrong = bonds_value_and_gradient(SIZES p, i, j, &value, gradient);
    i[2] = INT64_MAX;
    printf("%d %d %d", right, wrong, bonds_gradient(SIZES p, i, j, gradient));
    return 0;
}
"""


@needs_compiler
@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("specs", ["3", "N"])
def test_under_sanitizers(compiler: str, specs: str, tmp_path: Path) -> None:
    count = "4" if specs == "3" else "M"
    given = {"p": f"float64[{specs},3]", "i": f"int64[{count}]", "j": f"int64[{count}]"}
    yota.generate(bonds, given, target="c").write(tmp_path / "bonds.c")
    (tmp_path / "main.c").write_text(_PROGRAM.replace("SIZES", "" if specs == "3" else "3, 4,"))
    flags = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    words = [compiler, *STRICT, *flags, "bonds.c", "main.c", "-o", "check", "-lm"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=tmp_path)
    if done.returncode and ("asan" in done.stderr or "ubsan" in done.stderr):
        pytest.skip(f"{compiler} has no sanitizers here")
    assert done.returncode == 0, done.stderr
    ran = subprocess.run([str(tmp_path / "check")], capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr) == ("0 -3 -3", "")
