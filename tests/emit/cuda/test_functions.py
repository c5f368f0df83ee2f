"""Elementwise functions and totals in CUDA: NumPy's results with infinities, NaNs and signs of zeros."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.cuda.hosted import load, needs_compiler
from tests.cuda.nvrtc import compiled, needs_nvrtc
from tests.emit.c.test_functions import BINARY, COMPLEX, EITHER_ZERO, UNARY, VALUES, of_arrays, same
from tests.emit.programs import Writer, evaluate
from yota.emit.targets.cuda import generate
from yota.ir.tape import Tape

pytestmark = needs_compiler


def on_host(tape: Tape) -> Callable[..., Any]:
    (function,) = load([generate(tape)])
    return function


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_functions_of_one_number(dtype: str) -> None:
    with np.errstate(all="ignore"):
        values = np.array(VALUES * 3, dtype)
    tape = of_arrays(UNARY, 1, values.shape, dtype)
    for name, mine, theirs in zip(UNARY, on_host(tape)(values), evaluate(tape, values), strict=True):
        with np.errstate(all="ignore"):
            try:
                same(mine, theirs, 6)
            except AssertionError as error:
                raise AssertionError(name) from error


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_functions_of_two_numbers(dtype: str) -> None:
    with np.errstate(all="ignore"):
        pairs = np.array(list(itertools.product(VALUES, VALUES)), dtype).T.copy()
    tape = of_arrays(BINARY, 2, pairs[0].shape, dtype)
    for name, mine, theirs in zip(BINARY, on_host(tape)(*pairs), evaluate(tape, *pairs), strict=True):
        try:
            same(mine, theirs, 8, name not in EITHER_ZERO)
        except AssertionError as error:
            raise AssertionError(name) from error


@pytest.mark.parametrize("dtype", ["complex128", "complex64"])
def test_complex_functions(dtype: str) -> None:
    scales = [1e-10, 1e-3, 1.0, 8.0, 30.0]
    random = np.random.default_rng(0)
    parts = np.concatenate([random.uniform(-2, 2, (2, 40)) * scale for scale in scales], axis=1)
    values = (parts[0] + 1j * parts[1]).astype(dtype)
    tape = of_arrays(COMPLEX, 1, values.shape, dtype)
    eps = np.finfo(dtype).eps
    for name, mine, theirs in zip(COMPLEX, on_host(tape)(values), evaluate(tape, values), strict=True):
        scale = np.abs(theirs)
        assert np.all(np.abs(mine - theirs) <= 60 * eps * scale), (name, np.max(np.abs(mine - theirs) / scale) / eps)
        assert mine.dtype == theirs.dtype


def test_complex_functions_where_nothing_is_finite() -> None:
    special = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan]
    values = np.array([complex(re, im) for re, im in itertools.product(special, repeat=2)])
    tape = of_arrays(COMPLEX, 1, values.shape, complex)
    wrong = []
    for name, mine, theirs in zip(COMPLEX, on_host(tape)(values), evaluate(tape, values), strict=True):
        if name == "reciprocal":
            continue  # NumPy's differs between vector lengths
        for value, one, other in zip(values, mine, theirs, strict=True):
            for a, b in ((np.real(one), np.real(other)), (np.imag(one), np.imag(other))):
                # The sign of a zero or of an infinity that the standard leaves open may differ.
                if not (np.isclose(a, b, rtol=1e-13, equal_nan=True) or (np.isinf(a) and np.isinf(b))):
                    wrong.append(f"{name}({value}): {one}, not {other}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("values", [[np.inf, 1.0], [np.inf, -np.inf], [np.nan, 1.0], [1e308, 1e308], [-np.inf, 2.0]])
def test_totals_of_what_is_not_finite(values: list[float]) -> None:
    write = Writer()
    x = write.input("x", (400,))
    tape = write.finish(*(write(name, x) for name in ("sum", "max", "min", "prod")))
    array = np.resize(np.array(values), 400)
    np.testing.assert_array_equal(on_host(tape)(array), evaluate(tape, array))


def test_a_total_of_negative_zeros_has_numpys_sign() -> None:
    write = Writer()
    x = write.input("x", (400,))
    zeros = np.full(400, -0.0)
    assert np.signbit(on_host(write.finish(write("sum", x)))(zeros)) == np.signbit(np.sum(zeros))


def test_totals_are_better_than_numpys() -> None:
    write = Writer()
    x = write.input("x", (300_001,), "float32")
    values = np.random.default_rng(0).normal(size=300_001).astype("float32") + np.float32(10)
    exact = float(np.sum(values.astype(np.longdouble)))
    found = on_host(write.finish(write("sum", x)))(values)
    assert abs(float(found) - exact) <= np.spacing(np.float32(exact))


@needs_nvrtc
def test_every_function_compiles_for_the_device() -> None:
    texts = [of_arrays(UNARY, 1, (400,), dtype) for dtype in ("float64", "float32")]
    texts += [of_arrays(BINARY, 2, (400,), dtype) for dtype in ("float64", "float32")]
    texts += [of_arrays(COMPLEX, 1, (400,), dtype) for dtype in ("complex128", "complex64")]
    for tape in texts:
        found = compiled(generate(tape).code, "compute_80", "--Ofast-compile=max")
        assert found.succeeded and not found.log, found.log[:3000]
