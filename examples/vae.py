"""A variational autoencoder on scikit-learn's handwritten digits: structures of weights, Adam, and a picture."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from tqdm import tqdm

import yota


@dataclass
class Linear:
    """``x @ W + b`` for rows ``x``."""

    W: np.ndarray
    b: np.ndarray

    @classmethod
    def random(cls, inputs, outputs, rng):
        return cls(rng.standard_normal((inputs, outputs)) / np.sqrt(inputs), np.zeros(outputs))

    def __call__(self, x):
        return x @ self.W + self.b


@dataclass
class Encoder:
    """Images to a mean and a log-variance for each latent number."""

    hidden: Linear
    mean: Linear
    log_variance: Linear

    def __call__(self, images):
        hidden = np.tanh(self.hidden(images))
        return self.mean(hidden), self.log_variance(hidden)


@dataclass
class Decoder:
    """Latent numbers to the logit of each pixel."""

    hidden: Linear
    output: Linear

    def __call__(self, latent):
        return self.output(np.tanh(self.hidden(latent)))


@dataclass
class VariationalAutoencoder:
    encoder: Encoder
    decoder: Decoder

    @classmethod
    def random(cls, pixels, hidden, latent, rng):
        return cls(
            Encoder(
                Linear.random(pixels, hidden, rng),
                Linear.random(hidden, latent, rng),
                Linear.random(hidden, latent, rng),
            ),
            Decoder(Linear.random(latent, hidden, rng), Linear.random(hidden, pixels, rng)),
        )


def loss(model, images, noise):
    """Negative evidence lower bound for each image; ``noise`` is an argument, so the function stays a function."""
    mean, log_variance = model.encoder(images)
    logits = model.decoder(mean + np.exp(0.5 * log_variance) * noise)
    reconstruction = np.sum(np.logaddexp(0.0, logits) - images * logits)
    divergence = -0.5 * np.sum(1.0 + log_variance - mean**2 - np.exp(log_variance))
    return (reconstruction + divergence) / images.shape[0]


class Adam:
    """Steps of the Adam method for a gradient that is a dict from field path to array."""

    def __init__(self, rate, beta1=0.9, beta2=0.999, epsilon=1e-8):
        self.rate, self.beta1, self.beta2, self.epsilon = rate, beta1, beta2, epsilon
        self.count, self.first, self.second = 0, {}, {}

    def steps(self, gradient):
        self.count += 1
        return {path: self.step(path, array) for path, array in gradient.items()}

    def step(self, path, array):
        first = self.first[path] = self.beta1 * self.first.get(path, 0.0) + (1 - self.beta1) * array
        second = self.second[path] = self.beta2 * self.second.get(path, 0.0) + (1 - self.beta2) * array**2
        first = first / (1 - self.beta1**self.count)
        second = second / (1 - self.beta2**self.count)
        return self.rate * first / (np.sqrt(second) + self.epsilon)


def train(model, images, epochs, batch, rate, rng):
    """Mean loss of each epoch."""
    latent = model.encoder.mean.b.size
    adam = Adam(rate)
    history = []
    progress = tqdm(range(epochs), unit="epoch")
    for _ in progress:
        order = rng.permutation(len(images))
        losses = []
        for start in range(0, len(images) - batch + 1, batch):
            chosen = images[order[start : start + batch]]
            noise = rng.standard_normal((batch, latent))
            value, g = yota.grad(loss, model, chosen, noise)
            yota.update(model, adam.steps(g[0]), lambda x, step: x - step)
            losses.append(float(value))
        history.append(sum(losses) / len(losses))
        progress.set_postfix(loss=f"{history[-1]:.3f}")
    return history


def reconstruct(model, images):
    """Images as the model sees them, without noise."""
    mean, _ = model.encoder(images)
    return 1.0 / (1.0 + np.exp(-model.decoder(mean)))


def draw(model, images, path):
    """Digits above, reconstructions below."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    pairs = (images, reconstruct(model, images))
    figure, axes = plt.subplots(2, len(images), figsize=(len(images), 2.2))
    for row, pictures in zip(axes, pairs, strict=True):
        for cell, picture in zip(row, pictures, strict=True):
            cell.imshow(picture.reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
            cell.set_axis_off()
    figure.savefig(path, dpi=100)
    plt.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--latent", type=int, default=8)
    parser.add_argument("--rate", type=float, default=2e-3, help="of Adam")
    parser.add_argument("--out", type=Path, default=Path("vae.png"), help="where the picture goes")
    options = parser.parse_args()

    rng = np.random.default_rng(0)
    images = load_digits().data / 16.0
    model = VariationalAutoencoder.random(images.shape[1], options.hidden, options.latent, rng)
    history = train(model, images, options.epochs, options.batch, options.rate, rng)
    print(f"loss: {history[0]:.3f} in the first epoch, {history[-1]:.3f} in the last")
    assert history[-1] < history[0], "the loss did not fall"
    draw(model, images[:10], options.out)
    print(f"reconstructions: {options.out}")


if __name__ == "__main__":
    main()
