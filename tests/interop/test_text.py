"""Files of expressions: read as sympy would read them, and never executed."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy

import yota
from yota.errors import ArgumentError
from yota.interop.expression_files import formulas_of
from yota.tools.cli import main

EXPRESSIONS = [
    "x**2*y - 3*x/(y + 1) - -x + 2",
    "sqrt(x)*sin(x)**2/3 + exp(-x*y) + atan2(y, x) - asinh(x)*pi + E*log(y, 3)",
    "Piecewise((x, (x > 0) & (y < 1)), (-y, (x < -1) | ~(y >= 2)), (0, True)) + Max(x, y, 1)*Abs(x - y)",
    "besselj(2, x) + polygamma(1, y) + gamma(x) + erf(y)*Rational(1, 3) + zeta(3) + factorial(y)",
    "Piecewise((x, Eq(y, 1)), (2*x, Ne(x, y)), (y, True)) + Heaviside(x, 1) + floor(3*y) + Mod(x, 2)",
    "Sum(x**k/factorial(k), (k, 0, 5)) + Product(1 + y/k, (k, 1, 3)) + Sum(i*j*x, (i, 0, j), (j, 2, 2))",
    "1e-3*x + 0.25*y + 12345678901*x - 2**0.5",
]


def written(folder: Path, text: str) -> Path:
    path = folder / "model.sympy"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_expressions_mean_what_they_mean_to_sympy(tmp_path: Path, text: str) -> None:
    if "(i, 0, j)" in text:
        text = text.replace("(i, 0, j)", "(i, 0, 2)")
    f = formulas_of(written(tmp_path, f"f = {text}\n"))["f"]
    wanted = sympy.sympify(text)
    for x, y in ((0.3, 0.7), (1.5, 1.0)):
        at = dict(zip(sympy.symbols("x y"), (sympy.Rational(x), sympy.Rational(y)), strict=True))
        np.testing.assert_allclose(f(x, y), float(wanted.subs(at).doit().evalf(30)), rtol=1e-13)


def test_names_of_lines_before_and_order_of_arguments(tmp_path: Path) -> None:
    lines = """
# distances
r = sqrt((x - a)**2 + y**2)
energy = 4*(1/r**12 - 1/r**6)  # Lennard and Jones
total = Sum(w[i]*X[i, 1]**2, (i, 0, n - 1)) + r
"""
    found = formulas_of(written(tmp_path, lines))
    assert [str(each.__signature__) for each in found.values()] == ["(x, a, y)", "(x, a, y)", "(x, a, y, w, X, n)"]
    r = np.hypot(0.5, 1.0)
    np.testing.assert_allclose(found["energy"](1.0, 0.5, 1.0), 4 * (r**-12 - r**-6), rtol=1e-14)
    np.testing.assert_allclose(yota.gradient(found["r"], "y")(1.0, 0.5, 1.0), 1 / r, rtol=1e-14)
    w, big = np.array([1.0, 2.0]), np.arange(4.0).reshape(2, 2)
    np.testing.assert_allclose(found["total"](1.0, 0.5, 1.0, w, big, 2), 19 + r, rtol=1e-14)


def test_a_name_of_a_line_is_not_caught_by_an_index(tmp_path: Path) -> None:
    found = formulas_of(written(tmp_path, "part = 2*i\nf = Sum(part*i, (i, 1, 3))\n"))
    assert found["f"](5.0) == 60.0


def test_long_sums(tmp_path: Path) -> None:
    text = " + ".join(f"{k}*x**{k % 7}" for k in range(2000))
    f = formulas_of(written(tmp_path, f"f = {text}\n"))["f"]
    np.testing.assert_allclose(f(0.5), sum(k * 0.5 ** (k % 7) for k in range(2000)), rtol=1e-12)


HOSTILE = [
    "f = __import__('os').system('touch {there}')",
    "f = (lambda: open('{there}', 'w'))()",
    "f = [open('{there}', 'w') for x in y]",
    "f = x.__class__.__mro__[1].__subclasses__()",
    "f = eval('1')",
    "f = sympify('x')",
    "f = S('x')",
    "f = globals()",
    "f = _imp_(x)",
    "f = _Run(x)",
    "f = index(0, 3)",
    "f = getattr(x, 'y')",
    "f = f'{x}'",
    "f = (x := 3)",
    "f = sin(x, evalf=3)",
    "f = sin(*x)",
    "f = x if y else z",
    "f = 'abc' + x",
    "import os",
    "f = g = x",
    "f = Sum(x, (i, 0))",
    "f = Sum(x, (3, 0, 1))",
    "f = Piecewise(x)",
    "f = x[0](1)",
    "f = unknown(x)",
    "f = hyper((1, 2), (3,), x)",
    "f = sin(x, y)",
    "f = " + "(" * 500 + "x" + ")" * 500,
    "f = x\x00y",
    "f = \u202ex",
    "f = x +",
    "f = " + "-" * 300 + "x",
    "f = " + "sin(" * 200 + "x" + ")" * 200,
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_files_run_nothing(tmp_path: Path, text: str) -> None:
    there = tmp_path / "there"
    with pytest.raises(ArgumentError):
        formulas_of(written(tmp_path, text.replace("{there}", str(there)) + "\n"))
    assert not there.exists()


@pytest.mark.parametrize(
    "text", ["9**9**9**9 + x", "factorial(10**9)*x", "x**(10**10)", "Sum(x, (i, 0, 10**12))", "((10**300)**64)**64*x"]
)
def test_large_numbers_take_no_time(tmp_path: Path, text: str) -> None:
    start = time.process_time()
    f = formulas_of(written(tmp_path, f"f = {text}\n"))["f"]
    if "Sum" in text:
        with pytest.raises(ArgumentError, match="10,000,000 terms"):
            f(1.0)
    else:
        assert not np.isnan(f(1.0))
    assert time.process_time() - start < 5


def test_generate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, "r = x**2 + y**2\nenergy = exp(-r)*x\n")
    command = ["generate", "model.sympy:energy", "--arg", "x=float", "--arg", "y=float", "-o", "out.py"]
    assert main(command) == 0
    text = Path("out.py").read_text()
    assert "yota generate model.sympy:energy --arg x=float" in text
    names: dict[str, Any] = {}
    exec(text, names)
    np.testing.assert_allclose(names["energy_gradient"](0.3, 0.7)[1], -2 * 0.7 * 0.3 * np.exp(-0.58), rtol=1e-13)
    assert main([*command, "--check"]) == 0
    assert main(["generate", "model.sympy:nothing", "--arg", "x=float"]) == 2
    assert "it has r, energy" in capsys.readouterr().err
    assert main(["generate", "missing.sympy:f"]) == 2
