"""Calls functions of a shared library in a process of its own, where a fault hurts nobody.

A script, ``runner.py LIBRARY CASES RESULTS``, which does not know yota.
"""

from __future__ import annotations

import ctypes
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np

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
        written = [np.array(each) for each in outputs]
        words: list[Any] = [ctypes.c_ssize_t(size) for size in sizes]
        words += [_pointer(each) if each.ndim else _NUMBERS[each.dtype.name](each.item()) for each in inputs]
        words += [_pointer(each) for each in written]
        found.append((getattr(functions, name)(*words), written))
    Path(results).write_bytes(pickle.dumps(found))


def _pointer(array: Any) -> Any:
    return array.ctypes.data_as(ctypes.c_void_p)


if __name__ == "__main__":
    run(*sys.argv[1:])
