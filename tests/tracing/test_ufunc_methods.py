"""The methods of all ufuncs over few elements, and functions of special values, against NumPy."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import yota
from tests.emit.compiled import needs_compiler
from yota.errors import YotaError

UFUNCS = {each.__name__: each for each in vars(np).values() if isinstance(each, np.ufunc) and not each.signature}
ARRAYS = {
    "one in each row": np.array([[-1.5], [2.0], [-0.0]]),
    "none in each row": np.zeros((3, 0)),
    "two rows": np.array([[-1.5, 2.0, 3.0], [0.5, -1.0, 2.0]]),
    "a number": np.array(-2.5),
}
OF_THREE = {"arctan2", "power"}
"""NumPy's own vectorised loops forget what they computed before, of three and more elements in a row."""


def folds(ufunc: np.ufunc, x: Any) -> Iterator[tuple[str, Callable[[Any], Any]]]:
    """Calls of the methods that reduce."""
    for axis in range(max(x.ndim, 1)):
        yield f"reduce {axis}", lambda x, axis=axis: ufunc.reduce(x, axis=axis)
        yield f"accumulate {axis}", lambda x, axis=axis: ufunc.accumulate(x, axis=axis)
        if x.ndim and x.shape[axis]:
            yield f"reduceat {axis}", lambda x, axis=axis: ufunc.reduceat(x, [0], axis=axis)
            places = [0, x.shape[axis] - 1, 0]
            yield f"reduceat again {axis}", lambda x, axis=axis, at=places: ufunc.reduceat(x, at, axis=axis)
    if x.ndim == 2:
        yield "reduce all", lambda x: ufunc.reduce(x, axis=None)
        yield "reduce both", lambda x: ufunc.reduce(x, axis=(0, 1))
        yield "reduce none", lambda x: ufunc.reduce(x, axis=())
        yield "keepdims", lambda x: ufunc.reduce(x, axis=1, keepdims=True)
        yield "initial", lambda x: ufunc.reduce(x, axis=1, initial=2.5)
        yield "where", lambda x: ufunc.reduce(x, axis=1, initial=2.5, where=x > 0)
        yield "where nothing", lambda x: ufunc.reduce(x, axis=1, initial=np.nan, where=False)


def others(ufunc: np.ufunc, x: Any) -> Iterator[tuple[str, Callable[[Any], Any]]]:
    """Calls of outer and at."""

    def at(*places: int) -> Callable[[Any], Any]:
        def function(x: Any) -> Any:
            y = x * 1
            ufunc.at(y, list(places), *((2,) if ufunc.nin > 1 else ()))
            return y

        return function

    if ufunc.nin == 2:
        yield "outer", lambda x: ufunc.outer(x, x)
        yield "outer of a number", lambda x: ufunc.outer(x, 2.5)
    # Adding nothing to -0.0 makes it 0.0.
    if x.ndim and len(x) and ufunc not in (np.add, np.subtract):
        yield "at", at(0)
        yield "at twice", at(0, 0)


def outcome(function: Callable[[Any], Any], x: Any) -> Any:
    """An array, or the error."""
    with np.errstate(all="ignore"):
        try:
            return np.asarray(function(x))
        except (ValueError, TypeError, IndexError, YotaError) as error:
            return error


def traced(function: Callable[[Any], Any], x: Any) -> Any:
    """What the traced function gives, or the error; None where it is refused."""
    found = outcome(lambda x: yota.trace(function, x)[0], x)
    return None if isinstance(found, YotaError) else found


def alike(found: Any, wanted: Any, rtol: float) -> bool:
    """Whether values, dtypes, shapes and signs agree."""
    if (found.dtype, found.shape) != (wanted.dtype, wanted.shape):
        return False
    if found.dtype.kind not in "fc":
        return np.array_equal(found, wanted)
    signs = np.signbit(found) == np.signbit(wanted)
    return np.allclose(found, wanted, rtol, 0, equal_nan=True) and bool(np.all(signs | np.isnan(wanted)))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", [np.float32, int])
@pytest.mark.parametrize("calls", [folds, others])
@pytest.mark.parametrize("lie", ARRAYS)
def test_methods_of_all_ufuncs(lie: str, calls: Any, dtype: Any) -> None:
    x, faults = ARRAYS[lie].astype(dtype), []
    for name, ufunc in UFUNCS.items():
        if ufunc.nout > 1 or (ufunc.nin == 1 and calls is folds) or (name in OF_THREE and lie == "two rows"):
            continue
        for call, function in calls(ufunc, x):
            wanted, found = outcome(function, x), traced(function, x)
            if found is None or (isinstance(found, Exception) and isinstance(wanted, Exception)):
                continue
            wrong = isinstance(found, Exception) or isinstance(wanted, Exception)
            if (wrong and name != "ldexp") or (
                not wrong and not alike(found, wanted, 1e-6 if dtype is np.float32 else 1e-14)
            ):
                faults.append(f"np.{name}: {call} gives {found!r}, and by NumPy {wanted!r}")
    assert faults == []


SPECIAL = [0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan]
LINE = np.array([*SPECIAL, 2.5, -2.0, 1e-310, -0.0, 0.0, 3.0, -3.0])
PAIRS = np.array(list(itertools.product(SPECIAL, repeat=2))).T
INFINITE = np.array([-np.inf, 0.0, 1.0, np.inf])
OF_ONE: dict[str, Callable[[Any], Any]] = {
    "fractions": lambda x: np.modf(x)[0],
    "fractions of whole numbers": lambda x: np.modf(np.arange(3) + (x[:3] > 0))[0],
    "whole parts": lambda x: np.modf(x)[1],
    "clip": lambda x: np.clip(x, -1.0, 1.0),
    "clip at 0": lambda x: np.clip(x, 0.0, 1.0),
    "clip at -0": lambda x: np.clip(x, -0.0, 1.0),
    "clip from below": lambda x: np.clip(x, 0.0, None),
    "clip from above": lambda x: np.clip(x, None, -0.0),
    "clip at NaN": lambda x: np.clip(x, np.nan, 1.0),
    "max": lambda x: np.array([np.max(x), np.max(x[:2]), np.max(x[1::-1]), np.nanmax(x)]),
    "min": lambda x: np.array([np.min(x), np.min(x[:2]), np.min(x[1::-1]), np.nanmin(x)]),
    "running max": np.maximum.accumulate,
    "not less than 0": lambda x: np.maximum(x, 0.0),
    "0 or more": lambda x: np.maximum(0.0, x),
    "between infinite points": lambda x: np.interp(x, INFINITE, np.array([0.0, 1.0, 2.0, 3.0])),
    "between infinite values": lambda x: np.interp(x, np.array([-1.0, 0.0, 1.0]), np.array([-np.inf, np.inf, np.inf])),
    "from a NaN": lambda x: np.interp(x, np.array([0.0, 1.0]), np.array([np.nan, 1.0])),
    "one point": lambda x: np.interp(x, np.array([0.0]), np.array([2.0])),
    "infinite outside": lambda x: np.interp(x, np.array([0.5, 1.0]), np.array([1.0, 3.0]), left=-np.inf, right=np.nan),
}
OF_TWO: dict[str, Callable[[Any, Any], Any]] = {
    **{each.__name__: each for each in (np.maximum, np.minimum, np.fmax, np.fmin, np.copysign, np.fmod, np.heaviside)},
    "max": lambda a, b: np.max(np.stack([a, b]), axis=0),
    "min": lambda a, b: np.min(np.stack([a, b]), axis=0),
    "clip": lambda a, b: np.clip(a, b, 5.0),
    "clip by arrays": lambda a, b: np.clip(a, b, b),
}


@needs_compiler
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", [*OF_ONE, *(f"{each} of two" for each in OF_TWO)])
def test_special_values(name: str, dtype: Any) -> None:
    function: Any = OF_ONE.get(name) or OF_TWO[name.removesuffix(" of two")]
    arguments = [each.astype(dtype) for each in ([LINE] if name in OF_ONE else PAIRS)]
    with np.errstate(all="ignore"):
        wanted = np.asarray(function(*arguments))
    value, tape = yota.trace(function, *arguments)
    for found in (value, *(yota.compile(tape, target)(*arguments) for target in ("numpy", "c"))):
        assert alike(np.asarray(found), wanted, 1e-6 if dtype is np.float32 else 1e-14)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sorted_special_values(dtype: Any) -> None:
    """Which of several zeros comes first is left open."""
    x = LINE.astype(dtype)
    np.testing.assert_array_equal(yota.trace(np.sort, x)[0], np.sort(x))
    np.testing.assert_array_equal(yota.trace(lambda x: x[np.argsort(np.sum(x))], x)[0], x[[0]])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["fmax", "fmin", "logaddexp", "logaddexp2"])
@pytest.mark.parametrize("x", [[0.0, -0.0], [-0.0, 0.0], [-2.0, 0.0], [np.nan, -0.0], [-np.inf, -np.inf]])
def test_two_elements_to_the_bit(name, x):
    """Over more of them NumPy's own choice of zeros depends on their number."""
    x, reduce = np.array(x), getattr(np, name).reduce
    assert repr(np.float64(yota.trace(reduce, x)[0])) == repr(reduce(x))


@pytest.mark.parametrize("name", ["hypot", "logaddexp", "logaddexp2", "fmax", "subtract", "divide"])
def test_slopes_of_few_elements(name: str) -> None:
    ufunc, x = getattr(np, name), np.array([[-1.5], [2.0], [0.5]])
    assert yota.gradcheck(lambda x: np.sum(ufunc.reduce(x, axis=1) ** 2), x)
    assert yota.gradcheck(lambda x: np.sum(ufunc.reduce(x[:2], axis=0) ** 2), x)
    assert yota.gradcheck(lambda x: np.sum(ufunc.reduceat(x, [0, 1], axis=0) ** 2), x)


@pytest.mark.parametrize("target", ["numpy", "c"])
def test_at_leaves_the_signs_of_zeros_where_nothing_is_added(target):
    def f(x, places):
        y = x * 1.0
        np.add.at(y, places, x[:3])
        np.subtract.at(y, [1, 1, 2], x[1:4])
        return y

    x, places = np.array([1.0, -0.0, 2.0, -0.0, -0.0]), np.array([0, 0, 2])
    found = yota.compile(yota.trace(f, x, places)[1], target=target)(x, places)
    np.testing.assert_array_equal(found, f(x, places))
    np.testing.assert_array_equal(np.signbit(found), np.signbit(f(x, places)))


@pytest.mark.parametrize(
    "call",
    [
        lambda x, y, m, out: np.sqrt(x, where=m, out=out),
        lambda x, y, m, out: np.multiply(x, y, where=m, out=out),
        lambda x, y, m, out: np.divide(y, x - 0.5, where=m, out=out),
        lambda x, y, m, out: np.arccosh(x, where=x > 1, out=out),
    ],
)
def test_what_is_left_out_has_no_slope(call):
    x = np.array([0.25, -1.0, 0.5, 4.0])
    y = np.array([1.0, np.nan, np.inf, 2.0])
    mask = x > 0.5

    def f(x):
        return np.sum(call(x, y, mask, np.zeros(4))[[0, 3]]) + np.sum(call(x, y, mask, np.zeros(4))[2:3])

    with np.errstate(all="ignore"):
        slopes = [(f(x + step) - f(x - step)) / 2e-6 for step in 1e-6 * np.eye(4)]
    found = yota.gradient(f)(x)
    known = np.isfinite(slopes) & (np.abs(slopes) < 1e3)
    np.testing.assert_allclose(found[known], np.array(slopes)[known], rtol=1e-6, atol=1e-9)
    assert np.all(np.isfinite(found))


@pytest.mark.parametrize(
    "starts", [range(0, 60, 5), [0, 1, 3, 9, 9, 20, 33, 34, 50], [7, 3, 3, 59, 0, 10, 20, 21, 22, 40]]
)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("ufunc", [np.add, np.maximum, np.multiply])
def test_many_segments_are_reduced_together(ufunc: np.ufunc, axis: int, starts: Sequence[int]) -> None:
    random = np.random.default_rng(0)
    x = random.uniform(0.5, 1.5, size=(60, 60))

    def f(x: Any) -> Any:
        return np.sum(np.sin(ufunc.reduceat(x, starts, axis=axis)))

    value, slope = yota.value_and_grad(f)(x)
    np.testing.assert_allclose(value, f(x), rtol=1e-13)
    direction = random.normal(size=x.shape)
    along = (f(x + 1e-6 * direction) - f(x - 1e-6 * direction)) / 2e-6
    np.testing.assert_allclose(np.sum(slope * direction), along, rtol=1e-6)
