"""A polynomial of eight variables: value and gradient at one point and at a million, and the generated code."""

from __future__ import annotations

import argparse
import time

import numpy as np

import yota


def polynomial(x):
    """Work on eight numbers, or on eight rows of as many numbers as there are points."""
    return (
        x[2] * x[7] ** 3
        - 3 * x[2] * x[7] * x[5] ** 2
        - x[0] * x[5] ** 3
        + 3 * x[0] * x[5] * x[7] ** 2
        + x[3] * x[4] ** 3
        - 3 * x[3] * x[4] * x[6] ** 2
        - x[1] * x[6] ** 3
        + 3 * x[1] * x[6] * x[4] ** 2
        - 1.2342523
    )


def total(x):
    """Sum over all points; each column of its gradient is the gradient at one point."""
    return np.sum(polynomial(x))


def best_time(function, *arguments, seconds=0.5):
    """Shortest time of one call."""
    best, stop = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < stop:
        start = time.perf_counter()
        function(*arguments)
        best = min(best, time.perf_counter() - start)
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=1_000_000, help="how many points (default: a million)")
    options = parser.parse_args()

    x = np.linspace(0.2, 1.6, 8)
    value, g = yota.grad(polynomial, x)
    print(f"value at one point     {value:.12f}")
    print(f"gradient               {np.array2string(g[0], precision=6)}")
    print("\nthe code that computed both:\n")
    print(g.source)

    value_and_gradient = yota.value_and_grad(polynomial)
    value_and_gradient(x)
    print(f"the function           {best_time(polynomial, x) * 1e6:9.2f} us")
    print(f"value and gradient     {best_time(value_and_gradient, x) * 1e6:9.2f} us")

    points = np.random.default_rng(0).uniform(-1.0, 1.0, (8, options.points))
    points[:, 0] = x
    many = yota.value_and_grad(total)
    value, gradient = many(points)
    # The first of the points is the one above.
    assert np.allclose(gradient[:, 0], g[0], rtol=1e-13)
    print(f"\n{options.points:,} points, sum     {value:.6f}")
    print(f"the function           {best_time(total, points) * 1e3:9.3f} ms")
    print(f"value and gradient     {best_time(many, points) * 1e3:9.3f} ms")


if __name__ == "__main__":
    main()
