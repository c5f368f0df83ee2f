"""Logistic regression on a data set on disk, by worker processes that could not hold it, with the loss drawn.

The default is small. With ``--rows 4000000`` there are 3.2 GB of samples for two workers of 500 MB each.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import dask
import numpy as np
from dask.distributed import Client, LocalCluster
from scipy.optimize import minimize
from tqdm import tqdm

import yota
import yota.distributed

CHUNK = 10_000
COLUMNS = 100


def write(folder, rows):
    """Samples in files of ten thousand each, with the weights that their signs were drawn by."""
    generator = np.random.default_rng(0)
    weights = generator.normal(size=COLUMNS) / 5
    for number, start in enumerate(tqdm(range(0, rows, CHUNK), desc="writing", unit="file")):
        X = generator.normal(size=(min(CHUNK, rows - start), COLUMNS))
        likely = 1 / (1 + np.exp(-X @ weights))
        np.save(folder / f"X{number:05}.npy", X)
        np.save(folder / f"y{number:05}.npy", np.where(generator.uniform(size=len(X)) < likely, 1.0, -1.0))
    return weights


def loss(w, X, y):
    """Mean over samples."""
    return np.mean(np.logaddexp(0.0, -y * (X @ w)))


def penalty(w):
    return 1e-4 * np.sum(w**2)


def fit(folder, iterations):
    """The weights, and the loss after each iteration."""
    X, y = ([dask.delayed(np.load)(file) for file in sorted(folder.glob(f"{kind}*.npy"))] for kind in "Xy")
    data = yota.distributed.value_and_grad(loss, over=("X", "y"), reduction="mean")
    alone = yota.value_and_grad(penalty)
    losses = []

    def both(w):
        (value, gradient), (more, slope) = data(w, X, y), alone(w)
        return value + more, gradient + slope

    with tqdm(total=iterations, desc="fitting", unit="iteration") as bar:

        def noted(intermediate_result):
            losses.append(intermediate_result.fun)
            bar.set_postfix(loss=f"{losses[-1]:.6f}")
            bar.update()

        start = np.zeros(COLUMNS)
        options = {"maxiter": iterations, "ftol": 0, "gtol": 1e-7}
        found = minimize(both, start, jac=True, method="L-BFGS-B", callback=noted, options=options)
    return found.x, losses


def draw(losses, place):
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
    axes.semilogy(np.arange(1, len(losses)), np.array(losses[:-1]) - losses[-1], marker=".")
    axes.set(xlabel="iteration", ylabel="loss above the last one")
    figure.savefig(place, dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=50_000, help="samples of 100 numbers each (default: 50000)")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--memory", default="500MB", help="of each worker (default: 500MB)")
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--out", default="loss.png", help="where to draw the loss (default: loss.png)")
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        weights = write(Path(folder), options.rows)
        size = sum(file.stat().st_size for file in Path(folder).iterdir())
        with (
            LocalCluster(
                n_workers=options.workers,
                threads_per_worker=1,
                memory_limit=options.memory,
                dashboard_address=":0",
            ) as cluster,
            Client(cluster),
        ):
            found, losses = fit(Path(folder), options.iterations)
    draw(losses, options.out)
    print(f"data on disk                 {size / 1e6:.0f} MB, {options.workers} workers of {options.memory}")
    print(f"loss                         {losses[0]:.6f} at first, {losses[-1]:.6f} after {len(losses)} iterations")
    print(f"correlation with the weights {np.corrcoef(found, weights)[0, 1]:.4f}")


if __name__ == "__main__":
    main()
