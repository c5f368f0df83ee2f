"""A long compilation shows a line on a terminal, and nothing elsewhere: in a process of its own, with its thread."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PROGRAM = """
import io, itertools, os, sys, threading, time
import numpy as np
import yota
from yota.run import progress

class Stream(io.StringIO):
    def isatty(self):
        return self.terminal

numbers = itertools.count()
runs = []
line = "gradient of slow: tracing, "

def shown(terminal=True, most=0.3):
    number = float(next(numbers))

    def wait():
        runs.append(number)
        end = time.monotonic() + most
        while line not in stream.getvalue() and time.monotonic() < end:
            time.sleep(0.02)

    def slow(x):
        wait()
        return np.sum(x**2) + number

    sys.stderr = stream = Stream()
    stream.terminal = terminal
    assert yota.gradient(slow)(np.ones(2)).tolist() == [2.0, 2.0]
    sys.stderr = sys.__stderr__
    assert "yota-progress" not in [each.name for each in threading.enumerate()]
    return stream.getvalue()

assert progress._AFTER == 2.0
progress._AFTER = 300.0
assert not shown(), "it was not that long"
progress._AFTER, progress._TICK = 0.05, 0.02
assert line in shown(most=60.0)
assert shown(most=60.0).endswith("\\r\\x1b[2K"), "the line is gone afterwards"
assert not shown(terminal=False)
os.environ["YOTA_PROGRESS"] = "off"
assert not shown()
assert runs == [*range(5)], "what is shown does not look like a draw of the function's"
"""


def test_the_line_of_a_long_compilation():
    # The command line of yota, which other tests run in this process, switches the line off for itself.
    environment = {name: value for name, value in os.environ.items() if name != "YOTA_PROGRESS"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM],
        cwd=ROOT,
        env={**environment, "TERM": "xterm"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
