"""Einsums of several factors become pairs, and those that are no matrix products products of elements and sums."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import yota
from yota.optimize.pipeline import run

EXTENTS = {"a": 2, "b": 3, "c": 4, "d": 50}


def operands(terms: list[str], dtype: Any = float) -> list[Any]:
    random = np.random.default_rng(len("".join(terms)))
    return [random.normal(size=[EXTENTS[letter] for letter in term]).astype(dtype) for term in terms]


def names(subscripts: str, dtype: Any = float) -> list[str]:
    arrays = operands(subscripts.split("->", maxsplit=1)[0].split(","), dtype)
    tape = yota.trace(lambda *arrays: np.einsum(subscripts, *arrays), *arrays)[1]
    return [op.name for op in run(tape).ops]


@pytest.mark.parametrize(
    "subscripts, expected",
    [
        ("da,da->a", ["multiply", "sum"]),
        ("da,da->d", ["multiply", "sum"]),
        (",da->da", ["multiply"]),
        ("d,a->da", ["reshape", "multiply"]),
        ("da,da,da->", ["multiply", "multiply", "sum"]),
        ("da->d", ["sum"]),
        ("dab,db->da", ["reshape", "multiply", "sum"]),
        ("da,da->", ["einsum"]),
        ("ad,db->ab", ["einsum"]),
        ("da,a->d", ["einsum"]),
        ("da,ab,db->d", ["einsum", "transpose", "multiply", "sum"]),
        ("ca,ad,db,cb->", ["einsum", "einsum", "einsum"]),
    ],
)
def test_what_becomes_of_them(subscripts: str, expected: list[str]) -> None:
    assert names(subscripts) == expected


def test_the_gradient_shares_products_of_pairs_with_the_value() -> None:
    x, s = np.random.default_rng(0).normal(size=(500, 20)), np.eye(20) + 0.1
    made = yota.value_and_grad(lambda x: np.sum(np.einsum("ij,jk,ik->i", x, s, x) ** 2))
    value, slope = made(x)
    products = np.sum((x @ s) * x, axis=1)
    np.testing.assert_allclose(value, np.sum(products**2), rtol=1e-13)
    np.testing.assert_allclose(slope, 2 * products[:, None] * (x @ (s + s.T)), rtol=1e-12)
    assert "2 matmul" in made.source


def test_mixed_dtypes_stay() -> None:
    def f(x: Any, y: Any) -> Any:
        return np.einsum("a,a->", x, y)

    tape = yota.trace(f, np.ones(300), np.ones(300, np.float32))[1]
    assert "einsum" in [op.name for op in run(tape).ops]


@settings(max_examples=60)
@given(
    st.lists(st.lists(st.sampled_from("abcd"), max_size=3, unique=True).map("".join), min_size=1, max_size=6),
    st.randoms(use_true_random=False),
    st.sampled_from(["float64", "complex128"]),
)
def test_random_einsums(terms: list[str], random: Any, dtype: str) -> None:
    letters = sorted(set("".join(terms)))
    output = "".join(random.sample(letters, random.randint(0, len(letters))))
    subscripts = f"{','.join(terms)}->{output}"
    arrays = operands(terms, dtype)
    weights = np.random.default_rng(1).normal(size=[EXTENTS[letter] for letter in output])

    def f(*arrays: Any) -> Any:
        return np.sum(np.real(weights * np.einsum(subscripts, *arrays)))

    value, gradients = yota.value_and_grad(f, tuple(range(len(arrays))))(*arrays)
    np.testing.assert_allclose(value, f(*arrays), rtol=1e-10, atol=1e-10)
    for number, (array, gradient) in enumerate(zip(arrays, gradients, strict=True)):
        # It is linear in each operand, so a difference is exact but for rounding.
        moved = np.random.default_rng(2).normal(size=array.shape).astype(dtype)
        others = [*arrays[:number], array + moved, *arrays[number + 1 :]]
        slope = np.sum(np.real(np.conjugate(gradient) * moved))
        np.testing.assert_allclose(f(*others) - f(*arrays), slope, rtol=1e-8, atol=1e-8)
