"""What functions of other libraries have in common as primitives of yota's."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import yota
from yota.errors import ArgumentError


@pytest.fixture(params=["jax", "torch"])
def host(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A library in place of NumPy, and what makes its functions primitives."""
    library: Any = pytest.importorskip(request.param)
    primitive = import_module(f"yota.interop.{request.param}").primitive
    if request.param == "torch":
        yield library, primitive
        return
    library.config.update("jax_enable_x64", True)
    yield library.numpy, primitive
    library.config.update("jax_enable_x64", False)


def test_complex_functions_follow_yota_s_convention(host: Any) -> None:
    library, primitive = host
    z = np.array([1 + 2j, 0.3 - 0.1j])
    functions = primitive(lambda z: library.exp(z) * library.real(z)), lambda z: np.exp(z) * np.real(z)
    slopes = [yota.gradient(lambda z, f=f: np.sum(np.abs(f(z) - 1) ** 2))(z) for f in functions]
    np.testing.assert_allclose(*slopes, rtol=1e-12)


def decay(x: Any) -> Any:
    return np.exp(-x)


def test_functions_for_them_pickle_by_reference(host: Any, request: pytest.FixtureRequest) -> None:
    library, _ = host
    wrap = import_module(f"yota.interop.{request.node.callspec.params['host']}").wrap
    values = library.asarray(np.array([0.5, 1.0]))
    wrapped = pickle.loads(pickle.dumps(wrap(decay)))
    np.testing.assert_allclose(np.asarray(wrapped(values)), np.exp([-0.5, -1.0]), rtol=1e-12)


def test_tapes_of_them_stay_in_their_process(host: Any) -> None:
    library, primitive = host
    sine = primitive(library.sin)
    _, tape = yota.trace(lambda x: np.sum(sine(x)), np.ones(3))
    with pytest.raises(ArgumentError, match=r"sin of (JAX|PyTorch) .*pickle the derivative"):
        pickle.dumps(tape)
