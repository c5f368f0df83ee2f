"""The examples run as their readers run them, and their results are right."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"


@cache
def run(name: str, *arguments: str | Path) -> str:
    """Standard output of an example, run as a script of its own in which every warning is an error."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MPLBACKEND": "Agg"}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / name), *map(str, arguments)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def number(pattern: str, text: str) -> float:
    """The number that a pattern's group catches."""
    found = re.search(pattern, text)
    assert found, text
    return float(found[1])


def test_polynomial() -> None:
    printed = run("polynomial.py", "--points", "10000")
    assert "10,000 points" in printed
    assert number(r"value at one point +(\S+)", printed) == pytest.approx(polynomial_value(), abs=1e-11)


def test_solvers_find_rates_and_orbit_and_cool_a_plate(tmp_path: Path) -> None:
    picture = tmp_path / "solvers.png"
    printed = run("solvers.py", "--cells", "12", "--iterations", "15", "--picture", picture)
    assert number(r"rates (\S+)", printed) == pytest.approx(0.7, abs=0.05)
    assert number(r"eccentricity \S+ (\S+)", printed) == pytest.approx(0.55, abs=0.02)
    assert number(r"with the design (\S+);", printed) < 0.5 * number(r"mean temperature (\S+),", printed)
    assert number(r"material (\S+)\n", printed) < 0.42
    assert picture.stat().st_size > 10_000


def polynomial_value() -> float:
    """The value at the example's point, from the cubes that the terms are parts of."""
    x = [0.2 * (i + 1) for i in range(8)]
    one, other = complex(x[7], x[5]) ** 3, complex(x[4], x[6]) ** 3
    return x[2] * one.real + x[0] * one.imag + x[3] * other.real + x[1] * other.imag - 1.2342523


def test_polynomial_prints_straight_scalar_code() -> None:
    source = run("polynomial.py", "--points", "10000").partition("the code that computed both:")[2]
    assert "def " in source
    assert "pow(" not in source


def test_logistic_regression_finds_the_optimum_of_scikit_learn() -> None:
    printed = run("logistic_regression.py", "--C", "0.1")
    assert number(r"parameters (\S+)", printed) < 1e-4
    assert number(r"accuracy +(\S+)%", printed) > 95


def test_larger_than_memory_finds_the_weights(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    picture = tmp_path / "loss.png"
    printed = run("larger_than_memory.py", "--rows", "25000", "--workers", "1", "--iterations", "6", "--out", picture)
    assert number(r"loss +(\S+) at first", printed) > number(r"first, (\S+) after", printed)
    assert number(r"correlation with the weights (\S+)", printed) > 0.97
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_vae_learns_and_draws(tmp_path: Path) -> None:
    picture = tmp_path / "digits.png"
    printed = run("vae.py", "--epochs", "4", "--hidden", "32", "--out", picture)
    first, last = number(r"loss: (\S+) in the first", printed), number(r"(\S+) in the last", printed)
    # log(2) for each of 64 pixels is what a coin would reach.
    assert last < first < 64 * 0.6931472 + 10
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("pad", ["0", "2"])
def test_conv_recovers_the_hidden_filters(pad: str) -> None:
    printed = run("conv.py", "--pad", pad)
    assert number(r"hidden filters: (\S+)", printed) < 1e-3
    # The keyword reaches the gradient's calls.
    assert re.search(rf"conv_filter_grad\(.*pad={pad}", printed)
