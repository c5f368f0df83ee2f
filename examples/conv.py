"""Learn the filters of a convolution from its output: the gradient goes through rules that conv2d.py brings along."""

from __future__ import annotations

import argparse

import numpy as np
from conv2d import conv

import yota


def loss(A, W, wanted, pad):
    """Mean squared difference between the filtered images and the wanted ones."""
    return np.mean((conv(A, W, pad=pad) - wanted) ** 2)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=300)
    parser.add_argument("--pad", type=int, default=1)
    options = parser.parse_args()

    rng = np.random.default_rng(0)
    images = rng.standard_normal((4, 2, 12, 12))
    hidden = rng.standard_normal((3, 2, 3, 3))
    wanted = conv(images, hidden, pad=options.pad)

    filters = np.zeros_like(hidden)
    assert yota.gradcheck(loss, images, rng.standard_normal(hidden.shape), wanted, options.pad)
    history = []
    for _ in range(options.epochs):
        value, g = yota.grad(loss, images, filters, wanted, options.pad)
        yota.update(filters, g[1], lambda x, gx: x - 0.5 * gx)
        history.append(float(value))
    print(f"loss: {history[0]:.6f} with no filter, {history[-1]:.2e} after {len(history)} steps")
    print(f"largest difference from the hidden filters: {np.max(np.abs(filters - hidden)):.1e}")
    assert history[-1] < history[0], "the loss did not fall"
    print(f"\nthe code of its gradient:\n\n{g.source}")


if __name__ == "__main__":
    main()
