"""Formulas of tapes: at random points they are what the function and its gradient give."""

from __future__ import annotations

import re
from typing import Any
from xml.dom import minidom

import numpy as np
import pytest
import scipy.special
import sympy

import yota
from yota.errors import ArgumentError
from yota.tools.report.notebook import formulas


def rosenbrock(x: Any) -> Any:
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def layer(w: Any, x: Any, b: Any) -> Any:
    return np.sum(np.tanh(x @ w[:2].T + b) ** 2) * x[0, 0] - np.mean(x, axis=1)[-1]


def pieces(x: Any) -> Any:
    return np.sum(np.where(x > 0, np.sin(x), np.maximum(x, -0.5) * abs(x))) + np.prod(x[:2])


def shapes(x: Any) -> Any:
    y = np.concatenate([x.reshape(2, 6)[:, ::2].ravel(), np.stack([x[0], x[1]]), x[::-3]])
    return np.einsum("i,i->", y, np.arange(12.0) + 1)


def special(x: Any) -> Any:
    return np.sum(np.log1p(x**2) * np.arctan2(x, 2.0) + np.hypot(x, 1.0) + np.exp2(x) / np.cosh(x))


def likely(x: Any) -> Any:
    return scipy.special.logsumexp(x) - x[0] + np.nan_to_num(x[1]) * np.where(np.isnan(x[2]), 0.0, x[2])


def scattered(x: Any) -> Any:
    return x[1] * x[-1] ** 2 + np.sum(x[1:6:2] ** 3)


def largest(x: Any) -> Any:
    return np.max(x[:3]) * np.sum(x > 0.5)


def constants(x: Any) -> Any:
    table = np.array([[3.0, 1.0, 4.0], [1.0, 5.0, 9.0]])
    return np.sum((table @ x) ** 2) + np.sum(np.cumsum(x) ** 3) * np.sum(np.cumprod(x))


CASES = [
    (largest, [(6,)]),
    (likely, [(3,)]),
    (constants, [(3,)]),
    (rosenbrock, [(6,)]),
    (layer, [(3, 5), (2, 5), (2,)]),
    (pieces, [(5,)]),
    (shapes, [(12,)]),
    (special, [(5,)]),
    (scattered, [(7,)]),
    (lambda x, y: x**y * np.sqrt(x) - 1 / y + 0.1, [(), ()]),
    (lambda x: np.sum(np.triu(x[:, None] - x, 1) ** 3), [(4,)]),
]


@pytest.mark.parametrize(("function", "sizes"), CASES, ids=lambda each: getattr(each, "__name__", ""))
def test_value_and_gradient(function: Any, sizes: Any) -> None:
    generator = np.random.default_rng(1)
    args = [generator.uniform(0.1, 1.0, each) if each else float(generator.uniform(0.1, 1.0)) for each in sizes]
    if function is pieces:
        args[0][::2] *= -1
    value, g = yota.grad(function, *args)
    at: dict[Any, float] = {}
    for entry, arg in zip(g.tape.inputs, args, strict=True):
        if not np.shape(arg):
            at[sympy.Symbol(entry.name)] = arg
        for place in np.ndindex(np.shape(arg)) if np.shape(arg) else ():
            at[sympy.IndexedBase(entry.name)[place]] = arg[place]
    found = g.tape.to_sympy()
    assert len(found) == 1 + len(args)
    np.testing.assert_allclose(number(found[0], at), value, rtol=1e-12)
    for formula, wanted in zip(found[1:], g, strict=True):
        places = list(np.ndindex(np.shape(wanted)))
        for place in {places[0], places[-1], places[len(places) // 2]}:
            part = formula(*place) if isinstance(formula, sympy.Lambda) else formula[place] if place else formula
            np.testing.assert_allclose(number(part, at), np.asarray(wanted)[place], rtol=1e-12, atol=1e-14)


def number(expression: Any, at: dict[Any, float]) -> float:
    return float(sympy.sympify(expression).doit().xreplace({key: sympy.Float(each, 30) for key, each in at.items()}))


def test_formulas_of_complex_numbers_have_their_conjugates() -> None:
    value, gradient = yota.grad(lambda x: np.real((np.exp(1j * x) + x) * np.conj(np.exp(2j * x))), 0.7)
    # By hand: cos(x) + x*cos(2*x).
    wanted = [np.cos(0.7) + 0.7 * np.cos(1.4), -np.sin(0.7) + np.cos(1.4) - 1.4 * np.sin(1.4)]
    found = [complex(each.subs(sympy.Symbol("x"), 0.7).doit().evalf()) for each in gradient.tape.to_sympy()]
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
    np.testing.assert_allclose([value, gradient[0]], wanted, rtol=1e-12)


def test_formulas_are_short_and_lead_back() -> None:
    value, g = yota.grad(lambda x, w: np.sum(w * x**2), np.linspace(0, 1, 50), 3.0)
    i, w, x = sympy.Symbol("i", integer=True), sympy.Symbol("w"), sympy.IndexedBase("x")
    total, by_x, by_w = g.tape.to_sympy()
    assert total == sympy.Sum(w * x[i] ** 2, (i, 0, 49))
    assert by_x == sympy.Lambda(i, 2 * w * x[i])
    assert by_w == sympy.Sum(x[i] ** 2, (i, 0, 49))
    f = yota.from_sympy(total, (x, w))
    np.testing.assert_allclose(yota.gradient(f)(np.linspace(0, 1, 50), 3.0), g[0], rtol=1e-14)


def test_an_index_that_an_argument_is_called_by() -> None:
    _, tape = yota.trace(lambda i, j: np.sum(i * j), np.ones(20), 2.0)
    k = sympy.Symbol("k", integer=True)
    assert tape.to_sympy() == sympy.Sum(sympy.Symbol("j") * sympy.IndexedBase("i")[k], (k, 0, 19))


def test_indices_of_nested_sums_are_apart() -> None:
    _, tape = yota.trace(lambda a: np.sum(np.sum(a, axis=0) ** 2), np.ones((6, 7)))
    assert len(tape.to_sympy().function.atoms(sympy.Sum)) == 1
    a = np.arange(42.0).reshape(6, 7)
    base = sympy.IndexedBase("a")
    at = {base[place]: a[place] for place in np.ndindex(6, 7)}
    assert number(tape.to_sympy(), at) == np.sum(np.sum(a, axis=0) ** 2)


def test_latex() -> None:
    def energy(x: Any, y: Any) -> Any:
        return x * y**2

    _, g = yota.grad(energy, 1.0, 2.0)
    lines = ["energy &= x y^{2}", r"\frac{d}{d x} energy &= y^{2}", r"\frac{d}{d y} energy &= 2 x y"]
    assert g.tape.latex() == "\\begin{aligned}\n" + " \\\\\n".join(lines) + "\n\\end{aligned}"
    assert g._repr_latex_() == g.tape._repr_latex_() == f"$\\displaystyle {g.tape.latex()}$"


def test_notebooks_and_the_tape_explorer_show_formulas() -> None:
    value, g = yota.grad(rosenbrock, np.ones(30))
    for markup in formulas(g.tape):
        minidom.parseString("<math>" + re.sub(r"&\w+;", " ", markup) + "</math>")
    assert g._repr_html_().count("<math") == g.tape._repr_html_().count("<math") == 2
    from yota.tools.report.collect import page

    assert page(rosenbrock, {"x": "float64[30]"}).count("<math display") == 2


def test_names_of_the_users_stay_text() -> None:
    _, tape = yota.trace(lambda p: p["<script>"] * 2, {"<script>": 1.0})
    assert "<script>" not in tape._repr_html_()


def test_what_has_no_formula_is_refused_by_name() -> None:
    _, tape = yota.trace(lambda a: np.linalg.svd(a)[1], np.eye(3))
    with pytest.raises(ArgumentError, match="svd"):
        tape.to_sympy()
    assert tape._repr_latex_() is None
    assert formulas(tape) == []

    def long(x: Any) -> Any:
        for _ in range(30):
            x = x * x + np.sin(x)
        return x

    _, tape = yota.trace(long, 0.1)
    assert isinstance(tape.to_sympy(), sympy.Expr)
    with pytest.raises(ArgumentError, match="too long to be read"):
        tape.latex()
