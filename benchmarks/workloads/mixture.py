"""The log-likelihood of a Gaussian mixture with full covariances, as the ADBench suite states it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from benchmarks.workload import Workload

__all__ = ["WORKLOADS"]

# Parameters of the Wishart prior.
GAMMA, EXCESS = 1.0, 0


def write_mixture(np: Any) -> Any:
    def log_sum_exp(a: Any) -> Any:
        largest = np.max(a, axis=-1, keepdims=True)
        return largest[..., 0] + np.log(np.sum(np.exp(a - largest), axis=-1))

    def log_likelihood(alphas: Any, means: Any, factors: Any, x: Any, positions: Any) -> Any:
        """``factors`` holds, for each component, the logarithms of a diagonal and the rest of a lower triangle."""
        points, dimension = x.shape
        components = means.shape[0]
        logarithms, below = factors[:, :dimension], factors[:, dimension:]
        diagonals = np.exp(logarithms)
        # The last place of the padded row is the zero that fills the upper triangle.
        padded = np.concatenate([below, 0.0 * below[:, :1]], axis=1)
        triangles = padded[:, positions]
        centred = x[:, None, :] - means[None, :, :]
        scaled = diagonals * centred + np.einsum("kij,nkj->nki", triangles, centred)
        exponents = alphas + np.sum(logarithms, axis=1) - 0.5 * np.sum(scaled**2, axis=2)
        likelihood = np.sum(log_sum_exp(exponents)) - points * log_sum_exp(alphas)
        prior = 0.5 * GAMMA**2 * (np.sum(diagonals**2) + np.sum(below**2)) - EXCESS * np.sum(logarithms)
        constant = -points * dimension * 0.5 * math.log(2 * math.pi) - components * wishart(dimension)
        return likelihood + prior + constant

    return log_likelihood


def wishart(dimension: int) -> float:
    """Logarithm of the prior's normalising constant."""
    degrees = dimension + EXCESS + 1
    multivariate = 0.25 * dimension * (dimension - 1) * math.log(math.pi) + sum(
        math.lgamma(0.5 * (degrees - j)) for j in range(dimension)
    )
    return degrees * dimension * (math.log(GAMMA) - 0.5 * math.log(2)) - multivariate


def positions_below(dimension: int) -> np.ndarray:
    """For each place of a lower triangle, its position in the list that ends with a zero."""
    count = dimension * (dimension - 1) // 2
    positions = np.full((dimension, dimension), count)
    positions[np.tril_indices(dimension, -1)] = np.arange(count)
    return positions


def parameters(quick: bool) -> tuple[Any, ...]:
    points, dimension, components = (50, 3, 4) if quick else (1000, 10, 25)
    random = np.random.default_rng(5)
    return (
        random.standard_normal(components),
        random.standard_normal((components, dimension)),
        0.3 * random.standard_normal((components, dimension * (dimension + 1) // 2)),
        random.standard_normal((points, dimension)),
        positions_below(dimension),
    )


WORKLOADS = (
    Workload(
        name="mixture",
        title="Gaussian mixture (ADBench), n=1000 d=10 K=25",
        write=write_mixture,
        arguments=parameters,
        wrt=(0, 1, 2),
    ),
)
