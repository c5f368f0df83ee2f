"""Files in languages that a table describes: their values are NumPy's, and what they lack is refused by name."""

from __future__ import annotations

import ctypes
import json
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import special

import yota
from tests.package.test_sizes_in_c import antidiagonal, remainders
from yota.emit.c.statements import OUT_OF_BOUNDS, WRONG_SIZES
from yota.emit.language import tabled
from yota.errors import ArgumentError, CodegenError

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")
needs_gfortran = pytest.mark.skipif(shutil.which("gfortran") is None, reason="gfortran is not installed")
LANGUAGES = [pytest.param("javascript", marks=needs_node), pytest.param("fortran", marks=needs_gfortran)]
GOLDEN = Path(__file__).parent.parent / "golden"
FLAGS = "-std=f2018 -O1 -ffp-contract=off -Wall -Wextra -Werror -Wno-compare-reals -Wno-maybe-uninitialized".split()
random = np.random.default_rng(7)
TABLE = random.normal(size=(7, 5))


@pytest.fixture(autouse=True)
def _same_numbers_in_any_order() -> None:
    random.bit_generator.state = np.random.default_rng(11).bit_generator.state


RUN = """
import { readFileSync } from "node:fs";
import * as functions from "./module.mjs";
const calls = JSON.parse(readFileSync("arguments.json"));
const told = (each) => ArrayBuffer.isView(each) ? Array.from(each, told) : Object.is(each, -0) ? "-0"
    : each === null || typeof each !== "object" ? String(each)
    : Object.fromEntries(Object.entries(each).map(([key, value]) => [key, told(value)]));
const taken = (each) => Array.isArray(each) ? Float64Array.from(each, Number) : Number(each);
console.log(JSON.stringify(calls.map(([name, given]) => {
    try { return told(functions[name](...given.map(taken))); } catch (error) { return { error: String(error) }; }
})));
"""


def spelled(value: Any) -> Any:
    if np.ndim(value):
        return [spelled(each) for each in np.ravel(value)]
    return str(float(value)).replace("inf", "Infinity").replace("nan", "NaN")


def numbers(told: Any) -> Any:
    if isinstance(told, dict):
        return {key: each if key == "error" else numbers(each) for key, each in told.items()}
    return np.array(told, float) if isinstance(told, list) else float({"true": 1, "false": 0}.get(told, told))


def run(text: str, calls: Sequence[tuple[str, Sequence[Any]]], folder: Path) -> list[Any]:
    """What functions of an ES module give, each for its arguments."""
    (folder / "module.mjs").write_text(text)
    (folder / "run.mjs").write_text(RUN)
    given = [(name, [spelled(each) for each in args]) for name, args in calls]
    (folder / "arguments.json").write_text(json.dumps(given))
    done = subprocess.run(["node", "run.mjs"], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + text
    return [numbers(each) for each in json.loads(done.stdout)]


def built(text: str, folder: Path) -> ctypes.CDLL:
    """The shared library of a Fortran module."""
    if (folder / "module.so").exists():
        return ctypes.CDLL(str(folder / "module.so"))
    (folder / "module.f90").write_text(text)
    words = ["gfortran", *FLAGS, "-fPIC", "-shared", "module.f90", "-o", "module.so"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + text
    return ctypes.CDLL(str(folder / "module.so"))


def passed(value: Any) -> Any:
    if np.ndim(value):
        return value.ctypes.data_as(ctypes.c_void_p)
    return ctypes.c_int64(value) if isinstance(value, int) else ctypes.c_double(value)


def results(
    target: str, text: str, calls: Sequence[tuple[str, Sequence[Any], Sequence[Any]]], folder: Path
) -> list[list[np.ndarray[Any, Any]]]:
    """All that functions give, each for its arguments and in the shapes of what stands beside them."""
    if target == "fortran":
        found = [[np.full(np.shape(each), 7.0) for each in like] for _, _, like in calls]
        for (name, args, _), places in zip(calls, found, strict=True):
            pointers = [each.ctypes.data_as(ctypes.c_void_p) for each in places]
            assert getattr(built(text, folder), name)(*map(passed, args), *pointers) == 0
        return found
    told = run(text, [(name, args) for name, args, _ in calls], folder)
    parts = [list(each.values()) if isinstance(each, dict) else [each] for each in told]
    return [
        [np.reshape(one, np.shape(other)) for one, other in zip(each, like, strict=True)]
        for each, (_, _, like) in zip(parts, calls, strict=True)
    ]


def himmelblau(x):
    return (x[0] ** 2 + x[1] - 11) ** 2 + (x[0] + x[1] ** 2 - 7) ** 2


def ackley(x):
    return -20 * np.exp(-0.2 * np.sqrt(np.mean(x**2))) - np.exp(np.mean(np.cos(2 * np.pi * x))) + 20 + np.e


def griewank(x):
    return np.sum(x**2) / 4000 - np.prod(np.cos(x / np.sqrt(np.arange(1, len(x) + 1)))) + 1


def lennard_jones(r, depth, width):
    return 4 * depth * ((width / r) ** 12 - (width / r) ** 6)


def kepler(anomaly, eccentricity):
    found = anomaly
    for _ in range(6):
        found = found - (found - eccentricity * np.sin(found) - anomaly) / (1 - eccentricity * np.cos(found))
    return found


def pairs(x):
    d = x[:, None, :] - x[None, :, :]
    return np.sum(1 / (np.sum(d * d, axis=-1) + 0.1) ** 3)


def network(W, b, V, x):
    return np.mean((np.tanh(x @ W + b) @ V) ** 2)


def softmax(W, x):
    s = x @ W
    s = s - np.max(s, axis=1, keepdims=True)
    return -np.sum(s[:, 0] - np.log(np.sum(np.exp(s), axis=1)))


def tabled_product(x):
    return np.sum(np.exp(TABLE @ x)) + np.max(x) * np.min(x)


def heat(u):
    for _ in range(3):
        u = u + 0.1 * (np.roll(u, 1) - 2 * u + np.roll(u, -1))
    return np.sum(u**2)


def wells(x):
    return np.sum(np.where(np.abs(x) < 0.5, x**2, np.abs(x) - 0.25) * (x > -1) + np.logaddexp(x, 0.3))


def unused(x, y):
    return np.sum(x) * 3.0


FUNCTIONS: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (himmelblau, (random.normal(size=2),)),
    (ackley, (random.normal(size=300),)),
    (griewank, (random.normal(size=6),)),
    (lennard_jones, (1.3, 0.7, 1.1)),
    (kepler, (1.0, 0.4)),
    (pairs, (random.normal(size=(9, 3)),)),
    (network, (*(random.normal(size=each) for each in ((20, 32), 32, (32, 3), (50, 20))),)),
    (softmax, (random.normal(size=(20, 10)), random.normal(size=(30, 20)))),
    (tabled_product, (random.normal(size=5),)),
    (heat, (random.normal(size=200),)),
    (wells, (random.normal(size=50),)),
    (unused, (random.normal(size=6), random.normal(size=3))),
]


def arguments(f: Callable[..., Any], args: Sequence[Any]) -> dict[str, Any]:
    return dict(zip(f.__code__.co_varnames, args, strict=False))


def compare(target: str, f: Callable[..., Any], specs: dict[str, Any], args: Sequence[Any], folder: Path) -> None:
    """Value and gradient against NumPy's, and each function of the file against the others."""
    text = str(yota.generate(f, specs, target=target, effort="quick"))
    given, name = args[-len(specs) :], f.__name__
    expected, gradients = f(*given), yota.grad(f, *given)[1]
    wanted = [each for each in (gradients if len(given) > 1 else [gradients]) if each is not None]
    calls = (f"{name}_value_and_gradient", [expected, *wanted]), (f"{name}_gradient", wanted), (name, [expected])
    (value, *slopes), again, (alone,) = results(target, text, [(each, args, like) for each, like in calls], folder)
    assert abs(value - expected) <= 1e-15 * abs(expected)
    for one, other in zip(slopes, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-15 * np.max(np.abs(other), initial=1e-300))
    assert [one.tobytes() for one in again] == [np.asarray(other).tobytes() for other in slopes]
    assert abs(alone - expected) <= 1e-15 * abs(expected)


@pytest.mark.parametrize("target", LANGUAGES)
@pytest.mark.parametrize(("f", "args"), FUNCTIONS, ids=lambda case: getattr(case, "__name__", ""))
def test_agrees_with_numpy(f: Callable[..., Any], args: tuple[Any, ...], target: str, tmp_path: Path) -> None:
    compare(target, f, arguments(f, args), args, tmp_path)


def laplace(u):
    inside = np.zeros(len(u))
    inside[1:-1] = u[2:] - 2 * u[1:-1] + u[:-2]
    return np.sum(inside**2 * np.linspace(0, 1, len(u))) / len(u)


def windowed(x):
    return np.sum((x * np.hanning(len(x))) ** 2) + np.sum(x**2 * np.fft.fftfreq(len(x)))


def above(x):
    i, j = np.triu_indices(len(x), 1)
    return np.sum(1 / (1 + (x[i] - x[j]) ** 2))


def below(x):
    i, j = np.tril_indices(len(x), -1)
    return np.sum(np.exp(-((x[i] - x[j]) ** 2)))


def linear(A, x):
    return np.sum((A @ x) ** 2) + np.max(x) + np.sum((A - np.eye(len(A), len(x))) ** 2)


def numbered(x):
    """Whole numbers, quotients and remainders of sizes, and positions that are computed."""
    n = len(x)
    at = np.arange(n)
    squares = np.sum(x * np.arange(1, n + 1) ** 2) + np.sum((at % 3) * x**2) + np.sum(x[at[::2]] ** 2)
    turned = np.sum(x[n - 1 - at] * x[(at + 1) % n]) + np.sum(x * np.linspace(-1.5, 2.0, n))
    return squares + turned + np.sum(x) * (n * (n - 1) // 2) / (2 * n - 1) + (n // 2) * x[0]


def tabular(A):
    row, column = np.indices(A.shape)
    distance = np.arange(len(A))[:, None] - 2 * np.arange(A.shape[1])
    band = np.where(np.abs(distance) <= 1, A, 0.5 * A)
    return np.sum(band**2 * (row - column)) + np.sum(A * np.eye(*A.shape)) + np.sum(np.tri(*A.shape, k=-1) * A**2)


SIZED: list[tuple[Callable[..., Any], dict[str, str], tuple[int, ...], tuple[tuple[int, ...], ...]]] = [
    (ackley, {"x": "float64[N]"}, (300,), ((300,),)),
    (pairs, {"x": "float64[N,3]"}, (9,), ((9, 3),)),
    (softmax, {"W": "float64[A,B]", "x": "float64[C,A]"}, (3, 6, 20), ((3, 6), (20, 3))),
    (laplace, {"u": "float64[N]"}, (140,), ((140,),)),
    (windowed, {"x": "float64[N]"}, (33,), ((33,),)),
    (above, {"x": "float64[N]"}, (13,), ((13,),)),
    (below, {"x": "float64[N]"}, (13,), ((13,),)),
    (linear, {"A": "float64[N,M]", "x": "float64[M]"}, (5, 9), ((5, 9), (9,))),
    (numbered, {"x": "float64[N]"}, (7,), ((7,),)),
    (tabular, {"A": "float64[N,M]"}, (4, 7), ((4, 7),)),
    (pairs, {"x": "float64[N,3]"}, (0,), ((0, 3),)),
    (remainders, {"x": "float64[N]"}, (7,), ((7,),)),
    (antidiagonal, {"A": "float64[N,N]"}, (1,), ((1, 1),)),
]


@pytest.mark.parametrize("target", LANGUAGES)
@pytest.mark.parametrize(("f", "specs", "sizes", "shapes"), SIZED, ids=lambda case: getattr(case, "__name__", ""))
def test_named_sizes_agree_with_numpy(
    f: Callable[..., Any], specs: dict[str, str], sizes: Any, shapes: Any, target: str, tmp_path: Path
) -> None:
    compare(target, f, specs, (*sizes, *(random.normal(size=shape) for shape in shapes)), tmp_path)


def oscillator(p, start, step):
    v, w, energy = start, 0.0, 0.0
    for _ in range(200):
        v, w = v + step * (v - v**3 / 3 - w + p[0]), w + step * 0.08 * (v + p[1] - 0.8 * w)
        energy = energy + v * v * step
    return energy


def diffusion(u, rate):
    for _ in range(100):
        inside = u[1:-1] + rate * (u[2:] - 2 * u[1:-1] + u[:-2])
        u = np.concatenate([u[:1], inside, u[-1:]])
    return np.sum(u**2)


def grows(x):
    _, found = yota.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + x[1], s[1] * x[0] + x[2:]), (0.0, x[2:] * 1.0))
    return np.sum(found**2)


def starts(x):
    _, found = yota.while_loop(lambda s: s[0] < 3.5, lambda s: (s[0] + 1, np.sin(s[1]) * x), (0.0, np.ones(4)))
    return np.sum(found**2)


def delays(x):
    """Arrays that another one takes over, and one that trips compute but do not read."""
    step = lambda c, _: ((np.sin(c[0]) * x + c[1], c[0], np.cos(c[0])), None)
    (now, before, last), _ = yota.scan(step, (x * 2, x, x), length=6)
    return np.sum(now * before * last)


def turning(q, lengths):
    angle = np.cumsum(q)
    return np.sum(lengths * np.cos(angle)) ** 2 + np.sum(lengths * np.sin(angle)) ** 2


def recurrent(W, U, x):
    state = np.zeros(W.shape[0])
    for t in range(len(x)):
        state = np.tanh(W @ state + U @ x[t])
    return np.sum(state**2)


def filtered(x):
    y = np.zeros(len(x), np.result_type(x))
    y[0] = x[0]
    for i in range(1, len(x)):
        y[i] = 0.9 * y[i - 1] + np.sin(x[i])
    return np.sum(y**2)


def picked(x, k):
    return x[k] * np.sum(np.cumprod(x))


NUMBERS = random.uniform(0.2, 0.9, 20)
LOOPS: list[tuple[Callable[..., Any], Any, tuple[int, ...], tuple[Any, ...]]] = [
    (oscillator, None, (), (np.array([0.7, 0.8]), 0.1, 0.02)),
    (diffusion, None, (), (random.normal(size=40), 0.2)),
    (grows, None, (), (np.array([0.97, 0.55, 0.2, 0.1]),)),
    (starts, None, (), (NUMBERS[:4],)),
    (delays, None, (), (NUMBERS,)),
    (turning, {"q": "float64[N]", "lengths": "float64[N]"}, (20,), (NUMBERS, NUMBERS[::-1].copy())),
    (recurrent, {"W": "float64[H,H]", "U": "float64[H,D]", "x": "float64[T,D]"}, (3, 2, 9), tuple(
        random.normal(size=shape) * 0.4 for shape in ((3, 3), (3, 2), (9, 2))
    )),
    (filtered, {"x": "float64[N]"}, (20,), (NUMBERS,)),
    (picked, {"x": "float64[N]", "k": "int64"}, (20,), (NUMBERS, -3)),
]  # fmt: skip


@pytest.mark.parametrize("target", LANGUAGES)
@pytest.mark.parametrize(("f", "specs", "sizes", "args"), LOOPS, ids=lambda case: getattr(case, "__name__", ""))
def test_loops_have_the_slopes_of_complex_steps(
    f: Callable[..., Any], specs: Any, sizes: Any, args: Any, target: str, tmp_path: Path
) -> None:
    text = str(yota.generate(f, specs or arguments(f, args), target=target, effort="quick"))
    assert len(text.split("\n")) < 800
    moving = [each for each in args if not isinstance(each, int)]
    call = f"{f.__name__}_value_and_gradient", (*sizes, *args), [0.0, *moving]
    ((value, *slopes),) = results(target, text, [call], tmp_path)
    assert value == pytest.approx(f(*args), rel=1e-14)
    for number, slope in enumerate(slopes):
        direction = random.normal(size=np.shape(slope))
        moved = [np.asarray(each) + 1e-30j * direction if k == number else each for k, each in enumerate(args)]
        found = np.asarray(f(*moved)).imag / 1e-30
        assert np.sum(slope * direction) == pytest.approx(found, rel=1e-11)


@pytest.mark.parametrize("target", LANGUAGES)
def test_long_tables_and_long_straight_code(target: str, tmp_path: Path) -> None:
    table = random.normal(size=1500)

    def weighted(x):
        total = 0.0
        for k in range(700):
            total = total + table[k] * x[k % 3] ** (k % 5) if k % 7 else np.sin(total) * x[0] * table[2 * k]
        return total + np.sum(table * x[1])

    compare(target, weighted, {"x": "float64[3]"}, (np.array([0.3, -0.7, 0.2]),), tmp_path)


def coupled(x):
    return np.sum(np.exp(-(x**2))) * np.sum(np.sin(x))


@pytest.mark.parametrize("target", LANGUAGES)
@pytest.mark.parametrize("size", ["2", "40", "N"])
def test_matrices_of_derivatives_are_numpys(size: str, target: str, tmp_path: Path) -> None:
    words = ("hessian", "hvp")
    text = str(yota.generate(coupled, {"x": f"float64[{size}]"}, target=target, with_=words, effort="quick"))
    count = int(size) if size.isdigit() else 9
    x, v, expected = random.normal(size=count), random.normal(size=count), np.zeros((count, count))
    sizes = [] if size.isdigit() else [count]
    for row, unit in enumerate(np.eye(count)):
        z = x + 1e-30j * unit
        slope = np.sum(np.exp(-(z**2))) * np.cos(z) - 2 * z * np.exp(-(z**2)) * np.sum(np.sin(z))
        expected[row] = slope.imag / 1e-30
    calls = [("coupled_hessian", [*sizes, x], [expected]), ("coupled_hvp", [*sizes, x, v], [v])]
    (found,), (product,) = results(target, text, calls, tmp_path)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(product, expected @ v, rtol=1e-12, atol=1e-15)


SPECIAL = [-np.inf, -7.5, -2.5, -1.0, -0.5, -1e-9, -0.0, 0.0, 1e-9, 0.5, 0.7, 1.0, 1.5, 2.5, 6.1, np.inf, np.nan]
EITHER_ZERO = {"maximum", "minimum", "fmax", "fmin", "sign", "remainder", "log_expit"}
"""Of an equal pair with two signs of zero, either may be the larger; a logistic that is 1 has a logarithm of 0."""
ROUGHER = {"power": 1e-15, "erfc": 3e-15}


def called(name: str) -> Callable[..., Any]:
    function = getattr(special if name in ("expit", "log_expit", "logit", "erf", "erfc") else np, name)
    decides = name.startswith(("is", "less", "greater", "equal", "not_"))
    return lambda *x: function(*x) * 1.0 if decides else function(*x)


@pytest.mark.parametrize("target", LANGUAGES)
@pytest.mark.parametrize("count", [1, 2])
def test_every_function_of_the_table_is_numpys(count: int, target: str, tmp_path: Path) -> None:
    language = tabled(target)
    known = sorted({*language.table["real"], *language.table["any"]} - {"where", "real", "conjugate"})
    names = [each for each in known if ("{1}" in language.entry("f", each)) == (count == 2)]
    calls = [(x,) for x in SPECIAL] if count == 1 else [(x, y) for x in SPECIAL for y in SPECIAL]
    columns = [np.array(each) for each in zip(*calls, strict=True)]
    wrapped = (lambda x: tuple(called(name)(x) for name in names)) if count == 1 else (
        lambda x, y: tuple(called(name)(x, y) for name in names)
    )  # fmt: skip
    specs = dict(zip(("x", "y"), columns, strict=False))
    text = str(yota.generate(wrapped, specs, target=target, name="f", with_="value", effort="quick"))
    with np.errstate(all="ignore"):
        # NumPy's functions of arrays are other ones than those of numbers, and less precise.
        expected = [np.array([called(name)(*map(np.float64, call)) for call in calls], float) for name in names]
    (found,) = results(target, text, [("f", columns, expected)], tmp_path)
    assert len(names) > 12
    for name, one, other in zip(names, found, expected, strict=True):
        # NumPy takes a square root here, of which C's powers differ.
        same = np.array([name == "power" and call in ((-np.inf, 0.5), (0.0, 0.5)) for call in calls])
        one, other = one[~same], other[~same]
        np.testing.assert_allclose(one, other, rtol=ROUGHER.get(name, 4.5e-16), atol=1e-300, err_msg=name)
        zero = (other == 0) & (name not in EITHER_ZERO)
        assert (np.signbit(one[zero]) == np.signbit(other[zero])).all(), name


@needs_node
def test_arrays_of_other_lengths_and_other_decisions_are_refused(tmp_path: Path) -> None:
    def f(x):
        return np.sum(x**2) if x[0] > 0 else np.sum(x)

    text = str(yota.generate(f, {"x": np.ones(3)}, target="javascript", effort="quick"))
    calls = [("f_value_and_gradient", (x,)) for x in ([1.0, 2.0], [-1.0, 2.0, 3.0], np.ones(3))]
    short, other, fine = run(text, calls, tmp_path)
    assert "x has 2 elements, not 3" in short["error"]
    assert "decision 1" in other["error"] and "Decision 1: return np.sum(x**2) if x[0] > 0" in text
    assert fine["value"] == 3.0


@needs_gfortran
def test_statuses_tell_what_was_refused(tmp_path: Path) -> None:
    def f(x, i):
        return np.sum(x[i] ** 2) if x[0] > 0 else np.sum(x)

    text = str(yota.generate(f, {"x": "float64[N]", "i": "int64[M]"}, target="fortran", effort="quick"))
    function, x, value, slope = built(text, tmp_path).f_value_and_gradient, np.arange(1.0, 5.0), np.zeros(1), np.ones(4)
    statuses = []
    for sign, index in ((1, [0, -1, 0]), (1, [0, 4, 1]), (-1, [0, 1, 1])):
        given = [4, 3, sign * x, np.array(index)]
        statuses.append(function(*map(passed, given), passed(value), passed(slope)))
        if not statuses[-1]:
            assert value[0] == 18.0 and slope.tolist() == [4.0, 0.0, 0.0, 8.0]
    assert statuses == [0, OUT_OF_BOUNDS, 1]
    assert function(*map(passed, (0, 3, x, np.array([0, 0, 0]))), passed(value), passed(slope)) == WRONG_SIZES


@needs_node
def test_indices_are_looked_at(tmp_path: Path) -> None:
    def f(x, i):
        return np.sum(x[i] ** 2)

    text = str(yota.generate(f, {"x": "float64[4]", "i": "int64[3]"}, target="javascript", effort="quick"))
    x = np.array([1.0, 2.0, 3.0, 4.0])
    calls = [("f_value_and_gradient", (x, i)) for i in ([0, -1, 0], [0, 4, 1], [0, 0.5, 1])]
    fine, outside, part = run(text, calls, tmp_path)
    assert fine["value"] == 18.0 and fine["gradient"].tolist() == [4.0, 0.0, 0.0, 8.0]
    assert "out of bounds" in outside["error"] and "out of bounds" in part["error"]


@needs_node
def test_the_caller_gives_memory(tmp_path: Path) -> None:
    text = str(yota.generate(himmelblau, {"x": "float64[2]"}, target="javascript", effort="quick"))
    text += "export const same = (x) => { const g = new Float64Array(2); return himmelblau_gradient(x, g) === g; };\n"
    assert run(text, [("same", ([1.0, 2.0],))], tmp_path) == [1.0]


@pytest.mark.parametrize(
    ("f", "specs", "message"),
    [
        (lambda x: np.sum(special.erf(x)), {"x": "float64[3]"}, "scipy.special.erf of .* cannot be said in JavaScript"),
        (lambda x: np.sum(np.sort(x)[:2]), {"x": "float64[30]"}, "argsort of .* cannot be said in JavaScript"),
        (lambda x: np.sum(x), {"x": "float32[3]"}, "float32, which generated JavaScript does not have; use float64"),
        (lambda x: np.sum(np.abs(x)), {"x": "complex128[3]"}, "complex128, which generated JavaScript does not have"),
        (lambda x: np.linalg.det(x), {"x": "float64[9,9]"}, "cannot be said in JavaScript"),
    ],
)
def test_what_the_language_lacks_is_refused_by_name(f: Any, specs: dict[str, str], message: str) -> None:
    with pytest.raises(CodegenError, match=message):
        yota.generate(f, specs, target="javascript", effort="quick")


@pytest.mark.parametrize("spec", ["float64[N]", "float64[3]"])
def test_notes_tell_names_of_the_file_itself(spec: str) -> None:
    def f(status, END):
        return np.sum(status**2) * np.sum(END)

    for target, names in (("fortran", ["status_1", "end_1"]), ("javascript", []), ("cuda", ["status_1", "end"])):
        module = yota.generate(f, [spec, spec], target=target)
        renamed = [note.split()[3] for note in module.notes if " is called " in note]
        assert renamed == names
        assert all(name in str(module) for name in names)


def test_a_self_test_is_refused() -> None:
    with pytest.raises(ArgumentError, match="self_test=True is not for target"):
        yota.generate(himmelblau, {"x": "float64[2]"}, target="javascript", self_test=True)


@pytest.mark.parametrize("target", ["javascript", "fortran"])
@pytest.mark.parametrize("f", [himmelblau, pairs])
def test_source_is_as_reviewed(f: Callable[..., Any], target: str, pytestconfig: pytest.Config) -> None:
    specs = {"x": "float64[2]" if f is himmelblau else "float64[N,3]"}
    for name, text in yota.generate(f, specs, target=target, effort="quick").files.items():
        place = GOLDEN / target / name
        if pytestconfig.getoption("--update-golden"):
            place.parent.mkdir(exist_ok=True)
            place.write_text(text)
        assert text == place.read_text()
