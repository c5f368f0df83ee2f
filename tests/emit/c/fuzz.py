"""Many random programs in C, by hand: ``python -m tests.emit.c.fuzz --programs 5000``.

Tapes are held against op-by-op evaluation; with ``--writes``, derivatives of functions that write into arrays in place
are held against complex steps, for NumPy too. With ``--sanitize``, generated code is compiled with the checks of memory
and of undefined behaviour that GCC has.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.emit.c.test_in_place import lower_limits
from tests.emit.c.test_random import SHAPES
from tests.emit.in_place import KINDS, agree
from tests.emit.programs import arguments, check, evaluate, tapes
from yota.emit.targets.c import generate
from yota.run.machine import native

DTYPES = ("float64", "float32", "complex128", "complex64")
LIBRARIES = ("libasan.so", "libubsan.so")
SANITIZED = "-fsanitize=address,undefined -fno-sanitize-recover=all"


def main() -> int:
    """Run what the command line asks for; 1 if a program came out otherwise."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--writes", action="store_true")
    parser.add_argument("--sanitize", action="store_true")
    options = parser.parse_args()
    if options.sanitize and "LD_PRELOAD" not in os.environ:
        return sanitized()
    find = failed_writes if options.writes else failures
    return 1 if find(options.programs, options.seed) else 0


def sanitized() -> int:
    """This command again, in a process in which sanitizers watch."""
    found = [
        subprocess.run(["cc", f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout.strip()
        for name in LIBRARIES
    ]
    environment = {
        **os.environ,
        "LD_PRELOAD": " ".join(found),
        "ASAN_OPTIONS": "detect_leaks=0",
        "CC": f"cc {SANITIZED}",
    }
    with tempfile.TemporaryDirectory() as cache:
        command = [sys.executable, "-m", "tests.emit.c.fuzz", *sys.argv[1:]]
        return subprocess.run(command, env={**environment, "YOTA_CACHE_DIR": cache}, check=False).returncode


def failed_writes(programs: int, start: int) -> int:
    """How many programs that write in place came out otherwise; each is printed."""
    failed = 0
    for number in range(start, start + programs):
        # Derivatives of arrays and second derivatives take longest to compile.
        kind = KINDS[number % 40 - 37] if number % 40 > 37 else KINDS[0]
        longest = 5_000 if kind != KINDS[0] else 150_000 if number % 16 == 0 else 20_000 if number % 4 == 0 else 5_000
        with pytest.MonkeyPatch.context() as patch, np.errstate(all="ignore"):
            if number % 2:
                lower_limits(patch)
            for target in ("numpy", "c"):
                try:
                    agree(number, target, kind, longest)
                except Exception as fault:  # noqa: BLE001  (the other programs are tried all the same)
                    failed += 1
                    print(f"{target} {kind} {number}: FAILED: {type(fault).__name__}: {fault}", flush=True)
        if number % 50 == 49:
            print(f"{number + 1 - start} programs, {failed} failed", flush=True)
    return failed


def failures(programs: int, start: int) -> int:
    """How many kinds of programs came out otherwise; each is printed as small as Hypothesis makes it."""
    kinds = [(name, dtype) for name in SHAPES for dtype in DTYPES]
    failed = 0
    with pytest.MonkeyPatch.context() as patch:
        # Threads for small work too, so that small arrays are cut among them.
        patch.setattr("yota.emit.c.kernels._WORTH_THREADS", 1)
        patch.setattr("yota.emit.c.kernels.WORTH_RELEASING", 1)
        patch.setenv("YOTA_NUM_THREADS", "3")
        for name, dtype in kinds:
            began = time.perf_counter()
            try:
                many(name, dtype, -(-programs // len(kinds)), start)
            except Exception as fault:  # noqa: BLE001  (the other kinds are tried all the same)
                failed += 1
                print(f"{name} {dtype}: FAILED: {fault}", "\n".join(getattr(fault, "__notes__", ())), flush=True)
            else:
                print(f"{name} {dtype}: {time.perf_counter() - began:.0f} s", flush=True)
    return failed


def many(name: str, dtype: str, count: int, start: int) -> None:
    """``count`` programs on arrays of one kind."""

    @seed(start)
    @settings(
        deadline=None,
        max_examples=count,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
    )
    @given(data=st.data())
    def agrees(data: Any) -> None:
        tape = data.draw(tapes(SHAPES[name], dtype))
        values = arguments(tape, start)
        function = native.load(generate(tape))
        check(tape, function(*values), evaluate(tape, *values))

    with np.errstate(all="ignore"):
        agrees()


if __name__ == "__main__":
    sys.exit(main())
