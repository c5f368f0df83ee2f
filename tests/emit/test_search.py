"""The long search: asked for by name, and told of while it goes on."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

import yota
from benchmarks.systems import random_polynomial
from benchmarks.workloads.polynomials import polynomial
from yota.errors import ArgumentError

FUNCTION = random_polynomial(6, 50, 4, seed=2)
X = np.linspace(0.5, 1.5, 6)


def count(result: Any) -> int:
    return sum(result.operations.values())


def test_a_long_search_finds_what_a_quick_one_does_not() -> None:
    """The best of common subexpressions, Horner forms and CasADi takes 251."""
    value, high = yota.grad(FUNCTION, X, effort="high")
    _, quick = yota.grad(FUNCTION, X)
    assert count(high) <= 207 < count(quick)
    np.testing.assert_allclose(value, FUNCTION(X), rtol=1e-12)
    # The complex step has no error of cancellation.
    steps = [FUNCTION(X + 1e-30j * unit).imag / 1e-30 for unit in np.eye(6)]
    np.testing.assert_allclose(high[0], steps, rtol=1e-11)
    np.testing.assert_allclose(quick[0], steps, rtol=1e-11)


def test_a_quick_search_keeps_the_promise_for_the_main_job() -> None:
    assert count(yota.grad(polynomial, np.linspace(0.5, 1.5, 8))[1]) <= 42


@pytest.mark.parametrize("derive", [yota.hessian, yota.jacobian, yota.gradient, yota.value_and_grad])
def test_every_derivative_has_an_effort(derive: Any) -> None:
    for found, known in zip(derive(polynomial, effort="high")(np.ones(8)), derive(polynomial)(np.ones(8)), strict=True):
        np.testing.assert_allclose(found, known, rtol=1e-12, atol=1e-12)
    with pytest.raises(ArgumentError, match="effort='long' is not known"):
        derive(polynomial, effort="long")(np.ones(8))


def test_generation_searches_long(caplog: pytest.LogCaptureFixture) -> None:
    def made(**options: Any) -> str:
        return str(yota.generate(FUNCTION, {"x": "float64[6]"}, **options))

    with caplog.at_level(logging.INFO, "yota.search"):
        quick = made(effort="quick")
        assert not caplog.records
        high = made()
        assert "after a long search" in caplog.text
    assert made() == high
    assert high.count(" * ") < quick.count(" * ")
    assert "--effort quick" not in high
