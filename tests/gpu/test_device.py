"""On a GPU: ``python -m pytest -m gpu``. Everything that the host has shown holds on the device too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import yota
from benchmarks.peers.yota import gpu_obstacle
from benchmarks.workload import flatten
from benchmarks.workloads import WORKLOADS
from benchmarks.workloads.gpu import GPU_WORKLOADS
from tests.cuda.collected import DTYPES, SHAPES, collected
from tests.cuda.specimens import specimens
from tests.derivatives.test_cuda import POINTS, A, X, arm, arm_slope, dense, energy, energy_bend
from tests.emit.cuda.test_golden import EXAMPLES
from tests.emit.cuda.test_halves import CASES as HALVES
from tests.emit.cuda.test_halves import gradient
from tests.emit.cuda.test_places import CASES as PLACES
from tests.emit.cuda.test_random import compare
from tests.emit.cuda.test_scatter import tapes as scatters
from tests.emit.programs import arguments
from yota.emit.targets import cuda, numpy
from yota.errors import CodegenError
from yota.ir.tape import Tape
from yota.run.machine import cupy as runtime
from yota.run.machine import python

OBSTACLE = gpu_obstacle()
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(OBSTACLE is not None, reason=f"no GPU: {OBSTACLE}")]


def on_device(tape: Tape, values: Any) -> Any:
    forms = [cuda.Form(isinstance(value, np.ndarray)) for value in values]
    source = cuda.generate(tape, forms)
    results = runtime.load(source)(*[runtime.to_device(v) if isinstance(v, np.ndarray) else v for v in values])
    if isinstance(results, tuple):
        return source, tuple(map(runtime.to_host, results))
    return source, runtime.to_host(results)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.__name__)
def test_golden_kernels(example: Any) -> None:
    tape = example()
    values = [value if np.iscomplexobj(value) else abs(value) for value in arguments(tape)]
    source, results = on_device(tape, values)
    compare(tape, source, results, values)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shapes", SHAPES)
def test_random_tapes(shapes: str, dtype: str) -> None:
    for tape in collected(shapes, dtype):
        values = arguments(tape)
        source, results = on_device(tape, values)
        compare(tape, source, results, values)


def test_scatters_have_the_same_bits_each_time() -> None:
    for tape in scatters():
        values = [np.abs(value) % 3 if value.dtype.kind == "i" else value for value in arguments(tape)]
        source, results = on_device(tape, values)
        compare(tape, source, results, values)
        assert on_device(tape, values)[1].tobytes() == results.tobytes()


def test_rules() -> None:
    for specimen in specimens():
        try:
            _, found = on_device(specimen.tape, specimen.values)
        except CodegenError:
            continue
        expected = python.load(numpy.generate(specimen.tape))(*specimen.values)
        pairs = zip(*(each if isinstance(each, tuple) else (each,) for each in (found, expected)), strict=True)
        for result, wanted in pairs:
            scale = np.max(np.abs(wanted), where=np.isfinite(wanted), initial=0.0)
            np.testing.assert_allclose(result, wanted, rtol=1e-9, atol=1e-12 + 1e-11 * scale, err_msg=specimen.name)


@pytest.mark.parametrize("name", [*WORKLOADS, *GPU_WORKLOADS])
def test_workloads(name: str) -> None:
    workload = {**WORKLOADS, **GPU_WORKLOADS}[name]
    function = workload.write(np)
    values = workload.arguments(True)
    if workload.jacobian:
        assert isinstance(workload.wrt, int)
        form = yota.jacobian(function, workload.wrt, with_value=True)
    else:
        form = yota.value_and_grad(function, workload.wrt)
    expected, wanted = form(*values)
    given = yota.to_cuda(values)
    value, found = form(*given)
    again, _ = form(*given)
    single = any(np.asarray(each).dtype == np.float32 for each in values if isinstance(each, np.ndarray))
    scale = np.max(np.abs(expected))
    np.testing.assert_allclose(yota.to_cpu(value), expected, rtol=1e-4 if single else 1e-9, atol=1e-11 * scale)
    np.testing.assert_array_equal(yota.to_cpu(value), yota.to_cpu(again))
    for one, other in zip(flatten(yota.to_cpu(found)), flatten(wanted), strict=True):
        scale = np.max(np.abs(other), initial=0.0)
        np.testing.assert_allclose(one, other, rtol=1e-4 if single else 1e-9, atol=(1e-5 if single else 1e-11) * scale)


@pytest.mark.parametrize("name", HALVES)
def test_numbers_of_16_bits(name: str) -> None:
    function, values, slope = HALVES[name]
    _, found = on_device(gradient(name, function, *values), values)
    wide = [np.asarray(value, float) for value in values]
    for result, wanted in zip(found, (function(*wide), *slope(*wide)), strict=True):
        scale = float(np.max(np.abs(wanted))) + 0.01
        digits = 0.51 * np.finfo(result.dtype).eps
        np.testing.assert_allclose(result.astype(float), wanted, rtol=digits, atol=1e-5 * scale)


def test_bfloat16() -> None:
    kind = np.dtype(pytest.importorskip("ml_dtypes").bfloat16)
    x = np.linspace(0.1, 1.0, 100_003).astype(kind)
    form = yota.value_and_grad(lambda x: np.sum(np.sin(x) * np.exp(-x * x)))
    value, found = form(yota.to_cuda(x))
    expected, wanted = form(x.astype(np.float32))
    assert value.dtype == found.dtype == kind
    np.testing.assert_allclose(float(value), expected, rtol=2**-8)
    np.testing.assert_allclose(yota.to_cpu(found).astype(float), wanted, rtol=2**-8, atol=1e-6)


@pytest.mark.parametrize("name", PLACES)
def test_index_arrays(name: str) -> None:
    function, values, slope = PLACES[name]
    wrt = tuple(number for number, value in enumerate(values) if value.dtype.kind in "fc")
    value, found = yota.value_and_grad(function, wrt)(*map(yota.to_cuda, values))
    wanted = slope(*values)
    near = 1e-11 if values[0].dtype.itemsize > 4 else 1e-4
    np.testing.assert_allclose(yota.to_cpu(value), function(*values), rtol=near)
    for one, other in zip(found, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
        np.testing.assert_allclose(yota.to_cpu(one), other, rtol=near, atol=near)


def test_an_index_out_of_bounds_is_told_later() -> None:
    x, i = np.linspace(0, 1, 50), np.arange(0, -50, -1)
    form = yota.value_and_grad(lambda x, i: np.sum(np.sin(x[i])), 0)
    there, good = yota.to_cuda(x), yota.to_cuda(i)
    form(there, good)
    bad = good.copy()
    bad[7] = 50
    value, _ = form(there, bad)
    assert np.isnan(float(value))
    with pytest.raises(IndexError, match="out of bounds"):
        form(there, good)
    assert not np.isnan(float(form(there, good)[0]))


def test_matrices_of_derivatives() -> None:
    points = yota.to_cuda(POINTS)
    np.testing.assert_allclose(yota.to_cpu(yota.batch(yota.jacobian(arm))(points)), arm_slope(POINTS), rtol=1e-10)
    found = yota.to_cpu(yota.batch(yota.hessian(energy))(points))
    np.testing.assert_allclose(found, energy_bend(POINTS), rtol=1e-10, atol=1e-12)
    bend = yota.to_cpu(yota.jacobian(dense)(yota.to_cuda(X)))
    np.testing.assert_allclose(bend, (1 - np.tanh(A @ X) ** 2)[:, None] * A, rtol=1e-10)


def test_the_smallest_numbers_in_single_precision() -> None:
    x = np.array([1e-40, 3e-42, 1e-38, 2.0] * 300, np.float32)
    form = yota.value_and_grad(lambda x: np.sum(np.log(x) + 0.5 * x))
    expected, wanted = form(x)
    value, found = form(yota.to_cuda(x))
    np.testing.assert_allclose(float(value), expected, rtol=1e-5)
    np.testing.assert_allclose(yota.to_cpu(found), wanted, rtol=1e-5)
    tiny = yota.to_cpu(yota.gradient(lambda x: np.sum(x * x) * np.float32(1e-38))(yota.to_cuda(x)))
    np.testing.assert_allclose(tiny[3::4], np.float32(4e-38), rtol=1e-5)


def test_layouts_streams_and_captures() -> None:
    library = runtime.cupy()
    x = np.random.default_rng(0).standard_normal((300, 700))
    form = yota.value_and_grad(lambda x: np.sum(np.tanh(x) * x))
    expected, wanted = form(x)
    there = library.asarray(x)
    wide = library.asarray(np.repeat(x, 3, axis=1))[:, ::3]
    layouts = (there, library.asfortranarray(there), wide)
    # Streams of one's own do not wait for the first one.
    library.cuda.get_current_stream().synchronize()
    for laid in layouts:
        with library.cuda.Stream(non_blocking=True) as stream:
            value, found = form(laid)
            stream.synchronize()
        np.testing.assert_allclose(float(value), expected, rtol=1e-12)
        np.testing.assert_allclose(runtime.to_host(found), wanted, rtol=1e-12)
    _, g = yota.grad(lambda x: np.sum(np.tanh(x) * x), there)
    again = g.capture()
    there *= 0.5
    value, gradients = again()
    expected, wanted = form(x * 0.5)
    np.testing.assert_allclose(float(value), expected, rtol=1e-12)
    np.testing.assert_allclose(runtime.to_host(gradients[0]), wanted, rtol=1e-12)
