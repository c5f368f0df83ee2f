"""Functions from sympy's expressions: values and derivatives are those that sympy itself finds, to 30 digits."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import sympy
from sympy import IndexedBase, Matrix, MatrixSymbol, Piecewise, Product, Rational, Sum, exp, log, sin, sqrt, symbols
from sympy.codegen import cfunctions, numpy_nodes, scipy_nodes
from sympy.matrices.expressions.dotproduct import DotProduct
from sympy.utilities.lambdify import implemented_function
from sympy.vector import CoordSys3D

import yota
from tests.emit.compiled import needs_compiler
from yota.errors import ArgumentError
from yota.interop.expression_steps import FORMS

x, y, z = symbols("x y z", real=True)
i, j, n = symbols("i j n", integer=True)
X, Y = IndexedBase("X"), IndexedBase("Y")
A, B = MatrixSymbol("A", 2, 2), MatrixSymbol("B", 2, 2)
POINT = {x: 0.3, y: 0.7, z: 1.9}


def numbers(expression: Any, at: dict[Any, float]) -> complex:
    exact = {symbol: Rational(value) for symbol, value in at.items()}
    return complex(sympy.sympify(expression).subs(exact).evalf(30))


def slope(expression: Any, at: dict[Any, float], by: Any) -> float:
    """A difference so small that its error is below that of doubles, though not of as many digits."""
    step = Rational(1, 10**12)
    exact = {symbol: Rational(value) for symbol, value in at.items()}
    sides = [expression.subs({**exact, by: exact[by] + each}).evalf(40) for each in (step, -step)]
    return float(((sides[0] - sides[1]) / (2 * step)).evalf(30))


def close(found: Any, wanted: Any, digits: int = 13) -> None:
    np.testing.assert_allclose(found, wanted, rtol=10.0**-digits, atol=10.0 ** -(digits + 1))


EXPRESSIONS = [
    x * y + 1,
    x**3 * y**2 - 4 * x * y**5 / 3 + Rational(2, 7) * z - x**6,
    (x + y + z) ** 7 / (x - y) ** 3,
    sin(x) * exp(-x * y) / sqrt(1 + z**2) - sympy.tanh(x - z),
    x**y + y**x + z ** Rational(-2, 3),
    sympy.atan2(y, x) + sympy.asinh(z) * sympy.acos(x),
    sympy.Max(x, y, z) * sympy.Min(x**2, y) + abs(x - y) + sympy.sign(x - y) * z,
    log(1 + exp(x)) - log(z, 2) + sympy.pi * x - sympy.E * y + sympy.EulerGamma,
    sympy.cos(x) * sympy.sinh(y) + sympy.sec(x) - sympy.cot(z),
    sympy.expand((x - y) ** 5 * (y + z) ** 3),
    sympy.erf(x) * sympy.gamma(y) + sympy.besselj(2, z),
    sympy.Derivative(x**3 * y, x) + sympy.sinc(x),
]


@pytest.mark.parametrize("expression", EXPRESSIONS, ids=str)
def test_value_gradient_and_hessian(expression: Any) -> None:
    f = yota.from_sympy(expression, (x, y, z))
    point = tuple(POINT.values())
    done = expression.doit()
    close(f(*point), numbers(done, POINT).real)
    value, slopes = yota.value_and_grad(f, (0, 1, 2))(*point)
    close(value, numbers(done, POINT).real)
    close(slopes, [numbers(done.diff(each), POINT).real for each in (x, y, z)], 12)
    flat = yota.from_sympy(expression, ([x, y, z],))
    curve = yota.hessian(flat)(np.array(point))
    close(curve, [[numbers(done.diff(a, b), POINT).real for b in (x, y, z)] for a in (x, y, z)], 11)


@pytest.mark.parametrize("expression", EXPRESSIONS[:6], ids=str)
def test_arrays_are_computed_element_by_element(expression: Any) -> None:
    f = yota.lambdify((x, y, z), expression, target="numpy")
    xs = np.linspace(0.2, 0.4, 6).reshape(2, 3)
    found = f(xs, 0.7, np.array([1.5, 2.0, 3.0]))
    assert found.shape == (2, 3)
    close(found[1, 2], numbers(expression, {x: xs[1, 2], y: 0.7, z: 3.0}).real)
    assert f(xs.astype(np.float32), np.float32(0.7), np.float32(2)).dtype == np.float32


ORDER = frozenset(
    "expint jn yn legendre chebyshevt chebyshevu hermite hermite_prob laguerre assoc_laguerre gegenbauer jacobi".split()
)
PLACES = {
    "acoth": (1.7,),
    "asec": (1.7,),
    "acsc": (1.7,),
    "betainc": (1.2, 2.3, 0.2, 0.6),
    "betainc_regularized": (1.2, 2.3, 0.2, 0.6),
    "fma": (1.2, 2.3, 0.2),
    "zeta": (2.5, 1.5),
    "jacobi": (3, 1.5, 0.5, 0.4),
    "assoc_laguerre": (3, 1.5, 0.4),
    "gegenbauer": (3, 1.5, 0.4),
    "li": (2.5,),
    "Heaviside": (0.4, 0.5),
}
NO_SLOPE = {"floor", "ceiling", "Heaviside", "KroneckerDelta", "ITE", "Not", "conjugate", "re", "im", "arg"}


@pytest.mark.parametrize(
    "name",
    sorted(
        {*FORMS}
        - {"ITE", "Not", "isnan", "isinf", "Inverse", "Trace", "Transpose", "Determinant"}
        - {"Adjoint", "HadamardPower", "DiagMatrix", "DiagonalMatrix", "DiagonalOf"}
        - {each for each in FORMS if each.endswith("ty")}
    ),
)
def test_every_function_is_sympys(name: str) -> None:
    """The value, and the slope by the last argument."""
    kind = next(
        getattr(home, name)
        for home in (sympy, cfunctions, numpy_nodes, scipy_nodes, sympy.functions)
        if hasattr(home, name)
    )
    if isinstance(kind, type) and issubclass(kind, sympy.core.relational.Relational):
        f = yota.from_sympy(Piecewise((x, kind(x, y)), (y, True)), (x, y))
        for a, b in ((1.0, 2.0), (2.0, 1.0), (1.5, 1.5)):
            assert f(a, b) == (a if kind(a, b) else b)
        return
    count = len(PLACES.get(name, ())) or next(each for each in (1, 2, 3, 4) if each in kind.nargs)
    point = PLACES.get(name) or ((2, 0.4) if name in ORDER else (0.4,) if count == 1 else (1.3, 0.4))
    parameters = symbols(f"p0:{count}", real=True)
    fixed = {parameters[0]: point[0]} if name in ORDER else {}
    expression = kind(*(sympy.Integer(point[0]) if each in fixed else each for each in parameters))
    at = {each: value for each, value in zip(parameters, point, strict=True) if each not in fixed}
    f = yota.from_sympy(expression, tuple(at))
    known = {"erf2": sympy.erf, "erfcinv": sympy.erfinv}.get(name)
    expression = expression.rewrite(known) if known else expression.expand(func=True) if name == "fma" else expression
    close(f(*at.values()), numbers(expression, at).real, 10)
    if name not in NO_SLOPE:
        *_, last = at
        close(yota.gradient(f, len(at) - 1)(*at.values()), slope(expression, at, last), 9)


@pytest.mark.parametrize("kind", [sympy.besselj, sympy.bessely, sympy.besseli, sympy.besselk])
def test_bessel_functions(kind: Any) -> None:
    for order in (0, 1, 2, Rational(5, 2)):
        expression = kind(order, x)
        f = yota.from_sympy(expression, x)
        close(f(0.7), numbers(expression, {x: 0.7}).real)
        close(yota.gradient(f)(0.7), numbers(expression.diff(x), {x: 0.7}).real, 12)
        _, tape = yota.trace(f, 0.7)
        close(float(tape.to_sympy().subs(sympy.Symbol("x"), 0.7).evalf(20)), f(0.7))


@pytest.mark.parametrize("factor", [4 * sympy.pi / 3, Rational(4, 49), Rational(-1, 2)])
def test_the_numbers_of_a_product_are_one(factor: Any) -> None:
    f: Any = yota.lambdify(x, x * factor, target="numpy")
    plain = sympy.lambdify(x, x * factor.evalf(30), "math")
    assert [f(at) for at in (1.0, 49.0)] == [plain(at) for at in (1.0, 49.0)]
    assert f.source.count("multiply") == 1 and "divide" not in f.source


@pytest.mark.parametrize("expression, at, found", [(1 / x, 0.0, np.inf), (x / y, 0.0, np.nan), (x**300, 1e3, np.inf)])
def test_where_pythons_operators_raise_the_first_call_is_numpys_too(expression: Any, at: float, found: float) -> None:
    f: Any = yota.lambdify((x, y), expression, target="numpy")
    expected = sympy.lambdify((x, y), expression)(0.5, 0.5)
    for _ in range(3):
        np.testing.assert_array_equal(f(at, 0.0), found)
        close(f(0.5, 0.5), expected)


def test_a_power_of_two_arguments_is_no_branch() -> None:
    _, tape = yota.trace(yota.from_sympy(x**y + x / y, (x, y)), 2.0, 3.0)
    assert not tape.guards


def test_orders_of_polygamma_and_branches_of_zeta() -> None:
    expression = sympy.polygamma(0, x) + 2 * sympy.polygamma(3, x) + sympy.zeta(x + 2) + sympy.loggamma(x)
    f = yota.from_sympy(expression, x)
    close(f(1.5), numbers(expression, {x: 1.5}).real)
    close(yota.gradient(yota.from_sympy(sympy.polygamma(1, x), x))(1.5), numbers(sympy.polygamma(2, x), {x: 1.5}).real)


@pytest.mark.parametrize("at", [-20.25, -9.5, -1.5, -0.25, 0.0, 0.5, 3.0, 40.0])
def test_the_zeta_function_left_and_right_of_its_pole(at: float) -> None:
    expression = x * sympy.zeta(x)
    close(yota.from_sympy(expression, x)(at), numbers(expression, {x: at}).real)
    close(yota.grad(yota.from_sympy(expression, x), at)[0], numbers(expression, {x: at}).real, 12)
    close(yota.gradient(yota.from_sympy(expression, x))(at), slope(expression, {x: at}, x), 10)


def test_complex_numbers() -> None:
    expression = (x + 2 * sympy.I) ** 2 * exp(sympy.I * x) + (-1) ** Rational(1, 3)
    close(yota.from_sympy(expression, x)(0.4 + 0.1j), complex(expression.subs(x, 0.4 + 0.1j).evalf(30)))
    zeta = yota.lambdify(x, sympy.zeta(x))
    for at in (2.5 + 0j, 0.5 + 60j):
        close(zeta(at), complex(sympy.zeta(x).subs(x, at).evalf(30)))


# -- conditions ----------------------------------------------------------------------------------------


def test_pieces_that_are_not_chosen_have_no_slope_that_is_nan() -> None:
    f = yota.from_sympy(Piecewise((sin(x) / x, sympy.Ne(x, 0)), (1, True)), x)
    assert (f(0.0), yota.gradient(f)(0.0)) == (1.0, 0.0)
    pieces = Piecewise((sqrt(x), x > 1), (x, x < -1), (log(-x), x < 0), (0, True))
    g = yota.gradient(yota.from_sympy(pieces, x))
    for at in (-2.0, -0.5, 0.5, 4.0):
        close(g(at), numbers(pieces.diff(x), {x: at}).real)


def test_conditions_are_joined_and_what_no_piece_covers_is_nan() -> None:
    pieces = Piecewise((x, (x > 0) & (y > 0)), (-y, (x < 0) | sympy.Ne(y, 1)))
    f = yota.from_sympy(pieces, (x, y))
    xs, ys = np.array([1.0, -1.0, 0.0, 0.0]), np.array([2.0, 1.0, 3.0, 1.0])
    np.testing.assert_array_equal(f(xs, ys), [1.0, -1.0, -3.0, np.nan])
    assert yota.from_sympy(sympy.And(x > 0, x < 1), x)(0.5)


# -- sums, products, indices ---------------------------------------------------------------------------


def test_sums_over_indices() -> None:
    expression = Sum(y * X[i] ** 2 * X[i + 1] + i, (i, 0, n - 2))
    f = yota.from_sympy(expression, (X, y, n))
    values = np.array([0.5, 1.5, 2.5, 3.0])
    exact = expression.subs(n, 4).doit()
    at = {y: 0.7, **{X[k]: value for k, value in enumerate(values)}}
    close(f(values, 0.7, 4), numbers(exact, at).real)
    close(yota.gradient(f)(values, 0.7, 4), [numbers(exact.diff(X[k]), at).real for k in range(4)])


def test_nested_sums_and_products() -> None:
    inner = Sum(X[i] * Y[i, j], (i, 0, 2))
    for expression in (
        Sum(inner**2, (j, 0, 1)),
        Sum(X[i] * Y[i, j], (i, 0, 2), (j, 0, 1)),
        Product(X[j] + inner, (j, 0, 1)),
    ):
        f = yota.from_sympy(expression, (X, Y))
        a, b = np.array([1.0, 2.0, 0.5]), np.arange(6.0).reshape(3, 2)
        at = {X[k]: a[k] for k in range(3)} | {Y[k, m]: b[k, m] for k in range(3) for m in range(2)}
        exact = expression.doit()
        close(f(a, b), numbers(exact, at).real)
        close(yota.gradient(f)(a, b), [numbers(exact.diff(X[k]), at).real for k in range(3)])


def test_a_sum_of_arrays_keeps_their_axes() -> None:
    f = yota.from_sympy(Sum(x**i / sympy.factorial(i), (i, 0, 20)) + Sum(y, (i, 1, 3)), (x, y))
    xs = np.linspace(-1.0, 1.0, 6).reshape(2, 3)
    close(f(xs, np.array([1.0, 2.0, 3.0])), np.exp(xs) + 3 * np.array([1.0, 2.0, 3.0]))
    assert yota.from_sympy(Sum(X[i], (i, 0, n - 1)), (X, n))(np.zeros(0), 0) == 0


def test_short_sums_of_powers_are_written_out() -> None:
    expression = Sum(y * x**i / sympy.factorial(i), (i, 0, 12))
    f = yota.from_sympy(expression, (x, y))
    assert not any(call.function == "index" for _, call in f.program.steps)
    at = {x: 3.0, y: 0.7}
    close(f(3.0, 0.7), numbers(expression.doit(), at).real)
    close(yota.gradient(f)(3.0, 0.7), numbers(expression.doit().diff(x), at).real)
    assert yota.from_sympy(Sum(x / i, (i, 0, 2)), x)(1.0) == np.inf


def test_bounds_that_have_no_meaning_are_refused() -> None:
    f = yota.from_sympy(Sum(X[i], (i, 0, n - 1)), (X, n))
    with pytest.raises(ArgumentError, match="pass an int, not 2"):
        f(np.ones(3), 2.0)
    with pytest.raises(ArgumentError, match="several conventions"):
        f(np.ones(3), -4)
    with pytest.raises(ArgumentError, match="negative"):
        yota.from_sympy(Sum(X[i - 1], (i, 0, 2)), X)(np.ones(3))
    with pytest.raises(ArgumentError, match="depends on another index"):
        yota.from_sympy(Sum(Sum(X[j], (j, 0, i)), (i, 0, 2)), X)(np.ones(3))
    with pytest.raises(ArgumentError, match="infinitely many"):
        yota.from_sympy(Sum(x**i, (i, 0, sympy.oo)), x)


# -- matrices ------------------------------------------------------------------------------------------


def test_matrix_symbols() -> None:
    expression = sympy.Trace(A * B.T + 2 * A.I) * sympy.Determinant(B) + (A**2)[0, 1] + A[1, 1]
    f = yota.from_sympy(expression, (A, B))
    a, b = np.array([[1.0, 2.0], [3.0, 5.0]]), np.array([[0.5, 1.0], [-1.0, 2.0]])
    close(f(a, b), np.trace(a @ b.T + 2 * np.linalg.inv(a)) * np.linalg.det(b) + (a @ a)[0, 1] + a[1, 1], 12)
    cells = Matrix(2, 2, symbols("a:4"))
    plain = yota.from_sympy(expression.subs({A: cells, B: Matrix(b)}).doit(), (cells,))
    close(yota.gradient(f)(a, b), yota.gradient(plain)(a), 11)
    g = yota.from_sympy(A + sympy.Identity(2) - sympy.hadamard_product(A, B), (A, B))
    close(g(a, b), a + np.eye(2) - a * b)


CELLS = Matrix([[x, 1], [y, x * y]])
MATRICES = {
    "powers": sympy.HadamardPower(A, 3),
    "adjoint": sympy.Adjoint(A) * B,
    "blocks": sympy.BlockMatrix([[A, B], [B.T, sympy.Identity(2)]]),
    "diagonal blocks": sympy.BlockDiagMatrix(A, B),
    "kron": sympy.KroneckerProduct(A, B, A),
    "ones": sympy.OneMatrix(2, 2) * A,
    "part": sympy.MatrixSlice(A * B, (0, 2), (1, 2)),
    "cells": A * CELLS + 2 * Matrix([[1, 2], [3, 4]]) * B,
    "function of indices": sympy.FunctionMatrix(2, 2, sympy.Lambda((i, n), i + n * x)) * A,
    "function": (A * B).applyfunc(sin),
}


@pytest.mark.parametrize("name", MATRICES)
def test_matrices_are_sympys(name: str) -> None:
    expression, a, b = MATRICES[name], np.array([[1.0, 2.0], [3.0, 5.0]]), np.array([[0.5, 1.0], [-1.0, 2.0]])
    known = {A: Matrix(a), B: Matrix(b), x: 0.5, y: -2.0}
    found = yota.from_sympy(expression, (A, B, x, y))
    close(found(a, b, 0.5, -2.0), np.array(expression.subs(known).doit().as_explicit(), float), 12)
    slope = yota.gradient(lambda a: np.sum(found(a, b, 0.5, -2.0) ** 2))(a)
    sides = [np.sum(found(a + side * b, b, 0.5, -2.0) ** 2) for side in (1e-6, -1e-6)]
    close(np.sum(slope * b), (sides[0] - sides[1]) / 2e-6, 6)


def test_diagonals() -> None:
    a, b = np.array([[1.0, 2.0], [3.0, 5.0]]), np.array([[0.5], [2.0]])
    column = MatrixSymbol("v", 2, 1)
    expressions = sympy.DiagonalMatrix(A), sympy.DiagonalOf(A), sympy.DiagMatrix(column)
    for found, wanted in zip(
        yota.from_sympy(expressions, (A, column))(a, b), ([[1, 0], [0, 5]], [[1], [5]], [[0.5, 0], [0, 2]]), strict=True
    ):
        np.testing.assert_array_equal(found, wanted)


def test_products_with_matrices_of_arrays_are_refused() -> None:
    f = yota.from_sympy(sympy.Trace(CELLS * A), (x, y, A))
    points, a = np.array([1.0, 2.0]), np.eye(2)
    with pytest.raises(ArgumentError, match="map the function over points"):
        f(points, 2.0, a)
    close(yota.batch(f, in_axes=(0, None, None))(points, 2.0, a), [3.0, 6.0])


def test_matrices_of_expressions() -> None:
    f = yota.from_sympy(Matrix([[x * y, sin(x)], [1, y**2]]), ([x, y],))
    point = np.array([0.3, 0.7])
    close(f(point), [[0.21, np.sin(0.3)], [1, 0.49]])
    close(yota.jacobian(f)(point), [[[0.7, 0.3], [np.cos(0.3), 0]], [[0, 0], [0, 1.4]]])
    assert f(np.ones((2, 5))).shape == (2, 2, 5)
    columns = yota.from_sympy(x - y, (Matrix([x, y]),))
    assert columns(np.array([[3.0], [1.0]])) == columns([3, 1]) == 2.0
    with pytest.raises(ArgumentError, match=r"shape \(3,\); it takes \(2,\)"):
        columns(np.ones(3))


# -- functions of the user's ---------------------------------------------------------------------------

scale = 2.0


def test_functions_with_an_implementation() -> None:
    f = implemented_function("f", lambda t: np.sin(t) * scale)
    made = yota.from_sympy(x * f(y), (x, y))
    close(yota.gradient(made, 1)(3.0, 0.4), 6 * np.cos(0.4))
    own = sympy.Function("own")
    close(yota.lambdify(x, own(x) + 1, {"own": np.cosh}, target="numpy")(0.3), np.cosh(0.3) + 1)
    close(yota.gradient(yota.from_sympy(own(x), x, functions={"own": np.cosh}))(0.3), np.sinh(0.3))


def test_what_an_implementation_reads_is_watched() -> None:
    global scale
    f = implemented_function("f", lambda t: t * scale)
    slope = yota.gradient(yota.from_sympy(f(x) ** 2, x))
    assert slope(1.0) == 8.0
    scale = 3.0
    try:
        assert slope(1.0) == 18.0
    finally:
        scale = 2.0


def test_functions_with_a_rule() -> None:
    yota.diffrule(
        """
        @elementwise
        def for_sympy(x: Real) -> y:
            y = x / (1 + absolute(x))
        """
    )
    f = yota.from_sympy(sympy.Function("for_sympy")(x) * y, (x, y))
    close(yota.grad(f, 1.0, 3.0)[1][0], 0.75)
    close(yota.from_sympy(sympy.Function("expit")(x), x)(0.0), 0.5)


@pytest.mark.parametrize(
    "expression, words",
    [
        (sympy.hyper((x, 1), (2,), y), "hyper has no function"),
        (sympy.DiracDelta(x), "DiracDelta has no function"),
        (sympy.Integral(exp(x**2), (x, 0, y)), "Integral has no function"),
        (sympy.expint(y, x), "expint has no function"),
        (sympy.besselj(2, x) + sympy.Function("unknown_one")(x), "neither an implementation nor a rule"),
        (x + z, "has the symbol z, which is no argument"),
        ("x + z", "has the symbol z, which is no argument"),
        ("x = y", "is no expression"),
        ("x + y\ny", "is no expression"),
        ("__import__(x)", "no function of sympy's"),
        ("x + (", "this is no expression"),
        ({"a": x}, "is a dict"),
    ],
    ids=str,
)
def test_what_is_not_known_is_refused_by_name(expression: Any, words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        yota.from_sympy(expression, (x, y))


# -- all of yota ---------------------------------------------------------------------------------------


def test_derivatives_of_every_kind() -> None:
    expression = sin(x) * y**2
    f = yota.from_sympy(expression, (x, y), name="wave")
    assert yota.gradcheck(f, 0.3, 0.7)
    close(yota.jvp(f, (0.3, 0.7), (1.0, None))[1], np.cos(0.3) * 0.49)
    close(yota.vjp(f, 0.3, 0.7)[1](2.0)[1], 4 * np.sin(0.3) * 0.7)
    vector = yota.from_sympy(expression, ([x, y],))
    close(yota.hvp(vector)(np.array([0.3, 0.7]), np.array([0.0, 1.0])), [1.4 * np.cos(0.3), 2 * np.sin(0.3)])
    points = np.array([[0.3, 0.7], [0.1, 2.0]])
    close(yota.batch(yota.gradient(vector))(points)[1], [4 * np.cos(0.1), 4 * np.sin(0.1)])
    names: dict[str, Any] = {}
    exec(str(yota.generate(f, ["float", "float"])), names)
    close(names["wave_gradient"](0.3, 0.7), [np.cos(0.3) * 0.49, 1.4 * np.sin(0.3)])
    close(yota.value_and_grad(f, (0, 1), target="c")(0.3, 0.7)[1], [np.cos(0.3) * 0.49, 1.4 * np.sin(0.3)])
    close(yota.gradient(lambda t: f(t, t) ** 2)(0.5), numbers(sympy.diff(expression.subs(y, x) ** 2, x), {x: 0.5}).real)


def test_pickles_and_copies() -> None:
    f = yota.from_sympy(x**2 + sin(y), (x, y))
    again = pickle.loads(pickle.dumps(f))
    assert again(2.0, 0.0) == 4.0
    assert copy.deepcopy(f) is f
    assert pickle.loads(pickle.dumps(yota.lambdify((x, y), x - y, target="numpy")))(3, 1) == 2.0
    close(pickle.loads(pickle.dumps(yota.gradient(f)))(2.0, 0.0), 4.0)


def test_expressions_that_share_parts_stay_short() -> None:
    expression = x
    for _ in range(30):
        expression = sympy.Mul(expression + 1, expression, evaluate=False)
    f = yota.from_sympy(expression, x)
    assert len(f.program.steps) <= 60
    assert f(-1.0) == 0.0


# -- lambdify ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "args, expression, given",
    [
        (x, x**2, (3,)),
        ([x, (y, z)], x * y - z, (1.5, (2.0, 3.0))),
        ([[x, [y, z]]], x * y - z, ([1.5, [2.0, 3.0]],)),
        ((x, y), [x + y, [x, y]], (1.5, 2)),
        ((x, y), (x + y, (x - y,)), (1.5, 2)),
        ((x, y), Matrix([[x, y], [0, 1]]), (1.5, 2)),
        ((Matrix([x, y]),), x / y, ([1.5, 2],)),
        ((x, y), sympy.ImmutableDenseNDimArray([[[x, y]]]), (1.5, 2)),
        ((A,), A * A.T, (np.array([[1.0, 2.0], [3.0, 4.0]]),)),
        ((X, n), Sum(X[i] ** 2, (i, 0, n - 1)), (np.array([1.0, 2.0]), 2)),
        ((), sympy.Integer(3) / 4, ()),
        ("x", x + 1, (2.0,)),
        (x, sin(x), (True,)),
        ("x, y", "x**2 + sin(y)/2 - sqrt(x)", (2.0, 5.0)),
        ("x,y", "y, x", (2.0, 5.0)),
        ((sympy.sin(x), y), 2 * sin(x) ** 2 + y, (0.5, 1.5)),
        ([CoordSys3D("N").x, x], CoordSys3D("N").x * x, (0.5, 1.5)),
        ((n, x), sympy.legendre(n, x) + sympy.hermite(n + 1, x), (3, 0.4)),
        ((x, y), sympy.UnevaluatedExpr(x + y) * y, (0.5, 1.5)),
        ((x, y), numpy_nodes.maximum(x, y, 1) - numpy_nodes.minimum(x, y) + numpy_nodes.logaddexp2(x, y), (0.5, 1.5)),
        (x, Piecewise((7, cfunctions.isnan(x)), (8, cfunctions.isinf(x)), (x, True)), (0.5,)),
        ((x, y), scipy_nodes.cosm1(x) + scipy_nodes.powm1(x, y), (0.5, 1.5)),
        ((x, (y,)), [" x*y", (x, "log(y)")], (2.0, [5.0])),
        ("x, y", sympy.Symbol("x") - sympy.Symbol("y"), (2.0, 5.0)),
        ((sympy.Function("g")(x), sympy.Symbol("lambda")), sympy.Function("g")(x) * sympy.Symbol("lambda"), (2.0, 3.0)),
    ],
    ids=str,
)
def test_lambdify_takes_what_sympys_takes(args: Any, expression: Any, given: Any) -> None:
    wanted = sympy.lambdify(args, expression, ["scipy", "numpy"])(*given)
    f = yota.lambdify(args, expression, cse=True, target="numpy")
    for _ in range(2):
        found = f(*given)
        assert type(found) is type(wanted) or not isinstance(wanted, (list, tuple))
        assert (
            np.shape(found) == np.shape(wanted) if not isinstance(wanted, (list, tuple)) else len(found) == len(wanted)
        )
        close(
            np.hstack([np.ravel(each) for each in _flat(found)]), np.hstack([np.ravel(each) for each in _flat(wanted)])
        )


def _flat(value: Any) -> list[Any]:
    return [part for each in value for part in _flat(each)] if isinstance(value, (list, tuple)) else [value]


class OwnClass(sympy.Function):
    """A function of the user's, without an implementation."""


def shifted(value: Any) -> Any:
    return value + 100


SYMBOL = sympy.Symbol("x")


@pytest.mark.parametrize(
    "expression, modules",
    [
        (SYMBOL + sympy.pi, {"pi": 3.14}),
        (4 * SYMBOL * sympy.pi / 3, {"pi": 3.14}),
        (SYMBOL + sympy.E, {"e": 3}),
        (SYMBOL + sympy.E, {"E": 3}),
        (SYMBOL + sympy.EulerGamma, [{"euler_gamma": 1.5, "EulerGamma": 2}, "numpy"]),
        (SYMBOL + sympy.pi, [{"pi": 3}, {"pi": 4}]),
        (SYMBOL + sympy.pi, ["numpy", {"pi": 3}]),
        ([sympy.pi, SYMBOL, [sympy.pi]], [{"pi": 3}, "numpy"]),
        ("x + pi", [{"pi": 3}, "numpy"]),
        ("shifted(x) + sin(x)", {"shifted": shifted, "sin": shifted}),
        (sin(SYMBOL), {"sin": shifted}),
        (sin(SYMBOL), ["numpy", {"sin": shifted}]),
        (sympy.gamma(SYMBOL), ["scipy", {"gamma": shifted}]),
        (sympy.asin(SYMBOL), [{"asin": shifted}, "numpy"]),
        (sympy.csc(SYMBOL), [{"csc": shifted}, "numpy"]),
        (abs(SYMBOL), [{"Abs": shifted}, "numpy"]),
        (sympy.Max(SYMBOL, 1), [{"Max": shifted}, "numpy"]),
        (1 / sqrt(SYMBOL), [{"sqrt": shifted}, "numpy"]),
        (OwnClass(OwnClass(SYMBOL)), {"OwnClass": shifted}),
        (SYMBOL + sympy.Function("add")(SYMBOL), {"add": shifted}),
        (sympy.Function("index")(SYMBOL), {"index": shifted}),
        (implemented_function("imp", lambda t: t + 1)(SYMBOL), {"imp": shifted}),
        (sin(SYMBOL), {"x": shifted, "unused": 2}),
        (sin(SYMBOL), [np, "math"]),
        (sympy.nan, None),
        (sympy.Float("1.1", 5) * SYMBOL, None),
        (sympy.loggamma(-SYMBOL), None),
    ],
    ids=lambda value: None if "0x" in str(value) else str(value)[:60],
)
def test_modules_mean_what_they_mean_in_sympy(expression: Any, modules: Any) -> None:
    wanted = sympy.lambdify(SYMBOL, expression, modules)(0.5)
    found = yota.lambdify(SYMBOL, expression, modules, target="numpy")(0.5)
    assert str(found) == str(wanted) or np.array_equal(found, wanted, equal_nan=True)


def test_arguments_hide_constants_of_texts() -> None:
    for name in ("pi", "E", "I"):
        assert yota.lambdify(name, f"{name} + 1", target="numpy")(0.5) == sympy.lambdify(name, f"{name} + 1")(0.5)
    g = implemented_function("g", lambda t: t + 1)(SYMBOL)
    assert yota.lambdify(SYMBOL, g, {"g": shifted}, use_imps=False, target="numpy")(0.5) == 100.5


def test_what_sympy_evaluates_first() -> None:
    product = DotProduct(Matrix([x, y]), Matrix([y, 2]))
    close(yota.from_sympy(product, (x, y))(0.5, 1.5), 3.75)
    close(yota.from_sympy(sympy.Subs(sympy.Derivative(z**2, z), z, x), x)(0.5), 1.0)
    any_number = sympy.Symbol("any_number")
    pieces = Piecewise((7, cfunctions.isnan(any_number)), (8, cfunctions.isinf(any_number)), (any_number, True))
    assert [yota.from_sympy(pieces, any_number)(at) for at in (np.nan, -np.inf, 2.0)] == [7, 8, 2.0]


def test_whole_numbers_need_no_code_of_their_own() -> None:
    f = yota.lambdify(x, x**2 + 1, target="numpy")
    assert [f(each) for each in (1, 2, 3, 4.0)] == [2.0, 5.0, 10.0, 17.0]
    assert len(f.info().compilations) == 1


def test_an_argument_that_is_the_result_is_not_copied() -> None:
    for args, given in ((x, (np.arange(3.0),)), ((y, x), (1.0, np.arange(3)))):
        f, theirs = yota.lambdify(args, x), sympy.lambdify(args, x)
        for _ in range(3):
            assert f(*given) is theirs(*given)
        assert f(*[2.0] * len(given)) == 2.0
        with pytest.raises(TypeError):
            f(*given, 1.0)


@pytest.mark.parametrize("target", ["numpy", pytest.param("c", marks=needs_compiler)])
@pytest.mark.parametrize("strict", [False, True])
def test_results_are_structures_of_arguments_numbers_and_what_is_computed(target: str, strict: bool) -> None:
    expression = [[x, x * y], (2, [z, sympy.Float(0.5)]), x, x * y + z]
    f = yota.lambdify((x, (y, z)), expression, target=target, strict=strict)
    array = np.array([1.0, 2.0])
    for given in ((array, (3.0, array + 4)), (5.0, (3.0, 4.0)), (5.0, [3.0, 4.0]), (array, [array, array])):
        wanted = sympy.lambdify((x, (y, z)), expression)(*given)
        for _ in range(3):
            found = f(*given)
            close(found[0][1], wanted[0][1])
            close(found[3], wanted[3])
            assert found[1][0] == 2 and found[1][1][1] == 0.5
            assert found[0][0] is found[2] is given[0] and found[1][1][0] is given[1][1]
            assert [type(each) for each in (found, found[0], found[1], found[1][1])] == [list, list, tuple, list]
    for _ in range(3):
        whole = f(5, (3, 4))
        assert whole == [[5.0, 15.0], (2, [4.0, 0.5]), 5.0, 19.0] and type(whole[2]) is float
    close(yota.jacobian(yota.lambdify(x, [x, x**2, 1]))(3.0), [1.0, 6.0, 0.0])


@pytest.mark.parametrize("target", ["numpy", pytest.param("c", marks=needs_compiler)])
def test_results_for_pythons_numbers_are_pythons_numbers(target: str) -> None:
    f: Any = yota.lambdify((x, y), [x**2, x / y, sqrt(x), x * y**1.5, 1 / (x - y) ** 2], target=target)
    for _ in range(3):
        found = f(4.0, 4.0)
        assert found == [16.0, 1.0, 2.0, 32.0, np.inf] and {*map(type, found)} == {float}
    assert {*map(type, f(np.float64(4.0), np.float64(4.0)))} == {np.float64}
    single = f(np.float32(4.0), np.float32(4.0))
    assert {*map(type, single)} == {np.float32}


def test_strict_lambdify_has_the_bits_of_numpy() -> None:
    expression = x * y * x + x * z * y + sin(x * y)
    f = yota.lambdify((x, y, z), expression, target="numpy", strict=True)
    values = np.random.default_rng(1).random((3, 100))
    assert np.array_equal(f(*values), yota.from_sympy(expression, (x, y, z))(*values))


def test_options_of_lambdify_that_are_refused() -> None:
    with pytest.raises(TypeError, match="NoneType which has no callable sin method"):
        yota.lambdify(x, sin(x), target="numpy")(None)
    with pytest.raises(ArgumentError, match="modules='mpmath'"):
        yota.lambdify(x, x, "mpmath")
    with pytest.raises(ArgumentError, match="printer"):
        yota.lambdify(x, x, printer=object())
    with pytest.raises(ArgumentError, match="use_imps=False"):
        yota.lambdify(x, implemented_function("h", np.sin)(x), use_imps=False)
    for expression, name in ((sympy.asin(x), "arcsin"), (abs(x), "abs"), (sympy.csc(x), "sin")):
        with pytest.raises(ArgumentError, match=f"modules has '{name}'"):
            yota.lambdify(x, expression, [{name: shifted}, "numpy"])
    with pytest.raises(ArgumentError, match="no symbol"):
        yota.lambdify(x + 1, x)
    with pytest.raises(ArgumentError, match="twice"):
        yota.lambdify((x, [x]), x)
