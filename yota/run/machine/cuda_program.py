"""A tape's function on the GPU, with code for each device and memory layout of its arguments."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from yota.emit.targets.cuda import Form, Source
from yota.errors import ArgumentError, DeviceError
from yota.run.machine import cupy as cuda
from yota.run.machine.cache import Table
from yota.run.machine.signals import raise_faults


@dataclass(frozen=True, slots=True)
class Expected:
    """An argument: its name, dtype and shape, and whether the function captured it."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    captured: bool = False


class Program:
    """A function of GPU arrays.

    make: returns the source for given memory layouts of the arguments.
    """

    def __init__(self, make: Callable[[Sequence[Form]], Source], expected: Sequence[Expected]) -> None:
        self._make, self._expected = make, tuple(expected)
        self._functions = Table(most=64)
        self._outside = any(each.captured for each in self._expected)
        self._library = cuda.cupy()
        self._array: Any = self._library.ndarray
        self._current = self._library.cuda.runtime.getDevice

    def __call__(self, *arguments: Any) -> Any:
        """The results, computed on the current stream without waiting."""
        array = self._array
        if self._outside:
            arguments = self._uploaded(arguments)
        key = (
            self._current(),
            *[
                (each.dtype, each.shape, each.strides, each.device.id) if type(each) is array else type(each)
                for each in arguments
            ],
        )
        function = self._functions.get(key)
        if function is None:
            function = cuda.load(self.source(*arguments))
            self._functions.insert(key, function)
        return function(*arguments)

    def source(self, *arguments: Any) -> Source:
        """Source for arguments like these."""
        if len(arguments) != len(self._expected):
            raise ArgumentError(f"{len(self._expected)} arguments are expected, not {len(arguments)}")
        pairs = zip(self._uploaded(arguments), self._expected, strict=True)
        return self._make([self._form(value, expected) for value, expected in pairs])

    def _uploaded(self, arguments: Sequence[Any]) -> tuple[Any, ...]:
        """Copies of captured NumPy arrays, which the user may have changed."""
        return tuple(
            cuda.to_device(value) if expected.captured and isinstance(value, np.ndarray) else value
            for value, expected in zip(arguments, self._expected, strict=True)
        )

    def _form(self, value: Any, expected: Expected) -> Form:
        if type(value) is not self._array:
            return self._number(value, expected)
        stored = value.dtype if value.dtype.name == "bfloat16" and expected.dtype == np.float32 else None
        if (stored is None and value.dtype != expected.dtype) or value.shape != expected.shape:
            found = f"{value.dtype}{list(value.shape)}"
            raise ArgumentError(
                f"argument {expected.name} must be {expected.dtype}{list(expected.shape)}, and is {found}"
            )
        current = self._current()
        if value.device.id != current:
            raise ArgumentError(
                f"argument {expected.name} is on device {value.device.id}, and the current device is {current}: run "
                f"`with cupy.cuda.Device({value.device.id}):`, or copy it: cupy.asarray({expected.name})"
            )
        size = value.dtype.itemsize
        if value.flags.c_contiguous:
            return Form(stored=stored)
        if any(step % size for step in value.strides):
            raise ArgumentError(
                f"argument {expected.name} has elements that do not start at multiples of their size; pass a copy: "
                f"{expected.name}.copy()"
            )
        return Form(strides=tuple(step // size for step in value.strides), stored=stored)

    def _number(self, value: Any, expected: Expected) -> Form:
        if isinstance(value, np.ndarray) and value.ndim:
            raise ArgumentError(
                f"argument {expected.name} is a NumPy array, and the code runs on the GPU; move it there once: "
                f"{expected.name} = yota.to_cuda({expected.name})"
            )
        if expected.shape or not isinstance(value, (int, float, complex, np.generic, np.ndarray)):
            raise ArgumentError(f"argument {expected.name} must be an array on the GPU, not a {type(value).__name__}")
        return Form(on_device=False)


class Replay:
    """A captured call, which launches the same kernels again on the same arrays.

    results: results of the call: arrays that each launch overwrites.
    """

    def __init__(self, program: Callable[..., Any], arguments: Sequence[Any]) -> None:
        library = cuda.cupy()
        self._arguments = tuple(arguments)
        # A memory pool of its own, so that no other code reuses the memory while this object lives.
        self._pool = library.cuda.MemoryPool()
        self._library = library
        stream = library.cuda.Stream(non_blocking=True)
        # Wait for pending computations of the arguments.
        stream.wait_event(library.cuda.get_current_stream().record())
        with library.cuda.using_allocator(self._pool.malloc), stream:
            program(*arguments)
            stream.begin_capture()
            try:
                self.results = program(*arguments)
                self._recorded = stream.end_capture()
            except BaseException as error:
                with contextlib.suppress(library.cuda.runtime.CUDARuntimeError):
                    stream.end_capture()
                if not isinstance(error, library.cuda.runtime.CUDARuntimeError):
                    raise
                raise DeviceError(
                    f"this call cannot be captured: one of CuPy's functions between the kernels waits for the GPU, or "
                    f"asks for memory in a way that captures do not allow ({error}). Call yota.grad instead"
                ) from error

    def __call__(self) -> Any:
        """Launch on the current stream and return `results`, which are complete when the stream reaches them."""
        raise_faults()
        self._recorded.launch(self._library.cuda.get_current_stream())
        return self.results
