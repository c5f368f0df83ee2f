"""Calls of one derivative by several threads, while one of them compiles."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_PROGRAM = """
import threading
from concurrent.futures import ThreadPoolExecutor
import numpy as np
import yota
from yota.errors import DifferentiationError
from yota.run.machine import cache

cache._PATIENCE = 0.02
two = np.ones(2)
pool, begun, go_on = ThreadPoolExecutor(1), threading.Event(), threading.Event()


def f(x, *, halves=False):
    if x.size == 3:
        begun.set()
        assert go_on.wait(60)
    first = pool.submit(fg, two).result()[0] if halves else 0.0
    return np.sum(x * x) + first


fg = yota.value_and_grad(f)
try:
    fg(np.ones(4), halves=True)
except DifferentiationError as fault:
    assert "waits for another thread in" in str(fault) and __file__ in str(fault), fault
else:
    raise AssertionError("a thread waits for itself")
assert fg(np.ones(2))[0] == 2.0
value, slope = fg(np.ones(4), halves=True)
assert value == 6.0 and slope.tolist() == [2.0] * 4

# Calls with keywords have no short way, and go on while another thread compiles.
cache._PATIENCE = 0.5
compiling = threading.Thread(target=fg, args=(np.ones(3),))
compiling.start()
assert begun.wait(60)
for _ in range(3):
    assert fg(x=np.ones(4), halves=True)[0] == 6.0 and fg(np.ones(2))[0] == 2.0
assert compiling.is_alive()
go_on.set()
compiling.join()
pool.shutdown()
"""


def test_threads_beside_one_that_compiles(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(_PROGRAM)
    subprocess.run([sys.executable, program], check=True, timeout=120)
