"""Functions that draw random numbers are refused; a generator of a fixed seed that is made inside is welcome."""

# ruff: noqa: NPY002  (users draw in the old way too)
from __future__ import annotations

import os
import random
import secrets
import subprocess
import sys
import threading
import types
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

import yota
from yota import errors

ROOT = Path(__file__).parent.parent.parent
X = np.arange(1.0, 5.0)
rng = np.random.default_rng(1)
old = np.random.RandomState(1)
python = random.Random(1)
holder = types.SimpleNamespace(rng=rng)


class Layer:
    shared = rng

    def forward(self, x):
        return x * (self.shared.random(x.shape) > 0.5)


def _helper(x):
    return x * rng.uniform()


REFUSED = {
    "generator": lambda x: x * rng.normal(size=4),
    "large draws": lambda x: np.mean(x) * rng.normal(size=400),
    "old generator": lambda x: x * old.rand(4),
    "common": lambda x: x * np.random.rand(4),
    "coin": lambda x: x * rng.integers(2),
    "choice of elements": lambda x: x[rng.permutation(4)[:2]],
    "branch": lambda x: x if rng.random() < 2 else x * x,
    "python": lambda x: x * random.random(),
    "python's own": lambda x: x * python.gauss(0, 1),
    "in a helper": lambda x: _helper(x),
    "in an object": lambda x: x * holder.rng.random(),
    "in a class": lambda x: Layer().forward(x),
    "library": lambda x: x * scipy.stats.norm.rvs(size=4),
    "without a seed": lambda x: x * np.random.default_rng().random(4),
    "old without a seed": lambda x: x * np.random.RandomState().rand(4),
    "bits without a seed": lambda x: x * np.random.Generator(np.random.PCG64()).random(4),
    "entropy": lambda x: x * np.random.default_rng(np.random.SeedSequence()).random(4),
    "python without a seed": lambda x: x * random.Random().random(),
    "of the system": lambda x: x * random.SystemRandom().random(),
    "secrets": lambda x: x * secrets.randbelow(1000),
    "bytes": lambda x: x * os.urandom(2)[1],
}


@pytest.mark.parametrize("name", REFUSED)
def test_draws_are_refused(name):
    f = REFUSED[name]
    for call in (
        lambda: yota.grad(lambda x: np.sum(f(x)), X),
        lambda: yota.value_and_grad(lambda x: np.sum(f(x)))(X),
        lambda: yota.trace(lambda x: np.sum(f(x)), X),
        lambda: yota.batch(lambda x: np.sum(f(x)))(X[None]),
    ):
        with pytest.raises(errors.TracingError, match="random numbers"):
            call()


def test_a_generator_among_the_arguments():
    def f(x, rng, settings):
        return np.sum(x * rng.normal(size=4) * settings["rng"].random())

    with pytest.raises(errors.TracingError, match="Generator"):
        yota.grad(f, X, np.random.default_rng(0), {"rng": np.random.default_rng(0)})


def _seeded(x):
    np.random.seed(3)
    return x * np.random.rand(4)


WELCOME = {
    "fixed seed": lambda x: x * np.random.default_rng(0).normal(size=4),
    "seeded": _seeded,
    "old": lambda x: x * np.random.RandomState(0).rand(4),
    "python": lambda x: x * random.Random(0).random(),
}


@pytest.mark.parametrize("name", WELCOME)
def test_what_is_the_same_each_time_is_welcome(name):
    f = WELCOME[name]
    fg = yota.value_and_grad(lambda x: np.sum(f(x)))
    for x in (X, 2 * X):
        np.testing.assert_allclose(fg(x)[0], np.sum(f(x)))


def test_draws_of_other_threads_do_not_matter():
    done = threading.Event()

    def draw():
        while not done.is_set():
            np.random.rand()

    thread = threading.Thread(target=draw)
    thread.start()
    try:
        np.testing.assert_allclose(yota.grad(lambda x: np.sum(np.sin(x)), X)[1][0], np.cos(X))
    finally:
        done.set()
        thread.join()


def test_draws_outside_are_constants():
    noise = rng.normal(size=4)
    fg = yota.value_and_grad(lambda x: np.sum(x * noise))
    np.testing.assert_allclose(fg(X)[1], noise)


def test_an_import_inside_of_the_function_draws_nothing():
    program = (
        "import numpy as np, yota\n"
        "def f(x):\n"
        "    from scipy.special import expit\n"
        "    return np.sum(expit(x))\n"
        "print(yota.grad(f, np.zeros(2))[1][0])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[0.25 0.25]\n"


def test_the_second_of_a_normal_pair_is_a_draw():
    # It lies beside the words of the generator, which do not change.
    np.random.seed(3)
    np.random.normal()
    with pytest.raises(yota.errors.TracingError, match="draws random numbers"):
        yota.grad(lambda x: np.sum(x * np.random.normal()), np.ones(3))


def test_a_generator_in_a_structure_that_the_function_captures():
    held = {"inner": [np.random.default_rng(0)]}
    with pytest.raises(yota.errors.TracingError, match="a captured Generator"):
        yota.trace(lambda x: np.sum(x * held["inner"][0].normal()), np.ones(3))
