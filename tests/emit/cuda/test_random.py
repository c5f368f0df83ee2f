"""Random programs: generated CUDA kernels, run on the host, against op-by-op evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.cuda.collected import SAMPLE, collected
from tests.cuda.hosted import Source, load, needs_compiler
from tests.emit.programs import Writer, arguments, check, evaluate
from yota.emit.targets.cuda import Form, generate
from yota.ir.tape import Tape

pytestmark = needs_compiler

BLOCKS = {"long": 32, "rows": 64, "wide": 128, "tall": 256, "pairs": 512, "blocks": 1024}


@pytest.mark.parametrize(("shapes", "dtype"), SAMPLE)
def test_kernels_compute_what_the_tape_says(shapes: str, dtype: str) -> None:
    tapes = collected(shapes, dtype)
    sources = [generate(tape, threads=BLOCKS.get(shapes, 256)) for tape in tapes]
    for tape, source, function in zip(tapes, sources, load(sources), strict=True):
        values = arguments(tape)
        compare(tape, source, function(*values), values)


def compare(tape: Tape, source: Source, results: Any, values: Sequence[Any]) -> None:
    """Check results against an evaluation op by op; arrays without axes stand for numbers."""
    expected = evaluate(tape, *values)
    noisy = [evaluate(tape, *values, noise=np.random.default_rng(seed)) for seed in range(3)]
    found = results if len(tape.outputs) != 1 else (results,)
    found = [
        type.dtype.type(result).item() if (type := tape.types[variable]).weak else result if type.shape else result[()]
        for variable, result in zip(tape.outputs, found, strict=True)
    ]
    try:
        check(tape, found if len(found) != 1 else found[0], expected, noisy=noisy)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{source.text}") from None


def test_arrays_are_read_where_they_lie() -> None:
    """Transposed, reversed, sliced and broadcast arguments are not copied first."""
    tapes, forms, given = [], [], []
    random = np.random.default_rng(0)
    for shapes in ("rows", "blocks", "tall"):
        for tape in collected(shapes, "float64", 3):
            plain, laid, layout = arguments(tape), [], []
            for value in plain:
                array = _elsewhere(value, random)
                laid.append(array)
                layout.append(Form(True, tuple(step // array.itemsize for step in array.strides)))
            tapes.append(tape)
            forms.append(layout)
            given.append(laid)
    sources = [generate(tape, form) for tape, form in zip(tapes, forms, strict=True)]
    for tape, source, values, function in zip(tapes, sources, given, load(sources), strict=True):
        compare(tape, source, function(*values), values)


def test_constants_in_any_order_are_read_in_theirs() -> None:
    random = np.random.default_rng(2)
    held = [random.standard_normal((40, 50)).T, np.broadcast_to(random.standard_normal(40), (50, 40))]
    held.append(random.standard_normal((100, 80))[::-2, ::2])
    tapes = []
    for number, constant in enumerate(held):
        write = Writer(f"constant{number}")
        x = write.input("x", (50, 40))
        tapes.append(write.finish(write("sum", write("multiply", x, write.constant(constant)), axis=(1,))))
    sources = [generate(tape) for tape in tapes]
    for tape, source, function in zip(tapes, sources, load(sources), strict=True):
        values = arguments(tape)
        compare(tape, source, function(*values), values)


def _elsewhere(value: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """The same elements in another order in memory."""
    order = tuple(random.permutation(value.ndim))
    wide = np.full(tuple(2 * extent for extent in value.shape), np.nan).transpose(order)
    found = wide.transpose(np.argsort(order))[tuple(slice(None, None, random.choice([-2, 2])) for _ in order)]
    found[...] = value
    return found
