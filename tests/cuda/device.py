"""A stand-in for CuPy whose device is the host: it records launches, and runs the kernels as `hosted` does."""

from __future__ import annotations

import ctypes
import os
import re
import sys
import tempfile
import types
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cuda import hosted
from yota.run.machine import cupy as cuda
from yota.tracing import captures, namespace


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


_COMPILED = b"\nthe source of what stands before:\n"


def compile_using_nvrtc(source: str, options: tuple[str, ...], filename: str = "kern.cu") -> tuple[bytes, None]:
    """The kernels of a file, compiled for the host."""
    assert options == ("--std=c++17",)
    assert filename.endswith(".cu")
    kernels = [types.SimpleNamespace(name=each) for each in _kernels(source)]
    unit: Any = types.SimpleNamespace(code=source, kernels=kernels)
    stand_in().compiled.append(source)
    return hosted.build(hosted.unit([unit])).read_bytes() + _COMPILED + source.encode(), None


def _kernels(source: str) -> list[str]:
    return re.findall(r"__launch_bounds__\(\d+\)\n(\w+)\(", source)


class Compiled:
    """Kernels of a compiled file: what modules of both kinds come to."""

    def load(self, binary: bytes) -> None:
        self.code = binary.partition(_COMPILED)[2].decode()
        with tempfile.NamedTemporaryFile(suffix=".so") as file:
            file.write(binary)
            file.flush()
            self.library = ctypes.CDLL(file.name)

    def get_function(self, name: str) -> Any:
        assert name in _kernels(self.code)
        function = getattr(self.library, f"launch0_{name}")
        function.argtypes = [ctypes.c_uint, ctypes.c_uint, ctypes.c_bool, ctypes.c_void_p]
        source: Any = types.SimpleNamespace(code=self.code)
        return hosted.Launcher(name, function, hosted.has_barriers(source, name), stand_in().launches)


class RawModule(Compiled):
    """A file that is compiled, or one that was."""

    def __init__(self, *, code: str | None = None, path: str | None = None, options: tuple[str, ...] = ()) -> None:
        assert (code is None) != (path is None)
        if path is not None:
            self.load(Path(path).read_bytes())
        else:
            assert code is not None
            # CuPy takes the smallest numbers in single precision for zeros then.
            assert not re.search(r"\bfloat\b|\bcomplex64\b", code.partition('extern "C"')[2])
            self.load(compile_using_nvrtc(code, options, "raw.cu")[0])


class Stream:
    """Records what a capture asks for."""

    def __init__(self, non_blocking: bool) -> None:
        assert non_blocking
        self.launched = 0

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: Any) -> None:
        pass

    def wait_event(self, event: Any) -> None:
        assert event == "an event of the current stream"

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


class CurrentStream:
    """The stream that launches go to."""

    def record(self) -> str:
        return "an event of the current stream"

    def synchronize(self) -> None:
        pass


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
    """The stand-in, in the place of CuPy.

    Its ``launches`` are ``(kernel, blocks, threads, arguments)``, and ``compiled`` what was not in the store.
    """
    runtime = types.SimpleNamespace(
        getDevice=lambda: 0,
        getDeviceCount=lambda: 1,
        getDeviceProperties=lambda _: {"name": b"the host", "major": 9, "minor": 0, "totalGlobalMem": 3 << 30},
        driverGetVersion=lambda: 12090,
        runtimeGetVersion=lambda: 12080,
        CUDARuntimeError=CUDARuntimeError,
    )
    module = Module(
        __version__="14.2.0",
        __path__=[],
        ndarray=ndarray,
        launches=[],
        compiled=[],
        asarray=on_device,
        asnumpy=ndarray.get,
        empty=lambda shape, dtype=float: on_device(hosted.empty(shape, dtype)),
        RawModule=RawModule,
        cuda=types.SimpleNamespace(
            runtime=runtime,
            memory=types.SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
            compiler=types.SimpleNamespace(CompileException=CompileException, compile_using_nvrtc=compile_using_nvrtc),
            nvrtc=types.SimpleNamespace(getVersion=lambda: (12, 9)),
            Device=lambda: types.SimpleNamespace(compute_capability="90"),
            Module=Compiled,
            Stream=Stream,
            MemoryPool=MemoryPool,
            using_allocator=using_allocator,
            alloc_pinned_memory=Pinned,
            get_current_stream=CurrentStream,
        ),
    )
    # The first trace of a process keeps what NumPy's names stand for.
    namespace.prepared()
    monkeypatch.setitem(sys.modules, "cupy", module)
    asarray = np.asarray

    def strict(value: Any, *args: Any, **keywords: Any) -> Any:
        # CuPy refuses this, and so does the stand-in where yota asks for it.
        caller = sys._getframe(1).f_code.co_filename
        if type(value) is ndarray and f"{os.sep}yota{os.sep}" in caller and "<" not in caller:
            raise TypeError("Implicit conversion to a NumPy array is not allowed.")
        return asarray(value, *args, **keywords)

    monkeypatch.setattr(np, "asarray", strict)
    # Arrays of CuPy's are no subclass of NumPy's, as those of the stand-in are.
    monkeypatch.setattr(captures, "_HARMLESS", captures._HARMLESS | {"device"})
    cuda.cupy.cache_clear()
    yield module
    cuda.cupy.cache_clear()
