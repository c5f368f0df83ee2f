"""Code for all sizes at the smallest ones, where what is apart at large sizes overlaps: right, or refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import yota
from tests.emit.compiled import needs_compiler
from tests.package.test_c import COMPILERS, built
from tests.package.test_sizes_in_c import called

LARGEST = 12


def both_ends(x):
    y = np.sin(x)
    y[:3] = x[0]
    y[-3:] = 2 * x[1]
    return np.sum(y[:3] * x[:3]) + np.sum(y)


def one_place(x):
    y = np.sin(x)
    y[4] = 3.0
    return y[-2] * 1.5 + np.sum(x**2)


def counted_back(x):
    y = np.sin(x)
    y[-4] = x[0] ** 2
    y[2] += x[1]
    return y[2] ** 2 + y[-4] * y[-1]


def first_part_or_second(x):
    joined = np.concatenate([x[:-3] ** 2, 2 * x])
    return joined[3] ** 2 + joined[-5] + np.sum(joined)


def interior(x):
    y = np.zeros_like(x)
    y[1:-1] = x[1:-1] ** 3
    y[:1] = x[-1:]
    y[-1:] = x[:1] ** 2
    return np.sum(y * x) + y[1]


def rolled(x):
    return np.sum(np.roll(x, 2)[:3] * x[-3:]) + np.sum(x[3:] * x[:-3])


def matched_ends(x):
    return x[0] * x[-1] + x[1] * x[-2] ** 2


def last_four(x):
    return np.sum(np.exp(np.diff(np.pad(x, (0, 1)))[-4:])) + np.sum(x)


def every_second_of_the_last(x):
    return np.sum(np.sin(x[-5::2])) * x[0] + np.sum(x[:-4:-1] ** 3)


FUNCTIONS = [
    both_ends,
    one_place,
    counted_back,
    first_part_or_second,
    interior,
    rolled,
    matched_ends,
    last_four,
    every_second_of_the_last,
]


def slopes(f: Callable[..., Any], x: Any) -> Any:
    """Derivatives by complex steps."""
    return np.array([f(x + 1e-30j * unit).imag / 1e-30 for unit in np.eye(len(x))])


def expected(f: Callable[..., Any], size: int) -> tuple[Any, Any, Any] | None:
    x = np.cos(1.3 * np.arange(size) + 0.4)
    try:
        return x, f(x), slopes(f, x)
    except (IndexError, ValueError):
        return None  # The function has no value there.


def check(f: Callable[..., Any], call: Callable[[Any], tuple[Any, Any] | None]) -> None:
    """Hold a call, which gives None for sizes that are too small, against the function."""
    cases = [case for size in range(1, LARGEST) if (case := expected(f, size))]
    found = [call(x) for x, _, _ in cases]
    for result, (_, value, gradient) in zip(found, cases, strict=True):
        if result is not None:
            np.testing.assert_allclose(result[0], value, rtol=1e-13)
            np.testing.assert_allclose(result[1], gradient, rtol=1e-12, atol=1e-14)
    refused = [result is None for result in found]
    assert refused == sorted(refused, reverse=True)
    assert refused.count(False) >= 3


@pytest.mark.parametrize("f", FUNCTIONS)
def test_numpy(f: Callable[..., Any]) -> None:
    space: dict[str, Any] = {}
    exec(compile(str(yota.generate(f, {"x": "float64[N]"})), "<module>", "exec"), space)

    def call(x: Any) -> Any:
        try:
            return space[f"{f.__name__}_value_and_gradient"](x)
        except ValueError as fault:
            if not str(fault).startswith("sizes must be"):
                raise
            return None

    check(f, call)


@needs_compiler
@pytest.mark.parametrize("f", FUNCTIONS)
def test_c(f: Callable[..., Any], tmp_path: Path) -> None:
    library = built(yota.generate(f, {"x": "float64[N]"}, target="c"), tmp_path, COMPILERS[-1])

    def call(x: Any) -> Any:
        results = [np.zeros(()), np.zeros(len(x))]
        code = called(library, f"{f.__name__}_value_and_gradient", x.shape, [x], results)
        assert code in (0, -2)
        return None if code else results

    check(f, call)
