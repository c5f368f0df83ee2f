"""Elimination of variables: every order gives the same entries, and each is counted right."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tests.optimize.tapes import evaluate, tape_of
from yota.ir.tape import Tape
from yota.ir.types import TensorType
from yota.optimize import cse, dce, fold, simplify
from yota.rules.registry import registry
from yota.transform.reverse.elimination import Partials, partials

X = np.linspace(0.3, 1.2, 5)


def narrow(x: Any) -> Any:
    """Many inputs, one number in the middle, many results."""
    waist = x[0]
    for k in range(1, 5):
        waist = waist * x[k]
    return tuple((waist * (k + 2.0)).call("sin") for k in range(5))


def wide(x: Any) -> Any:
    first, second = x[0] * x[1], x[1].call("exp") - x[2]
    return (first * second + x[3], first - second * x[4], x[0], second * second)


class Derived:
    """A function's tape with the graph of its partials."""

    def __init__(self, function: Any) -> None:
        self.tape = cse.run(tape_of(function, (5,)))
        self.columns = {op.result: op.keyword("index")[0] for op in self.tape.ops if op.name == "getitem"}
        self.builder = self.tape.builder()
        found = partials(self.builder, self.tape, self.tape.outputs, list(self.columns), registry())
        assert found is not None
        self.graph: Partials = found

    def entries(self, order: str) -> dict[tuple[int, int], int]:
        rows = self.graph.entries(order)
        return {
            (row, self.columns[variable]): entry for row, each in enumerate(rows) for variable, entry in each.items()
        }

    def made(self, order: str) -> tuple[Tape, list[tuple[int, int]]]:
        places = self.entries(order)
        return self.builder.finish(places.values()), list(places)

    def matrix(self, order: str) -> np.ndarray:
        tape, places = self.made(order)
        found = np.zeros((len(self.tape.outputs), 5))
        for place, value in zip(places, evaluate(tape, X), strict=True):
            found[place] = value
        return found


def expected(function: Any) -> np.ndarray:
    tape = tape_of(function, (5,))
    steps = [np.array(evaluate(tape, X + 1e-30j * unit)) for unit in np.eye(5)]
    return np.stack(steps, axis=1).imag / 1e-30


@pytest.mark.parametrize("order", ["forward", "reverse", "cheapest"])
@pytest.mark.parametrize("function", [narrow, wide])
def test_entries(function: Any, order: str) -> None:
    np.testing.assert_allclose(Derived(function).matrix(order), expected(function), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("seed", range(20))
def test_any_order_will_do(seed: int) -> None:
    derived = Derived(wide)
    order = derived.graph._orders["forward"]
    assert order is not None
    derived.graph._orders["other"] = random.Random(seed).sample(order, len(order))
    np.testing.assert_allclose(derived.matrix("other"), expected(wide), rtol=1e-13, atol=1e-15)


def test_structural_zeros_are_left_out() -> None:
    rows = [{0, 1, 2, 3}, {0, 1, 2, 4}, {0}, {1, 2}]
    assert set(Derived(wide).entries("reverse")) == {(row, column) for row, each in enumerate(rows) for column in each}


def test_work_is_counted_as_it_is_done() -> None:
    graph = Derived(narrow).graph
    works = {order: graph.work(order) for order in graph.orders}
    assert works["cheapest"] < min(works["forward"], works["reverse"])
    for order, work in works.items():
        derived = Derived(narrow)
        before = len(derived.builder.ops)
        derived.graph.entries(order)
        emitted = [op for op in derived.builder.ops[before:] if not set(op.operands) <= set(derived.builder.constants)]
        assert len(emitted) == work


def test_narrow_functions_are_cut_in_the_middle() -> None:
    derived = Derived(narrow)
    tape, _ = derived.made("cheapest")
    short = dce.run(cse.run(simplify.run(fold.run(tape))))
    # 4 products, 5 multiples and 10 sines and cosines; 11 for the products of all but one; 5 by constants, 25 entries.
    assert len([op for op in short.ops if op.name != "getitem"]) <= 4 + 5 + 10 + 11 + 5 + 25


def test_what_is_not_holomorphic_is_left_to_others() -> None:
    tape = tape_of(lambda z: z[0].call("absolute"), TensorType(np.dtype("complex128"), (1,)))
    columns = [op.result for op in tape.ops if op.name == "getitem"]
    assert partials(tape.builder(), tape, tape.outputs, columns, registry()) is None
