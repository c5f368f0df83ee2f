"""Recorded launches, run again by a program of their own, which may be built with a sanitiser."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tests.cuda.hosted import Source, build, unit

ADDRESSES = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
# Only optimised code copies a struct member by member, which is what the sanitiser watches.
THREADS = ("-fsanitize=thread", "-O1")


def program(sources: Sequence[Source], *options: str) -> Path:
    """The program for the kernels of all sources."""
    names = ", ".join(
        f"launch{number}_{kernel.name}" for number, source in enumerate(sources) for kernel in source.kernels
    )
    text = f"""#include "replay.h"
{unit(sources)}
int main(int count, char **arguments)
{{
    static const Launch kernels[] = {{{names}}};
    return replay(kernels, count, arguments);
}}
"""
    return build(text, *options, kind="exe")


def replayed(
    sources: Sequence[Source], functions: Sequence[Callable[..., Any]], folder: Path, *options: str
) -> subprocess.CompletedProcess[str]:
    """Run the launches of the last call of each function again; fail if a result differs in any bit.

    Every buffer that a kernel writes is full of other bytes at first.
    """
    kernels = [kernel for source in sources for kernel in source.kernels]
    numbers = {kernel.name: number for number, kernel in enumerate(kernels)}
    arrays: dict[int, np.ndarray] = {}
    written: set[int] = set()
    launches = []
    for function in functions:
        for launcher, blocks, threads, arguments in function.record:  # type: ignore[attr-defined]
            number = numbers[launcher.name]
            given = []
            for argument, parameter in zip(arguments, kernels[number].parameters, strict=True):
                if not isinstance(argument, np.ndarray):
                    given.append(struct.pack("=i16s", -1, np.array(argument).tobytes()))
                    continue
                assert argument.flags.c_contiguous
                place = argument.ctypes.data
                arrays.setdefault(place, argument)
                if not parameter.type.startswith("const") and parameter.name != "fault":
                    written.add(place)
                given.append(struct.pack("=iQQ", list(arrays).index(place), 0, 0))
            head = struct.pack("=5I", number, blocks, threads, launcher.barriers, len(given))
            launches.append(head + b"".join(given))
    parts = [struct.pack("=I", len(arrays))]
    for place, array in arrays.items():
        content = b"\xa5" * array.nbytes if place in written else array.tobytes()
        parts += [struct.pack("=Q", len(content)), content]
    given_file, found_file = folder / "given", folder / "found"
    given_file.write_bytes(b"".join([*parts, struct.pack("=I", len(launches)), *launches]))
    command = [str(program(sources, *options)), str(given_file), str(found_file)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == 0:
        found = found_file.read_bytes()
        for array in arrays.values():
            if array.dtype != np.uint8:
                assert found[: array.nbytes] == array.tobytes()
            found = found[array.nbytes :]
    return done
