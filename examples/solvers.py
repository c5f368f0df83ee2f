"""Three fits and designs that call SciPy's solvers inside of the loss: a reaction, an orbit, and a cooling plate."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from scipy import sparse
from scipy.integrate import solve_ivp
from scipy.optimize import minimize, newton
from scipy.sparse.linalg import spsolve

import yota

TIMES = np.linspace(0.5, 10.0, 20)
MEAN_ANOMALIES = np.linspace(0.1, 6.2, 25)


def concentrations(k):
    """A reaction A -> B -> C with the rates ``k``."""

    def rates(_t, c):
        return [-k[0] * c[0], k[0] * c[0] - k[1] * c[1]]

    return solve_ivp(rates, (0.0, 10.0), [1.0, 0.0], t_eval=TIMES, rtol=1e-8, atol=1e-10).y


def fit_reaction():
    """Rates from noisy measurements."""
    noise = 0.02 * np.random.default_rng(1).normal(size=(2, TIMES.size))
    measured = concentrations(np.array([0.7, 0.2])) + noise

    def loss(k):
        return np.sum((concentrations(k) - measured) ** 2)

    return measured, minimize(yota.value_and_grad(loss), [1.0, 0.5], jac=True).x


def places(orbit):
    """Places of a planet at all times: size and eccentricity of its orbit decide them by Kepler's equation."""
    size, e = orbit
    anomaly = newton(lambda E: E - e * np.sin(E) - MEAN_ANOMALIES, MEAN_ANOMALIES)
    return size * np.stack([np.cos(anomaly) - e, np.sqrt(1 - e**2) * np.sin(anomaly)])


def fit_orbit():
    """Size and eccentricity of an orbit from noisy places."""
    noise = 0.03 * np.random.default_rng(2).normal(size=(2, MEAN_ANOMALIES.size))
    seen = places((1.5, 0.55)) + noise

    def loss(orbit):
        return np.sum((places(orbit) - seen) ** 2)

    bounds = [(0.1, 10.0), (0.0, 0.9)]
    return seen, minimize(yota.value_and_grad(loss), [1.0, 0.2], jac=True, bounds=bounds).x


def temperatures(material):
    """A plate that is heated everywhere and cooled at a part of its left edge; the material conducts heat.

    The heat equation on square cells: between two cells flows the difference of temperatures times the harmonic mean
    of their conductivities.
    """
    n = len(material)
    k = (0.001 + 0.999 * material**3).ravel()
    cell = np.arange(n * n).reshape(n, n)
    one = np.concatenate([cell[:, :-1].ravel(), cell[:-1].ravel()])
    other = np.concatenate([cell[:, 1:].ravel(), cell[1:].ravel()])
    flow = 2 * k[one] * k[other] / (k[one] + k[other])
    sink = cell[2 * n // 5 : n - 2 * n // 5, 0]
    values = np.concatenate([flow, flow, -flow, -flow, 2 * k[sink]])
    rows, columns = np.concatenate([one, other, one, other, sink]), np.concatenate([one, other, other, one, sink])
    matrix = sparse.csc_array((values, (rows, columns)), shape=(n * n, n * n))
    return spsolve(matrix, np.full(n * n, 1 / n**2)).reshape(n, n)


def design_plate(n, iterations):
    """Where two fifths of the plate should conduct, so that it is as cool as it can be on average."""

    def loss(material):
        return np.mean(temperatures(material)) * (1 + 20 * np.maximum(np.mean(material) - 0.4, 0))

    both = yota.value_and_grad(lambda x: loss(x.reshape(n, n)))
    start = np.full(n * n, 0.4)
    options = {"maxiter": iterations}
    found = minimize(both, start, jac=True, method="L-BFGS-B", bounds=[(0, 1)] * n * n, options=options)
    return both(start)[0], found.fun, found.x.reshape(n, n)


def draw(reaction, orbit, material, place):
    """Draw the three results side by side."""
    import matplotlib.pyplot as plt

    (measured, k), (seen, found) = reaction, orbit
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
    left.plot(TIMES, measured.T, "o", markersize=3)
    left.plot(TIMES, concentrations(k).T, color="black", linewidth=1)
    left.set(title="reaction", xlabel="time", ylabel="concentrations")
    middle.plot(*seen, "o", markersize=3)
    middle.plot(*places(found), color="black", linewidth=1)
    middle.plot(0, 0, "*", markersize=10)
    middle.set(title="orbit", aspect="equal")
    right.imshow(material, cmap="Greys", vmin=0, vmax=1)
    right.set(title="material that cools a plate")
    figure.savefig(place, dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=40, help="cells of the plate along an edge (default: %(default)s)")
    parser.add_argument("--iterations", type=int, default=100, help="steps of the design (default: %(default)s)")
    parser.add_argument("--picture", type=Path, default=Path("solvers.png"), help="(default: %(default)s)")
    options = parser.parse_args()
    reaction, orbit = fit_reaction(), fit_orbit()
    print("rates", *reaction[1].round(3))
    print("size and eccentricity", *orbit[1].round(3))
    before, after, material = design_plate(options.cells, options.iterations)
    print(f"mean temperature {before:.4f}, with the design {after:.4f}; material {np.mean(material):.3f}")
    draw(reaction, orbit, material, options.picture)
    print(f"drawn: {options.picture}")


if __name__ == "__main__":
    main()
