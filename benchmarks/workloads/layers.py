"""Layers of matrix products: one linear layer, and a classifier with a structure of weights."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.workload import Workload

__all__ = ["WORKLOADS"]


def write_linear(np: Any) -> Any:
    def loss(W: Any, b: Any, x: Any) -> Any:
        return np.sum(W @ x + b[:, None])

    return loss


def write_classifier(np: Any) -> Any:
    def cross_entropy(weights: Any, images: Any, labels: Any) -> Any:
        hidden = np.tanh(images @ weights["W1"] + weights["b1"])
        scores = hidden @ weights["W2"] + weights["b2"]
        shifted = scores - np.max(scores, axis=1, keepdims=True)
        logarithms = shifted - np.log(np.sum(np.exp(shifted), axis=1, keepdims=True))
        return -np.sum(labels * logarithms) / images.shape[0]

    return cross_entropy


def write_network(np: Any) -> Any:
    def misfit(layers: Any, points: Any, targets: Any) -> Any:
        values = points
        for layer in layers[:-1]:
            values = np.tanh(values @ layer["W"] + layer["b"])
        errors = values @ layers[-1]["W"] + layers[-1]["b"] - targets
        return np.mean(errors**2)

    return misfit


def network_arguments(quick: bool) -> tuple[Any, ...]:
    random = np.random.default_rng(8)
    widths = (8, 32, 32, 32, 1)
    layers = [
        {"W": random.standard_normal((rows, columns)) / np.sqrt(rows), "b": np.zeros(columns)}
        for rows, columns in pairwise(widths)
    ]
    batch = 16 if quick else 512
    return layers, random.standard_normal((batch, widths[0])), random.standard_normal((batch, 1))


def linear_arguments(_quick: bool) -> tuple[Any, ...]:
    random = np.random.default_rng(6)
    return random.standard_normal((128, 784)), random.standard_normal(128), random.standard_normal((784, 100))


def classifier_arguments(quick: bool) -> tuple[Any, ...]:
    batch, inputs, hidden, classes = (16, 30, 12, 10) if quick else (256, 784, 128, 10)
    random = np.random.default_rng(7)
    weights = {
        "W1": random.standard_normal((inputs, hidden)) / np.sqrt(inputs),
        "b1": np.zeros(hidden),
        "W2": random.standard_normal((hidden, classes)) / np.sqrt(hidden),
        "b2": np.zeros(classes),
    }
    return weights, random.random((batch, inputs)), np.eye(classes)[random.integers(0, classes, batch)]


WORKLOADS = (
    Workload(
        name="linear",
        title="sum of W @ x + b, 128 x 784 x 100",
        write=write_linear,
        arguments=linear_arguments,
        wrt=(0, 1, 2),
    ),
    Workload(
        name="network",
        title="regression by three tanh layers of 32, batch of 512",
        write=write_network,
        arguments=network_arguments,
    ),
    Workload(
        name="classifier",
        title="tanh layer and softmax loss, batch of 256, 784-128-10",
        write=write_classifier,
        arguments=classifier_arguments,
    ),
)
