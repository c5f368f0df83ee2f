"""Generated CUDA, to the byte: ``pytest --update-golden`` writes it anew for review."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.cuda.hosted import load, needs_compiler
from tests.cuda.nvrtc import ENDS, compiled, needs_nvrtc, unit
from tests.emit.cuda.test_random import compare
from tests.emit.programs import Writer, arguments
from tests.emit.test_golden import EXAMPLES as SHARED
from yota.emit.targets.cuda import generate
from yota.ir.indexing import Slice
from yota.ir.tape import Tape

GOLDEN = Path(__file__).parent.parent.parent / "golden" / "cuda"


def columns() -> Tape:
    """Least squares: a total over all points, and totals for each column, over rows that blocks share out."""
    n, m = 100_000, 20
    write = Writer("columns")
    x, w, b = write.input("x", (n, m)), write.input("w", (m,)), write.input("b", ())
    gap = write("subtract", write("multiply", x, w), b)
    square = write("square", gap)
    by_w = write("sum", write("multiply", 2.0, write("multiply", gap, x)), axis=(0,))
    return write.finish(write("sum", square), by_w, write("multiply", -2.0, write("sum", gap)))


def softmax() -> Tape:
    """Two totals for each row, and what is computed from them for each element."""
    write = Writer("softmax")
    x = write.input("x", (512, 1000), np.float32)
    top = write("max", x, axis=(1,), keepdims=True)
    power = write("exp", write("subtract", x, top))
    return write.finish(write("divide", power, write("sum", power, axis=(1,), keepdims=True)))


def points() -> Tape:
    """A polynomial at many points, each a row of three coordinates, and its gradient."""
    n = 100_000
    write = Writer("points")
    p = write.input("p", (n, 3))
    x, y, z = (write("getitem", p, index=(Slice(0, n), axis)) for axis in range(3))
    value = write("add", write("multiply", write("square", x), y), write("multiply", z, write("square", z)))
    by = (
        write("multiply", write("multiply", 2.0, x), y),
        write("square", x),
        write("multiply", 3.0, write("square", z)),
    )
    return write.finish(value, write("stack", *by, axis=1))


def waves() -> Tape:
    """Complex numbers: a total, and its gradient by the phases."""
    write = Writer("waves")
    z = write.input("z", (5_000,), np.complex128)
    turned = write("exp", write("multiply", 2j, z))
    return write.finish(write("sum", turned), write("conjugate", write("multiply", 2j, turned)))


EXAMPLES: list[Callable[[], Tape]] = [*SHARED, columns, softmax, points, waves]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.__name__)
def test_source_is_as_reviewed(example: Callable[[], Tape], pytestconfig: pytest.Config) -> None:
    source = generate(example())
    for text, ending in ((source.code, "cu"), (source.driver, "py")):
        file = GOLDEN / f"{example.__name__}.{ending}"
        if pytestconfig.getoption("--update-golden"):
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
        assert text == file.read_text()


@needs_compiler
def test_kernels_compute_what_the_tape_says() -> None:
    tapes = [example() for example in EXAMPLES]
    sources = [generate(tape) for tape in tapes]
    for tape, source, function in zip(tapes, sources, load(sources), strict=True):
        values = [value if np.iscomplexobj(value) else abs(value) for value in arguments(tape)]
        compare(tape, source, function(*values), values)


@needs_nvrtc
@pytest.mark.parametrize("architecture", ENDS)
def test_kernels_compile_without_warnings(architecture: str) -> None:
    found = compiled(unit([generate(example()) for example in EXAMPLES]), architecture, "--Ofast-compile=max")
    assert found.succeeded and not found.log, found.log[:4000]
