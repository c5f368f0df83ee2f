"""Gradients of arrays on the GPU: what reaches CuPy and the kernels, and what is said where there is no GPU."""

from __future__ import annotations

import sys
import types
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import yota
from tests.cuda.device import CUDARuntimeError, OutOfMemoryError, Stream, device, on_device
from tests.cuda.hosted import needs_compiler
from tests.cuda.nvrtc import compiled, needs_nvrtc
from yota.errors import ArgumentError, CodegenError, DeviceError
from yota.run.machine import cupy as cuda
from yota.run.specialise import Target, compile_tape, simplified

__all__ = ["device"]


def wave(x, scale):
    return np.sum(np.sin(x * scale) * np.exp(-x * x))


def agree(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-12, atol=1e-14)
    assert found.dtype == np.asarray(expected).dtype


@needs_compiler
@pytest.mark.parametrize("n", [17, 1025, 100_000])
def test_arrays_on_the_gpu_choose_the_target(device, n):
    x = np.random.default_rng(n).standard_normal(n)
    value, g = yota.grad(wave, on_device(x), 0.5)
    expected, wanted = yota.grad(wave, x, 0.5)
    agree(value, expected)
    agree(g[0], wanted[0])
    agree(g[1], wanted[1])
    assert type(value) is type(g[0]) is device.ndarray
    assert "import cupy as cp" in g.source and "__global__" in g.source


@needs_compiler
def test_layouts_have_kernels_of_their_own_and_nothing_is_copied(device):
    x = np.random.default_rng(0).standard_normal((40, 70))
    form = yota.value_and_grad(lambda x, y: np.sum(np.tanh(x) * y), (0, 1))
    y = np.random.default_rng(1).standard_normal(70)
    expected, wanted = form(x, y)
    for laid in (x, np.asfortranarray(x), np.repeat(x, 3, axis=1)[:, ::3], x[::-1][::-1].copy()[::1]):
        device.launches.clear()
        given = on_device(laid)
        value, found = form(given, on_device(y))
        agree(value, expected)
        agree(found[0], wanted[0])
        agree(found[1], wanted[1])
        assert any(argument is given for *_, arguments in device.launches for argument in arguments)
    row = on_device(np.broadcast_to(y, (40, 70)))
    value, _ = form(row, on_device(y))
    agree(value, form(np.broadcast_to(y, (40, 70)), y)[0])


def test_functions_of_cupy_record_traced_values(device):
    fixed, sines = on_device(np.array([1.0, 2.0])), on_device(np.sin([1.0, 2.0]))

    def only_arrays(x: Any) -> Any:
        assert x is fixed
        return sines

    device.sin = only_arrays
    x = np.linspace(0, 1, 2)
    found = yota.gradient(lambda x: np.sum(device.sin(x) * device.sin(fixed)))(on_device(x))
    agree(found, np.cos(x) * np.sin([1.0, 2.0]))
    assert device.sin is only_arrays


@dataclass
class Layer:
    W: Any
    b: Any


@needs_compiler
def test_structures_library_calls_and_captured_arrays(device):
    random = np.random.default_rng(0)
    layers = [Layer(random.standard_normal((20, 30)), random.standard_normal((20, 1))) for _ in range(2)]
    layers[1].W = random.standard_normal((20, 20))
    data, target = random.standard_normal((30, 50)), random.standard_normal((20, 50))
    here = {"target": target}

    def loss(layers, x):
        for layer in layers:
            x = np.tanh(layer.W @ x + layer.b)
        return np.mean((x - here["target"]) ** 2)

    expected, wanted = yota.grad(loss, layers, data)
    for place in (lambda array: array, on_device):
        here["target"] = place(target)
        value, g = yota.grad(loss, yota.to_cuda(layers), on_device(data))
        agree(value, expected)
        assert set(g[0]) == set(wanted[0])
        for path, adjoint in wanted[0].items():
            agree(g[0][path], adjoint)
    target[...] = 0.0
    expected, _ = yota.grad(loss, layers, data)
    value, _ = yota.grad(loss, yota.to_cuda(layers), on_device(data))
    agree(value, expected)


@needs_compiler
def test_branches_are_watched_on_the_device(device):
    def f(x):
        return np.sum(x * x) if np.max(x) > 0 else np.sum(-x)

    x = np.linspace(-1, 1, 50)
    agree(yota.grad(f, on_device(x), dynamic=True)[1][0], 2 * x)
    agree(yota.grad(f, on_device(x - 2), dynamic=True)[1][0], np.full(50, -1.0))
    with pytest.raises(ArgumentError, match="branches on traced data cannot be captured"):
        yota.grad(f, on_device(x))[1].capture()


@needs_compiler
def test_a_capture_is_launched_again_on_what_the_arrays_hold_then(device):
    x = on_device(np.linspace(0, 1, 1000))
    _, g = yota.grad(wave, x, on_device(np.array(2.0)))
    again = g.capture()
    x[...] = np.linspace(1, 2, 1000)
    value, gradients = again()
    expected, wanted = yota.grad(wave, np.linspace(1, 2, 1000), np.array(2.0))
    agree(value, expected)
    agree(gradients[0], wanted[0])
    agree(gradients[1], wanted[1])
    with pytest.raises(ArgumentError, match="computed on a GPU"):
        yota.grad(wave, np.ones(3), 1.0)[1].capture()


@needs_compiler
def test_single_precision_and_empty_arrays(device):
    x = np.linspace(0, 1, 1000, dtype=np.float32)
    value, g = yota.grad(wave, on_device(x), 2.0)
    assert value.dtype == g[0].dtype == np.float32
    value, g = yota.grad(wave, on_device(np.empty((0, 3))), 2.0)
    assert float(value) == 0.0 and g[0].shape == (0, 3)


@needs_compiler
def test_bfloat16_in_bfloat16_out(device):
    kind = np.dtype(pytest.importorskip("ml_dtypes").bfloat16)
    x = np.linspace(0.1, 1, 1000).astype(kind)
    expected, wanted = yota.grad(wave, x.astype(np.float32), 2.0)
    value, g = yota.grad(wave, on_device(x), 2.0)
    assert value == np.asarray(expected).astype(kind) and value.dtype == g[0].dtype == kind
    np.testing.assert_allclose(g[0].astype(float), wanted[0], rtol=2**-8, atol=1e-6)
    # Beside an array in single precision, results are in that.
    value, g = yota.grad(lambda x, y: np.sum(x * y), on_device(x), on_device(x.astype(np.float32)))
    assert value.dtype == g[0].dtype == g[1].dtype == np.float32
    weights = {"w": on_device(x)}
    _, g = yota.grad(lambda weights: np.sum(weights["w"] ** 2), weights)
    assert g[0][("w",)].dtype == kind
    assert yota.to_cpu(on_device(x)).dtype == yota.to_cuda(x).dtype == kind
    with pytest.raises(ArgumentError, match=r"NumPy cannot compute; pass x.astype\(np.float32\)"):
        yota.grad(wave, x, 2.0)


@needs_compiler
def test_indices_out_of_bounds_are_raised_without_waiting(device):
    x, i = np.linspace(0, 1, 50), np.arange(0, -50, -1)
    form = yota.value_and_grad(lambda x, i: np.sum(np.sin(x[i])), 0)
    good = on_device(i)
    value, found = form(on_device(x), good)
    np.testing.assert_allclose(found, np.cos(x))
    # While it is traced, NumPy itself looks.
    with pytest.raises(IndexError, match="out of bounds"):
        form(on_device(x), on_device(i + 51)[:20])
    bad = on_device(i.copy())
    bad[7] = 50
    value, _ = form(on_device(x), bad)
    assert np.isnan(value)
    with pytest.raises(IndexError, match="had an index out of bounds"):
        form(on_device(x), good)
    assert not np.isnan(form(on_device(x), good)[0])
    value, _ = form(on_device(x), bad)
    with pytest.raises(IndexError, match="out of bounds"):
        yota.to_cpu(value)
    _, g = yota.grad(lambda x, i: np.sum(np.sin(x[i])), on_device(x), good)
    again = g.capture()
    good[3] = 99
    again()
    with pytest.raises(IndexError, match="out of bounds"):
        again()


@needs_compiler
def test_a_branch_of_the_users_on_indices_is_watched(device):
    def choose(x, i):
        return np.sum(x[i]) if i.min() >= 0 else np.sum(x[i] ** 2)

    x, i = on_device(np.linspace(1, 2, 50)), on_device(np.arange(10))
    form = yota.value_and_grad(choose, 0, dynamic=False)
    form(x, i)
    with pytest.raises(yota.errors.StaleTapeError):
        form(x, i - 5)


@needs_compiler
def test_results_are_not_copied(device):
    x = on_device(np.linspace(0, 1, 1000, dtype=np.float32))
    _, g = yota.grad(lambda x, s: np.sum(x * s), x, 2.0)
    assert "np.array(" not in g.source and "cp.array(" not in g.source


@needs_compiler
def test_other_derivatives(device):
    x, v = np.linspace(0.1, 1.0, 20), np.linspace(2.0, 3.0, 20)
    there, seed = on_device(x.copy()), on_device(v)

    def total(x):
        return np.sum(np.sin(x) * x)

    def each(x):
        return np.sin(x) * x[0]

    agree(yota.hvp(total)(there, seed), yota.hvp(total)(x, v))
    agree(yota.vjp(each, there)[1](seed)[0], yota.vjp(each, x)[1](v)[0])
    agree(yota.batch(lambda a: a * a + 1)(there), x * x + 1)
    agree(yota.grad(each, there, seed=seed)[1][0], yota.grad(each, x, seed=v)[1][0])
    assert yota.gradcheck(total, there)
    value, tape = yota.trace(total, there)
    np.testing.assert_allclose(value, total(x))
    np.testing.assert_allclose(yota.play(tape, there), total(x))
    agree(yota.compile(tape, target="cuda")(there), total(x))
    assert yota.update(there, seed, lambda a, b: a - b) is there
    agree(there, x - v)
    agree(yota.jacobian(each)(on_device(x)), yota.jacobian(each)(x))


def test_moving_keeps_dtypes_and_structures(device):
    given = {"a": np.ones(3, np.float32), "b": [np.arange(3), 2.5, "name"], "c": (np.ones(2, complex),)}
    there = yota.to_cuda(given)
    assert type(there["a"]) is type(there["b"][0]) is type(there["c"][0]) is device.ndarray
    assert there["a"].dtype == np.float32 and there["b"][1:] == [2.5, "name"]
    assert yota.to_cuda(there)["a"] is not None and yota.to_cuda(np.ones(2), np.float32).dtype == np.float32
    assert yota.to_cuda(np.arange(3), np.float32).dtype == np.arange(3).dtype
    back = yota.to_cpu(there)
    assert type(back["a"]) is np.ndarray and back["b"][0].dtype == np.arange(3).dtype


def test_mixed_arguments_are_refused(device):
    x = np.ones(30)
    with pytest.raises(ArgumentError, match=r"argument x is on the GPU and argument scale .*yota.to_cuda\(scale\)"):
        yota.grad(wave, on_device(x), np.ones(30))
    with pytest.raises(ArgumentError, match=r"x = yota.to_cuda\(x\)"):
        yota.grad(wave, x, 1.0, target="cuda")
    with pytest.raises(ArgumentError, match='target="c" does not run'):
        yota.grad(wave, on_device(x), 1.0, target="c")
    with pytest.raises(ArgumentError, match="strict=True is not available for"):
        yota.grad(wave, on_device(x), 1.0, strict=True)
    with pytest.raises(ArgumentError, match="object"):
        yota.grad(wave, on_device(np.array([1.0, None])), 1.0)


def test_arrays_on_another_device_are_refused(device):
    x = on_device(np.ones(30))
    x.device = types.SimpleNamespace(id=1)
    with pytest.raises(ArgumentError, match=r"x is on device 1, and the current device is 0: run `with cupy\.cuda"):
        yota.grad(wave, x, 1.0)


def test_compiled_tapes_check_what_they_are_given(device):
    _, tape = yota.trace(wave, np.ones(30), 1.0)
    program, _ = compile_tape(simplified(tape, Target("cuda")), Target("cuda"))
    with pytest.raises(ArgumentError, match=r"argument x must be float64\[30\], and is float32\[30\]"):
        program(on_device(np.ones(30, np.float32)), 1.0)
    with pytest.raises(ArgumentError, match=r"must be an array on the GPU, not a list"):
        program([1.0], 1.0)
    with pytest.raises(ArgumentError, match="2 arguments are expected, not 1"):
        program(on_device(np.ones(30)))
    with pytest.raises(ArgumentError, match="do not start at multiples of their size"):
        program(on_device(np.zeros(30, np.dtype([("a", "f8"), ("b", "i4")]))["a"]), 1.0)


def test_too_little_memory(device, monkeypatch):
    def full(*_: Any, **__: Any) -> Any:
        raise OutOfMemoryError("out of memory allocating 8,000,000,000 bytes")

    monkeypatch.setattr(device, "asarray", full)
    with pytest.raises(DeviceError, match=r"too little memory: out of memory allocating .*free_all_blocks"):
        yota.to_cuda(np.ones(3))


def missing(monkeypatch: pytest.MonkeyPatch, module: Any) -> None:
    monkeypatch.setitem(sys.modules, "cupy", module)
    cuda.cupy.cache_clear()


def test_without_cupy(monkeypatch):
    missing(monkeypatch, None)
    with pytest.raises(DeviceError, match="need CuPy, which is not installed: pip install cupy-cuda12x"):
        yota.to_cuda(np.ones(3))
    with pytest.raises(DeviceError, match="not installed"):
        yota.grad(wave, np.ones(3), 1.0, target="cuda")


def test_an_old_cupy(device):
    device.__version__ = "13.6.0"
    with pytest.raises(DeviceError, match=r"CuPy 13\.6\.0 is too old; 14\.0 or later"):
        yota.to_cuda(np.ones(3))


@pytest.mark.parametrize(
    ("status", "message"),
    [
        ("cudaErrorInsufficientDriver: CUDA driver version is insufficient", "no driver that it can use"),
        ("cudaErrorNoDevice: no CUDA-capable device is detected", "there is no GPU on this machine"),
    ],
)
def test_without_driver_or_device(device, status, message):
    def fails() -> int:
        raise CUDARuntimeError(status)

    device.cuda.runtime.getDeviceCount = fails
    with pytest.raises(DeviceError, match=message):
        yota.to_cuda(np.ones(3))


def test_no_visible_device(device):
    device.cuda.runtime.getDeviceCount = lambda: 0
    with pytest.raises(DeviceError, match="CUDA_VISIBLE_DEVICES"):
        yota.to_cuda(np.ones(3))


@needs_nvrtc
def test_a_compiler_error_shows_the_kernel_and_the_user_line(device, monkeypatch):
    code = '/* y = np.sin(x) */\nextern "C" __global__ void f(double *y)\n{\n    *y = sine(1.0);\n}\n'
    log = compiled(code, "compute_80").log
    text = cuda.explained(code, log)
    assert "line 4 of the kernel file: *y = sine(1.0);" in text and "which computes: y = np.sin(x)" in text

    def refuse(*_: Any, **__: Any) -> Any:
        raise device.cuda.compiler.CompileException(log)

    monkeypatch.setattr(device.cuda.compiler, "compile_using_nvrtc", refuse)
    with pytest.raises(CodegenError, match="NVRTC refuses a generated kernel"):
        yota.grad(wave, on_device(np.ones(37)), 1.0)


@needs_compiler
def test_kernels_are_compiled_once_for_each_kind_of_gpu(device):
    def form() -> Any:
        derivative = yota.gradient(lambda x: np.sum(np.cos(x) * 1.25))
        derivative.clear()
        return derivative(on_device(np.ones(43)))

    form()
    assert len(device.compiled) == 1
    form()
    assert len(device.compiled) == 1
    device.cuda.Device = lambda: types.SimpleNamespace(compute_capability="80")
    form()
    assert len(device.compiled) == 2
    device.cuda.nvrtc.getVersion = lambda: (13, 0)
    form()
    assert len(device.compiled) == 3


@needs_compiler
def test_what_cannot_be_captured_says_why(device, monkeypatch):
    x = on_device(np.linspace(0, 1, 1000))
    _, g = yota.grad(wave, x, 2.0)

    def refuses(self: Any) -> Any:
        raise CUDARuntimeError("cudaErrorStreamCaptureInvalidated: operation failed due to a previous error")

    monkeypatch.setattr(Stream, "end_capture", refuses)
    with pytest.raises(DeviceError, match=r"cannot be captured: one of CuPy's functions .*CaptureInvalidated"):
        g.capture()


@needs_compiler
def test_arrays_on_the_gpu_meet_traced_values_on_either_side(device):
    w, x = np.linspace(1, 2, 60), np.linspace(0.1, 1, 60)
    there = on_device(w)

    def total(w: Any, x: Any) -> Any:
        return np.sum(np.maximum(w, x) * np.dot(w, x) + np.where(w > 1.5, x, w) + np.concatenate([w, x])[20:80])

    found = yota.gradient(lambda x: total(there, x))(on_device(x))
    agree(found, yota.gradient(lambda x: total(w, x))(x))
