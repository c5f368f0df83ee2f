"""Block and array sizes at the edges, stray accesses and races, and what polynomials take of a GPU's registers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.cuda.collected import collected
from tests.cuda.hosted import load, needs_compiler
from tests.cuda.nvrtc import needs_nvrtc, resources
from tests.cuda.replayed import ADDRESSES, THREADS, replayed
from tests.emit.cuda.test_golden import softmax
from tests.emit.cuda.test_random import compare
from tests.emit.programs import Writer, arguments
from yota.emit.targets.cuda import Source, generate
from yota.ir.tape import Tape

SIZES = (0, 1, 31, 32, 33, 1023, 1025, 100_000)
BLOCKS = (32, 64, 128, 256, 512, 1024)


def mixed(n: int) -> Tape:
    """All that a kernel may do with ``n`` points: store, and add up over all of them."""
    write = Writer(f"mixed{n}")
    x, y = write.input("x", (n,)), write.input("y", (n,))
    z = write("add", write("multiply", x, y), 0.5)
    return write.finish(write("sum", z), write("multiply", z, x), write("sum", write("square", z)))


def rows(n: int) -> Tape:
    write = Writer(f"rows{n}")
    x = write.input("x", (4, n))
    return write.finish(write("sum", write("square", x), axis=(1,)), write("sum", x))


def tall(n: int) -> Tape:
    write = Writer(f"tall{n}")
    x = write.input("x", (n, 40))
    return write.finish(write("sum", write("square", x), axis=(0,)), write("square", x))


def outwards(n: int) -> Tape:
    """Points that are rows of what is written, and not of what is read."""
    write = Writer(f"outwards{n}")
    x = write.input("x", (n,))
    return write.finish(write("stack", write("square", x), x, write("negative", x), axis=1))


def folded(shape: tuple[int, ...], axis: tuple[int, ...]) -> Tape:
    """Totals over some axes of several."""
    write = Writer("folded" + "_".join(map(str, (*shape, *axis))))
    x = write.input("x", shape)
    return write.finish(write("sum", write("square", x), axis=axis), write("max", x, axis=axis))


@needs_compiler
def test_totals_over_any_axes() -> None:
    tapes = [folded((12, 40, 50), (axis,)) for axis in range(3)]
    tapes += [folded((40, 3000, 18), (1,)), folded((20, 18, 19, 30), (1, 3)), folded((20, 18, 19, 30), (0, 2))]
    sources = [generate(tape) for tape in tapes]
    for tape, source, function in zip(tapes, sources, load(sources), strict=True):
        values = arguments(tape)
        compare(tape, source, function(*values), values)


@needs_compiler
def test_sizes_and_blocks() -> None:
    tapes, sources = [], []
    for shift, make in enumerate((mixed, rows, tall, outwards)):
        for number, n in enumerate(SIZES):
            n = n if make in (mixed, outwards) else min(n, 3_000)
            for block in (BLOCKS[(number + shift) % 6], BLOCKS[(number + shift + 3) % 6]):
                tapes.append(replace(make(n), name=f"{make.__name__}_{number}_{block}"))
                sources.append(generate(tapes[-1], threads=block))
    for tape, source, function in zip(tapes, sources, load(sources), strict=True):
        values = arguments(tape)
        compare(tape, source, function(*values), values)
        first = [np.array(each) for each in function(*values)]
        for one, other in zip(first, function(*values), strict=True):
            assert one.tobytes() == other.tobytes()


@needs_compiler
def test_no_stray_access(tmp_path: Path) -> None:
    tapes = [mixed(1025), rows(600), tall(1030), softmax(), *collected("blocks", "complex128", 3)]
    sources = [generate(tape, threads=64) for tape in tapes]
    functions = load(sources)
    for tape, function in zip(tapes, functions, strict=True):
        function(*arguments(tape))
    done = replayed(sources, functions, tmp_path, *ADDRESSES)
    assert done.returncode == 0, done.stderr[:3000]


@needs_compiler
def test_no_races(tmp_path: Path) -> None:
    tapes = [mixed(600), rows(70), replace(outwards(150), name="outwards")]
    sources = [generate(tape, threads=32) for tape in tapes]
    functions = load(sources)
    for tape, function in zip(tapes, functions, strict=True):
        function(*arguments(tape))
    done = replayed(sources, functions, tmp_path, *THREADS)
    assert done.returncode == 0, done.stderr[:3000]


def broken(source: Source, old: str, new: str) -> Source:
    assert old in source.code
    return replace(source, code=source.code.replace(old, new))


@needs_compiler
def test_planted_faults_are_found(tmp_path: Path) -> None:
    tape = mixed(600)
    source = generate(tape, threads=32)
    (function,) = load([source])
    function(*arguments(tape))
    stray = broken(source, "taken<2>(x + base,", "taken<2>(x + base + 1,")
    assert "heap-buffer-overflow" in replayed([stray], [function], tmp_path, *ADDRESSES).stderr
    race = broken(source, "        __syncthreads();\n        if (place < half) {", "        if (place < half) {")
    assert "data race" in replayed([race], [function], tmp_path, *THREADS).stderr


def polynomial(terms: int) -> Tape:
    """Value and gradient of a polynomial of eight variables at many points, one array for each variable."""
    random = np.random.default_rng(terms)
    write = Writer(f"polynomial{terms}")
    x = [write.input(f"x{number}", (10_000,)) for number in range(8)]
    value = None
    slopes: list[int | None] = [None] * 8
    for _ in range(terms):
        chosen = [int(number) for number in random.choice(8, 3, replace=False)]
        factor = float(random.integers(2, 9))
        term = write("multiply", factor, write("multiply", x[chosen[0]], write("multiply", x[chosen[1]], x[chosen[2]])))
        value = term if value is None else write("add", value, term)
        for number in chosen:
            others = [each for each in chosen if each != number]
            slope = write("multiply", factor, write("multiply", x[others[0]], x[others[1]]))
            known = slopes[number]
            slopes[number] = slope if known is None else write("add", known, slope)
    assert value is not None
    return write.finish(value, *(slope for slope in slopes if slope is not None))


@needs_nvrtc
@pytest.mark.parametrize("terms", [40, 200])
def test_polynomials_spill_nothing(terms: int) -> None:
    source = generate(polynomial(terms))
    found = resources(source.code, "sm_90")
    assert set(found) == {kernel.name for kernel in source.kernels}
    for used in found.values():
        assert used.spilled == 0 and used.registers <= 255
