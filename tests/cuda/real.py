"""CuPy itself without a GPU: its arrays lie in main memory, and kernels run on the host. For a process of its own.

What CuPy would do on the device fails here; arrays, their views, how NumPy and operators dispatch on them, and what its
functions take are its own.
"""

from __future__ import annotations

import ast
import ctypes
import inspect
import json
import sys
import types
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np

GOLDEN = Path(__file__).parents[1] / "golden" / "cuda"


def without_libraries() -> None:
    """Let CuPy be imported where NVIDIA's libraries are not installed."""
    import cupy_backends.cuda.libs as libraries

    for name in ("cublas", "cusolver", "cusparse", "curand", "cufft"):
        module = MagicMock(name=name)
        sys.modules[f"cupy_backends.cuda.libs.{name}"] = module
        setattr(libraries, name, module)
    sys.modules["cupy.cuda.cufft"] = MagicMock()


def on_the_host(value: Any) -> np.ndarray:
    """An array of CuPy's, as NumPy sees its memory."""
    if not value.size:
        return np.empty(value.shape, value.dtype)
    low = sum(min(0, (n - 1) * step) for n, step in zip(value.shape, value.strides, strict=True))
    high = sum(max(0, (n - 1) * step) for n, step in zip(value.shape, value.strides, strict=True))
    memory = (ctypes.c_char * (high - low + value.itemsize)).from_address(value.data.ptr + low)
    return np.ndarray(value.shape, value.dtype, memory, -low, value.strides)


def allocated(size: int) -> Any:
    """Memory of the host's for an array of CuPy's, full of what is no result."""
    import cupy

    owner = np.full(size + 64, 0xA5, np.uint8)
    place = owner.ctypes.data + -owner.ctypes.data % 64
    return cupy.cuda.MemoryPointer(cupy.cuda.UnownedMemory(place, size, owner, 0), 0)


def placed(value: Any, dtype: Any = None) -> Any:
    """What stands for `cupy.asarray`."""
    import cupy

    if isinstance(value, cupy.ndarray):
        return value if dtype is None or value.dtype == dtype else placed(on_the_host(value), dtype)
    given = np.asarray(value, dtype)
    found = cupy.empty(given.shape, given.dtype, order="F" if given.flags.fnc else "C")
    on_the_host(found)[...] = given
    return found


class Kernel:
    """A kernel that takes what CuPy's take."""

    def __init__(self, launcher: Any, launches: list[tuple[Any, ...]]) -> None:
        self.launcher, self.launches = launcher, launches

    def __call__(self, grid: tuple[int], block: tuple[int], arguments: tuple[Any, ...]) -> None:
        import cupy
        from cupy._core._scalar import CScalar

        given = []
        for argument in arguments:
            if isinstance(argument, cupy.ndarray):
                given.append(on_the_host(argument))
            else:
                # By value: CuPy knows its bytes.
                assert CScalar(argument).dtype == argument.dtype
                given.append(argument)
        self.launches.append(arguments)
        self.launcher(grid, block, given)


def prepared() -> list[tuple[Any, ...]]:
    """Put the host in the place of the device; the arguments of all launches from now on."""
    import cupy

    from tests.cuda import device
    from yota.tracing import captures

    launches: list[tuple[Any, ...]] = []
    device.stand_in = lambda: types.SimpleNamespace(compiled=[], launches=[])

    class Module(device.Compiled):
        def __init__(self, *, path: str) -> None:
            self.load(Path(path).read_bytes())

        def get_function(self, name: str) -> Any:
            return Kernel(super().get_function(name), launches)

    cupy.cuda.set_allocator(allocated)
    cupy.asarray, cupy.asnumpy, cupy.RawModule = placed, lambda value: on_the_host(value).copy(), Module
    cupy.cuda.runtime.getDeviceCount, cupy.cuda.runtime.getDevice = lambda: 1, lambda: 0
    cupy.cuda.compiler.compile_using_nvrtc = device.compile_using_nvrtc
    cupy.cuda.Device = lambda: types.SimpleNamespace(compute_capability="90")

    def fetched(self: Any, value: Any) -> int:
        known = self._known.get(id(value))
        if known is None:
            snapshot = captures.frozen(on_the_host(value).copy())
            variable = self._builder.input(captures.type_of(snapshot), -1, "w", ())
            self.inputs[variable], self._values[variable] = value, snapshot
            known = self._known[id(value)] = (value, snapshot, variable)
        return int(known[2])

    captures.Captures.from_device = fetched  # type: ignore[method-assign]
    return launches


def arrays() -> Iterator[str]:
    """What is wrong with gradients of arrays of CuPy's."""
    import yota

    launches = prepared()
    x, m = np.linspace(-2, 2, 1001), np.random.default_rng(0).standard_normal((33, 48))
    w = placed(np.linspace(1, 2, 48))

    def mixed(m: Any, b: Any, keep: Any) -> Any:
        return np.sum(np.where(keep, np.tanh(m), m) * b)

    def weighed(m: Any, w: Any) -> Any:
        return np.sum(np.maximum(w, m) / w - np.where(w > m, m * m, w))

    for name, function, values, layouts in (
        ("a number beside an array", lambda x, s: np.sum(np.sin(x * s) * x), (x, 0.5), [None]),
        ("layouts", mixed, (m, m[0], m > 0), [None, np.asfortranarray, lambda a: np.repeat(a, 2, -1)[..., ::2]]),
        ("broadcast", lambda m: np.sum(np.exp(m) * m), (np.broadcast_to(m[0], m.shape),), [None]),
        ("complex numbers", lambda z: np.sum(np.abs(np.exp(z)) ** 2), (x + 1j * x[::-1],), [None]),
        ("single precision", lambda x: np.sum(np.sin(x) * x), (x.astype(np.float32),), [None]),
        ("no axes", lambda x, a: np.sum(np.cos(x * a)), (x, np.array(0.5)), [None]),
    ):
        form = yota.value_and_grad(function, 0)
        expected, wanted = form(*values)
        for layout in layouts:
            given = tuple(_laid(value, layout) for value in values)
            launches.clear()
            value, found = form(*given)
            yield from _compared(f"{name}: value", value, expected)
            yield from _compared(f"{name}: gradient", found, wanted)
            if not any(argument is given[0] for arguments in launches for argument in arguments):
                yield f"{name}: the argument was copied"
    for name, placed_w in (("an array from outside", w), ("one with steps", placed(np.repeat(on_the_host(w), 2))[::2])):
        _, found = yota.value_and_grad(lambda m, w=placed_w: weighed(m, w))(placed(m))
        yield from _compared(name, found, yota.gradient(weighed)(m, on_the_host(w)))


def _laid(value: Any, layout: Callable[[Any], Any] | None) -> Any:
    """A value on the device, laid out like ``layout`` of it."""
    if not isinstance(value, np.ndarray):
        return value
    if value.ndim and 0 in value.strides:
        import cupy

        return cupy.broadcast_to(placed(value[0]), value.shape)
    if layout is None or value.ndim < 2:
        return placed(value)
    laid = layout(value)
    return placed(laid) if laid.base is None or laid.flags.fnc else placed(laid.base)[..., ::2]


def _compared(name: str, found: Any, wanted: Any) -> Iterator[str]:
    import cupy

    near = 1e-5 if np.asarray(wanted).dtype.itemsize == 4 else 1e-12
    if type(found) is not cupy.ndarray or found.dtype != np.asarray(wanted).dtype or found.shape != np.shape(wanted):
        yield f"{name}: {type(found)} {getattr(found, 'dtype', '')}{getattr(found, 'shape', '')}"
    elif not np.allclose(on_the_host(found), wanted, rtol=near, atol=near):
        yield f"{name}: {on_the_host(found)} is not {wanted}"


def names() -> Iterator[str]:
    """What is wrong with functions written with CuPy's names, given traced values."""
    import cupy as cp
    import cupyx.scipy.special
    import scipy.special

    import yota

    def written(x: Any, xp: Any) -> Any:
        out = xp.zeros(3)
        out[0], out[1:] = x[0] * x[1], x[1:3]
        return xp.sum(out) + xp.ones_like(x) @ x

    def special(x: Any, xp: Any) -> Any:
        return xp.sum((cupyx.scipy.special if xp is cp else scipy.special).expit(x))

    x = np.linspace(0.2, 1.1, 4)
    functions: tuple[Callable[[Any, Any], Any], ...] = (
        lambda x, xp: xp.sum(xp.sin(x)),
        lambda x, xp: xp.sum(xp.stack([x, x * 2]) ** 2) + xp.sum(xp.vstack(tup=[x, x])),
        lambda x, xp: xp.sum(xp.array([x[0], x[1] * x[2]]) ** 2),
        lambda x, xp: xp.sum(xp.where(x > 0.5, x, x * x)) + xp.linalg.norm(x),
        lambda x, xp: xp.einsum("i,i->", x, x) + xp.add.reduce(x * x) + xp.multiply.outer(x, x)[0, 1],
        lambda x, xp: xp.sum(xp.abs(xp.fft.fft(x)) ** 2) + xp.sum(x[:, xp.newaxis] * xp.pi),
        lambda x, xp: xp.sum(x * xp.linspace(0, 1, 4)) + xp.sum(xp.eye(4) @ x) + xp.sum(xp.full(4, 2.0) * x),
        lambda x, xp: cp.get_array_module(x).sum(x.astype(xp.float32)) + xp.clip(x, 0.3, 1.0)[2],
        written,
        special,
    )
    for number, function in enumerate(functions):
        found = yota.gradient(lambda x, function=function: function(x, cp))(x)
        wanted = yota.gradient(lambda x, function=function: function(x, np))(x)
        if not np.array_equal(found, wanted):
            yield f"function {number}: {found} is not {wanted}"


def calls() -> Iterator[str]:
    """What generated functions ask of CuPy that it has not, or that takes other arguments."""
    from yota.emit.cuda.cuda_driver import has
    from yota.rules.registry import registry

    for library in ("fft", "linalg", "signal", "special"):
        import_module(f"scipy.{library}")
        import_module(f"cupyx.scipy.{library}")
    known = registry()
    for name in known.names():
        target = known.primitive(name).target or ""
        if target.startswith(("numpy.", "scipy.")) and has(target) and target != "numpy.linalg.svdvals":
            try:
                _named(target.replace("numpy.", "cupy.", 1) if target[0] == "n" else f"cupyx.{target}")
            except AttributeError as fault:
                yield f"{target}: {fault}"
    for file in sorted(GOLDEN.glob("*.py")):
        for each in ast.walk(ast.parse(file.read_text())):
            if isinstance(each, ast.Call) and ast.unparse(each.func).startswith(("cp.", "cupyx.")):
                yield from _unbound(file.name, each)


def _named(path: str) -> Any:
    module, *rest = path.split(".")
    found = import_module(module)
    for name in rest:
        found = getattr(found, name)
    return found


def _unbound(place: str, call: ast.Call) -> Iterator[str]:
    function = _named(ast.unparse(call.func).replace("cp.", "cupy.", 1))
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # a ufunc or a type
    try:
        signature.bind(*call.args, **{str(each.arg): each.value for each in call.keywords})
    except TypeError as fault:
        yield f"{place}: {ast.unparse(call)}: {fault}"


if __name__ == "__main__":
    without_libraries()
    json.dump([*{"arrays": arrays, "names": names, "calls": calls}[sys.argv[1]]()], sys.stdout)
