"""What a user may write; type checkers find nothing wrong with it."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import yota

Array = NDArray[np.float64]


@dataclass
class Model:
    weights: Array
    scale: float = 1.0

    def loss(self, x: Array) -> np.float64:
        return np.float64(self.scale * np.sum(self.weights * x))

    def __call__(self, x: Array) -> np.float64:
        return self.loss(x)

    @yota.value_and_grad
    def slopes(self, x: Array, power: int = 1) -> np.float64:
        return np.float64(np.sum(self.weights * x**power))


def loss(w: Array, x: Array, scale: float = 1.0, *, power: int = 2) -> np.float64:
    return np.float64(scale * np.sum(w * x**power))


def energy(x: Array) -> float:
    return float(x @ x)


def area(width: float, height: np.float64) -> float:
    return width * height


def scaled(model: Model, scale: float) -> np.float64:
    return model.loss(model.weights * scale)


def power(w: Array, x: Array, *, power: int = 2) -> np.float64:
    return np.float64(np.sum(w * x**power))


def pair(x: Array) -> tuple[Array, Array]:
    return x, x**2


x = np.ones(3)
model = Model(x)

value, g = yota.grad(loss, x, x)
number: np.float64 = value
number, _ = model.slopes(x, power=2)
Model.slopes(model, x)
first = g[0]
yota.grad(loss, x, x, scale=2.0, power=3)
yota.grad(loss, w=x, x=x)
yota.grad(loss, x, x, target="c", strict=True)
yota.grad(loss, x, x, dynamic=True)
yota.grad(pair, x, seed=x)
yota.grad(lambda x: np.sum(x**2), x)
yota.grad(np.sum, x)
yota.grad(model, x)
yota.grad(model.loss, x)
yota.grad(functools.partial(loss, x), x)

fg = yota.value_and_grad(loss)
number, slope = fg(x, x, 2.0, power=3)
number, slope = fg(w=x, x=x)
number, (by_w, by_x) = yota.value_and_grad(loss, (0, "x"), target="cuda", strict=False)(x, x)
yota.value_and_grad(loss, args={"w": "float64[N]", "x": "float64[N]"})
slope = yota.gradient(energy, dynamic=True)(x)
name: str = yota.gradient(energy).__name__
by_w, by_x = yota.gradient(loss, ("w", "x"))(x, x)
yota.gradient(model.loss)(x)
yota.gradient(yota.interpreted(energy))(x)
yota.gradient(yota.gradient(energy))(x)

(value, aux), slope = yota.value_and_grad(lambda x: (np.sum(x), {"x": x}), has_aux=True)(x)
array: Array
slope, array = yota.gradient(pair, has_aux=True, target="c")(x)
(first, array), g = yota.grad(pair, x, has_aux=True)
matrix, aux = yota.jacobian(pair, has_aux=True)(x)
matrix = yota.jacobian(pair)(x)
found, matrix = yota.jacobian(pair, with_value=True)(x)
array = found[0]
rest, slope, matrix = yota.hessian(energy, with_value=True, sparse=True)(x)
total: float = rest
yota.hessian(loss, ("w", "x"))(x, x)
yota.hvp(energy)(x, x)
yota.hvp(loss, "x")(x, x, x)
yota.hvp(loss)(x, x, 2.0, x, power=3)
yota.hvp(model.loss, dynamic=True)(x, x)
yota.hvp(yota.batch(energy))(np.ones((5, 3)), np.ones((5, 3)))
yota.hvp(lambda x: x @ x)(x, x)
array, tangent = yota.jvp(np.sin, (x,), (x,), target="c")
array, pullback = yota.vjp(lambda x: x**2, x)
(adjoint,) = pullback(x)
yota.vjp(energy, x, target="numpy")

many = yota.batch(energy, over="x", axis=-1)(np.ones((3, 5)))
many = yota.batch(loss, in_axes=(0, None), out_axes=0)(np.ones((5, 3)), x)
yota.batch(loss, in_axes=[{"w": 0}, (0, None)], out_axes={"sum": -1, "parts": [0, None]})
text: str = yota.batch(energy).source
many = yota.batch(area)(x, height=x)
many = yota.batch(scaled)(model, x)
many = yota.batch(lambda x: x**2)(x)
many = yota.batch(power, in_axes=(0, None))(w=x, x=x, power=3)
simple = yota.simplegrad(loss, x, x)
value, by_w, by_x, _ = simple(x, x)
text = simple.source
yota.simplegrad(loss, x, x, target="c")
with yota.configure(target="auto", threads=2, cache=False) as now:
    text = now.target
yota.configure(cache="folder", threads=None)
slope = yota.gradient(energy, target="auto")(x)


def of_a_formula(r: Any) -> str:
    """Of a symbol of sympy's, which has no types."""
    yota.gradient(yota.from_sympy(r**2, r))(2.0)
    return yota.lambdify(r, r**2, target="c").source


value, tape = yota.trace(loss, x, x, power=3)
yota.trace(energy, x, primitives=[np.sinc])
yota.itrace(energy, x)
yota.play(tape, x, x)
text = yota.compile(tape, "c").source
yota.compile(tape)(x, x)
text = str(yota.generate(energy, {"x": "float64[N]"}, "c", with_=("value", "gradient"), extension=True))
yota.generate(energy, [x]).write("energy.py")
yota.generate(energy, {"x": "float64[3]"}, "fortran")

carried, rows = yota.scan(lambda total, row: (total + row, total), x, x)
carried = yota.fori(3, lambda i, x: x * i, x)
carried = yota.while_loop(lambda x: x[0] < 3.0, lambda x: x * 2.0, x)
text = str(yota.stop_gradient(carried).shape)
part: float = yota.checkpoint(loss)(x, x)

model = yota.update(model, g[0], lambda value, slope: value - 0.1 * slope)
assert yota.gradcheck(loss, x, x, rtol=1e-5, directions=2)
yota.diffrule("...")(x)
rules = [rule.name for rule in yota.load_rules("mine.rules")]
there = yota.to_cpu(yota.to_cuda(x))
try:
    yota.testing.check_rule("tanh", points=3)
except yota.errors.YotaError as fault:
    print(fault)
derivative: yota.Compiled[[Array], float] = yota.batch(energy)
text = derivative.source + str(derivative.info())
derivative.clear()
yota.freeze(derivative)(x)
print(derivative.tape, yota.__version__, yota.Tape, yota.GradResult, yota.export.Module, yota.ctrace)
