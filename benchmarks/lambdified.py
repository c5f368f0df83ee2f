"""Functions from sympy's expressions beside sympy's own lambdify: ``python -m benchmarks.lambdified``.

Each expression at a point and on arrays, the value alone and with its gradient, as multiples of yota's CPU time. The
other side is ``sympy.lambdify(..., cse=True)``, for the gradient with sympy's derivatives beside the value. On arrays
both sides give the sum of values, and derivatives in arrays of their own, also where sympy gives 0 or an argument.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import sympy
from sympy import Matrix, Piecewise, Rational, cos, erf, exp, log, pi, sin, sqrt, symbols, tanh

import yota

__all__ = ["EXPRESSIONS", "measured"]

SIZE = 10_000
x, y, z = ARGUMENTS = symbols("x y z", real=True)


def _pendulum() -> Any:
    lower = 2 + cos(x - y) ** 2
    return (sin(x - y) * (z**2 * cos(x - y) + y**2) - 9.81 * (2 * sin(x) - sin(y) * cos(x - y))) / lower


def _option() -> Any:
    d = (log(x / y) + (Rational(1, 20) + z**2 / 2)) / z
    normal = [(1 + erf(each / sqrt(2))) / 2 for each in (d, d - z)]
    return x * normal[0] - y * exp(-Rational(1, 20)) * normal[1]


EXPRESSIONS: dict[str, Any] = {
    "polynomial": 3 * x**3 * y - x**2 * y**2 * z + 7 * x * y * z**2 - 2 * y**3 * z + z**4 - 5 * x * z + 1,
    "expanded power": sympy.expand((x + 2 * y - z) ** 6),
    "determinant": Matrix(4, 4, lambda i, j: (x, y, z, x * y)[(i * j + i + j) % 4] + i - j).det(),
    "rational": (x**2 + y * z) ** 2 / (1 + x**2 + y**2) - (x - y) / (1 + (x - y) ** 2 * z**2),
    "Lennard-Jones": sum(4 * (1 / r**12 - 1 / r**6) for r in (sqrt(x**2 + y**2), sqrt(y**2 + z**2))),
    "rotations": (sin(x) * cos(y) + cos(x) * sin(y) * cos(z)) ** 2 + (cos(x) * cos(y) - sin(x) * sin(y) * sin(z)) ** 2,
    "double pendulum": _pendulum(),
    "Gaussians": sum(exp(-((x - k) ** 2) / 2 - (y + k) ** 2 * z) / sqrt(2 * pi) for k in range(4)),
    "option price": _option(),
    "small network": sum(tanh(x * k - y + z / k) / k for k in range(1, 6)),
    "pieces": Piecewise((x**2 * y, x < 0.4), (sqrt(x) + z * y, x < 0.8), (log(x) * y - z, True)),
    "Bessel and gamma": sympy.besselj(0, x) * sympy.loggamma(y) + erf(z) * x,
    "logarithms": log(1 + exp(x * y)) - x * log(y) + z**x,
    "product and sum": x * y + 1,
}


def _other(expression: Any, *, gradient: bool, arrays: bool) -> Callable[..., Any]:
    wanted = [expression, *(expression.diff(each) for each in ARGUMENTS)] if gradient else expression
    made: Callable[..., Any] = sympy.lambdify(ARGUMENTS, wanted, ["scipy", "numpy"], cse=True)
    if not gradient or not arrays:
        return made

    def own(slope: Any, args: tuple[Any, ...]) -> Any:
        if not np.ndim(slope):
            return np.full(args[0].shape, float(slope))
        return slope.copy() if any(slope is each for each in args) else slope

    def both(*args: Any) -> Any:
        value, *slopes = made(*args)
        return np.sum(value), [own(slope, args) for slope in slopes]

    return both


def _own(expression: Any, target: str, *, gradient: bool, arrays: bool) -> Callable[..., Any]:
    if not gradient:
        return yota.lambdify(ARGUMENTS, expression, target=target)
    f = yota.from_sympy(expression, ARGUMENTS)
    return yota.value_and_grad((lambda *args: np.sum(f(*args))) if arrays else f, (0, 1, 2), target=target)


def _seconds(call: Callable[..., Any], args: tuple[Any, ...], count: int) -> float:
    start = time.process_time()
    for _ in range(count):
        call(*args)
    return (time.process_time() - start) / count


def measured(expression: Any, target: str, *, gradient: bool, arrays: bool, repeats: int) -> float:
    """How many times as long sympy's function takes: the median of ratios, taken in turn."""
    generator = np.random.default_rng(1)
    args = tuple(generator.uniform(0.2, 0.9, SIZE) if arrays else float(generator.uniform(0.2, 0.9)) for _ in ARGUMENTS)
    calls = (
        _own(expression, target, gradient=gradient, arrays=arrays),
        _other(expression, gradient=gradient, arrays=arrays),
    )
    own, other = calls[0](*args), calls[1](*args)
    if gradient:
        own, other = own[1], other[1] if arrays else other[1:]
    np.testing.assert_allclose(own, other, rtol=1e-8, atol=1e-10)
    calls[0](*args)
    counts = [max(3, int(0.01 / max(_seconds(call, args, 3), 1e-7))) for call in calls]
    gc.disable()
    ratios = []
    for _ in range(repeats):
        mine, theirs = (_seconds(call, args, count) for call, count in zip(calls, counts, strict=True))
        ratios.append(theirs / mine)
    gc.enable()
    return statistics.median(ratios)


def main() -> None:
    """Print a table, and the medians and the least of its columns."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", default="c", choices=("numpy", "c"))
    parser.add_argument("--repeats", type=int, default=9)
    options = parser.parse_args()
    columns = [(gradient, arrays) for arrays in (False, True) for gradient in (False, True)]
    titles = ["value", "value and gradient", f"value, {SIZE} points", f"value and gradient, {SIZE} points"]
    print(f"sympy.lambdify(cse=True) over yota, target {options.target}")
    print("| expression |", " | ".join(titles), "|")
    print("| --- |" + " ---: |" * len(titles))
    table = []
    for name, expression in EXPRESSIONS.items():
        row = [
            measured(expression, options.target, gradient=gradient, arrays=arrays, repeats=options.repeats)
            for gradient, arrays in columns
        ]
        table.append(row)
        print(f"| {name} |", " | ".join(f"{each:.3g}x" for each in row), "|", flush=True)
    for name, summary in (("median", statistics.median), ("least", min)):
        print(f"| *{name}* |", " | ".join(f"{summary(each):.3g}x" for each in zip(*table, strict=True)), "|")


if __name__ == "__main__":
    main()
