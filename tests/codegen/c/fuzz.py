"""Many random programs in C against op-by-op evaluation, by hand: ``python -m tests.codegen.c.fuzz --programs 5000``.

With ``--sanitize``, generated code is compiled with the checks of memory and of undefined behaviour that GCC has.
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

from tests.codegen.c.test_random import SHAPES
from tests.codegen.programs import arguments, check, evaluate, tapes
from yota.codegen.targets.c import generate
from yota.runtime import native

DTYPES = ("float64", "float32", "complex128", "complex64")
LIBRARIES = ("libasan.so", "libubsan.so")
SANITIZED = "-fsanitize=address,undefined -fno-sanitize-recover=all"


def main() -> int:
    """Run what the command line asks for; 1 if a program came out otherwise."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sanitize", action="store_true")
    options = parser.parse_args()
    if options.sanitize and "LD_PRELOAD" not in os.environ:
        return sanitized()
    return 1 if failures(options.programs, options.seed) else 0


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
        command = [sys.executable, "-m", "tests.codegen.c.fuzz", *sys.argv[1:]]
        return subprocess.run(command, env={**environment, "YOTA_CACHE_DIR": cache}, check=False).returncode


def failures(programs: int, start: int) -> int:
    """How many kinds of programs came out otherwise; each is printed as small as Hypothesis makes it."""
    kinds = [(name, dtype) for name in SHAPES for dtype in DTYPES]
    failed = 0
    with pytest.MonkeyPatch.context() as patch:
        # Threads for small work too, so that small arrays are cut among them.
        patch.setattr("yota.codegen.c.kernel._WORTH_THREADS", 1)
        patch.setattr("yota.codegen.c.kernel._WORTH_RELEASING", 1)
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
