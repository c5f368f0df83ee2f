"""What the numbers were measured on: processor, Python, libraries, threads."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["describe_gpu", "describe_machine"]

PACKAGES = (
    *("yota", "numpy", "scipy", "sympy", "autograd", "jax", "jaxlib", "torch", "casadi", "numba"),
    *("cupy-cuda12x", "cupy-cuda13x", "nvidia-cuda-nvrtc-cu12", "nvidia-cuda-nvrtc"),
)


def describe_machine() -> dict[str, Any]:
    """Processor, operating system, Python and the versions of all libraries that take part."""
    return {
        "processor": processor(),
        "processors": os.cpu_count(),
        "threads": threads(),
        "system": platform.platform(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "blas": blas(),
        "packages": {name: version for name in PACKAGES if (version := installed(name)) is not None},
    }


def describe_gpu() -> dict[str, Any] | None:
    """The current GPU, by name, with its memory and the versions of its software; None where there is none."""
    from yota.errors import DeviceError
    from yota.run.machine import cupy as cuda

    try:
        library = cuda.cupy()
    except DeviceError:
        return None
    runtime = library.cuda.runtime
    found = runtime.getDeviceProperties(runtime.getDevice())
    name = found["name"]
    return {
        "name": name.decode() if isinstance(name, bytes) else name,
        "architecture": f"{found['major']}.{found['minor']}",
        "gigabytes": round(found["totalGlobalMem"] / 2**30, 1),
        "driver": runtime.driverGetVersion(),
        "runtime": runtime.runtimeGetVersion(),
        "compiler": ".".join(map(str, library.cuda.nvrtc.getVersion())),
    }


def processor() -> str:
    """Name of the processor."""
    description = Path("/proc/cpuinfo")
    if description.exists():
        for line in description.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def threads() -> int | None:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count()


def blas() -> str:
    """Name and version of the library behind ``numpy.matmul``."""
    found = np.show_config(mode="dicts")["Build Dependencies"]["blas"]  # type: ignore[call-overload,unused-ignore]
    return f"{found.get('name', 'unknown')} {found.get('version', '')}".strip()


def installed(name: str) -> str | None:
    """Version of an installed package."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
