"""Runs generated CUDA on the host: kernels compiled as C++ with `host.h`, and drivers with NumPy for CuPy."""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
import types
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from yota.emit.targets.cuda import Source
from yota.run.machine.signals import StaleTape

HERE = Path(__file__).parent
WARNINGS = ("-Wall", "-Wextra", "-Wno-unknown-pragmas", "-Wno-unused-function", "-Wno-unused-variable", "-Werror")
# The headers of C++14 take a fifth of the time to load, and the compiler knows what kernels need of C++17.
COMMAND = ("g++", "-std=c++14", "-Wno-c++17-extensions", "-ffp-contract=off", *WARNINGS)
# With the usual linker, linking takes half of the time of a small file.
_LINKER = ("-fuse-ld=gold",) if shutil.which("ld.gold") else ()
LIBRARY = (*COMMAND, "-shared", "-fPIC", "-O0", *_LINKER)
needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++ to run kernels on the host")


@cache
def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="yota-cuda-host-"))


def unit(sources: Sequence[Source]) -> str:
    """One file with the kernels of all sources, each in a namespace, and functions that launch them."""
    lines = ['#include "host.h"', ""]
    for number, source in enumerate(sources):
        lines += [f"namespace unit{number} {{", _without_assembly(source.code), "}", ""]
        for kernel in source.kernels:
            lines += [
                f'extern "C" void launch{number}_{kernel.name}(',
                "    unsigned blocks, unsigned threads, bool barriers, void **arguments)",
                f"{{ host::launch(unit{number}::{kernel.name}, blocks, threads, barriers, arguments); }}",
                "",
            ]
    return "\n".join(lines)


def _without_assembly(code: str) -> str:
    """The code with the two instructions that are written as such in the host's words."""
    for line, instead in (
        ('asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));', "bits = host::half_of(x);"),
        ('asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));', "x = host::single_of(bits);"),
        ('asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));', ""),
    ):
        code = code.replace(line, instead)
    return code


@cache
def _parsed() -> Path:
    """A folder with `host.h` as the compiler keeps it: parsing takes most of the time of a small file."""
    folder = Path(tempfile.mkdtemp(prefix="parsed-", dir=_folder()))
    _compile([*LIBRARY, "-x", "c++-header", str(HERE / "host.h"), "-o", str(folder / "host.h.gch")])
    return folder


@cache
def _scheduler() -> Path:
    """`host.cpp`, compiled for libraries."""
    output = _folder() / "host.o"
    _compile([*COMMAND, "-fPIC", "-O1", "-c", str(HERE / "host.cpp"), "-o", str(output)])
    return output


def _compile(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:4000]


def build(text: str, *options: str, kind: str = "so") -> Path:
    """The compiled file of a text."""
    if kind == "so":
        command = [*LIBRARY, f"-I{_parsed()}", f"-I{HERE}", *options, str(_scheduler())]
    else:
        command = [*COMMAND, f"-I{HERE}", *options, str(HERE / "host.cpp")]
    key = hashlib.sha256("\0".join([*command, text]).encode()).hexdigest()[:24]
    output = _folder() / f"{key}.{kind}"
    if not output.exists():
        file = output.with_suffix(".cpp")
        file.write_text(text)
        _compile([*command, str(file), "-o", str(output)])
    return output


def has_barriers(source: Source, name: str) -> bool:
    """Whether a kernel's text joins threads."""
    text = source.code.partition(f"\n{name}(")[2].partition("\n}\n")[0]
    return "joined" in text or "__syncthreads" in text


class Launcher:
    """Stands for a compiled kernel: ``kernel(grid, block, arguments)``."""

    def __init__(self, name: str, function: Any, barriers: bool, record: list[Any]) -> None:
        self.name, self.function, self.barriers, self.record = name, function, barriers, record

    def __call__(self, grid: tuple[int], block: tuple[int], arguments: Sequence[Any]) -> None:
        values, pointers = [], []
        for argument in arguments:
            if isinstance(argument, np.ndarray):
                assert argument.flags.aligned
                values.append(ctypes.c_void_p(argument.ctypes.data))
                pointers.append(ctypes.addressof(values[-1]))
            else:
                assert isinstance(argument, np.generic), type(argument)
                values.append(np.array(argument))
                pointers.append(values[-1].ctypes.data)
        self.record.append((self, grid[0], block[0], tuple(arguments)))
        self.function(grid[0], block[0], self.barriers, (ctypes.c_void_p * max(1, len(pointers)))(*pointers))


def empty(shape: Any, dtype: Any = float) -> np.ndarray:
    """Fresh memory, full of what no kernel may leave there."""
    found = np.empty(shape, dtype)
    if found.dtype == np.uint8:
        found.reshape(-1)[...] = 0xA5
    else:
        found[...] = np.nan if found.dtype.kind in "fc" else 0x5A if found.dtype.kind in "iu" else True
    return found


def device() -> Any:
    """NumPy in the place of CuPy."""
    stand_in = types.ModuleType("cupy")
    stand_in.__dict__.update({name: getattr(np, name) for name in dir(np) if not name.startswith("__")})
    stand_in.empty = empty  # type: ignore[attr-defined]
    return stand_in


def load(sources: Sequence[Source], *options: str) -> list[Callable[..., Any]]:
    """The functions of all sources, which take and give NumPy arrays; each has its launches as ``record``."""
    library = ctypes.CDLL(os.fspath(build(unit(sources), *options))) if any(source.code for source in sources) else None
    found = []
    for number, source in enumerate(sources):
        record: list[Any] = []
        names = {}
        for kernel in source.kernels:
            function = getattr(library, f"launch{number}_{kernel.name}")
            function.argtypes = [ctypes.c_uint, ctypes.c_uint, ctypes.c_bool, ctypes.c_void_p]
            names[kernel.name] = Launcher(kernel.name, function, has_barriers(source, kernel.name), record)
        found.append(driver(source, names, record))
    return found


def driver(source: Source, names: dict[str, Any], record: list[Any]) -> Callable[..., Any]:
    """The Python function of a source, with ``names`` for its kernels."""
    text = source.driver.replace("import cupy as cp\n", "").replace("cupyx.scipy", "scipy")
    namespace = {"cp": device(), "StaleTape": StaleTape, **source.constants, **names}
    with np.errstate(all="ignore"):
        exec(compile(text, source.entry, "exec"), namespace)
    function = namespace[source.entry]
    fault = np.zeros(1, np.int32)
    namespace[source.fault or "_"] = fault

    def run(*arguments: Any) -> Any:
        record.clear()
        with np.errstate(all="ignore"):
            return function(*arguments)

    run.record = record  # type: ignore[attr-defined]
    run.fault = fault  # type: ignore[attr-defined]
    return run
