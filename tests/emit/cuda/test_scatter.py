"""Additions at places of which some are the same: right, in every form of index, and the same bits each time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.cuda.hosted import load, needs_compiler
from tests.cuda.nvrtc import ENDS, compiled, needs_nvrtc, unit
from tests.emit.cuda.test_random import compare
from tests.emit.programs import Writer, arguments
from yota.emit.targets.cuda import generate
from yota.ir.indexing import GATHER, Slice
from yota.ir.tape import Tape

RANDOM = np.random.default_rng(5)


def scattered(name: str, shape: tuple[int, ...], *pieces: Any, dtype: Any = float) -> Tape:
    """Pieces ``(shape, index, arrays)`` added into one array; an array that is an int is an input of that length."""
    write = Writer(name)
    operands, indices = [], []
    for number, (extents, index, arrays) in enumerate(pieces):
        operands.append(write.input(f"x{number}", extents, dtype))
        for array in arrays:
            known = write.input(f"places{number}", (array,), int) if isinstance(array, int) else write.constant(array)
            operands.append(known)
        indices.append(index)
    return write.finish(write("scatter", *operands, shape=shape, indices=tuple(indices)))


def tapes() -> list[Tape]:
    few, many = RANDOM.integers(0, 40, 1000), RANDOM.integers(-3, 3, 2000)
    rows, columns = RANDOM.integers(0, 7, 300), RANDOM.integers(0, 9, 300)
    return [
        scattered("vector", (40,), ((1000,), (GATHER,), (few,))),
        scattered("histogram", (3,), ((2000,), (GATHER,), (many,))),
        scattered("rows", (40, 6), ((1000, 6), (GATHER, Slice(0, 6)), (few,))),
        scattered("single", (40, 6), ((1000, 6), (GATHER, Slice(0, 6)), (few,)), dtype=np.float32),
        scattered("complex", (3, 2), ((2000, 2), (GATHER, Slice(0, 2)), (many,)), dtype=complex),
        scattered("pairs", (7, 9), ((300,), (GATHER, GATHER), (rows, columns))),
        scattered("middle", (5, 7, 4), ((5, 300, 4), (Slice(0, 5), GATHER, Slice(0, 4)), (rows,))),
        scattered("part", (7, 9), ((300, 4), (GATHER, Slice(1, 9, 2)), (rows,))),
        scattered("several", (40,), ((40,), (Slice(0, 40),), ()), ((1000,), (GATHER,), (few,))),
        scattered("twice", (40,), ((1000,), (GATHER,), (few,)), ((2000,), (GATHER,), (many,))),
        scattered("inputs", (40,), ((50,), (GATHER,), (50,))),
        scattered("inputs_rows", (40, 3), ((50, 3), (GATHER, Slice(0, 3)), (50,))),
    ]


@needs_compiler
def test_sums_are_right_and_repeatable() -> None:
    found = tapes()
    sources = [generate(tape) for tape in found]
    for tape, source, function in zip(found, sources, load(sources), strict=True):
        assert "_add0(" in source.code and ".add.at(" not in source.driver
        values = [
            RANDOM.integers(-5, 5, value.shape) if value.dtype.kind == "i" else value for value in arguments(tape)
        ]
        result = function(*values)
        compare(tape, source, result, values)
        assert function(*values).tobytes() == result.tobytes()


@needs_compiler
def test_atomic_additions_are_cupys() -> None:
    found = tapes()
    sources = [generate(tape, atomic=True) for tape in found]
    for tape, source, function in zip(found[:10], sources, load(sources), strict=False):
        assert not source.code and "cp.add.at(" in source.driver
        values = arguments(tape)
        compare(tape, source, function(*values), values)


@needs_nvrtc
@pytest.mark.parametrize("architecture", ENDS)
def test_kernels_compile_without_warnings(architecture: str) -> None:
    found = compiled(unit([generate(tape) for tape in tapes()]), architecture, "--Ofast-compile=max")
    assert found.succeeded and not found.log, found.log[:4000]


def gathered() -> Tape:
    """Springs between points: rows of one array by two index arrays, and what becomes of them."""
    write = Writer("springs")
    x = write.input("x", (50, 3))
    ends = [write.constant(RANDOM.integers(-50, 50, 400)) for _ in range(2)]
    one, other = (write("getitem", x, end, index=(GATHER, Slice(0, 3))) for end in ends)
    apart = write("subtract", one, other)
    length = write("sqrt", write("add", write("sum", write("square", apart), axis=(1,)), 0.5))
    pull = write("divide", apart, write("reshape", length, shape=(400, 1)))
    back = write("negative", pull)
    index = (GATHER, Slice(0, 3))
    slope = write("scatter", pull, ends[0], back, ends[1], shape=(50, 3), indices=(index, index))
    return write.finish(write("sum", length), slope, write("getitem", x, ends[0], index=(GATHER, 1)))


@needs_compiler
def test_gathers_are_part_of_kernels() -> None:
    tape = gathered()
    source = generate(tape)
    (function,) = load([source])
    values = arguments(tape)
    compare(tape, source, function(*values), values)
    assert "x[constant" not in source.driver and "[3 * table" in source.code
