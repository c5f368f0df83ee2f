"""Calls functions of a shared library in a process of its own, where a fault hurts nobody.

A script, ``runner.py LIBRARY CASES RESULTS``, which knows neither yota nor NumPy, so that it starts in no time.
"""

from __future__ import annotations

import ctypes
import pickle
import sys
from pathlib import Path
from typing import Any

_NUMBERS = {
    "float64": ctypes.c_double,
    "float32": ctypes.c_float,
    "int64": ctypes.c_int64,
    "int32": ctypes.c_int32,
    "uint8": ctypes.c_uint8,
    "bool": ctypes.c_uint8,
}


def run(library: str, cases: str, results: str) -> None:
    """Call what ``cases`` lists, and save the statuses and what was written."""
    functions, found = ctypes.CDLL(library), []
    for name, sizes, inputs, outputs in pickle.loads(Path(cases).read_bytes()):
        written = list(map(_memory, outputs))
        words: list[Any] = [ctypes.c_ssize_t(size) for size in sizes]
        words += [_NUMBERS[dtype](value) if dtype else _memory(value) for dtype, value in inputs]
        found.append((getattr(functions, name)(*words, *written), list(map(bytes, written))))
    Path(results).write_bytes(pickle.dumps(found))


def _memory(content: bytes) -> Any:
    return (ctypes.c_char * len(content)).from_buffer_copy(content)


if __name__ == "__main__":
    run(*sys.argv[1:])
