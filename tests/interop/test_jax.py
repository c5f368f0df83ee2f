"""yota's functions in JAX, held against JAX's own derivatives of the same formulas."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from yota.errors import ArgumentError, StaleTapeError, TracingError

jax = pytest.importorskip("jax")
jnp = jax.numpy

import yota  # noqa: E402
from yota.interop.jax import primitive, wrap  # noqa: E402

X = np.array([0.3, -0.2, 1.1])
W = np.array([[0.5, -0.3], [0.2, 0.9], [-0.4, 0.1]])


def loss(np: Any) -> Callable[..., Any]:
    return lambda x, w: np.sum(np.tanh(x @ w) ** 2)


def several(np: Any) -> Callable[..., Any]:
    return lambda p, k: {"a": np.exp(p["x"]) * p["y"], "b": k * np.cumsum(p["x"])}


@pytest.fixture(params=[False, True], ids=["float32", "float64"])
def double(request: pytest.FixtureRequest) -> Iterator[bool]:
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", request.param)
    yield request.param
    jax.config.update("jax_enable_x64", before)


@pytest.fixture
def exact() -> Iterator[None]:
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", False)


def alike(found: Any, wanted: Any, *, double: bool = True) -> None:
    rtol, atol = (1e-12, 1e-14) if double else (1e-4, 1e-5)
    assert jax.tree.structure(found) == jax.tree.structure(wanted)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        assert isinstance(one, jax.Array) and one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=rtol, atol=atol)


@pytest.mark.parametrize("change", [lambda f: f, lambda f: jax.jit(jax.grad(f, (0, 1)))], ids=["value", "jit of grad"])
def test_losses_in_both_precisions(change: Callable[[Any], Any], double: bool) -> None:
    x, w = jnp.asarray(X), jnp.asarray(W)
    alike(change(wrap(loss(np)))(x, w), change(loss(jnp))(x, w), double=double)


@pytest.mark.parametrize("change", [jax.hessian, lambda f: jax.jacrev(jax.jacrev(f))], ids=["hessian", "jacrev"])
def test_second_derivatives(change: Callable[[Any], Any], exact: None) -> None:
    alike(change(lambda x: wrap(loss(np))(x, W))(X), change(lambda x: loss(jnp)(x, W))(X))


@pytest.mark.parametrize(
    "change", [lambda f: jax.jvp(f, (X,), (X[::-1],)), lambda f: jax.vmap(jax.grad(f))(np.stack([X, -X]))]
)
def test_arrays_of_numpy_s(change: Callable[[Any], Any], exact: None) -> None:
    alike(change(lambda x: wrap(loss(np))(x, W)), change(lambda x: loss(jnp)(x, W)))


@pytest.mark.parametrize(
    "change",
    [
        jax.jacfwd,
        lambda f: jax.jit(jax.jacrev(f)),
        lambda f: jax.jacfwd(jax.jacrev(f)),
        lambda f: lambda p: jax.jvp(f, (p,), (p,)),
    ],
    ids=["jacfwd", "jit of jacrev", "second", "jvp"],
)
def test_trees_under_transformations(change: Callable[[Any], Any], exact: None) -> None:
    p = {"x": jnp.asarray(X), "y": 2.5}
    found, wanted = (change(lambda p, f=f: f(p, 2))(p) for f in (wrap(several(np)), several(jnp)))
    alike(found, wanted)


def test_many_points(exact: None) -> None:
    points, w = jnp.stack([X, 2 * X, X - 1]), jnp.asarray(W)
    for change in (
        lambda f: jax.vmap(jax.grad(f, (0, 1)), (0, None)),
        lambda f: jax.grad(lambda x, w: jnp.sum(jax.vmap(f, (0, None))(x, w) ** 2), (0, 1)),
    ):
        alike(change(wrap(loss(np)))(points, w), change(loss(jnp))(points, w))


def test_loops_of_jax_s(exact: None) -> None:
    def run(f: Any, x: Any) -> Any:
        return jax.lax.scan(lambda c, _: (f(c, W) * c, c), x, None, length=3)[1].sum()

    x = jnp.asarray(X)
    alike(jax.grad(lambda x: run(wrap(loss(np)), x))(x), jax.grad(lambda x: run(loss(jnp), x))(x))


def test_linear_parts_are_transposed_both_ways(exact: None) -> None:
    f, x = wrap(lambda x: np.sin(x) * x[::-1]), jnp.asarray(X)
    wanted = jax.jacobian(lambda x: jnp.sin(x) * x[::-1])(x)
    _, forward = jax.linearize(f, x)
    (pulled,) = jax.linear_transpose(forward, x)(x)
    alike(pulled, wanted.T @ x)
    _, pullback = jax.vjp(f, x)
    (pushed,) = jax.linear_transpose(lambda c: pullback(c)[0], x)(x)
    alike(pushed, wanted @ x)


def test_complex_numbers_follow_jax(exact: None) -> None:
    z = jnp.array([1 + 2j, 0.3 - 0.1j])
    for formula in (lambda np: lambda z: np.exp(z) * (1 + 2j), lambda np: lambda z: np.real(z) * np.exp(z)):
        alike(jax.vjp(wrap(formula(np)), z)[1](z), jax.vjp(formula(jnp), z)[1](z))
        alike(jax.jvp(wrap(formula(np)), (z,), (z * 1j,)), jax.jvp(formula(jnp), (z,), (z * 1j,)))


def test_python_branches_on_values() -> None:
    def f(x: Any) -> Any:
        return x**2 if x > 0 else np.sin(x)

    points = jnp.array([-1.0, 2.0])
    wanted = [np.cos(-1.0), 4.0]
    assert [float(jax.jit(jax.grad(wrap(f)))(x)) for x in points] == pytest.approx(wanted)
    np.testing.assert_allclose(jax.vmap(jax.grad(wrap(f, vmap_method="sequential")))(points), wanted, rtol=1e-6)
    with pytest.raises(StaleTapeError, match=r"branches on the values of a point.*np\.where"):
        jax.vmap(wrap(f))(points)


def test_integers_stay_as_they_are_or_carry_no_derivative() -> None:
    power = wrap(lambda x, n: x**n)
    assert float(jax.grad(power)(2.0, 3)) == 12.0
    taken = wrap(lambda x, at: (x[at], np.argmax(x)))
    value, pullback, place = jax.vjp(lambda x: taken(x, jnp.array([2, 2])), jnp.asarray(X), has_aux=True)
    np.testing.assert_allclose(pullback(jnp.ones(2))[0], [0, 0, 2])
    assert place == 2


def test_shapes_that_ones_do_not_show() -> None:
    def f(x: Any) -> Any:
        if np.all(x == 1):
            raise ValueError("no spread")
        return x / np.std(x)

    with pytest.raises(ArgumentError, match=r"raised ValueError: no spread. Specify them: wrap\(f, results="):
        jax.jit(wrap(f))(jnp.asarray(X))
    for said in (jax.ShapeDtypeStruct((3,), jnp.float32), lambda x: x):
        np.testing.assert_allclose(jax.jit(wrap(f, results=said))(jnp.asarray(X)), X / np.std(X), rtol=1e-6)


def test_what_cannot_be_an_argument_or_a_result() -> None:
    with pytest.raises(ArgumentError, match="was called with a set, which is neither an array nor hashable"):
        wrap(lambda x, s: x)(jnp.ones(2), {1})
    with pytest.raises(TracingError, match="returned a str"):
        wrap(lambda x: "text")(jnp.ones(2))
    with pytest.raises(ArgumentError, match='"batch" or "sequential"'):
        wrap(np.sin, vmap_method="loop")


def test_jax_s_arrays_do_not_change() -> None:
    kept = np.ones(4, np.float32)
    found = wrap(lambda x: kept)(jnp.ones(4))
    kept[:] = 7
    np.testing.assert_array_equal(found, np.ones(4))
    with pytest.raises(ValueError, match="read-only"):
        wrap(lambda x: np.copyto(x, 0.0))(jnp.ones(4))


# -- JAX's functions in yota ---------------------------------------------------------------------------------


def test_jax_s_functions_are_primitives(exact: None) -> None:
    f = primitive(lambda p, n: {"a": jnp.exp(p["x"]) * p["y"], "b": p["x"][:n].sum()})

    def loss(x: Any, y: Any) -> Any:
        found = f({"x": x, "y": y}, 2)
        return np.sum(np.sin(found["a"])) * found["b"]

    def native(x: Any, y: Any) -> Any:
        return jnp.sum(jnp.sin(jnp.exp(x) * y)) * x[:2].sum()

    value, gradient = yota.grad(loss, X, 2.5)
    assert value == pytest.approx(float(native(X, 2.5)), rel=1e-14)
    for found, wanted in zip(gradient, jax.grad(native, (0, 1))(X, 2.5), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
    np.testing.assert_allclose(yota.hessian(loss)(X, 2.5), jax.hessian(native)(X, 2.5), rtol=1e-12)


def test_there_and_back_under_jit(exact: None) -> None:
    f = wrap(lambda x: primitive(lambda x: jnp.sum(jnp.cos(x) ** 2))(x) * 2)
    np.testing.assert_allclose(jax.jit(jax.grad(f))(jnp.asarray(X)), -2 * np.sin(2 * X), rtol=1e-12)


def test_branches_and_precision_are_refused_or_chosen() -> None:
    def f(x: Any) -> Any:
        return x**2 if x[0] > 0 else x

    x = X.astype(np.float32)
    with pytest.raises(ArgumentError, match=r"jnp\.where or jax\.lax\.cond, or pass jit=False"):
        primitive(f)(x)
    np.testing.assert_allclose(yota.gradient(lambda x: np.sum(primitive(f, jit=False)(x)))(x), 2 * x, rtol=1e-6)
    for given in (X, 0.5):
        with pytest.raises(ArgumentError, match=r"got numbers in double.*jax_enable_x64"):
            primitive(jnp.sin)(given)
