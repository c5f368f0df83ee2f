"""Index arrays that hold no number twice are written, not added, at their places."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import yota
from yota.optimize.array_writes import distinct


@settings(max_examples=30)
@given(st.lists(st.integers(-3, 12), min_size=1, max_size=8))
def test_constants(places: list[int]) -> None:
    def f(x):  # type: ignore[no-untyped-def]
        return np.sum(x[np.array(places)] ** 2)

    tape = yota.trace(f, np.linspace(0.0, 1.0, 13))[1]
    (read,) = (op for op in tape.ops if op.name == "getitem")
    assert (read.operands[1] in distinct(tape)) == (len({place % 13 for place in places}) == len(places))


POINT = np.random.default_rng(5).normal(size=600)
ONCE = np.random.default_rng(6).permutation(300)[:200]
AGAIN = np.random.default_rng(7).integers(0, 20, 200)


@pytest.mark.parametrize(
    ("f", "written"),
    [
        (lambda x: np.sum(np.sort(x)[:400] ** 3), True),
        (lambda x: np.sum(x[x > 0.2] ** 3), True),
        (lambda x: np.sum(x[np.argsort(x)[::-2]] ** 3), True),
        (lambda x: np.sum(x[ONCE.reshape(20, 10)] ** 3), True),
        (lambda x: np.sum(x[AGAIN] ** 3), False),
        (lambda x: np.sum(x.reshape(2, 300)[np.array([[0], [1]]), AGAIN] ** 3), False),
        (lambda x: np.sum(x.reshape(2, 300)[AGAIN % 2, ONCE] ** 3), True),
        (lambda x: np.sum(np.sort(x.reshape(2, 300), axis=1)[0] ** 3), False),
    ],
)
def test_writes_or_additions(f, written: bool) -> None:  # type: ignore[no-untyped-def]
    value, g = yota.grad(f, POINT)
    assert ("np.add.at" in g.source) is not written
    turned = np.random.default_rng(8).normal(size=POINT.size)
    step = 1e-6
    change = (f(POINT + step * turned) - f(POINT - step * turned)) / (2 * step)
    assert g[0] @ turned == pytest.approx(change, rel=1e-7)


def test_two_pieces_at_the_same_places_add_up() -> None:
    x, places = np.array([1.0, 2.0, 3.0]), np.array([2, 0])
    value, g = yota.grad(lambda x: np.sum(x[places] ** 2) + np.sum(np.exp(x[places[::-1]])), x)
    np.testing.assert_allclose(g[0], [2 + np.e, 0.0, 6 + np.exp(3.0)], rtol=1e-15)
