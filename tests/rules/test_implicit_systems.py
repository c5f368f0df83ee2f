"""Adjoints of equations between arrays by sparse matrices and by products alone; how a rule asks for one of them."""

import sys
import types

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import root

import yota
from tests.rules.implicit_proofs import proved
from yota.errors import CodegenError, DifferentiationError, RuleError
from yota.ir.linear_solvers import Direct

RULE = """
@implicit("flows.diffusion"SOLVE)
def diffusion(data: RealArray[k], rows: Integer, columns: Integer, b: RealArray[n], c: Real(0, oo)) -> y:
    0 == sparse_matmul(data, rows, columns, y) + 5 * y + c * y**3 - b
"""
OPS = {"dense": "solve", "sparse": "sparse_solve", "gmres": "solved"}


def diffusion(data, rows, columns, b, c):
    matrix, y = np.zeros((len(b), len(b))), np.zeros(len(b))
    np.add.at(matrix, (rows, columns), data)
    for _ in range(40):
        slope = matrix + np.diag(5 + 3 * c * y**2)
        y = y - np.linalg.solve(slope, matrix @ y + 5 * y + c * y**3 - b)
    return y


@pytest.fixture
def flows(monkeypatch):
    module = types.ModuleType("flows")
    module.diffusion = diffusion
    monkeypatch.setattr(diffusion, "__module__", "flows")
    monkeypatch.setitem(sys.modules, "flows", module)
    return module


def defined(solve=""):
    yota.diffrule(RULE.replace("SOLVE", f', solve="{solve}"' if solve else ""))


def chain(n):
    """A matrix that is not symmetric, by its numbers and their places; right-hand sides; and weights."""
    matrix = sp.diags_array(
        [np.full(n - 1, -1.0), np.linspace(1, 2, n), np.full(n - 1, -0.4)], offsets=[-1, 0, 1]
    ).tocoo()
    return matrix.data, matrix.row, matrix.col, 1 + np.sin(np.arange(n)), np.cos(np.arange(n))


@pytest.mark.parametrize(
    ("solve", "n", "used"),
    [("", 12, "dense"), ("", 80, "sparse"), ("sparse", 12, "sparse"), ("dense", 80, "dense"), ("gmres", 80, "gmres")],
)
def test_derivatives_by_each_form_of_the_system(flows, solve, n, used):
    defined(solve)
    data, rows, columns, b, weights = chain(n)
    loss = lambda data, b, c: np.sum(weights * flows.diffusion(data, rows, columns, b, c))
    found = yota.value_and_grad(loss, wrt=(0, 1, 2))
    value, (by_data, by_b, by_c) = found(data, b, 0.7)
    y = diffusion(data, rows, columns, b, 0.7)
    inverse = np.linalg.inv(sp.coo_array((data, (rows, columns))).toarray() + np.diag(5 + 2.1 * y**2))
    adjoint = inverse.T @ weights
    near = {"rtol": 1e-9, "atol": 1e-10} if used == "gmres" else {"rtol": 1e-12, "atol": 1e-14}
    assert value == pytest.approx(weights @ y, rel=1e-14)
    np.testing.assert_allclose(by_b, adjoint, **near)
    np.testing.assert_allclose(by_data, -adjoint[rows] * y[columns], **near)
    np.testing.assert_allclose(by_c, -adjoint @ y**3, **near)
    assert {each.name for each in found.tape.ops} & set(OPS.values()) == {OPS[used]}
    bent = yota.hessian(loss, wrt=1)(data, b, 0.7)
    np.testing.assert_allclose(bent, -inverse.T @ np.diag(4.2 * y * adjoint) @ inverse, **near)
    slopes = yota.jacobian(lambda b: flows.diffusion(data, rows, columns, b, 0.7))(b)
    np.testing.assert_allclose(slopes, inverse, **near)


@pytest.mark.parametrize("solve", ["sparse", "gmres"])
def test_compiled_code_and_batches(flows, solve):
    defined(solve)
    data, rows, columns, b, weights = chain(70)
    loss = lambda b: np.sum(weights * flows.diffusion(data, rows, columns, b, 0.7))
    slope = yota.gradient(loss)(b)
    np.testing.assert_allclose(yota.gradient(loss, target="c")(b), slope, rtol=1e-12)
    many = yota.batch(yota.gradient(loss))(np.stack([b, 2 * b]))
    np.testing.assert_allclose(many, [slope, yota.gradient(loss)(2 * b)], rtol=1e-12)


def test_blocks_are_found_in_the_pattern_of_a_reduction(monkeypatch):
    module = types.ModuleType("cells")
    monkeypatch.setitem(sys.modules, "cells", module)
    module.mixed = lambda b: b / 3 - b.sum(1, keepdims=True) / 18
    head = '@implicit("cells.mixed")\ndef mixed(b: RealArray[n, m]) -> y:\n'
    yota.diffrule(f"{head}    3 * y + sum(y, axis=1, keepdims=True) == b\n")
    b, weights = np.arange(120.0).reshape(40, 3), np.cos(np.arange(120.0)).reshape(40, 3)
    found = yota.value_and_grad(lambda b: np.sum(weights * module.mixed(b)))
    slope = found(b)[1]
    np.testing.assert_allclose(slope, module.mixed(weights), rtol=1e-12, atol=1e-15)
    assert "sparse_solve" in [each.name for each in found.tape.ops]


@pytest.mark.parametrize("solve", ["dense", "sparse", "gmres"])
def test_places_without_derivative(flows, monkeypatch, solve):
    _, rows, columns, b, weights = chain(70)
    loss = lambda data, b: np.sum(weights * flows.diffusion(data, rows, columns, b, 1.0))
    # Minus 5 on the diagonal, at a solution of zero: singular, as soon as a row of the rest is another one twice.
    data = np.where(rows == columns, -5.0, 0.0) + np.where((rows < 2) & (columns < 2), 1.0, 0.0)
    data += np.where((rows == columns) & (rows > 1), 1.0, 0.0)
    monkeypatch.setattr(flows, "diffusion", lambda data, rows, columns, b, c: 0 * b)
    defined(solve)
    with pytest.raises(DifferentiationError, match=r"flows\.diffusion has no derivative here.* Jacobian .* singular"):
        yota.gradient(loss, wrt=1)(data, 0 * b)
    monkeypatch.setattr(flows, "diffusion", lambda data, rows, columns, b, c: b + 1.0)
    defined(solve)
    with pytest.raises(DifferentiationError, match="did not converge"):
        yota.gradient(loss, wrt=1)(chain(70)[0], b)


def test_the_condition_of_a_sparse_matrix_is_that_of_its_scaled_rows():
    random = np.random.default_rng(3)
    matrix = random.normal(size=(30, 30)) * np.logspace(0, 12, 30)[:, None]
    rest = matrix @ np.ones(30)
    rows, columns = np.divmod(np.arange(900), 30)
    given = (matrix.ravel(), rest, columns, rows)
    np.testing.assert_allclose(Direct().step(*given, 1e14), 1.0, rtol=1e-9)
    scaled = matrix / np.max(np.abs(matrix), axis=1, keepdims=True)
    condition = np.linalg.cond(scaled)
    assert Direct().step(*given, condition / 3) is None and Direct().step(*given, condition * 30) is not None
    matrix[7] = matrix[3] + matrix[20]
    assert Direct().step(matrix.ravel(), *given[1:], 1e14) is None


def test_a_dense_pattern_is_refused_where_a_sparse_one_was_asked_for(flows):
    defined("sparse")
    data, rows, columns, b, _ = chain(100)
    with pytest.raises(
        DifferentiationError, match=r"flows\.diffusion is not sparse: 10000 of 100 x 100 .* no arguments"
    ):
        yota.gradient(lambda b, rows: np.sum(flows.diffusion(data, rows, columns, b, 1.0)))(b, rows)


@pytest.mark.parametrize("solve", ["", "sparse", "gmres"])
def test_rules_of_each_form_are_proved(tmp_path, flows, solve):
    text = RULE.replace("SOLVE", f', solve="{solve}"' if solve else "")
    rule = proved(tmp_path, text, "diffusion", 6)
    assert (rule.solve, rule.decorator) == (solve, text.splitlines()[1])


@pytest.mark.parametrize(
    ("head", "what"),
    [
        ('@implicit("flows.f", solve="lu")', "is solve, and one of 'dense', 'sparse', 'gmres'"),
        ('@implicit("flows.f", form="dense")', "is solve, and one of 'dense', 'sparse', 'gmres'"),
        ('@tensor("flows.f", solve="dense")', "the target is one dotted name in quotes"),
    ],
)
def test_what_a_decorator_does_not_say(head, what):
    with pytest.raises(RuleError, match=what):
        yota.diffrule(f"{head}\ndef f(b: RealArray[n]) -> y:\n    0 == y + y**3 - b\n")


def test_numbers_have_no_linear_system():
    with pytest.raises(RuleError, match="solves no linear system"):
        yota.diffrule('@implicit("flows.f", solve="dense")\ndef f(b: Real) -> y:\n    0 == y + y**3 - b\n')


def test_standalone_modules_name_the_function_whose_equations_they_cannot_solve(flows):
    data, rows, columns, _, _ = chain(70)
    for solve in OPS:
        defined(solve)
        with pytest.raises(
            CodegenError, match=r"equations of flows\.diffusion are solved by functions of this process"
        ):
            loss = lambda b: np.sum(flows.diffusion(data, rows, columns, b, 1.0))
            str(yota.generate(loss, {"b": "float64[70]"}, target="numpy"))


def test_roots_of_many_unknowns_take_no_dense_matrix():
    n = 5000
    b, weights = 1 + np.sin(np.arange(n)), np.cos(np.arange(n))
    find = lambda equation: root(equation, np.zeros(n), method="krylov", options={"fatol": 1e-11}).x
    mixed = yota.value_and_grad(lambda b: weights @ find(lambda y: 3 * y + np.mean(y**2) + 0.1 * y**3 - b))
    slope = mixed(b)[1]
    y = find(lambda y: 3 * y + np.mean(y**2) + 0.1 * y**3 - b)
    # The Jacobian is a diagonal and a matrix of rank one: Sherman and Morrison.
    diagonal, moved = 3 + 0.3 * y**2, 2 * y / n
    wanted = weights / diagonal - moved / diagonal * np.sum(weights / diagonal) / (1 + np.sum(moved / diagonal))
    np.testing.assert_allclose(slope, wanted, rtol=1e-8, atol=1e-9)
    assert "solved" in [each.name for each in mixed.tape.ops[5:]]
    near = sp.diags_array([np.full(n - 1, -1.0), np.full(n, 3.0), np.full(n - 1, -1.0)], offsets=[-1, 0, 1]).tocsr()
    local = yota.value_and_grad(lambda b: weights @ find(lambda y: near @ y + 0.1 * y**3 - b))
    slope = local(b)[1]
    y = find(lambda y: near @ y + 0.1 * y**3 - b)
    wanted = sp.linalg.spsolve((near + sp.diags_array(0.3 * y**2)).T.tocsc(), weights)
    np.testing.assert_allclose(slope, wanted, rtol=1e-9, atol=1e-11)
    assert "sparse_solve" in [each.name for each in local.tape.ops]
