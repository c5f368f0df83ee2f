"""Holds C for all sizes against yota at sizes that it was not made from, where there is a compiler to build it."""

from __future__ import annotations

import itertools
import json
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

    source: text of the C file.
    header: name and text of its header.
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
    for number, case in enumerate(cases):
        if results[f"status{number}"] == 0:
            found = (results[f"result{number}_{place}"] for place, _ in enumerate(case.expected))
            case.check([np.reshape(one, np.shape(other)) for one, other in zip(found, case.expected, strict=True)])
        elif results[f"status{number}"] != WRONG_SIZES:
            raise ArgumentError(f"{case.what}: the code for all sizes returns {results[f'status{number}']}")
    return ""


def _run(
    compiler: Compiler, folder: Path, source: str, header: tuple[str, str], cases: Sequence[Case]
) -> dict[str, Any] | None:
    """Statuses and results of all cases; None if the process that called did not end well."""
    (folder / "proved.c").write_text(source)
    (folder / header[0]).write_text(header[1])
    library, arrays, results = folder / "proved.so", folder / "cases.npz", folder / "results.npz"
    replace(compiler, flags=_FLAGS).compile(folder / "proved.c", library)
    calls: list[tuple[str, list[int], list[str], list[str]]] = []
    stored: dict[str, Any] = {}
    for number, case in enumerate(cases):
        inputs: list[str] = []
        outputs: list[str] = []
        for place, value in enumerate(case.inputs):
            inputs.append(f"input{number}_{place}")
            stored[inputs[-1]] = np.ascontiguousarray(value) if np.ndim(value) else np.asarray(value)
        for place, value in enumerate(case.expected):
            outputs.append(f"output{number}_{place}")
            stored[outputs[-1]] = np.full(np.shape(value) or (1,), 7, np.asarray(value).dtype)
        calls.append((case.name, list(case.size.values()), inputs, outputs))
    stored["calls"] = np.array(json.dumps(calls))
    np.savez(arrays, **stored)
    words = [sys.executable, "-I", str(Path(__file__).with_name("runner.py")), str(library), str(arrays), str(results)]
    done = subprocess.run(words, capture_output=True, check=False)
    if done.returncode:
        return None
    with np.load(results) as found:
        return dict(found)


def _cases(title: str, request: Request) -> Iterator[Case]:
    names = request.call.dimensions()
    more = [{name: _LONG if name == long else _SHORT for name in names} for long in names]
    for size in itertools.chain(trials(names), more):
        yield from cases_at(title, request.call, request.wrt, request.wanted, size)
