"""Files in languages that a table describes: their values are NumPy's, and what they lack is refused by name."""

from __future__ import annotations

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
from yota.codegen.language import tabled
from yota.errors import ArgumentError, CodegenError

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")
GOLDEN = Path(__file__).parent.parent / "golden"
random = np.random.default_rng(7)
TABLE = random.normal(size=(7, 5))
RUN = """
import { readFileSync } from "node:fs";
import * as functions from "./module.mjs";
const [name, calls] = JSON.parse(readFileSync("arguments.json"));
const told = (each) => ArrayBuffer.isView(each) ? Array.from(each, told) : Object.is(each, -0) ? "-0"
    : each === null || typeof each !== "object" ? String(each)
    : Object.fromEntries(Object.entries(each).map(([key, value]) => [key, told(value)]));
const taken = (each) => Array.isArray(each) ? Float64Array.from(each, Number) : Number(each);
console.log(JSON.stringify(calls.map((given) => {
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


def run(text: str, name: str, calls: Sequence[Sequence[Any]], folder: Path) -> list[Any]:
    """What a function of a module gives for each call."""
    (folder / "module.mjs").write_text(text)
    (folder / "run.mjs").write_text(RUN)
    (folder / "arguments.json").write_text(json.dumps([name, [[spelled(each) for each in call] for call in calls]]))
    done = subprocess.run(["node", "run.mjs"], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + text
    return [numbers(each) for each in json.loads(done.stdout)]


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


@needs_node
@pytest.mark.parametrize(("f", "args"), FUNCTIONS, ids=lambda case: getattr(case, "__name__", ""))
def test_javascript_agrees_with_numpy(f: Callable[..., Any], args: tuple[Any, ...], tmp_path: Path) -> None:
    text = str(yota.generate(f, arguments(f, args), target="javascript", effort="quick"))
    (found,) = run(text, f"{f.__name__}_value_and_gradient", [args], tmp_path)
    expected, gradients = f(*args), yota.grad(f, *args)[1]
    assert abs(found.pop("value") - expected) <= 1e-15 * abs(expected)
    wanted = list(gradients) if len(args) > 1 else [gradients]
    for one, other in zip(found.values(), wanted, strict=True):
        np.testing.assert_allclose(one, np.ravel(other) if np.ndim(other) else other, rtol=1e-13, atol=1e-14)
    assert run(text, f.__name__, [args], tmp_path) == [pytest.approx(expected, rel=1e-15)]
    (alone,) = run(text, f"{f.__name__}_gradient", [args], tmp_path)
    parts = list(alone.values()) if isinstance(alone, dict) else [alone]
    assert [np.asarray(each).tobytes() for each in parts] == [np.asarray(each).tobytes() for each in found.values()]


SPECIAL = [-np.inf, -7.5, -2.5, -1.0, -0.5, -1e-9, -0.0, 0.0, 1e-9, 0.5, 0.7, 1.0, 1.5, 2.5, 6.1, np.inf, np.nan]
ENTRIES = sorted(set(tabled("javascript").table["real"]) - {"where", "conj", "abs", "real", "conjugate"})


def called(name: str) -> Callable[..., Any]:
    function = getattr(special if name in ("expit", "log_expit", "logit") else np, name)
    decides = name.startswith(("is", "less", "greater", "equal", "not_"))
    return lambda *x: function(*x) * 1.0 if decides else function(*x)


@needs_node
@pytest.mark.parametrize("name", ENTRIES)
def test_every_function_of_the_table_is_numpys(name: str, tmp_path: Path) -> None:
    function = called(name)
    count = 2 if "{1}" in tabled("javascript").table["real"][name] else 1
    specs = dict.fromkeys(("x", "y")[:count], "float64")
    wrapped = (lambda x: function(x)) if count == 1 else (lambda x, y: function(x, y))
    text = str(yota.generate(wrapped, specs, target="javascript", name="f", with_="value", effort="quick"))
    calls = [(x,) for x in SPECIAL] if count == 1 else [(x, y) for x in SPECIAL for y in SPECIAL]
    # NumPy takes a square root here, of which C's powers differ.
    calls = [each for each in calls if name != "power" or each not in ((-np.inf, 0.5), (0.0, 0.5))]
    with np.errstate(all="ignore"):
        expected = np.array([function(*map(np.float64, call)) for call in calls], float)
    found = np.array(run(text, "f", calls, tmp_path), float)
    np.testing.assert_allclose(found, expected, rtol=4e-16 if name != "power" else 1e-15, atol=1e-300)
    # Of an equal pair with two signs of zero, either may be the larger.
    if name not in ("maximum", "minimum", "fmax", "fmin", "sign", "remainder"):
        zero = expected == 0
        assert (np.signbit(found[zero]) == np.signbit(expected[zero])).all()


@needs_node
def test_arrays_of_other_lengths_and_other_decisions_are_refused(tmp_path: Path) -> None:
    def f(x):
        return np.sum(x**2) if x[0] > 0 else np.sum(x)

    text = str(yota.generate(f, {"x": np.ones(3)}, target="javascript", effort="quick"))
    short, other, fine = run(
        text, "f_value_and_gradient", [([1.0, 2.0],), ([-1.0, 2.0, 3.0],), (np.ones(3),)], tmp_path
    )
    assert "x has 2 elements, not 3" in short["error"]
    assert "decision 1" in other["error"] and "Decision 1: return np.sum(x**2) if x[0] > 0" in text
    assert fine["value"] == 3.0


@needs_node
def test_indices_are_looked_at(tmp_path: Path) -> None:
    def f(x, i):
        return np.sum(x[i] ** 2)

    text = str(yota.generate(f, {"x": "float64[4]", "i": "int64[3]"}, target="javascript", effort="quick"))
    x = np.array([1.0, 2.0, 3.0, 4.0])
    fine, outside, part = run(
        text, "f_value_and_gradient", [(x, [0, -1, 0]), (x, [0, 4, 1]), (x, [0, 0.5, 1])], tmp_path
    )
    assert fine["value"] == 18.0 and fine["gradient"].tolist() == [4.0, 0.0, 0.0, 8.0]
    assert "out of bounds" in outside["error"] and "out of bounds" in part["error"]


@needs_node
def test_the_caller_gives_memory(tmp_path: Path) -> None:
    text = str(yota.generate(himmelblau, {"x": "float64[2]"}, target="javascript", effort="quick"))
    text += "export const same = (x) => { const g = new Float64Array(2); return himmelblau_gradient(x, g) === g; };\n"
    assert run(text, "same", [([1.0, 2.0],)], tmp_path) == [1.0]


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


def test_a_self_test_is_refused() -> None:
    with pytest.raises(ArgumentError, match="self_test=True is not for target"):
        yota.generate(himmelblau, {"x": "float64[2]"}, target="javascript", self_test=True)


@pytest.mark.parametrize("f", [himmelblau, pairs])
def test_source_is_as_reviewed(f: Callable[..., Any], pytestconfig: pytest.Config) -> None:
    specs = {"x": "float64[2]" if f is himmelblau else "float64[9,3]"}
    for name, text in yota.generate(f, specs, target="javascript", effort="quick").files.items():
        place = GOLDEN / "javascript" / name
        if pytestconfig.getoption("--update-golden"):
            place.parent.mkdir(exist_ok=True)
            place.write_text(text)
        assert text == place.read_text()
