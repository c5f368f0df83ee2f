"""All that the tests of CUDA look at in part, in full: ``python -m tests.cuda.sweep``, or some of its parts.

``compile``: the golden kernels, those of every rule and of over 200 random programs, by NVRTC for each architecture.
``run``: every size with every number of threads, and all random programs, watched for stray accesses and undefined
behaviour, results full of other bytes at first. ``races``: the same sizes, watched for races between the threads of a
block, in five minutes. ``registers``: what polynomials take.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tests.cuda.collected import DTYPES, SHAPES, collected
from tests.cuda.hosted import Source, load
from tests.cuda.nvrtc import VIRTUAL, compiled, resources, unit
from tests.cuda.replayed import ADDRESSES, THREADS, replayed
from tests.cuda.specimens import specimens
from tests.emit.cuda.test_golden import EXAMPLES
from tests.emit.cuda.test_launches import BLOCKS, SIZES, mixed, outwards, polynomial, rows, tall
from tests.emit.cuda.test_random import compare
from tests.emit.programs import arguments
from yota.emit.targets.cuda import generate
from yota.errors import CodegenError
from yota.ir.tape import Tape

MAKERS: tuple[Callable[[int], Tape], ...] = (mixed, rows, tall, outwards)
LONGEST_ROWS = 3_000
"""Sizes of arrays of several axes."""
MOST_THREADS = 1_100
"""Sizes up to which a kernel runs with threads of the system: each is one there."""


def random_programs() -> Iterator[tuple[str, list[Tape]]]:
    for shapes in SHAPES:
        for dtype in DTYPES:
            yield f"{shapes} {dtype}", list(collected(shapes, dtype))


def sized(makers: Sequence[Callable[[int], Tape]], block: int, most: int) -> tuple[list[Tape], list[Source]]:
    """Each kind of kernel at every size, with so many threads."""
    tapes = []
    for make in makers:
        sizes = {n if make in (mixed, outwards) else min(n, LONGEST_ROWS) for n in SIZES if n <= most}
        tapes += [replace(make(n), name=f"{make.__name__}_{n}_{block}") for n in sorted(sizes)]
    return tapes, [generate(tape, threads=block) for tape in tapes]


def watched(tapes: Sequence[Tape], sources: Sequence[Source], *options: str) -> str:
    """What is wrong with the kernels: with their results, or with what they do to memory."""
    functions = load(sources)
    try:
        for tape, source, function in zip(tapes, sources, functions, strict=True):
            values = arguments(tape)
            compare(tape, source, function(*values), values)
        with tempfile.TemporaryDirectory() as folder:
            done = replayed(sources, functions, Path(folder), *options)
    except AssertionError as error:
        return str(error)[:2000]
    return "" if done.returncode == 0 else done.stderr[:2000]


def compile_all() -> Iterator[tuple[str, str]]:
    named: list[tuple[str, list[Source]]] = [("golden", [generate(example()) for example in EXAMPLES])]
    named += [(name, [generate(tape) for tape in tapes]) for name, tapes in random_programs()]
    rules = []
    for specimen in specimens():
        try:
            rules.append(generate(specimen.tape))
        except CodegenError:
            continue  # refused, as the tests say
    named += [(f"rules {first}", rules[first : first + 40]) for first in range(0, len(rules), 40)]
    for name, sources in named:
        for architecture in VIRTUAL:
            found = compiled(unit(sources), architecture)
            yield f"{name}: {len(sources)} files for {architecture}", "" if found.succeeded else found.log or "failed"
            yield f"{name}: warnings for {architecture}", found.log


def run_all() -> Iterator[tuple[str, str]]:
    for block in BLOCKS:
        yield f"sizes with {block} threads", watched(*sized(MAKERS, block, 10**9), *ADDRESSES)
    for number, (name, tapes) in enumerate(random_programs()):
        sources = [generate(tape, threads=BLOCKS[number % len(BLOCKS)]) for tape in tapes]
        yield f"random programs {name}", watched(tapes, sources, *ADDRESSES)


def races() -> Iterator[tuple[str, str]]:
    for block in BLOCKS:
        for make in MAKERS:
            yield f"{make.__name__} with {block} threads", watched(*sized([make], block, MOST_THREADS), *THREADS)


def registers() -> Iterator[tuple[str, str]]:
    for terms in (40, 200):
        for architecture in ("sm_75", "sm_80", "sm_90", "sm_100"):
            for name, used in resources(generate(polynomial(terms)).code, architecture).items():
                what = f"{name} for {architecture}: {used.registers} registers, {used.spilled} bytes spilled"
                yield what, "spills" if used.spilled else ""


PARTS = {"compile": compile_all, "run": run_all, "races": races, "registers": registers}


def main(names: Sequence[str]) -> int:
    """Do the parts that are named, all without any; 1 if something was wrong."""
    wrong = 0
    for name in names or PARTS:
        start = time.perf_counter()
        count = 0
        for what, fault in PARTS[name]():
            count += 1
            if fault or name == "registers":
                print(f"{name}: {what}{': ' if fault else ''}{fault}", flush=True)
            wrong += bool(fault)
        print(f"{name}: {count} looks in {time.perf_counter() - start:.0f} s", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
