"""Keeps the headers of CPython and NumPy as the compiler has parsed them, since they are longer than most functions."""

from __future__ import annotations

import hashlib
import itertools
import os
import sysconfig
from pathlib import Path

import numpy as np

from yota.errors import CodegenError
from yota.runtime.compiler import Compiler
from yota.runtime.store import Store

__all__ = ["HEADERS", "ready"]

HEADERS = """\
#define PY_SSIZE_T_CLEAN
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#include <Python.h>
#include <numpy/arrayobject.h>
#include <numpy/arrayscalars.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
"""
"""What every generated extension begins with: included once more, it changes nothing."""
_WORTH_IT = 2
"""Compiled files after which more are likely to come."""
_found: dict[tuple[Store, Compiler], Path] = {}


def ready(kept: Store, compiler: Compiler) -> Path | None:
    """A header to be included first, parsed before; None while too little was compiled, or if it cannot be kept."""
    known = _found.get((kept, compiler))
    if known is None:
        if len(list(itertools.islice(kept.path.glob("*.so"), _WORTH_IT))) < _WORTH_IT:
            return None
        try:
            known = _found[kept, compiler] = _made(kept, compiler)
        except (CodegenError, OSError):
            return None
    # Whoever empties the cache takes it along.
    return known if known.is_file() else None


def _made(kept: Store, compiler: Compiler) -> Path:
    key = "headers-" + _key(compiler)
    header = kept.path / f"{key}.h"
    kept.write(header, HEADERS)
    kept.get(key, lambda output: compiler.parse(header, output), ".h.gch")
    return header


def _key(compiler: Compiler) -> str:
    """Digest of all that the parsed headers depend on; the compiler itself looks at its own version and flags."""
    files = [Path(sysconfig.get_paths()["include"], "Python.h")]
    files += [Path(np.get_include(), "numpy", name) for name in ("arrayobject.h", "_numpyconfig.h")]
    parts: list[object] = [HEADERS, *compiler.command, compiler.version, *compiler.flags, np.__version__]
    for file in files:
        state = os.stat(file)
        parts += [file, state.st_mtime_ns, state.st_size]
    return hashlib.sha256("\0".join(map(str, parts)).encode("utf-8", "surrogateescape")).hexdigest()[:40]
