"""Numbers of 16 bits on the GPU: stored as such, computed with in single precision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.cuda.hosted import load, needs_compiler
from tests.cuda.nvrtc import VIRTUAL, compiled, needs_nvrtc, unit
from yota.emit.targets.cuda import Form, generate
from yota.ir.inputs import Leaf
from yota.ir.tape import Tape
from yota.optimize.pipeline import run
from yota.rules.registry import registry
from yota.tracing.record import record
from yota.transform.reverse.backward import gradient_tape

HALF = np.float16
RANDOM = np.random.default_rng(7)


def numbers(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(HALF)


def gradient(name: str, function: Callable[..., Any], *arguments: Any) -> Tape:
    leaves = [Leaf(value, number, f"x{number}", ()) for number, value in enumerate(arguments)]
    tape = record(function, leaves, tuple, registry=registry()).tape
    wanted = [item.variable for item in tape.inputs]
    return replace(run(gradient_tape(tape, wanted, registry()).tape), name=name)


def spread(at: int, slope: float, n: int) -> np.ndarray:
    return np.where(np.arange(n) == at, slope, 0.0)


def _cubic(x: np.ndarray) -> np.ndarray:
    return np.stack([3 * x[:, 0] ** 2 * x[:, 1], x[:, 0] ** 3, np.ones(len(x))], axis=1)


def _columns(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, ...]:
    total = np.sum(x * y, axis=0)
    return 2 * total * y + 0 * x, 2 * total * np.sum(x, axis=0)


def _product(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, ...]:
    slope = 1 / np.cosh(x @ y) ** 2
    return slope @ y.T, x.T @ slope


def _largest(x: np.ndarray) -> tuple[np.ndarray, ...]:
    at = int(np.argmax(x * x))
    return (spread(at, 3.4 * x[at], len(x)),)


Case = tuple[Callable[..., Any], tuple[Any, ...], Callable[..., tuple[Any, ...]]]
CASES: dict[str, Case] = {
    "chain": (
        lambda x: np.sum(np.exp(-x * x) * np.sin(x)),
        (numbers(5003),),
        lambda x: (np.exp(-x * x) * (np.cos(x) - 2 * x * np.sin(x)),),
    ),
    # In 16 bits the total would be infinite.
    "average": (lambda x: np.mean(x), (np.ones(70_000, HALF),), lambda x: (np.full(70_000, 1 / 70_000),)),
    # The largest, rounded, is equal to none of those that it was chosen from.
    "largest": (lambda x: np.max(x * x * 1.7), (numbers(3001),), _largest),
    "mixed": (
        lambda x, y: np.sum(x * y),
        (numbers(2000), RANDOM.standard_normal(2000).astype("f4")),
        lambda x, y: (y, x),
    ),
    "points": (lambda x: np.sum(x[:, 0] ** 3 * x[:, 1] + x[:, 2]), (numbers(3000, 3),), lambda x: (_cubic(x),)),
    "columns": (lambda x, y: np.sum(np.square(np.sum(x * y, axis=0))), (numbers(600, 7), numbers(7)), _columns),
    "product": (lambda x, y: np.sum(np.tanh(x @ y)), (numbers(30, 20), numbers(20, 10)), _product),
    "rounded": (
        lambda x: np.sum((x * x).astype(HALF).astype("f4") * 2),
        (RANDOM.standard_normal(500).astype("f4"),),
        lambda x: (4 * x,),
    ),
    "number": (lambda x, s: np.sum(x * s), (numbers(500), HALF(1.5)), lambda x, s: (np.full(500, 1.5), np.sum(x))),
    "branch": (
        lambda x: np.sum(x) * 2 if x[0] == HALF(0.1) else np.sum(x),
        (np.full(50, 0.1, HALF),),
        lambda x: (np.full(50, 2.0),),
    ),
    "gather": (
        lambda x: np.sum(x[np.array([1, 1, 2, 0])] ** 2),
        (numbers(50),),
        lambda x: (2 * x * np.array([1, 2, 1] + [0] * 47),),
    ),
    "complex": (lambda x: np.sum(np.abs(np.exp(1j * x)) * x), (numbers(300),), lambda x: (np.ones(300),)),
}


def compiled_case(name: str) -> Tape:
    function, values, _ = CASES[name]
    return gradient(name, function, *values)


@needs_compiler
def test_results_are_those_of_wider_arithmetic_rounded_once() -> None:
    tapes = [compiled_case(name) for name in CASES]
    functions = load([generate(tape) for tape in tapes])
    for (name, (function, values, slope)), tape, run_ in zip(CASES.items(), tapes, functions, strict=True):
        wide = [np.asarray(value, float) for value in values]
        expected = function(*wide), *slope(*wide)
        for result, wanted, output in zip(run_(*values), expected, tape.outputs, strict=True):
            result = np.asarray(result)
            assert result.dtype == tape.types[output].dtype, name
            scale = float(np.max(np.abs(wanted))) + 0.01
            # The last digit of 16 bits, and what single precision may lose before.
            np.testing.assert_allclose(
                result.astype(float), wanted, rtol=0.51 * np.finfo(result.dtype).eps, atol=3e-6 * scale, err_msg=name
            )


@needs_compiler
def test_a_number_past_the_largest_is_infinite_and_the_rest_goes_through() -> None:
    leaves = [Leaf(numbers(8), 0, "x", ())]
    tape = record(lambda x: x * 2, leaves, tuple, registry=registry()).tape
    values = np.array([65504, -40000, np.inf, -np.inf, np.nan, -0.0, 6e-8, 1], HALF)
    (run_,) = load([generate(replace(run(tape), name="doubled"))])
    with np.errstate(all="ignore"):
        expected = values * HALF(2)
    found = run_(values)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


def test_as_many_as_fit_are_loaded_at_once() -> None:
    source = generate(compiled_case("chain"))
    assert "Pack<float16, 8>" in source.code and "cp.float32" not in source.driver


@needs_compiler
def test_bfloat16_is_stored_and_float32_computed() -> None:
    kind = np.dtype(pytest.importorskip("ml_dtypes").bfloat16)
    values = RANDOM.standard_normal((400, 9)).astype(kind)
    single = values.astype("f4")
    tapes = [
        gradient("chain16", CASES["chain"][0], single),
        gradient("largest16", CASES["largest"][0], single),
        gradient("product16", lambda x: np.sum(np.tanh(x @ x.T)), single),
    ]
    forms = [Form(stored=kind)]
    wide = np.full((400, 27), np.nan, kind)
    wide[:, ::3] = values
    strided = Form(strides=(27, 3), stored=kind)
    sources = [*(generate(tape, forms) for tape in tapes), generate(replace(tapes[0], name="strided"), [strided])]
    tapes.append(tapes[0])
    plains = load([generate(replace(t, name=f"{s.entry}_plain")) for t, s in zip(tapes, sources, strict=True)])
    for plain, source, run_ in zip(plains, sources, load(sources), strict=True):
        given = wide[:, ::3] if "strided" in source.entry else values
        for result, wanted in zip(run_(given), plain(single), strict=True):
            assert result.dtype == kind
            np.testing.assert_array_equal(np.asarray(result), np.asarray(wanted).astype(kind))


@needs_compiler
def test_bfloat16_is_rounded_as_others_do() -> None:
    kind = np.dtype(pytest.importorskip("ml_dtypes").bfloat16)
    bits = RANDOM.integers(0, 2**16, (2, 20_000), dtype=np.uint16)
    one, other = bits.view(kind)
    leaves = [Leaf(each.astype("f4"), number, f"x{number}", ()) for number, each in enumerate((one, other))]
    with np.errstate(all="ignore"):
        tape = run(record(lambda x, y: x * y, leaves, tuple, registry=registry()).tape)
        expected = (one.astype("f4") * other.astype("f4")).astype(kind)
    (run_,) = load([generate(replace(tape, name="multiplied"), [Form(stored=kind)] * 2)])
    found = run_(one, other)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    numbers_ = ~np.isnan(expected)
    np.testing.assert_array_equal(found.view(np.uint16)[numbers_], expected.view(np.uint16)[numbers_])


@needs_nvrtc
@pytest.mark.parametrize("architecture", VIRTUAL)
def test_kernels_compile_without_warnings(architecture: str) -> None:
    sources = [generate(compiled_case(name)) for name in CASES]
    try:
        import ml_dtypes
    except ImportError:
        pass
    else:
        form = Form(stored=np.dtype(ml_dtypes.bfloat16))
        sources.append(generate(gradient("chain16", CASES["chain"][0], np.ones(5003, "f4")), [form]))
    found = compiled(unit(sources), architecture, "--Ofast-compile=max")
    assert found.succeeded and not found.log, found.log[:4000]
