"""The CuPy module of a CUDA file, for the current device.

CuPy's own compilation uses ``-ftz=true``, which flushes subnormal single-precision numbers to zero.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from yota.runtime.store import Store, digest_of, folder

__all__ = ["OPTIONS", "module"]

OPTIONS = ("--std=c++17",)
_FORMAT = "1"


def module(library: Any, code: str) -> Any:
    """The module of a CUDA file, for the current device.

    CuPy would compile it too, but with ``-ftz=true``: numbers in single precision below the smallest normal one would
    be taken for zeros, and their logarithms and reciprocals for infinities.

    Parameters
    ----------
    library
        The module CuPy.
    code
        Text of the file.
    """
    compiler = library.cuda.compiler
    architecture = str(library.cuda.Device().compute_capability)
    version = ".".join(map(str, library.cuda.nvrtc.getVersion()))
    key = digest_of((_FORMAT, code, *OPTIONS, architecture, version, library.__version__))

    def make(output: Path) -> None:
        binary, _ = compiler.compile_using_nvrtc(code, OPTIONS, filename="generated.cu")
        output.write_bytes(binary)

    place = Store(folder()).get(key, make, suffix=".cubin")
    return library.RawModule(path=str(place))
