"""Scalar formulas of installed packages come out right; `tests.tracing.differential` does the same for any package."""

from __future__ import annotations

import random

import pytest

import yota
from tests.tracing.differential import _examined, examine, names

SLOW = ("ei", "e1", "zeta", "gamma", "digamma")
"""Series of many terms."""
FOUND = [name for package in ("colorsys", "mpmath.math2") for name in names(package)]
SAMPLE = [name for name in FOUND if not any(part in name for part in SLOW)]


@pytest.mark.parametrize("name", SAMPLE)
def test_formulas_of_packages(name):
    outcome = _examined((name, 0, 60))
    assert outcome.kind in ("right", "refused", "skipped"), outcome


def test_most_of_the_sample_is_differentiated():
    assert len(SAMPLE) > 20
    quick = [_examined((f"mpmath.math2:{name}", 0, 60)).kind for name in ("tanpi", "cospi", "sinh")]
    assert quick == ["right"] * 3


def test_what_is_wrong_shows(monkeypatch):
    grad = yota.grad
    for change in (lambda value, g: (value, (g[0], 0.0)), lambda value, g: (value * 1.0001, g)):
        monkeypatch.setattr(yota, "grad", lambda *args, change=change: change(*grad(*args)))
        assert examine("product", lambda a, b: a * b, random.Random(0)).kind == "wrong"
    monkeypatch.setattr(yota, "grad", grad)
    assert examine("product", lambda a, b: a * b, random.Random(0)).kind == "right"
    assert examine("stairs", lambda a: float(a // 0.0001), random.Random(0)).kind in ("skipped", "right")
