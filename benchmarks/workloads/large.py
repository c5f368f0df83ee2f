"""Particles, a mixture and an autoencoder, of a size that is worth a GPU."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from benchmarks.workload import Workload
from benchmarks.workloads.mixture import positions_below, write_mixture
from benchmarks.workloads.particles import write_pairs
from benchmarks.workloads.sized import Sized

__all__ = ["LARGE"]

REACH = 3
"""Distance on the lattice up to which atoms are neighbours."""


def atoms(count: int) -> tuple[Any, ...]:
    """Positions near a cubic lattice, and the pairs of atoms that were neighbours there."""
    side = round(count ** (1 / 3) + 0.4999)
    lattice = np.stack(np.meshgrid(*[np.arange(side)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)[:count]
    numbers = np.full((side + 2 * REACH,) * 3, -1)
    numbers[tuple(lattice.T + REACH)] = np.arange(count)
    first, second = [], []
    for step in itertools.product(range(-REACH, REACH + 1), repeat=3):
        # Each pair once: of a step and its opposite only one is greater.
        if step > (0, 0, 0) and sum(each * each for each in step) <= REACH * REACH:
            other = numbers[tuple((lattice + step).T + REACH)]
            first.append(np.flatnonzero(other >= 0))
            second.append(other[other >= 0])
    positions = 1.2 * lattice + 0.1 * np.random.default_rng(3).standard_normal((count, 3))
    return positions, np.concatenate(first), np.concatenate(second)


def mixture(count: int) -> tuple[Any, ...]:
    dimension, components = 10, 25
    random = np.random.default_rng(5)
    return (
        random.standard_normal(components),
        random.standard_normal((components, dimension)),
        0.3 * random.standard_normal((components, dimension * (dimension + 1) // 2)),
        random.standard_normal((count, dimension)),
        positions_below(dimension),
    )


def write_autoencoder(np: Any) -> Any:
    """A variational autoencoder with Gaussian latent variables and Bernoulli pixels, by a sample of the former."""

    def evidence_bound(weights: Any, images: Any, noise: Any) -> Any:
        hidden = np.tanh(images @ weights["encode"] + weights["encode_offset"])
        mean = hidden @ weights["mean"] + weights["mean_offset"]
        spread = hidden @ weights["spread"] + weights["spread_offset"]
        latent = mean + np.exp(0.5 * spread) * noise
        inner = np.tanh(latent @ weights["decode"] + weights["decode_offset"])
        scores = inner @ weights["pixels"] + weights["pixels_offset"]
        # log(1 + exp(s)) - x * s, without an overflow.
        misfit = np.sum(np.maximum(scores, 0.0) + np.log1p(np.exp(-np.abs(scores))) - images * scores)
        distance = 0.5 * np.sum(np.exp(spread) + mean**2 - 1.0 - spread)
        return (misfit + distance) / images.shape[0]

    return evidence_bound


def images(count: int) -> tuple[Any, ...]:
    pixels, hidden, latent = 784, 400, 20
    random = np.random.default_rng(9)
    shapes = {
        "encode": (pixels, hidden),
        "mean": (hidden, latent),
        "spread": (hidden, latent),
        "decode": (latent, hidden),
        "pixels": (hidden, pixels),
    }
    weights: dict[str, Any] = {}
    for name, (rows, columns) in shapes.items():
        weights[name] = random.standard_normal((rows, columns)) / np.sqrt(rows)
        weights[f"{name}_offset"] = 0.1 * random.standard_normal(columns)
    return weights, random.random((count, pixels)), random.standard_normal((count, latent))


LARGE = (
    Workload(
        name="gpu_lennard_jones",
        title="Lennard-Jones energy of 20,000 atoms, pairs of neighbours",
        write=write_pairs,
        arguments=Sized(atoms, 20_000, quick=216, steady=4000),
        large=True,
    ),
    Workload(
        name="gpu_mixture",
        title="Gaussian mixture (ADBench), n=1e5 d=10 K=25",
        write=write_mixture,
        arguments=Sized(mixture, 100_000, quick=200),
        wrt=(0, 1, 2),
        large=True,
    ),
    Workload(
        name="gpu_autoencoder",
        title="variational autoencoder 784-400-20, batch of 4096",
        write=write_autoencoder,
        arguments=Sized(images, 4096, quick=8),
        large=True,
    ),
)
