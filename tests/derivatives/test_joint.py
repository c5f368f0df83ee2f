"""Jacobians and Hessians by structures, and of functions that return structures: blocks by path."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest

import yota
from yota.errors import DifferentiationError, TracingError
from yota.run.machine import native

TARGETS = ["numpy", pytest.param("c", marks=pytest.mark.skipif(not native.is_available(), reason="no C compiler"))]
DRAW = np.random.default_rng(0).normal
P = {"w": DRAW(size=(2, 3)), "b": [DRAW(size=2), 0.5], "name": "net"}
X = DRAW(size=3)


def network(p, x):
    hidden = np.tanh(p["w"] @ x + p["b"][0])
    return {"hidden": hidden, "norm": (np.sum(hidden**2) * p["b"][1], "sum")}


def loss(p, x):
    return np.sum(network(p, x)["hidden"] ** 2 * np.arange(1.0, 3.0)) * p["b"][1] ** 2


def in_jax(function, argnums):
    """The same by JAX, of the numbers in the structure alone."""

    def of_leaves(w, b, s, x):
        def numeric(p, x):
            with jax.numpy_dtype_promotion("standard"):
                return function(jax.numpy, {"w": p[0], "b": [p[1], p[2]]}, x)

        return numeric((w, b, s), x)

    with jax.enable_x64(True):
        return jax.tree.map(np.asarray, argnums(of_leaves)(P["w"], *P["b"], X))


def jax_network(np, p, x):
    hidden = np.tanh(p["w"] @ x + p["b"][0])
    return {"hidden": hidden, "norm": np.sum(hidden**2) * p["b"][1]}


def jax_loss(np, p, x):
    return np.sum(jax_network(np, p, x)["hidden"] ** 2 * np.arange(1.0, 3.0)) * p["b"][1] ** 2


@functools.cache
def hessian_by_jax():
    return in_jax(jax_loss, lambda f: jax.hessian(f, (0, 1, 2, 3)))


@functools.cache
def jacobian_by_jax():
    return in_jax(jax_network, lambda f: jax.jacrev(f, (0, 1, 2, 3)))


PATHS = [("w",), ("b", 0), ("b", 1)]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("call", [lambda made: made(P, X), lambda made: made(x=X, p=P)])
def test_jacobians_by_structures_of_structures(call, target):
    found = call(yota.jacobian(network, target=target))
    expected = jacobian_by_jax()
    assert found["norm"][1] == "sum"
    for place, path in enumerate(PATHS):
        np.testing.assert_allclose(found["hidden"][path], expected["hidden"][place], rtol=1e-10)
        np.testing.assert_allclose(found["norm"][0][path], expected["norm"][place], rtol=1e-10)
        assert found["hidden"][path].shape == expected["hidden"][place].shape
    value, again = call(yota.jacobian(network, with_value=True, target=target))
    np.testing.assert_allclose(value["hidden"], network(P, X)["hidden"])
    np.testing.assert_allclose(value["norm"][0], network(P, X)["norm"][0])
    np.testing.assert_array_equal(again["hidden"][("w",)], found["hidden"][("w",)])


@pytest.mark.parametrize("target", TARGETS)
def test_hessians_by_structures(target):
    found = yota.hessian(loss, target=target)(P, X)
    expected = hessian_by_jax()
    for i, row in enumerate(PATHS):
        for j, column in enumerate(PATHS):
            assert found[row][column].shape == expected[i][j].shape
            np.testing.assert_allclose(found[row][column], expected[i][j], rtol=1e-9, atol=1e-12)
    value, slope, again = yota.hessian(loss, "p", with_value=True, target=target)(P, X)
    np.testing.assert_allclose(value, loss(P, X))
    for path, each in yota.gradient(loss)(P, X).items():
        np.testing.assert_allclose(slope[path], each)
    np.testing.assert_array_equal(again[("w",)][("b", 1)], found[("w",)][("b", 1)])


@pytest.mark.parametrize("wrt", [(0, 1), (1, 0), ("p", "x")])
def test_blocks_of_structures_and_arrays(wrt):
    rows = yota.hessian(loss, wrt)(P, X)
    expected = hessian_by_jax()
    by_x = next(place for place, each in enumerate(wrt) if each in (1, "x"))
    np.testing.assert_allclose(rows[by_x][by_x], expected[3][3], rtol=1e-9)
    for place, path in enumerate(PATHS):
        np.testing.assert_allclose(rows[by_x][1 - by_x][path], expected[3][place], rtol=1e-9)
        np.testing.assert_allclose(rows[1 - by_x][by_x][path], expected[place][3], rtol=1e-9)
        np.testing.assert_allclose(rows[1 - by_x][1 - by_x][path][PATHS[0]], expected[place][0], rtol=1e-9, atol=1e-12)
    by_p, by_array = yota.jacobian(network, ("p", "x"))(P, X)
    expected = jacobian_by_jax()
    np.testing.assert_allclose(by_array["hidden"], expected["hidden"][3], rtol=1e-10)
    np.testing.assert_allclose(by_p["hidden"][("w",)], expected["hidden"][0], rtol=1e-10)


def test_two_structures():
    q = {"a": X, "c": 2.0}
    rows = yota.hessian(lambda p, q: np.sum(p["w"] @ q["a"]) * q["c"], (0, 1))(P, q)
    np.testing.assert_allclose(rows[0][1][("w",)][("a",)], 2.0 * np.stack([np.eye(3)] * 2))
    np.testing.assert_allclose(rows[1][0][("a",)][("w",)], np.moveaxis(2.0 * np.stack([np.eye(3)] * 2), 2, 0))
    np.testing.assert_allclose(rows[1][0][("c",)][("w",)], np.stack([X, X]))
    # The gradient by a part that nothing depends on is left out; its blocks are zero.
    np.testing.assert_array_equal(rows[0][1][("b", 0)][("a",)], np.zeros((2, 3)))
    np.testing.assert_array_equal(rows[1][0][("a",)][("b", 0)], np.zeros((3, 2)))
    sparse = yota.hessian(lambda p, x: np.sum(p["a"] ** 2 * x), (0, 1), sparse=True)({"a": X, "b": X[:2]}, X)
    assert sparse[0][1][("b",)].shape == (2, 3) and sparse[0][1][("b",)].nnz == sparse[1][0][("b",)].nnz == 0
    np.testing.assert_allclose(sparse[0][1][("a",)].toarray(), np.diag(2 * X))


class Pair(NamedTuple):
    first: Any
    second: Any


@dataclasses.dataclass
class Body:
    place: Any
    mass: Any


@pytest.mark.parametrize("target", TARGETS)
def test_results_and_arguments_of_all_kinds(target):
    def f(body):
        return Pair(body.place * body.mass, Body(body.mass**2, np.sum(body.place)))

    body = Body(X, 2.0)
    found = yota.jacobian(f, target=target)(body)
    assert type(found) is Pair and type(found.second) is Body
    np.testing.assert_allclose(found.first[("place",)], 2.0 * np.eye(3))
    np.testing.assert_allclose(found.first[("mass",)], X)
    np.testing.assert_allclose(found.second.place[("mass",)], 4.0)
    np.testing.assert_allclose(found.second.mass[("place",)], np.ones(3))
    first, second = yota.jacobian(lambda x: (x**2, np.outer(x, x)), target=target)(X)
    np.testing.assert_allclose(first, np.diag(2 * X))
    np.testing.assert_allclose(second, np.einsum("ik,j->ijk", np.eye(3), X) + np.einsum("jk,i->ijk", np.eye(3), X))
    slope = yota.jacobian(lambda x: {"s": x**2, "n": 3}, target=target)(2.0)
    assert slope == {"s": 4.0, "n": 0.0} and np.shape(slope["s"]) == ()


@pytest.mark.parametrize("target", TARGETS)
def test_dtypes_stay_with_their_leaves(target):
    p = {"a": X.astype(np.float32), "b": X, "c": np.float32(2.0), "s": 3.0, "z": np.array(4.0)}

    def f(p):
        return {"a": p["a"] * p["c"], "b": p["b"] * p["s"] * p["z"]}

    found = yota.jacobian(f, target=target)(p)
    assert found["a"][("a",)].dtype == found["a"][("c",)].dtype == np.float32
    assert found["a"][("b",)].dtype == found["b"][("a",)].dtype == np.float64
    np.testing.assert_allclose(found["a"][("a",)], 2 * np.eye(3))
    np.testing.assert_allclose(found["b"][("b",)], 12 * np.eye(3))
    np.testing.assert_allclose(found["b"][("s",)], 4 * X)
    blocks = yota.hessian(lambda p: np.sum(p["a"]) * p["c"] * p["s"] + np.sum(p["b"] ** 2) * p["z"], target=target)(p)
    assert blocks[("a",)][("c",)].dtype == np.float32 and blocks[("b",)][("z",)].dtype == np.float64
    np.testing.assert_allclose(blocks[("a",)][("c",)], np.full(3, 3.0))
    np.testing.assert_allclose(blocks[("c",)][("s",)], np.sum(p["a"]), rtol=1e-6)
    np.testing.assert_allclose(blocks[("b",)][("b",)], 8 * np.eye(3))


@pytest.mark.parametrize("target", TARGETS)
def test_complex_and_empty(target):
    found = yota.jacobian(lambda p: {"w": np.exp(p["z"]) * p["s"]}, target=target)({"z": X + 1j, "s": 2.0})
    np.testing.assert_allclose(found["w"][("z",)], np.diag(2 * np.exp(X + 1j)))
    np.testing.assert_allclose(found["w"][("s",)], np.exp(X + 1j))
    found = yota.jacobian(lambda p: {"w": p["e"] * 2, "x": p["x"] * 3}, target=target)({"e": np.zeros((0, 2)), "x": X})
    assert found["w"][("e",)].shape == (0, 2, 0, 2) and found["w"][("x",)].shape == (0, 2, 3)
    assert found["x"][("e",)].shape == (3, 0, 2)
    np.testing.assert_allclose(found["x"][("x",)], 3 * np.eye(3))


def test_complex_results_by_numbers_of_arrays():
    z = X + 1j
    for f in (lambda s: np.exp(z) * s.item(), lambda s: np.exp(z) * s.astype(np.float32).astype(float)[0]):
        np.testing.assert_allclose(yota.jacobian(f)(np.array([2.0]))[:, 0], np.exp(z))


def test_sparse_blocks():
    found = yota.jacobian(lambda p: {"d": np.diff(p["x"]), "s": p["x"] * p["y"]}, sparse=True)({"x": X, "y": X + 1})
    np.testing.assert_allclose(found["d"][("x",)].toarray(), [[-1, 1, 0], [0, -1, 1]])
    np.testing.assert_allclose(found["s"][("y",)].toarray(), np.diag(X))
    blocks = yota.hessian(lambda p: np.sum(p["x"] ** 2 * p["y"]), sparse=True)({"x": X, "y": X + 1})
    np.testing.assert_allclose(blocks[("x",)][("y",)].toarray(), np.diag(2 * X))


def test_long_arrays_by_rows():
    p = {"m": np.eye(12) * 2 + 0.1, "s": 2.0}
    found = yota.jacobian(lambda p: {"inverse": np.linalg.inv(p["m"]) * p["s"]})(p)
    inverse = np.linalg.inv(p["m"])
    expected = -2 * np.einsum("ik,lj->ijkl", inverse, inverse)
    np.testing.assert_allclose(found["inverse"][("m",)], expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found["inverse"][("s",)], inverse)


@pytest.mark.parametrize("by", ["array", "structure"])
def test_branches_that_return_other_structures(by):
    def f(p):
        x = p["x"] if by == "structure" else p
        return {"y": x * 2, "n": x[0]} if x[0] > 0 else [-x]

    made = yota.jacobian(f, dynamic=True, with_value=True)
    for sign in (1.0, -1.0, 1.0, -1.0):
        x = sign * np.abs(X)
        value, found = made({"x": x} if by == "structure" else x)
        assert type(value) is type(found) is (dict if sign > 0 else list)
        block = found["y"] if sign > 0 else found[0]
        np.testing.assert_array_equal(
            block[("x",)] if by == "structure" else block, (2 if sign > 0 else -1) * np.eye(3)
        )


def test_branches_of_which_one_has_other_code():
    matrix = DRAW(size=(150, 150))
    x = np.abs(DRAW(size=150))
    slope = (1 - np.tanh(matrix @ x) ** 2)[:, None] * matrix
    ways = [
        (lambda x: x * 3, 3 * np.eye(150)),
        (lambda x: np.tanh(matrix @ x), slope),
        (lambda x: {"y": x}, np.eye(150)),
    ]
    for (one, expected), (other, wanted) in itertools.combinations(ways, 2):
        made = yota.jacobian(lambda x, s, one=one, other=other: one(x) if s > 0 else other(x), dynamic=True)
        for s in (1.0, -1.0, 1.0, -1.0):
            found = made(x, s)
            found = found["y"] if isinstance(found, dict) else found
            np.testing.assert_allclose(found, expected if s > 0 else wanted, rtol=1e-12, atol=1e-13)


def test_branches_and_changes_are_followed():
    scale = 2.0

    def f(p):
        return {"y": p["x"] * scale} if p["s"] > 0 else {"y": -p["x"]}

    made = yota.jacobian(f, dynamic=True)
    for s, expected in ((1.0, 2.0), (-1.0, -1.0), (3.0, 2.0), (-2.0, -1.0)):
        np.testing.assert_allclose(made({"x": X, "s": s})["y"][("x",)], expected * np.eye(3))
    assert len(made.info().compilations) == 2
    scale = 5.0
    np.testing.assert_allclose(made({"x": X, "s": 1.0})["y"][("x",)], 5.0 * np.eye(3))
    made({"x": X[:2], "s": 1.0})
    np.testing.assert_allclose(made({"x": X, "s": 1.0})["y"][("x",)], 5.0 * np.eye(3))


def test_inside_of_others():
    def total(x):
        found = yota.jacobian(network)({"w": P["w"] * x, "b": P["b"]}, X)
        return np.sum(found["hidden"][("w",)] ** 2) + np.sum(yota.hessian(loss)(P, X * x)[("b", 0)][("w",)])

    assert yota.gradcheck(total, 1.3)
    many = yota.batch(yota.jacobian(network), in_axes=(None, 0))(P, np.stack([X, -X]))
    np.testing.assert_allclose(many["hidden"][("w",)][1], yota.jacobian(network)(P, -X)["hidden"][("w",)])


def test_methods():
    class Model:
        def __init__(self):
            self.w = P["w"]

        def __call__(self, p, x):
            return {"y": self.w @ x * p["s"]}

    found = yota.jacobian(Model())({"s": 2.0}, X)
    np.testing.assert_allclose(found["y"][("s",)], P["w"] @ X)


def test_what_does_not_fit_is_refused():
    with pytest.raises(DifferentiationError, match="a gradient needs one scalar"):
        yota.hessian(lambda x: {"a": np.sum(x), "b": np.sum(x)})(X)
    with pytest.raises(TracingError, match="returned a set"):
        yota.jacobian(lambda x: {"a": {1.0}})(X)


@pytest.mark.parametrize("strict", [False, True])
def test_lists_of_numbers_are_vectors(strict):
    value, matrix = yota.jacobian(lambda x: [x[0] * x[1], np.sin(x[1])], with_value=True, strict=strict)(X[:2])
    np.testing.assert_array_equal(value, [X[0] * X[1], np.sin(X[1])])
    np.testing.assert_allclose(matrix, [[X[1], X[0]], [0, np.cos(X[1])]])
