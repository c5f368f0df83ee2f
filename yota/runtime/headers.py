"""Precompiled headers of CPython and NumPy, which are longer than most generated functions."""

from __future__ import annotations

import itertools
import os
import sysconfig
from pathlib import Path

import numpy as np

from yota.errors import CodegenError
from yota.runtime.compiler import Compiler
from yota.runtime.store import Store, digest_of

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
"""First lines of every generated extension; including them again has no effect."""
_WORTH_IT = 2
"""Number of compiled files after which a precompiled header pays off."""
_found: dict[tuple[Store, Compiler], Path] = {}


def ready(kept: Store, compiler: Compiler) -> Path | None:
    """A precompiled header to include first; None while few files are compiled, or if it cannot be stored."""
    known = _found.get((kept, compiler))
    if known is None:
        if len(list(itertools.islice(kept.path.glob("*.so"), _WORTH_IT))) < _WORTH_IT:
            return None
        try:
            known = _found[kept, compiler] = _made(kept, compiler)
        except (CodegenError, OSError):
            return None
    # Emptying the cache removes the header too.
    return known if known.is_file() else None


def _made(kept: Store, compiler: Compiler) -> Path:
    key = "headers-" + _key(compiler)
    header = kept.path / f"{key}.h"
    kept.write(header, HEADERS)
    kept.get(key, lambda output: compiler.parse(header, output), ".h.gch")
    return header


def _key(compiler: Compiler) -> str:
    """A digest of everything that precompiled headers depend on; the compiler checks its own version and flags."""
    files = [Path(sysconfig.get_paths()["include"], "Python.h")]
    files += [Path(np.get_include(), "numpy", name) for name in ("arrayobject.h", "_numpyconfig.h")]
    parts = [HEADERS, *compiler.command, compiler.version, *compiler.flags, np.__version__]
    for file in files:
        state = os.stat(file)
        parts += map(str, (file, state.st_mtime_ns, state.st_size))
    return digest_of(parts)
