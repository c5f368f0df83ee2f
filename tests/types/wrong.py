"""What is wrong, line by line; type checkers find each of these."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import yota


def loss(w: NDArray[np.float64], x: NDArray[np.float64], *, power: int = 2) -> np.float64:
    return np.float64(np.sum(w * x**power))


def pair(x: NDArray[np.float64], scale: float = 1.0) -> np.float64:
    return np.float64(scale * np.sum(x))


class Model:
    @yota.value_and_grad
    def slopes(self, x: NDArray[np.float64]) -> np.float64:
        return np.float64(np.sum(x))


x = np.ones(3)

print(yota.nonsense)  # wrong
yota.grad(loss, x)  # wrong
yota.grad(loss, x, x, target="gpu")  # wrong
yota.grad(loss, x, x, power="two")  # wrong
yota.grad(loss, x, x, argnums=0)  # wrong
yota.value_and_grad(loss)(x)  # wrong
yota.value_and_grad(loss, target="gpu")  # wrong
yota.value_and_grad(loss, argnums=0)  # wrong
yota.value_and_grad(loss)(x, x, power="two")  # wrong
yota.value_and_grad(loss, wrt=[0, 1])  # wrong
yota.gradient(loss)(x)  # wrong
yota.gradient(loss, target="jax")  # wrong
yota.gradient(loss)(x, x, nonsense=1)  # wrong
yota.gradient(x)  # wrong
yota.gradient(loss, has_aux=True)(x, x)  # wrong
yota.jacobian(loss)(x)  # wrong
yota.jacobian(loss, target="gpu")  # wrong
yota.hessian(loss)(x)  # wrong
yota.hessian(loss, target="gpu")  # wrong
yota.hvp(loss, target="gpu")  # wrong
yota.hvp(loss)(x, x)  # wrong
yota.hvp(pair)(x)  # wrong
yota.jvp(loss, (x, x), (x, None), target="gpu")  # wrong
yota.vjp(loss, x)  # wrong
yota.vjp(loss, x, x, target="gpu")  # wrong
yota.batch(loss, target="gpu")  # wrong
yota.batch(loss, axis=1)  # wrong
yota.batch(loss, in_axes="x")  # wrong
yota.batch(loss, in_axes=(0, "x"))  # wrong
yota.batch(loss, out_axes="x")  # wrong
yota.batch(loss, in_axes=0.5)  # wrong
yota.batch(loss, over=0.5)  # wrong
yota.jvp(loss, "ab", (x, x))  # wrong
yota.jvp(loss, (x, x), "ab")  # wrong
yota.value_and_grad(loss, args="float64[3]")  # wrong
yota.value_and_grad(loss, wrt=0.5)  # wrong
yota.generate(loss, "float64[3]")  # wrong
yota.generate(loss, {"x": "float64[3]"}, with_=["value"])  # wrong
yota.gradcheck(loss, x, x, random="seed")  # wrong
yota.distributed.value_and_grad(loss, over=["x"], target="gpu")  # wrong
yota.distributed.value_and_grad(loss, over=0.5)  # wrong
yota.export.generate(loss, "float64[3]")  # wrong
yota.export.generate(loss, [x], "gpu")  # wrong
yota.batch(loss)(x)  # wrong
Model().slopes()  # wrong
Model().slopes(x, 2)  # wrong
yota.batch(loss)(x, x, 2)  # wrong
yota.simplegrad(loss, x)  # wrong
yota.simplegrad(loss, x, x, target="gpu")  # wrong
yota.trace(loss, x)  # wrong
yota.itrace(loss, x)  # wrong
yota.interpreted(loss)(x)  # wrong
yota.play(x)  # wrong
yota.compile(loss)  # wrong
yota.generate(loss, {"x": "float64[3]"}, "gpu")  # wrong
yota.generate(loss, {"x": "float64[3]"}, with_="slope")  # wrong
yota.load_rules(3)  # wrong
yota.gradcheck(loss, x, x, step=1e-3)  # wrong
