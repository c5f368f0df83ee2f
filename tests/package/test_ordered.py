"""What standalone C does in an order: sorting, searches, convolutions, writes of which the last one stays."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import yota
from tests.emit.compiled import needs_compiler
from tests.generated import loaded
from tests.package.test_c import COMPILERS, STRICT, built
from tests.package.test_sizes_in_c import called

pytestmark = needs_compiler
RANDOM = np.random.default_rng(3)


def put(x, y, i):
    z = y * 1
    z[i] = x
    return np.sum(np.sin(z) * np.arange(1, len(z) + 1))


def rows(x, y, i):
    z = y * 1
    z[i] = x
    return np.sum(np.sin(z) ** 2) + np.sum(z[0] * z[-1])


def doubled(x, i):
    y = np.zeros(len(x))
    y += x
    y[i] = y[i] * 2 + x[0]
    return np.sum(y**2)


def ordered(X):
    return np.sum(np.sort(X, axis=0) * np.sin(np.sort(X, axis=1)))


def by_key(x, key):
    return np.sum(x[np.argsort(key, kind="stable")] * np.arange(len(x)))


def middle(X):
    return np.sum(np.median(X, axis=0) ** 2) + np.where(np.all(X > -9, axis=1), X[:, 0], 0.0)[0]


POINTS = np.array([-3.0, -1.0, 0.0, 0.0, 1.0, 3.0, np.nan])
LEVELS = np.array([1.0, -1.0, 0.5, 0.2, 2.0, 3.0])


def extrema(X):
    ties = np.argmax(np.round(X), axis=1) * np.argmin(np.round(X), axis=1)
    inner = X[np.argmax(X, axis=0), np.arange(X.shape[1])] ** 2
    return np.sum(inner) + X.ravel()[np.argmin(X)] ** 3 + np.sum(ties * X[:, 0]) + np.argmax(X > 0.5)


def first_by_key(x, key):
    return x[np.argmax(key)] ** 2 + x[np.argmin(key[1:])] ** 3


def searched(x, key):
    single = np.searchsorted(POINTS, key[0], side="right") * x[0]
    return np.sum(np.searchsorted(POINTS, key) * x + np.searchsorted(POINTS, key, side="right") * x**2) + single


def sampled(x):
    return np.sum(np.interp(x, POINTS[[0, 1, 2, 4, 5]], LEVELS[1:]) ** 2) + np.interp(x[0], [-9.0, 9.0], LEVELS[:2])


def smoothed(x, k):
    return np.sum(np.convolve(x, k) ** 2) + np.sum(np.convolve(k, x)[1:-1] ** 3)


def spread(x, k):
    return np.sum(np.convolve(x, k) ** 2)


def picked(x, i):
    return x[i] ** 2 * x[0]


def matched(x, k):
    return np.sum(np.correlate(x, k) ** 2) + np.sum(np.correlate(x, k, "full") ** 3)


PLACES = ([0, 1, 2, 3], [3, 3, 3, 3], [4, 0, 4, 1], [-1, 4, 0, -5], [2, 1, 2, 1])


def normal(*shape: int) -> Any:
    return RANDOM.normal(size=shape)


def keys(dtype: str) -> Any:
    """With ties; and with what is no number, if there is such."""
    found = RANDOM.integers(-4, 5, size=37).astype(dtype)
    if found.dtype.kind == "f":
        found[[3, 4, 20]] = np.nan, -np.inf, np.nan
    return found


CASES: list[tuple[Callable[..., Any], dict[str, str], tuple[int, ...], list[tuple[Any, ...]]]] = [
    (
        put,
        {"x": "float64[K]", "y": "float64[N]", "i": "int64[K]"},
        (4, 5),
        [(normal(4), normal(5), np.array(places)) for places in PLACES],
    ),
    (
        rows,
        {"x": "float64[K,3]", "y": "float64[N,3]", "i": "int64[K]"},
        (4, 5),
        [(normal(4, 3), normal(5, 3), np.array(places)) for places in PLACES],
    ),
    (
        doubled,
        {"x": "float64[N]", "i": "int32[K]"},
        (5, 4),
        [(normal(5), np.array(places, np.int32)) for places in PLACES],
    ),
    (ordered, {"X": "float64[N,M]"}, (6, 5), [(normal(6, 5),)]),
    (by_key, {"x": "float64[N]", "key": "float64[N]"}, (37,), [(normal(37), keys("float64"))]),
    (by_key, {"x": "float64[N]", "key": "float32[N]"}, (37,), [(normal(37), keys("float32"))]),
    (by_key, {"x": "float64[N]", "key": "int32[N]"}, (37,), [(normal(37), keys("int32"))]),
    (extrema, {"X": "float64[N,M]"}, (6, 5), [(normal(6, 5),), (-np.abs(normal(6, 5)),)]),
    (first_by_key, {"x": "float64[N]", "key": "float64[N]"}, (37,), [(normal(37), keys("float64"))]),
    (first_by_key, {"x": "float64[N]", "key": "int32[N]"}, (37,), [(normal(37), keys("int32"))]),
    (searched, {"x": "float64[N]", "key": "float64[N]"}, (37,), [(normal(37), keys("float64"))]),
    (sampled, {"x": "float64[N]"}, (9,), [(3 * normal(9),)]),
    (smoothed, {"x": "float64[N]", "k": "float64[3]"}, (8,), [(normal(8), normal(3))]),
    (spread, {"x": "float64[N]", "k": "float64[M]"}, (5, 8), [(normal(5), normal(8))]),
    (matched, {"x": "float64[N]", "k": "float64[3]"}, (8,), [(normal(8), normal(3))]),
    (middle, {}, (), [(normal(4, 3),), (normal(4, 3) * 3,)]),
]
cases = pytest.mark.parametrize(
    ("f", "specs", "sizes", "points"), CASES, ids=[f"{number}_{case[0].__name__}" for number, case in enumerate(CASES)]
)


def differences(f: Callable[..., Any], args: tuple[Any, ...], number: int) -> Any:
    """The gradient by one argument."""
    found = np.zeros(args[number].shape)
    for place in np.ndindex(*found.shape):
        step = np.zeros(found.shape)
        step[place] = 1e-6
        one, other = ([*args[:number], args[number] + sign * step, *args[number + 1 :]] for sign in (1, -1))
        found[place] = (f(*one) - f(*other)) / 2e-6
    return found


@cases
def test_at_given_and_at_all_sizes(f: Any, specs: Any, sizes: Any, points: Any, tmp_path: Path) -> None:
    fixed = {
        name: f"{arg.dtype}{list(arg.shape)}" for name, arg in zip(f.__code__.co_varnames, points[0], strict=False)
    }
    for given, own in [(fixed, ()), *([(specs, sizes)] if specs else [])]:
        # `by_key` has no derivative by numbers to sort by.
        wrt = [name for name, spec in given.items() if spec.startswith("float") and name != "key"]
        module = yota.generate(f, given, target="c", wrt=tuple(wrt))
        folder = tmp_path / ("sized" if own else "fixed")
        folder.mkdir()
        library = built(module, folder, COMPILERS[-1])
        for args in points:
            value, slopes = np.zeros(()), [np.full(args[number].shape, np.nan) for number in range(len(wrt))]
            assert called(library, f"{f.__name__}_value_and_gradient", own, list(args), [value, *slopes]) == 0
            np.testing.assert_allclose(value, f(*args), rtol=1e-12)
            for number, slope in enumerate(slopes):
                np.testing.assert_allclose(slope, differences(f, args, number), rtol=1e-6, atol=1e-7)


def test_places_out_of_bounds_are_refused_with_nothing_written(tmp_path: Path) -> None:
    library = built(yota.generate(put, CASES[0][1], target="c"), tmp_path)
    for places in ([0, 1, 2, 5], [-6, 1, 2, 3], [2**62, 0, 0, 0]):
        results = [np.full((), 7.0), np.full(4, 7.0), np.full(5, 7.0)]
        args = [normal(4), normal(5), np.array(places)]
        assert called(library, "put_value_and_gradient", (4, 5), args, results) == -3
        assert all(np.all(each == 7.0) for each in results)


def test_modules_for_numpy_take_any_places() -> None:
    module = loaded(str(yota.generate(put, CASES[0][1])))
    for args in CASES[0][3]:
        value, gradient = module.put_value_and_gradient(*args)
        np.testing.assert_allclose(value, put(*args), rtol=1e-12)
        for number in (0, 1):
            np.testing.assert_allclose(gradient[number], differences(put, args, number), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("f, specs", [(put, CASES[0][1]), (ordered, CASES[3][1])], ids=["put", "ordered"])
def test_files_check_themselves_under_sanitizers(f: Any, specs: Any, tmp_path: Path) -> None:
    for name, text in yota.generate(f, specs, target="c", self_test=True).files.items():
        (tmp_path / name).write_text(text)
    words = [*STRICT, "-fsanitize=address,undefined", "-fno-sanitize-recover", f"-D{f.__name__.upper()}_SELF_TEST"]
    command = [COMPILERS[0], *words, f"{f.__name__}.c", "-o", "test", "-lm"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    ran = subprocess.run([str(tmp_path / "test")], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_strict_values_are_not_those_of_another_order_of_sums() -> None:
    with pytest.raises(yota.errors.CodegenError, match="convolve"):
        yota.generate(smoothed, {"x": "float64[8]", "k": "float64[3]"}, target="c", strict=True)


def test_one_place_as_an_argument(tmp_path: Path) -> None:
    library = built(yota.generate(picked, {"x": "float64[N]", "i": "int64"}, target="c", wrt="x"), tmp_path)
    x = normal(5)
    for place, status in ((0, 0), (4, 0), (-5, 0), (5, -3), (-6, -3), (2**62, -3)):
        value, slope = np.full((), 7.0), np.full(5, 7.0)
        args = [x, np.int64(place)]
        assert called(library, "picked_value_and_gradient", (5,), args, [value, slope]) == status
        if status:
            assert value == 7.0 and np.all(slope == 7.0)
        else:
            np.testing.assert_allclose(value, picked(*args), rtol=1e-13)
            np.testing.assert_allclose(slope, differences(picked, (x, place), 0), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("mode", ["edge", "reflect", "symmetric", "wrap"])
def test_ends_of_any_size_are_padded_with_elements(mode: str, tmp_path: Path) -> None:
    def padded(x):
        return np.sum(np.pad(x, (2, 1), mode=mode) ** 2 * np.arange(1, len(x) + 4))

    module = loaded(str(yota.generate(padded, {"x": "float64[N]"})))
    library = built(yota.generate(padded, {"x": "float64[N]"}, target="c"), tmp_path)
    for count in range(1, 8):
        x, value, slope = normal(count), np.zeros(()), np.full(count, np.nan)
        status = called(library, "padded_value_and_gradient", (count,), [x], [value, slope])
        assert status == 0 or (status == -2 and count < 5)
        results = [(value, slope)] if status == 0 else []
        try:
            results.append(module.padded_value_and_gradient(x))
        except ValueError:
            assert count < 5
        for found, gradient in results:
            np.testing.assert_allclose(found, padded(x), rtol=1e-12)
            np.testing.assert_allclose(gradient, differences(padded, (x,), 0), rtol=1e-6, atol=1e-7)
