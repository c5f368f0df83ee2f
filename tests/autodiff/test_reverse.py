"""The backward pass names what it finds after what the user named."""

from __future__ import annotations

import numpy as np

import yota


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
