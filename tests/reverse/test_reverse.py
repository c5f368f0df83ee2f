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
