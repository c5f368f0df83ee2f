"""The committed generated files are current, stand alone, pass the linters, and agree with yota to the bit."""

from __future__ import annotations

import ctypes
import json
import os
import pickle
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import yota
from tests.emit.compiled import needs_compiler
from yota.run.machine import compiler
from yota.tools.cli import main
from yota.tools.cli.user_function import function_at

ROOT = Path(__file__).parent.parent
VENDORED = ROOT / "examples" / "vendored"
FILES = sorted(VENDORED.glob("*_grad.py"))
C_FILES = sorted(VENDORED.glob("*_grad.c"))

ALONE = """
import importlib.util, pickle, sys
sys.modules["yota"] = None
import numpy as np
path, name, source = sys.argv[1:]
spec = importlib.util.spec_from_file_location("vendored", path)
module = importlib.util.module_from_spec(spec)
sys.modules["vendored"] = module
spec.loader.exec_module(module)
arguments = pickle.load(open(source, "rb"))
found = getattr(module, name)(*arguments), getattr(module, f"{name}_gradient")(*arguments)
assert not any(each.partition(".")[0] == "yota" and sys.modules[each] for each in sys.modules)
value, gradient = getattr(module, f"{name}_value_and_gradient")(*arguments)
parts = gradient if isinstance(gradient, tuple) else (gradient,)
pickle.dump((value, [np.asarray(part) for part in parts]), sys.stdout.buffer)
"""


def command(file: Path) -> list[str]:
    """The command that the head of a file gives."""
    lines = []
    for line in file.read_text().splitlines():
        found = re.match(r"(#| \*)     (.*)", line)
        if found:
            lines.append(found[2].removesuffix("\\"))
        elif lines:
            break
    return shlex.split(" ".join(lines))


def alone(file: Path, name: str, arguments: tuple[Any, ...], folder: Path) -> tuple[Any, list[Any]]:
    """Value and gradient by a process that cannot import yota."""
    (folder / "arguments").write_bytes(pickle.dumps(arguments))
    words = [sys.executable, "-W", "error", "-c", ALONE, str(file), name, str(folder / "arguments")]
    done = subprocess.run(words, capture_output=True, cwd=folder, timeout=60, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return pickle.loads(done.stdout)


def same(left: Any, right: Any) -> bool:
    left, right = np.asarray(left), np.asarray(right)
    return left.dtype == right.dtype and left.shape == right.shape and left.tobytes() == right.tobytes()


def test_there_are_three() -> None:
    assert len(FILES) >= 3


@pytest.mark.parametrize("file", [*FILES, *C_FILES], ids=lambda file: file.name)
def test_the_head_holds_the_command_that_writes_the_file(
    file: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    words = command(file)
    assert words[:2] == ["yota", "generate"]
    if request.config.getoption("--update-golden"):
        assert main(words[1:]) == 0
    assert main([*words[1:], "--check"]) == 0, capsys.readouterr().out


def test_polynomial(tmp_path: Path) -> None:
    f = function_at(str(ROOT / "examples" / "polynomial.py") + ":polynomial")
    x = np.random.default_rng(0).normal(size=8)
    value, (gradient,) = alone(VENDORED / "polynomial_grad.py", "polynomial", (x,), tmp_path)
    expected, g = yota.grad(f, x, effort="high")
    assert same(value, expected)
    assert same(gradient, g[0])


def test_lennard_jones(tmp_path: Path) -> None:
    f = function_at(str(VENDORED / "losses.py") + ":lennard_jones")
    x = np.random.default_rng(1).normal(size=(4, 3))
    value, gradients = alone(VENDORED / "lennard_jones_grad.py", "lennard_jones", (x, 1.5, 0.9), tmp_path)
    expected, g = yota.grad(f, x, 1.5, 0.9, effort="high")
    assert same(value, expected)
    assert all(same(found, wanted) for found, wanted in zip(gradients, g, strict=True))


def test_cross_entropy(tmp_path: Path) -> None:
    f = function_at(str(VENDORED / "losses.py") + ":cross_entropy")
    random = np.random.default_rng(2)
    model = sys.modules[f.__module__].Classifier(random.normal(size=(64, 10)), random.normal(size=10))
    X, labels = random.normal(size=(128, 64)), random.integers(0, 10, 128)
    arguments = (model.W, model.b, X, labels)
    value, gradients = alone(VENDORED / "cross_entropy_grad.py", "cross_entropy", arguments, tmp_path)
    expected, gradient = yota.value_and_grad(f)(model, X, labels)
    assert same(value, expected)
    assert same(gradients[0], gradient["W",])
    assert same(gradients[1], gradient["b",])


CURRENT = """
import json, sys
from yota.tools.cli import main
for words in json.loads(sys.argv[1]):
    assert main([*words[1:], "--check"]) == 0, words
"""
WITH_PACKAGES = "import jinja2, numpy, optree, pygments, rich, sympy, typer"


def pythons() -> list[str]:
    """This interpreter, those named in $YOTA_PYTHONS, and other versions on the path."""
    named = os.environ.get("YOTA_PYTHONS", "").split(os.pathsep)
    others = [f"python3.{minor}" for minor in range(10, 15) if minor != sys.version_info.minor]
    return [sys.executable, *filter(None, named), *others]


@pytest.mark.parametrize("python", pythons())
def test_other_processes_and_pythons_write_the_same_bytes(python: str) -> None:
    if shutil.which(python) is None:
        pytest.skip(f"{python} is not here")
    if subprocess.run([python, "-c", WITH_PACKAGES], capture_output=True, check=False).returncode:
        pytest.skip(f"{python} has not the packages that yota needs")
    environment = {**os.environ, "PYTHONHASHSEED": "4711", "PYTHONPATH": str(ROOT), "LC_ALL": "C", "TZ": "Asia/Tokyo"}
    words = [python, "-c", CURRENT, json.dumps([command(file) for file in (*FILES, *C_FILES)])]
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT, env=environment, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@needs_compiler
def test_lennard_jones_in_c(tmp_path: Path) -> None:
    (file,) = C_FILES
    library = tmp_path / "library.so"
    words = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-ffp-contract=off", "-fPIC", "-shared"]
    subprocess.run([*compiler.find().command, *words, str(file), "-o", str(library), "-lm"], check=True)
    f = function_at(str(VENDORED / "losses.py") + ":lennard_jones")
    x = np.random.default_rng(1).normal(size=(4, 3))
    value, found = np.zeros(()), [np.zeros((4, 3)), np.zeros(()), np.zeros(())]
    places = [each.ctypes.data_as(ctypes.c_void_p) for each in (x, value, *found)]
    numbers = ctypes.c_double(1.5), ctypes.c_double(0.9)
    run = ctypes.CDLL(str(library)).lennard_jones_value_and_gradient
    assert run(ctypes.c_ssize_t(4), places[0], *numbers, *places[1:]) == 0
    expected, g = yota.grad(f, x, 1.5, 0.9)
    np.testing.assert_allclose(value, expected, rtol=1e-14)
    for one, other in zip(found, g, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13)


def test_linters_have_nothing_to_say() -> None:
    for words in (["ruff", "check"], ["ruff", "format", "--check"], ["mypy", "--strict"]):
        files = FILES if words[0] == "mypy" else [VENDORED]
        done = subprocess.run(
            [sys.executable, "-m", *words, *map(str, files)], capture_output=True, text=True, cwd=ROOT, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr


_LINTED = """
import numpy as np

COLUMNS = np.array([0, 2, 1, 2])


def columns(x):
    return np.sum(x[:, COLUMNS] ** 2)


def extremes(x):
    return np.max(x) - np.min(x)
"""


def test_linters_have_nothing_to_say_of_repeated_columns_and_of_extremes(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "sample.py").write_text(_LINTED)
    for name, spec in (("columns", "x=float64[N,4]"), ("extremes", "x=float64[4]")):
        words = ["generate", f"{tmp_path / 'sample.py'}:{name}", "--arg", spec, "-o", str(tmp_path / f"{name}_grad.py")]
        assert main(words) == 0, capsys.readouterr()
    files = [str(tmp_path / f"{name}_grad.py") for name in ("columns", "extremes")]
    for words in (["ruff", "check", "--isolated"], ["mypy", "--strict", "--cache-dir", str(ROOT / ".mypy_cache")]):
        done = subprocess.run([sys.executable, "-m", *words, *files], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
