"""Choices by long masks are made on bits: bit for bit what `np.where` gives, whatever is chosen from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.emit.programs import Writer
from yota.emit.targets.numpy import generate
from yota.run.machine.python import load

LENGTH = 3000
SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1.5, -2.5, 5e-324)


def special(dtype: Any, shape: tuple[int, ...], seed: int) -> np.ndarray[Any, Any]:
    with np.errstate(all="ignore"):
        return np.random.default_rng(seed).choice(np.array(SPECIAL, dtype), shape)


def same_bits(found: Any, wanted: Any) -> bool:
    return bool(found.dtype == wanted.dtype and found.shape == wanted.shape and found.tobytes() == wanted.tobytes())


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize(
    "choices",
    [
        *[("x", other) for other in ("y", "row", 0, 0.0, -0.0, 1, 1.5, -np.inf, True)],
        *[(other, "x") for other in ("row", 0, 2.0, -0.0)],
    ],
)
def test_a_choice_has_the_bits_that_where_gives(dtype: str, choices: tuple[Any, Any]) -> None:
    arrays = {"x": special(dtype, (LENGTH, 2), 1), "y": special(dtype, (LENGTH, 2), 2), "row": special(dtype, (2,), 3)}
    write = Writer()
    masks = np.random.default_rng(0).random((LENGTH, 2)) < 0.5
    operands, values = [write.input("mask", masks.shape, bool)], [masks]
    for choice in choices:
        if choice in arrays:
            values.append(arrays[choice])
            operands.append(write.input(choice, values[-1].shape, dtype))
        else:
            operands.append(write.constant(choice))
    source = generate(write.finish(write("where", *operands)))
    assert "yota.ir.choices." in source.text
    kept = [value.copy() for value in values]
    wanted = np.where(masks, *(arrays.get(choice, choice) for choice in choices))
    assert same_bits(load(source)(*values), wanted)
    assert all(same_bits(one, two) for one, two in zip(values, kept, strict=True))


@pytest.mark.parametrize("length", [LENGTH, 400_000])
def test_choices_between_intermediate_results_leave_them_what_they_are(length: int) -> None:
    write = Writer()
    x, y = write.input("x", (length,)), write.input("y", (length,))
    one, two = write("exp", x), write("cos", y)
    mask = write("greater", one, two)
    chosen, rest = write("where", mask, one, two), write("where", mask, two, one)
    further = write("where", write("less", chosen, 1.0), write("add", chosen, rest), rest)
    function = load(generate(write.finish(write("multiply", chosen, further), write("add", rest, two))))
    a, b = special(float, (length,), 3), special(float, (length,), 4)
    with np.errstate(all="ignore"):
        p, q = np.exp(a), np.cos(b)
        c, r = np.where(p > q, p, q), np.where(p > q, q, p)
        f = np.where(c < 1.0, c + r, r)
        wanted = c * f, r + q
    for found, expected in zip(function(a, b), wanted, strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("turned", [False, True])
def test_a_choice_between_an_array_and_itself_is_not_written_over_it(turned: bool) -> None:
    write = Writer()
    x = write.input("x", (500, 500))
    one = write("exp", x)
    other = write("transpose", one, axes=(1, 0)) if turned else one
    function = load(generate(write.finish(write("negative", write("where", write("less", x, 0.0), one, other)))))
    a = np.random.default_rng(7).normal(size=(500, 500))
    p = np.exp(a)
    np.testing.assert_array_equal(function(a), -np.where(a < 0.0, p, p.T if turned else p))


def test_an_order_in_memory_is_kept() -> None:
    write = Writer()
    x, y = write.input("x", (60, 70)), write.input("y", (60, 70))
    function = load(generate(write.finish(write("where", write("less", x, y), x, y))))
    a, b = special(float, (70, 60), 5).T, special(float, (60, 70), 6)
    assert same_bits(function(a, b), np.where(a < b, a, b))
    assert same_bits(function(a[::-1], b[:, ::-1]), np.where(a[::-1] < b[:, ::-1], a[::-1], b[:, ::-1]))


@pytest.mark.parametrize("kind", ["short", "complex", "whole", "number"])
def test_other_choices_are_left_to_numpy(kind: str) -> None:
    shape = (10,) if kind == "short" else (LENGTH,)
    dtype = {"complex": complex, "whole": np.int64}.get(kind, float)
    write = Writer()
    mask = write.input("mask", () if kind == "number" else shape, bool)
    x, y = write.input("x", shape, dtype), write.input("y", shape, dtype)
    source = generate(write.finish(write("where", mask, x, y)))
    assert "np.where(mask, x, y)" in source.text


def test_strict_values_are_left_to_numpy() -> None:
    write = Writer()
    x = write.input("x", (LENGTH,))
    chosen = write("where", write("greater", x, 0.0), x, 1.0)
    tape = write.finish(write("sum", chosen), write("where", write("less", x, 0.0), x, 0.0))
    text = generate(tape, strict=True).text
    assert text.count("np.where(") == 1
    assert text.count("yota.ir.choices.") == 1
