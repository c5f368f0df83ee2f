"""CPU time of compiling for named sizes, and for fixed ones: ``python -m benchmarks.named [NAME ...]``.

Functions come from the public code of SciPy, scikit-learn and papers. The process is warm and keeps nothing.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

import yota

__all__ = ["FUNCTIONS", "measure_named"]


def _chained(x: Any) -> Any:
    return sum(100 * (x[i - 1] ** 2 - x[i]) ** 2 + (x[i - 1] - 1) ** 2 for i in range(1, len(x)))


def _bodies(x: Any, m: Any) -> Any:
    i, j = np.triu_indices(len(x), 1)
    r = np.sqrt(np.sum((x[i] - x[j]) ** 2, axis=1) + 1e-6)
    return -np.sum(m[i] * m[j] / r)


def _process(x: Any, y: Any, theta: Any) -> Any:
    """The marginal likelihood of sklearn.gaussian_process."""
    squares = np.sum((x[:, None, :] - x[None, :, :]) ** 2, axis=-1)
    kernel = np.exp(theta[0] - 0.5 * squares * np.exp(-2 * theta[1])) + np.exp(theta[2]) * np.eye(len(x))
    factor = np.linalg.cholesky(kernel)
    return 0.5 * y @ np.linalg.solve(kernel, y) + np.sum(np.log(np.diag(factor))) + 0.5 * len(x) * np.log(2 * np.pi)


def _laplace(u: Any) -> Any:
    inner = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
    return np.sum(inner**2)


def _sorted(x: Any) -> Any:
    return np.sum(np.sort(x) * np.arange(1, len(x) + 1)) / np.sum(x)


def _network(x: Any, y: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
    return np.mean((np.tanh(x @ w1 + b1) @ w2 + b2 - y) ** 2)


def _rosen(x: Any) -> Any:
    """scipy.optimize.rosen."""
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2.0) ** 2.0 + (1 - x[:-1]) ** 2.0)


def _logistic(w: Any, x: Any, y: Any) -> Any:
    """The loss of sklearn.linear_model.LogisticRegression."""
    return np.mean(np.logaddexp(0.0, -y * (x @ w[:-1] + w[-1]))) + 0.5 * np.dot(w[:-1], w[:-1])


def _softmax(w: Any, x: Any, y: Any) -> Any:
    """Multinomial cross entropy."""
    scores = x @ w
    largest = np.max(scores, axis=1, keepdims=True)
    return np.mean(np.log(np.sum(np.exp(scores - largest), axis=1)) + largest[:, 0] - np.sum(y * scores, axis=1))


def _mixture(mu: Any, s: Any, x: Any) -> Any:
    """The likelihood of a mixture with diagonal covariances, as in sklearn.mixture."""
    z = (x[:, None, :] - mu[None, :, :]) / np.exp(s)[None, :, :]
    each = -0.5 * np.sum(z**2, axis=2) - np.sum(s, axis=1) - 0.5 * x.shape[1] * np.log(2 * np.pi)
    return -np.mean(np.logaddexp.reduce(each, axis=1))


def _huber(w: Any, x: Any, y: Any) -> Any:
    r = y - x @ w
    return np.sum(np.where(np.abs(r) <= 1.35, 0.5 * r**2, 1.35 * (np.abs(r) - 0.675)))


def _recursion(x: Any, a: Any, b: Any) -> Any:
    """The likelihood of a GARCH(1, 1) process."""
    h, total = 0.5, 0.0
    for t in range(len(x)):
        total = total + np.log(h) + x[t] ** 2 / h
        h = 0.1 + a * x[t] ** 2 + b * h
    return total


def _simpson(y: Any) -> Any:
    """scipy.integrate.simpson of the square, at an even number of intervals, by trapezoids."""
    x = np.linspace(0.0, 1.0, len(y))
    return np.sum((y[1:] ** 2 + y[:-1] ** 2) * np.diff(x)) / 2


def _stress(x: Any, d: Any) -> Any:
    """The stress of sklearn.manifold.MDS."""
    squares = np.sum(x**2, axis=1)
    found = np.sqrt(np.maximum(squares[:, None] + squares[None, :] - 2 * x @ x.T, 0.0) + np.eye(len(x)))
    return 0.5 * np.sum((found - d) ** 2)


def _filtered(x: Any, k: Any) -> Any:
    """scipy.ndimage.correlate1d with five weights."""
    return np.sum((sliding_window_view(x, 5) @ k) ** 2)


def _griewank(x: Any) -> Any:
    return 1.0 + np.sum(x**2) / 4000.0 - np.prod(np.cos(x / np.sqrt(np.arange(1.0, len(x) + 1))))


FUNCTIONS: dict[str, tuple[Callable[..., Any], dict[str, str], dict[str, int]]] = {
    "chained": (_chained, {"x": "float64[N]"}, {"N": 100}),
    "bodies": (_bodies, {"x": "float64[N,3]", "m": "float64[N]"}, {"N": 40}),
    "process": (_process, {"x": "float64[N,3]", "y": "float64[N]", "theta": "float64[3]"}, {"N": 40}),
    "laplace": (_laplace, {"u": "float64[N,M]"}, {"N": 50, "M": 60}),
    "sort": (_sorted, {"x": "float64[N]"}, {"N": 100}),
    "network": (
        _network,
        {
            "x": "float64[B,D]",
            "y": "float64[B,1]",
            "w1": "float64[D,H]",
            "b1": "float64[H]",
            "w2": "float64[H,1]",
            "b2": "float64[1]",
        },
        {"B": 50, "D": 8, "H": 16},
    ),
    "rosen": (_rosen, {"x": "float64[N]"}, {"N": 100}),
    "logistic": (_logistic, {"w": "float64[11]", "x": "float64[N,10]", "y": "float64[N]"}, {"N": 100}),
    "softmax": (_softmax, {"w": "float64[D,K]", "x": "float64[N,D]", "y": "float64[N,K]"}, {"N": 100, "D": 7, "K": 5}),
    "mixture": (_mixture, {"mu": "float64[K,D]", "s": "float64[K,D]", "x": "float64[N,D]"}, {"N": 100, "D": 7, "K": 5}),
    "huber": (_huber, {"w": "float64[D]", "x": "float64[N,D]", "y": "float64[N]"}, {"N": 100, "D": 7}),
    "recursion": (_recursion, {"x": "float64[N]", "a": "float64", "b": "float64"}, {"N": 100}),
    "simpson": (_simpson, {"y": "float64[N]"}, {"N": 100}),
    "stress": (_stress, {"x": "float64[N,3]", "d": "float64[N,N]"}, {"N": 40}),
    "filtered": (_filtered, {"x": "float64[N]", "k": "float64[5]"}, {"N": 100}),
    "griewank": (_griewank, {"x": "float64[N]"}, {"N": 100}),
}
"""Functions with the specs of their arguments, and sizes for the code that has fixed ones."""


def measure_named(names: Sequence[str], repeats: int) -> dict[str, dict[str, list[float]]]:
    """Median seconds for fixed and for named sizes, of a first gradient and of a generated module."""
    found = {}
    for name in names:
        _round(name)
        rounds = [_round(name) for _ in range(repeats)]
        found[name] = {
            what: [statistics.median(each[what][place] for each in rounds) for place in (0, 1)] for what in rounds[0]
        }
    return found


def _round(name: str) -> dict[str, tuple[float, float]]:
    """Seconds for fixed and named sizes, one after the other."""
    known, specs, sizes = FUNCTIONS[name]

    def fresh() -> Callable[..., Any]:
        """The function as one that was never compiled."""
        return types.FunctionType(known.__code__.replace(), known.__globals__, known.__name__)

    fixed = {argument: _at(spec, sizes) for argument, spec in specs.items()}
    generator = np.random.default_rng(0)
    shapes = [spec.removeprefix("float64").strip("[]") for spec in fixed.values()]
    values = [0.2 + 0.3 * generator.random([int(each) for each in shape.split(",") if each]) for shape in shapes]
    return {
        "gradient": (
            _timed(lambda: yota.value_and_grad(fresh())(*values)),
            _timed(lambda: yota.value_and_grad(fresh(), args=specs)(*values)),
        ),
        "generate": (
            _timed(lambda: yota.generate(fresh(), args=fixed, effort="quick")),
            _timed(lambda: yota.generate(fresh(), args=specs, effort="quick")),
        ),
    }


def _at(spec: str, sizes: dict[str, int]) -> str:
    """A spec with the numbers of its sizes."""
    if "[" not in spec:
        return spec
    dtype, _, extents = spec.removesuffix("]").partition("[")
    return f"{dtype}[{','.join(str(sizes.get(each, each)) for each in extents.split(','))}]"


def _timed(action: Callable[[], Any]) -> float:
    started = time.process_time()
    action()
    return time.process_time() - started


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.named", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(FUNCTIONS))
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    os.environ["YOTA_CACHE"] = "off"
    print(f"{'':12} {'gradient: fixed, named':>24} {'ratio':>6}   {'generate: fixed, named':>24} {'ratio':>6}")
    for name in options.names or FUNCTIONS:
        (found,) = measure_named([name], options.repeats).values()
        cells = [f"{1e3 * one:10.1f} {1e3 * two:10.1f} ms {two / one:6.1f}" for one, two in found.values()]
        print(f"{name:12} {'   '.join(cells)}", flush=True)


if __name__ == "__main__":
    main()
