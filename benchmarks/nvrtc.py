"""NVIDIA's runtime compiler, by ctypes: it needs neither a GPU nor a driver."""

from __future__ import annotations

import ctypes
import importlib.util
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["VIRTUAL", "Compiled", "Resources", "compiled", "is_installed", "resources"]

VIRTUAL = ("compute_70", "compute_80", "compute_90", "compute_100")


def _file() -> Path | None:
    for package in ("nvidia.cuda_nvrtc", "nvidia.cu13"):
        try:
            found = importlib.util.find_spec(package)
        except ModuleNotFoundError:
            continue
        folders = list(found.submodule_search_locations or ()) if found else []
        files = sorted(file for folder in folders for file in Path(folder, "lib").glob("libnvrtc.so*"))
        if files:
            return files[0]
    return None


def is_installed() -> bool:
    """Whether the compiler's package is there."""
    return _file() is not None


@cache
def _library() -> Any:
    file = _file()
    assert file is not None
    return ctypes.CDLL(str(file))


@dataclass(frozen=True)
class Compiled:
    """What the compiler said: whether it succeeded, and its log."""

    succeeded: bool
    log: str


def compiled(text: str, architecture: str, *options: str) -> Compiled:
    """Compile a file for ``compute_..`` (to PTX) or ``sm_..`` (to machine code)."""
    library = _library()
    program = ctypes.c_void_p()
    assert library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"generated.cu", 0, None, None) == 0
    try:
        flags = [f"--gpu-architecture={architecture}", "--std=c++17", *options]
        given = (ctypes.c_char_p * len(flags))(*(flag.encode() for flag in flags))
        status = library.nvrtcCompileProgram(program, len(flags), given)
        size = ctypes.c_size_t()
        library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        library.nvrtcGetProgramLog(program, log)
        # That an architecture is old is said of the architecture, not of the text.
        lines = [line for line in log.value.decode().splitlines() if "are deprecated and may be removed" not in line]
        return Compiled(status == 0, "\n".join(lines).strip())
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


@dataclass(frozen=True)
class Resources:
    """What one kernel takes on the device, in registers and bytes."""

    registers: int
    spilled: int
    stack: int


_ENTRY = re.compile(
    r"Compiling entry function '(\w+)'.*?(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads"
    r".*?Used (\d+) registers",
    re.DOTALL,
)


def resources(text: str, architecture: str) -> dict[str, Resources]:
    """Registers and spills of each kernel of a file."""
    found = compiled(text, architecture, "-Xptxas=-v")
    assert found.succeeded, found.log
    return {
        name: Resources(int(registers), int(stores) + int(loads), int(stack))
        for name, stack, stores, loads, registers in _ENTRY.findall(found.log)
    }
