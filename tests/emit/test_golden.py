"""Generated sources, to the byte: ``pytest --update-golden`` writes them anew for review."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.emit.programs import Writer, arguments, check, evaluate
from yota.emit.targets.numpy import generate
from yota.ir.indexing import GATHER, NEWAXIS, Slice
from yota.ir.tape import Tape
from yota.run.machine.python import load

GOLDEN = Path(__file__).parent.parent / "golden" / "numpy"


def chain() -> Tape:
    """Value and gradient of ``np.sum(np.sin(x) * np.exp(x))``, in one pass."""
    write = Writer("chain")
    x = write.input("x", (1_000_000,))
    sine, power = write("sin", x), write("exp", x)
    product = write("multiply", sine, power)
    slope = write("add", product, write("multiply", write("cos", x), power))
    return write.finish(write("sum", product), slope)


def rosenbrock() -> Tape:
    """Shifted pieces added into one array."""
    n = 1_000_000
    write = Writer("rosenbrock")
    x = write.input("x", (n,))
    upper, lower = write("getitem", x, index=(Slice(1, n),)), write("getitem", x, index=(Slice(0, n - 1),))
    bend, gap = write("subtract", upper, write("square", lower)), write("subtract", 1.0, lower)
    value = write("sum", write("add", write("multiply", 100.0, write("square", bend)), write("square", gap)))
    up = write("multiply", 200.0, bend)
    down = write("subtract", write("multiply", -2.0, write("multiply", lower, up)), write("multiply", 2.0, gap))
    places = ((Slice(1, n),), (Slice(0, n - 1),))
    return write.finish(value, write("scatter", up, down, shape=(n,), indices=places))


def pairs() -> Tape:
    """Differences of all pairs of points: a short last axis is kept outermost."""
    n = 300
    write = Writer("pairs")
    x = write.input("x", (n, 3))
    here = write("getitem", x, index=(Slice(0, n), NEWAXIS, Slice(0, 3)))
    there = write("getitem", x, index=(NEWAXIS, Slice(0, n), Slice(0, 3)))
    apart = write("subtract", here, there)
    square = write("add", write("sum", write("square", apart), axis=(2,)), 0.5)
    value = write("sum", write("sqrt", square))
    pull = write("multiply", write("reshape", write("divide", 1.0, square), shape=(n, n, 1)), apart)
    return write.finish(value, write("subtract", write("sum", pull, axis=(1,)), write("sum", pull, axis=(0,))))


def layer() -> Tape:
    """Matrix products between small elementwise ops, a guard, and an embedding with its gradient."""
    write = Writer("layer")
    weights = write.input("params.W", (64, 32))
    bias = write.input("params.b", (32,))
    table = write.input("table", (100, 64))
    rows = write.constant(np.arange(20) % 7)
    x = write("getitem", table, rows, index=(GATHER, Slice(0, 64)))
    y = write("tanh", write("add", write("matmul", x, weights), bias))
    value = write("sum", y)
    write.builder.guard(write("greater", value, 0.0), True, "bool")
    slope = write("subtract", 1.0, write("square", y))
    back = write("matmul", slope, write("transpose", weights, axes=(1, 0)))
    place = (GATHER, Slice(0, 64))
    gradient = write("scatter", back, rows, shape=(100, 64), indices=(place,))
    return write.finish(value, write("matmul", write("transpose", x, axes=(1, 0)), slope), gradient)


def normalise() -> Tape:
    """Two loops: the second needs a sum that the first completes, and computes cheap values again."""
    n = 1_000_000
    write = Writer("normalise")
    x = write.input("x", (n,), np.float32)
    mean = write("multiply", np.float32(1 / n), write("sum", x))
    centred = write("subtract", x, mean)
    spread = write("sqrt", write("multiply", np.float32(1 / n), write("sum", write("square", centred))))
    return write.finish(write("divide", centred, spread))


EXAMPLES: list[Callable[[], Tape]] = [chain, rosenbrock, pairs, layer, normalise]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.__name__)
def test_source_is_as_reviewed(example: Callable[[], Tape], pytestconfig: pytest.Config) -> None:
    text = str(generate(example()))
    file = GOLDEN / f"{example.__name__}.py"
    if pytestconfig.getoption("--update-golden"):
        file.write_text(text)
    assert text == file.read_text()


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.__name__)
def test_source_computes_what_the_tape_says(example: Callable[[], Tape]) -> None:
    tape = example()
    values = [abs(value) for value in arguments(tape)]
    check(tape, load(generate(tape))(*values), evaluate(tape, *values))


@pytest.mark.skipif(importlib.util.find_spec("ruff") is None, reason="ruff is not installed")
def test_sources_are_formatted() -> None:
    command = [sys.executable, "-m", "ruff", "format", "--isolated", "--diff", "--line-length", "100", str(GOLDEN)]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout
