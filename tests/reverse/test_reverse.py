"""The backward pass names what it finds after what the user named, and refuses adjoints of another shape."""

from __future__ import annotations

import sys
import types

import numpy as np
import pytest

import yota
from yota.errors import RuleError
from yota.rules.registry import registry


def test_adjoints_are_called_after_their_variables() -> None:
    def loss(W, x):  # type: ignore[no-untyped-def]
        scores = W @ x
        bent = np.tanh(scores)
        return np.sum(bent * bent)

    source = yota.grad(loss, np.ones((30, 40)), np.ones(40))[1].source
    for name in ("scores", "bent", "value", "d_W", "d_x"):
        assert f"    {name} = " in source
    assert "return value, d_W, d_x" in source


def test_a_name_of_the_user_stays() -> None:
    def twice(x):  # type: ignore[no-untyped-def]
        d_y = 2.0 * x
        value = d_y * d_y
        return np.sum(value)

    x = np.linspace(0.0, 1.0, 20)
    value, g = yota.grad(twice, x)
    np.testing.assert_allclose(g[0], 8.0 * x, rtol=1e-15)


WRONG = """
@tensor("yota_shapes.my_product")
def my_product(a: Array[m, n], x: Array[n]) -> y:
    d[a] = {}
    d[x] = matmul(adjoint(a), d[y])
"""


@pytest.mark.parametrize(
    ("adjoint", "shape", "message"),
    [
        ("d[y] * x", (2, 2), r"d\[a\] of my_product\(.*\) has the shape \(2,\), where a has \(2, 2\)"),
        # What has as many elements would otherwise be reshaped, and be wrong in silence.
        ("matmul(expand_dims(x, 1), expand_dims(d[y], 0))", (3, 2), r"has the shape \(2, 3\), where a has \(3, 2\)"),
        (
            "d[y] * x",
            (3, 2),
            r"^<.*>:3: d\[a\] of my_product\(float64\[3,2\], .*\) cannot be computed: .*shape mismatch",
        ),
    ],
)
def test_adjoints_of_another_shape_are_refused(  # type: ignore[no-untyped-def]
    adjoint, shape, message, monkeypatch
):
    module = types.ModuleType("yota_shapes")
    module.my_product = lambda a, x: a @ x
    monkeypatch.setitem(sys.modules, "yota_shapes", module)
    known = registry().copy()
    known.define(WRONG.format(adjoint))
    monkeypatch.setattr("yota.rules.registry._default", known)
    with pytest.raises(RuleError, match=message):
        yota.gradient(lambda a: np.sum(module.my_product(a, np.ones(shape[1]))))(np.ones(shape))


X = np.array([0.0, 1.0, 2.0, 0.0, -1.0, 4.0])
AT = np.array([1, 2, 5])
READ = {
    "mask": lambda y, x: y[x > 0],
    "gather": lambda y, x: y[AT],
    "take": lambda y, x: np.take(y, AT),
    "compress": lambda y, x: np.compress(x > 0, y),
    "reshaped": lambda y, x: np.reshape(y, (2, 3)).T[[1, 2, 2], [0, 0, 1]],
    "two reads": lambda y, x: np.array([1.0, 1.0, 0.5]) * y[AT] + 0.5 * np.concatenate([np.zeros(2), y[5:]]),
    "sorted": lambda y, x: y[np.argsort(x)][3:],
    "negative": lambda y, x: -((3.0 * -y)[AT]) / 3.0,
}
POLES = {
    "divide": (lambda x: 1 / x, lambda x: -1 / x**2),
    "sqrt": (np.sqrt, lambda x: 0.5 / np.sqrt(x)),
    "log": (np.log, lambda x: 1 / x),
    "chain": (lambda x: np.exp(-np.sqrt(1 / x)), lambda x: 0.5 * x**-1.5 * np.exp(-np.sqrt(1 / x))),
    "product": (lambda x: x * (1 / x) * np.log(x), lambda x: 1 / x),
}


@pytest.mark.parametrize("target", ["numpy", "c"])
@pytest.mark.parametrize("pole", POLES)
@pytest.mark.parametrize("read", READ)
def test_what_is_not_read_has_no_adjoint(read, pole, target):
    (function, rate), taken = POLES[pole], READ[read]
    with np.errstate(all="ignore"):
        found = yota.gradient(lambda x: np.sum(taken(function(x), x)), target=target)(X)
    exact = np.zeros(6)
    exact[AT] = rate(X[AT])
    np.testing.assert_allclose(found, exact, rtol=1e-13)


def test_what_is_not_read_has_no_adjoint_by_any_operand():
    weights = np.arange(6.0)
    with np.errstate(all="ignore"):
        both = yota.gradient(lambda x, w: np.sum((w * (1 / x))[x > 0]), wrt=(0, 1))(X, weights)
        bent = yota.hessian(lambda x: np.sum((1 / x)[x > 0]))(X)
        turned = yota.gradient(lambda z: np.real(np.sum((2j * (1 / z))[AT])))(X + 0j)
    on = X > 0
    positive = np.where(on, X, 1.0)
    np.testing.assert_allclose(both[0], np.where(on, -weights / positive**2, 0.0), rtol=1e-14)
    np.testing.assert_allclose(both[1], np.where(on, 1 / positive, 0.0), rtol=1e-14)
    np.testing.assert_allclose(bent, np.diag(np.where(on, 2 / positive**3, 0.0)), rtol=1e-13)
    np.testing.assert_allclose(turned[AT], np.conj(-2j / X[AT] ** 2), rtol=1e-13)
