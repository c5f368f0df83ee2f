"""Calls functions of a shared library in a process of its own, where a fault hurts nobody.

A script, ``runner.py LIBRARY CASES RESULTS``, which does not know yota.
"""

from __future__ import annotations

import ctypes
import json
import sys
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
    functions = ctypes.CDLL(library)
    found: dict[str, Any] = {}
    with np.load(cases) as arrays:
        for number, (name, sizes, inputs, outputs) in enumerate(json.loads(str(arrays["calls"]))):
            given = [arrays[each] for each in inputs]
            written = [np.array(arrays[each]) for each in outputs]
            words: list[Any] = [ctypes.c_ssize_t(size) for size in sizes]
            words += [_pointer(each) if each.ndim else _NUMBERS[each.dtype.name](each.item()) for each in given]
            words += [_pointer(each) for each in written]
            found[f"status{number}"] = np.array(getattr(functions, name)(*words))
            found |= {f"result{number}_{place}": each for place, each in enumerate(written)}
    np.savez(results, **found)


def _pointer(array: Any) -> Any:
    return array.ctypes.data_as(ctypes.c_void_p)


if __name__ == "__main__":
    run(*sys.argv[1:])
