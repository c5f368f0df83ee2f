"""Access to CuPy: transfers, loading of generated kernels, and errors for missing parts."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from yota.emit.targets.generated import Source
from yota.errors import CodegenError, DeviceError
from yota.run.machine import python
from yota.run.machine.signals import Fault, raise_faults
from yota.run.machine.store import Store, digest_of, folder

if TYPE_CHECKING:
    from yota.emit.targets import cuda as targets

OPTIONS = ("--std=c++17",)
"""Options of NVRTC."""
_FORMAT = "1"
_OLDEST = (14, 0)
_INSTALL = "pip install cupy-cuda12x (a driver for CUDA 12), or cupy-cuda13x (CUDA 13)"
_OTHERWISE = 'or use target="c" or "numpy"'


@cache
def cupy() -> Any:
    """CuPy, after a check that it works here."""
    try:
        import cupy as found
    except ImportError as error:
        if getattr(error, "name", None) == "cupy":
            raise DeviceError(f"arrays on a GPU need CuPy, which is not installed: {_INSTALL}; {_OTHERWISE}") from None
        raise DeviceError(f"CuPy is installed and cannot be imported: {error}. Reinstall it: {_INSTALL}") from error
    version = tuple(int(part) for part in re.findall(r"\d+", found.__version__)[:2])
    if version < _OLDEST:
        oldest = ".".join(map(str, _OLDEST))
        raise DeviceError(f"CuPy {found.__version__} is too old; {oldest} or later is needed: pip install -U cupy")
    runtime = found.cuda.runtime
    try:
        count = runtime.getDeviceCount()
    except runtime.CUDARuntimeError as error:
        text = str(error)
        if "NoDevice" in text:
            raise DeviceError(f"there is no GPU on this machine ({text}); run where one is, {_OTHERWISE}") from None
        raise DeviceError(
            f"CuPy finds no driver that it can use ({text}); install or update NVIDIA's driver, "
            f"or install the CuPy that fits the one there is: {_INSTALL}; {_OTHERWISE}"
        ) from None
    if not count:
        raise DeviceError(f"there is no GPU that this process may use (CUDA_VISIBLE_DEVICES?); {_OTHERWISE}")
    return found


def to_device(value: Any, dtype: Any = None) -> Any:
    """A copy of an array on the current device; an array already there is returned unchanged."""
    library = cupy()
    try:
        return library.asarray(value, dtype=dtype)
    except library.cuda.memory.OutOfMemoryError as error:
        raise _too_large(error) from None


def to_host(value: Any) -> np.ndarray[Any, Any]:
    """A main-memory copy of a device array."""
    found: np.ndarray[Any, Any] = sys.modules["cupy"].asnumpy(value)
    raise_faults()
    return found


def load(source: targets.Source) -> Callable[..., Any]:
    """Load the function that a source defines, for the current device."""
    library = cupy()
    kernels = {}
    if source.code:
        try:
            module = _module(library, source.code)
            kernels = {kernel.name: module.get_function(kernel.name) for kernel in source.kernels}
        except library.cuda.compiler.CompileException as error:
            raise CodegenError(explained(source.code, str(error))) from None
    constants = {
        name: library.asarray(value) if isinstance(value, np.ndarray) else value
        for name, value in source.constants.items()
    }
    fault = Fault(library, source.entry) if source.fault else None
    if fault is not None:
        constants[source.fault] = fault.address
    function = python.load(Source(source.driver, source.entry, {**constants, **kernels}))
    exhausted = library.cuda.memory.OutOfMemoryError

    def run(*arguments: Any) -> Any:
        if fault is not None:
            fault.check()
        try:
            return function(*arguments)
        except exhausted as error:
            raise _too_large(error) from None

    return run


def _module(library: Any, code: str) -> Any:
    """The module of a CUDA file, for the current device.

    CuPy's own compilation uses ``-ftz=true``, which flushes subnormal single-precision numbers to zero: their
    logarithms and reciprocals become infinite.
    """
    compiler = library.cuda.compiler
    architecture = str(library.cuda.Device().compute_capability)
    version = ".".join(map(str, library.cuda.nvrtc.getVersion()))
    key = digest_of((_FORMAT, code, *OPTIONS, architecture, version, library.__version__))

    def make(output: Path) -> None:
        binary, _ = compiler.compile_using_nvrtc(code, OPTIONS, filename="generated.cu")
        output.write_bytes(binary)

    return library.RawModule(path=str(Store(folder()).get(key, make, suffix=".cubin")))


def _too_large(error: Exception) -> DeviceError:
    return DeviceError(
        f"the GPU has too little memory: {error}. Pass fewer points at a time, free arrays that are not needed, or "
        "give back what CuPy keeps for later: cupy.get_default_memory_pool().free_all_blocks()"
    )


_PLACE = re.compile(r"\((\d+)\): (?:catastrophic )?error")
_REMARK = re.compile(r"/\* (.*) \*/$")


def explained(code: str, log: str) -> str:
    r"""A compiler's log with the lines of the kernel and of the user's source.

    >>> code = "/* y = f(x) */\nkernel()\n{\n    y = g(x);\n}"
    >>> print(explained(code, 'a.cu(4): error: identifier "g" is undefined'))
    NVRTC refuses a generated kernel; please report this.
    a.cu(4): error: identifier "g" is undefined
        line 4 of the kernel file: y = g(x);
        which computes: y = f(x)
    """
    lines = code.splitlines()
    found = ["NVRTC refuses a generated kernel; please report this."]
    for message in log.splitlines():
        place = _PLACE.search(message)
        if place is None:
            continue
        number = int(place[1])
        found.append(message.strip())
        if not 1 <= number <= len(lines):
            continue
        found.append(f"    line {number} of the kernel file: {lines[number - 1].strip()}")
        remarks = (_REMARK.fullmatch(line.strip()) for line in reversed(lines[: number - 1]))
        nearest = next((remark for remark in remarks if remark), None)
        if nearest is not None:
            found.append(f"    which computes: {nearest[1]}")
    return "\n".join(found if len(found) > 1 else [*found, log.strip()])


def shared(value: Any) -> Any:
    """A CuPy array on the memory of another library's array, by DLPack; a number is copied."""
    known = cupy()
    if isinstance(value, known.ndarray):
        return value
    return known.asarray(value) if isinstance(value, (np.generic, float, int, complex)) else known.from_dlpack(value)
