"""Standalone CUDA: a file that nvcc compiles by itself, and a Python file that launches its kernels with CuPy."""

from __future__ import annotations

import shutil
import subprocess
import sys
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest

import yota
from tests.cuda.device import device, on_device
from tests.cuda.hosted import needs_compiler
from tests.cuda.nvrtc import VIRTUAL, compiled, needs_nvrtc
from tests.generated import loaded
from yota.errors import ArgumentError, CodegenError
from yota.tools.cli import main

__all__ = ["device"]

WEIGHTS = np.linspace(0.5, 2.0, 40)


def energy(x, eps):
    """Energy of all pairs of points."""
    apart = x[:, None, :] - x[None, :, :]
    return np.sum(WEIGHTS / (np.sum(apart**2, axis=(1, 2)) + eps))


def network(w, b, x):
    return np.mean(np.tanh(w @ x + b[:, None]) ** 2)


def waves(z, phase):
    return np.sum(np.real(np.exp(1j * phase) * z) ** 2)


def chain(x):
    return np.sum(np.exp(-x * x) * np.sin(x))


def oscillator(p, current):
    """Two numbers, whose steps one thread makes."""
    v, w = p[0], p[1]
    for _ in range(150):
        v, w = v + 0.1 * (v - v**3 / 3 - w + current), w + 0.1 * p[2] * (v + p[3] - 0.8 * w)
    return v * w


def sorted_states(a, x, kernel):
    """Products, sums along axes, sorts and convolutions in trips, between sums that other kernels compute."""
    h = np.tanh(x[:6])
    for i in range(40):
        h = np.tanh(a @ h + x[i]) + np.sort(np.convolve(h, kernel, mode="same")) * WEIGHTS[i]
    return np.sum(h) * np.sum(x * h[0])


CASES = [
    (energy, {"x": "float64[40,3]", "eps": "float"}),
    (network, {"w": "float32[30,20]", "b": "float32[30]", "x": "float32[20,50]"}),
    (waves, {"z": "complex128[500]", "phase": "float64[500]"}),
    (chain, {"x": "float16[5000]"}),
    (oscillator, {"p": "float64[4]", "current": "float"}),
    (sorted_states, {"a": "float64[6,6]", "x": "float64[5000]", "kernel": "float64[3]"}),
]


def values(specs):
    random = np.random.default_rng(0)
    found = []
    for spec in specs.values():
        if spec == "float":
            found.append(0.5)
            continue
        dtype, _, shape = spec.rstrip("]").partition("[")
        array = random.standard_normal(tuple(map(int, shape.split(","))))
        turned = array + 1j * random.standard_normal(array.shape)
        found.append((turned if "c" in dtype else array).astype(dtype))
    return found


@cache
def generated(function, *specs):
    return yota.generate(function, dict(specs), target="cuda")


@needs_compiler
@pytest.mark.parametrize(("function", "specs"), CASES, ids=lambda case: getattr(case, "__name__", ""))
def test_the_python_file_computes_what_numpy_does(device, function, specs):
    module = generated(function, *specs.items())
    launched = loaded(module.files[f"{function.__name__}.py"])
    given = values(specs)
    found = getattr(launched, f"{function.__name__}_value_and_gradient")(
        *(on_device(value) if isinstance(value, np.ndarray) else value for value in given)
    )
    expected, g = yota.grad(function, *given)
    for result, wanted in zip(found, (expected, *g.gradients), strict=True):
        tolerance = {2: 4e-3, 4: 1e-5}.get(np.asarray(wanted).dtype.itemsize, 1e-12)
        np.testing.assert_allclose(np.asarray(result), wanted, rtol=tolerance, atol=tolerance * np.max(np.abs(wanted)))
        assert result.dtype == np.asarray(wanted).dtype
    value = getattr(launched, function.__name__)(
        *(on_device(np.asfortranarray(value)) if isinstance(value, np.ndarray) else value for value in given)
    )
    np.testing.assert_allclose(np.asarray(value), expected, rtol=1e-5 if expected.dtype.itemsize > 2 else 4e-3)
    with pytest.raises(TypeError, match="must be a CuPy array"):
        getattr(launched, function.__name__)(*given)


def test_what_one_thread_makes_is_a_loop_and_the_rest_straight():
    def state(x):
        for _ in range(20):
            x = x + 0.01 * np.cos(x) * np.sum(x) * np.sin(x)
        return np.sum(x)

    lines = str(generated(oscillator, *dict(CASES)[oscillator].items())).splitlines()
    assert len(lines) < 300
    assert sum("for (" in line for line in lines) == 3
    assert "for (ptrdiff_t trip" in str(generated(sorted_states, *dict(CASES)[sorted_states].items()))
    assert "for (ptrdiff_t trip" in str(generated(state, ("x", "float64[20]")))
    assert "for (ptrdiff_t trip" not in str(generated(state, ("x", "float64[2000]")))


@needs_compiler
def test_arrays_that_are_elsewhere_or_empty_or_gapped(device):
    def swing(x):
        return np.sum(np.sin(x) * x)

    launched = loaded(yota.generate(swing, {"x": "float64[6,4]"}, target="cuda").files["swing.py"])
    wide = np.random.default_rng(3).standard_normal((6, 8))
    value, slope = launched.swing_value_and_gradient(on_device(wide)[:, ::2])
    np.testing.assert_allclose(np.asarray(value), swing(wide[:, ::2]))
    np.testing.assert_allclose(slope, np.sin(wide[:, ::2]) + wide[:, ::2] * np.cos(wide[:, ::2]))
    there = on_device(wide[:, :4])
    there.device = SimpleNamespace(id=1)
    with pytest.raises(ValueError, match="x is on device 1, and device 0 is the current one"):
        launched.swing(there)
    with pytest.raises(TypeError, match=r"x must be a CuPy array, float64\(6, 4\), not float32\(6, 4\)"):
        launched.swing(on_device(wide[:, :4].astype(np.float32)))
    empty = loaded(yota.generate(swing, {"x": "float64[0,4]"}, target="cuda").files["swing.py"])
    value, slope = empty.swing_value_and_gradient(on_device(wide[:0, :4]))
    assert float(value) == 0
    assert slope.shape == (0, 4)
    with pytest.raises(CodegenError, match="of an array without elements"):
        yota.generate(np.sin, {"x": "float64[0,4]"}, target="cuda")


def mixed(x, y, s, flags):
    return s * np.sum(np.where(flags, np.exp(-x * x), 1.0) * np.sin(y))


@needs_compiler
@pytest.mark.parametrize(
    ("function", "specs"),
    [*CASES[:3], (mixed, {"x": "float64[500]", "y": "float32[500]", "s": "float", "flags": "bool[500]"})],
    ids=lambda case: getattr(case, "__name__", ""),
)
def test_the_python_file_checks_itself(device, capsys, function, specs):
    text = yota.generate(function, specs, target="cuda", self_test=True).files[f"{function.__name__}.py"]
    module = loaded(text)
    module._self_test()
    assert "agrees with differences" in capsys.readouterr().out
    name = f"{function.__name__}_value_and_gradient"
    right = getattr(module, name)
    count = len(right(*map(_at_a_half, specs.values()))) - 1
    for number in range(1, count + 1):

        def wrong(*arguments, number=number):
            found = list(right(*arguments))
            found[number] = found[number] * 3
            return found

        setattr(module, name, wrong)
        with pytest.raises(AssertionError, match="the gradient gives"):
            module._self_test()


def _at_a_half(spec):
    dtype, _, shape = spec.rstrip("]").partition("[")
    return on_device(np.full(tuple(map(int, shape.split(","))), 0.5).astype(dtype)) if shape else 0.5


@needs_nvrtc
@pytest.mark.parametrize("architecture", VIRTUAL)
def test_nvrtc_compiles_it(architecture):
    for function, specs in CASES:
        found = compiled(str(generated(function, *specs.items())), architecture, "--Ofast-compile=max")
        assert found.succeeded and not found.log, found.log[:3000]


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="there is no nvcc")
def test_nvcc_compiles_it_alone(tmp_path):
    texts = [str(generated(function, *specs.items())) for function, specs in CASES]
    # Headers take most of the time, so one file is compiled by itself, and the others after what it includes.
    headers = sorted({line for text in texts for line in text.splitlines() if line.startswith("#include <")})
    others = [f"namespace unit{number} {{\n{text}\n}}" for number, text in enumerate(texts[1:])]
    for name, text in (("alone", texts[0]), ("others", "\n".join([*headers, *others]))):
        (tmp_path / f"{name}.cu").write_text(text)
        # Whether a text compiles does not depend on how long the compiler thinks about it.
        command = ["nvcc", "-std=c++17", "-Werror", "all-warnings", "-Xcicc", "-O0", "-Xptxas", "-O0"]
        command += ["-c", f"{name}.cu", "-o", "object"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[:3000]


def test_the_python_file_is_formatted(tmp_path):
    for number, (function, specs) in enumerate(CASES):
        name = f"{function.__name__}.py"
        text = yota.generate(function, specs, target="cuda", self_test=number in (0, 2)).files[name]
        (tmp_path / name).write_text(text)
    command = [sys.executable, "-m", "ruff", "format", "--isolated", "--diff", "--line-length", "100", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_the_same_bytes_each_time():
    one, other = (yota.generate(energy, CASES[0][1], target="cuda") for _ in range(2))
    assert one.files == other.files and list(one.files) == ["energy.cu", "energy.py"]


def test_what_cannot_be_said_in_kernels_is_refused():
    with pytest.raises(ArgumentError, match="has value and gradient"):
        yota.generate(energy, CASES[0][1], target="cuda", with_=("hessian",))
    with pytest.raises(ArgumentError, match="add 'gradient' to with_"):
        yota.generate(energy, CASES[0][1], target="cuda", with_=("value",), self_test=True)
    with pytest.raises(ArgumentError, match="float16 numbers cannot check"):
        yota.generate(chain, CASES[3][1], target="cuda", self_test=True)
    with pytest.raises(ArgumentError, match="strict=True"):
        yota.generate(energy, CASES[0][1], target="cuda", strict=True)
    with pytest.raises(CodegenError, match=r"numpy.linalg.det is beyond kernels"):
        yota.generate(lambda x: np.linalg.det(x), {"x": "float64[5,5]"}, target="cuda")
    with pytest.raises(CodegenError, match="branches on its arguments' values"):
        yota.generate(lambda x: np.sum(x) if x[0] > 0 else x[0], {"x": "float64[50]"}, target="cuda")


def test_the_command_line_writes_both_files(tmp_path, capsys):
    place = tmp_path / "pkg.py"
    place.write_text("import numpy as np\n\n\ndef f(x):\n    return np.sum(np.sin(x) * x)\n")
    words = ["generate", f"{place}:f", "--arg", "x=float64[1000]", "--target", "cuda"]
    assert main([*words, "-o", str(tmp_path / "f.cu")]) == 0
    assert "f_value_and_gradient" in (tmp_path / "f.py").read_text()
    assert main([*words, "-o", str(tmp_path / "f.cu"), "--check"]) == 0
    assert main([*words, "-o", str(tmp_path / "f.c")]) == 2
    assert "must end in .cu" in capsys.readouterr().err
