"""A stand-in for CuPy whose device is the host: it records launches, and runs the kernels as `hosted` does."""

from __future__ import annotations

import ctypes
import os
import re
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from tests.cuda import hosted
from yota.runtime import cuda


class ndarray(np.ndarray):  # noqa: N801  (CuPy's name for it)
    """An array on the device: never without axes a number, and known by its class."""

    device = types.SimpleNamespace(id=0)

    def get(self) -> np.ndarray:
        return self.view(np.ndarray).copy()

    def __array_finalize__(self, other: Any) -> None:
        if isinstance(other, ndarray):
            self.device = other.device


ndarray.__module__ = "cupy"


def on_device(value: Any, dtype: Any = None) -> Any:
    return np.asarray(value, dtype).view(ndarray)


class Module(types.ModuleType):
    """The module: NumPy's functions, with arrays of the device for results."""

    def __init__(self, **own: Any) -> None:
        super().__init__("cupy")
        self.__dict__.update(own)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(np, name)
        if not callable(found) or isinstance(found, type):
            return found

        def call(*args: Any, **keywords: Any) -> Any:
            result = found(*args, **keywords)
            return on_device(result) if isinstance(result, np.ndarray | np.generic) else result

        return call


class CUDARuntimeError(RuntimeError):
    pass


class OutOfMemoryError(MemoryError):
    pass


class CompileException(Exception):
    pass


class RawModule:
    """Kernels of a file, compiled for the host at the first look."""

    def __init__(self, code: str, options: tuple[str, ...]) -> None:
        self.code, self.options = code, options
        self.library: Any = None

    def get_function(self, name: str) -> Any:
        launches = stand_in().launches
        names = re.findall(r"__launch_bounds__\(\d+\)\n(\w+)\(", self.code)
        kernels = [types.SimpleNamespace(name=each) for each in names]
        source: Any = types.SimpleNamespace(code=self.code, kernels=kernels)
        library = ctypes.CDLL(os.fspath(hosted.build(hosted.unit([source]))))
        function = getattr(library, f"launch0_{name}")
        function.argtypes = [ctypes.c_uint, ctypes.c_uint, ctypes.c_bool, ctypes.c_void_p]
        return hosted.Launcher(name, function, hosted.has_barriers(source, name), launches)


class Stream:
    """Records what a capture asks for."""

    def __init__(self, non_blocking: bool) -> None:
        assert non_blocking
        self.launched = 0

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: Any) -> None:
        pass

    def begin_capture(self) -> None:
        self.launched = len(stand_in().launches)

    def end_capture(self) -> Any:
        captured = stand_in().launches[self.launched :]
        replayed = types.SimpleNamespace(streams=[])

        def launch(stream: Any) -> None:
            replayed.streams.append(stream)
            for kernel, blocks, threads, arguments in list(captured):
                kernel((blocks,), (threads,), arguments)

        replayed.launch = launch
        return replayed


class Pinned(bytearray):
    """Memory that both sides see; the fault kept in it is found by its address."""

    @property
    def ptr(self) -> int:
        return ctypes.addressof(ctypes.c_char.from_buffer(self))


class MemoryPool:
    def malloc(self, size: int) -> None:
        raise AssertionError("memory of the host is NumPy's")


@contextmanager
def using_allocator(allocator: Any) -> Iterator[None]:
    yield


def stand_in() -> Any:
    """The module that stands for CuPy in a test."""
    return sys.modules["cupy"]


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The stand-in, in the place of CuPy; its ``launches`` are ``(kernel, blocks, threads, arguments)``."""
    runtime = types.SimpleNamespace(getDevice=lambda: 0, getDeviceCount=lambda: 1, CUDARuntimeError=CUDARuntimeError)
    module = Module(
        __version__="14.2.0",
        __path__=[],
        ndarray=ndarray,
        launches=[],
        asarray=on_device,
        asnumpy=ndarray.get,
        empty=lambda shape, dtype=float: on_device(hosted.empty(shape, dtype)),
        RawModule=RawModule,
        cuda=types.SimpleNamespace(
            runtime=runtime,
            memory=types.SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
            compiler=types.SimpleNamespace(CompileException=CompileException),
            Stream=Stream,
            MemoryPool=MemoryPool,
            using_allocator=using_allocator,
            alloc_pinned_memory=Pinned,
            get_current_stream=lambda: "the current stream",
        ),
    )
    monkeypatch.setitem(sys.modules, "cupy", module)
    asarray = np.asarray

    def strict(value: Any, *args: Any, **keywords: Any) -> Any:
        # CuPy refuses this, and so does the stand-in where yota asks for it.
        caller = sys._getframe(1).f_code.co_filename
        if type(value) is ndarray and f"{os.sep}yota{os.sep}" in caller and "<" not in caller:
            raise TypeError("Implicit conversion to a NumPy array is not allowed.")
        return asarray(value, *args, **keywords)

    monkeypatch.setattr(np, "asarray", strict)
    cuda.cupy.cache_clear()
    yield module
    cuda.cupy.cache_clear()
