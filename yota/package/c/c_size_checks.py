"""Holds C for all sizes against yota at sizes that it was not made from, where there is a compiler to build it."""

from __future__ import annotations

import itertools
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from yota.emit.c.statements import WRONG_SIZES
from yota.errors import ArgumentError, CodegenError
from yota.package.request import Request
from yota.package.size_checks import Case, cases_at, trials
from yota.run.machine.compiler import Compiler, find

_FLAGS = ("-std=c99", "-O1", "-fPIC", "-shared", "-ffp-contract=off", "-w")
_LONG, _SHORT = 150, 3
"""Extents of which one loop is longer than the blocks of sums."""


def proved(source: str, header: tuple[str, str], title: str, request: Request) -> str:
    """Hold a C file against yota; a note if that could not be done.

    title: name of the function in it.
    Raises ArgumentError if it computes something else at some sizes.
    """
    try:
        compiler = find()
    except CodegenError:
        compiler = None
    # A program that has Python inside is not to be started again.
    if compiler is None or not Path(sys.executable or "").name.startswith("python"):
        return (
            "not held against NumPy at other sizes, for want of a C compiler: build it with self_test=True and run it"
        )
    cases = list(_cases(title, request))
    with tempfile.TemporaryDirectory(prefix="yota-") as folder:
        results = _run(compiler, Path(folder), source, header, cases)
    if results is None:
        raise ArgumentError(
            "the code for all sizes ends in a fault at small sizes; fix the sizes, as in float64[100,3]"
        )
    for case, (status, found) in zip(cases, results, strict=True):
        if status == 0:
            case.check([np.reshape(one, np.shape(other)) for one, other in zip(found, case.expected, strict=True)])
        elif status != WRONG_SIZES:
            raise ArgumentError(f"{case.what}: the code for all sizes returns {status}")
    return ""


def _run(
    compiler: Compiler, folder: Path, source: str, header: tuple[str, str], cases: Sequence[Case]
) -> list[tuple[int, list[Any]]] | None:
    """Statuses and results of all cases; None if the process that called did not end well."""
    (folder / "proved.c").write_text(source)
    (folder / header[0]).write_text(header[1])
    library, calls, results = folder / "proved.so", folder / "cases", folder / "results"
    replace(compiler, flags=_FLAGS).compile(folder / "proved.c", library)
    stored = []
    for case in cases:
        inputs = [np.ascontiguousarray(each) if np.ndim(each) else np.asarray(each) for each in case.inputs]
        outputs = [np.full(np.shape(each) or (1,), 7, np.asarray(each).dtype) for each in case.expected]
        stored.append((case.name, list(case.size.values()), inputs, outputs))
    calls.write_bytes(pickle.dumps(stored))
    words = [sys.executable, "-I", str(Path(__file__).with_name("runner.py")), str(library), str(calls), str(results)]
    if subprocess.run(words, capture_output=True, check=False).returncode:
        return None
    found: list[tuple[int, list[Any]]] = pickle.loads(results.read_bytes())
    return found


def _cases(title: str, request: Request) -> Iterator[Case]:
    names = request.call.dimensions()
    more = [{name: _LONG if name == long else _SHORT for name in names} for long in names]
    for size in itertools.chain(trials(names), more):
        yield from cases_at(title, request.call, request.wrt, request.wanted, size)
