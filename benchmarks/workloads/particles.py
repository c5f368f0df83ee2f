"""The Lennard-Jones energy of a cluster: over all pairs of an N by N table, and over the pairs of an index list."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.workload import Workload

__all__ = ["WORKLOADS"]


def write_table(np: Any) -> Any:
    def lennard_jones(x: Any, diagonal: Any) -> Any:
        separation = x[:, None, :] - x[None, :, :]
        # One on the diagonal: a particle's energy with itself is then zero, and so is its force.
        inverse = 1.0 / (np.sum(separation**2, axis=-1) + diagonal)
        sixth = inverse**3
        return 0.5 * np.sum(4.0 * (sixth**2 - sixth))

    return lennard_jones


def write_pairs(np: Any) -> Any:
    def lennard_jones(x: Any, first: Any, second: Any) -> Any:
        separation = x[first] - x[second]
        sixth = (1.0 / np.sum(separation**2, axis=1)) ** 3
        return np.sum(4.0 * (sixth**2 - sixth))

    return lennard_jones


def cluster(quick: bool) -> np.ndarray:
    """Positions near a cubic lattice, so that no pair is close enough to drown the others."""
    side, count = (4, 60) if quick else (8, 500)
    lattice = np.stack(np.meshgrid(*[np.arange(side)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)[:count]
    return 1.2 * lattice + 0.1 * np.random.default_rng(3).standard_normal((count, 3))


def with_diagonal(quick: bool) -> tuple[Any, ...]:
    x = cluster(quick)
    return x, np.eye(len(x))


def with_pairs(quick: bool) -> tuple[Any, ...]:
    x = cluster(quick)
    return x, *np.triu_indices(len(x), 1)


WORKLOADS = (
    Workload(
        name="lennard_jones",
        title="Lennard-Jones energy of 500 atoms, N x N table",
        write=write_table,
        arguments=with_diagonal,
    ),
    Workload(
        name="lennard_jones_pairs",
        title="Lennard-Jones energy of 500 atoms, index list",
        write=write_pairs,
        arguments=with_pairs,
    ),
)
