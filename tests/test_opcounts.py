"""Operation counts: how they are counted, and that few come out."""

from __future__ import annotations

import numpy as np
import pytest
import sympy

from benchmarks.opcounts import PROBLEMS, Problem, by_sympy, by_yota, horner, operations
from benchmarks.systems import cyclic, harmonics, harmonics_by_recurrence, katsura

x, y, z = sympy.symbols("x y z")


@pytest.mark.parametrize(
    ("expression", "count"),
    [
        (x, 0),
        (x + y, 1),
        (x - y, 1),
        (-x - y, 2),
        (2 * x * y - z, 3),
        (-3 * x + 1, 2),
        (x**3, 1),
        (x * y / z, 3),
        (sympy.sin(x) + 1, 2),
        (sympy.Integer(5), 0),
    ],
)
def test_operations_of_sympy(expression: sympy.Expr, count: int) -> None:
    assert operations(expression) == count


def test_promised_counts() -> None:
    for problem in PROBLEMS[:2]:
        assert problem.bound is not None
        assert by_yota(problem) <= problem.bound


@pytest.mark.parametrize("system", [katsura(4), cyclic(5)], ids=["katsura", "cyclic"])
def test_fewer_than_sympy(system: object) -> None:
    problem = Problem("a system", system, 5)  # type: ignore[arg-type]
    assert by_yota(problem) <= 0.95 * min(by_sympy(problem), by_sympy(problem, horner))


@pytest.mark.parametrize(("name", "most"), [("katsura-8", 114), ("cyclic-6", 96)])
def test_systems_take_no_more_than_has_been_reached(name: str, most: int) -> None:
    (problem,) = (each for each in PROBLEMS if each.name.startswith(name))
    assert by_yota(problem) <= most


def test_harmonics_are_written_in_two_ways() -> None:
    points = np.random.default_rng(0).normal(size=(2, 3))
    one, other = (np.array([f(point) for point in points]) for f in (harmonics(4), harmonics_by_recurrence(4)))
    # Each of one list is a multiple of one of the other: the ratio between two points says which.
    np.testing.assert_allclose(np.sort(one[0] / one[1]), np.sort(other[0] / other[1]), rtol=1e-9)
    norms = np.sum(one[:, 4:9] ** 2, axis=1) / np.sum(points**2, axis=1) ** 2
    np.testing.assert_allclose(norms, 5 / (4 * np.pi), rtol=1e-12)
