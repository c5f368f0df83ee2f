"""Equations of matrices of scipy.linalg: those of Lyapunov, Sylvester and Riccati."""

from __future__ import annotations

import sys
from typing import Any

from yota.tracing.implementations import records
from yota.tracing.trace import Trace
from yota.tracing.untyped import np


@records("scipy.linalg", "solve_continuous_lyapunov", "solve_lyapunov")
def _continuous_lyapunov(trace: Trace, a: Any, q: Any) -> Any:
    a = trace.traced(a)
    return trace.ruled("solve_sylvester", a, np.conjugate(a.T), q)


@records("scipy.linalg", "solve_sylvester")
def _solve_sylvester(trace: Trace, a: Any, b: Any, q: Any) -> Any:
    return trace.ruled("solve_sylvester", a, b, q)


def _riccati(name: str, trace: Trace, a: Any, b: Any, q: Any, r: Any) -> Any:
    """SciPy's solution, and two of Newton's steps from there, which have the first and second derivative of the root.

    D. L. Kleinman, On an iterative technique for Riccati equation computations, IEEE Transactions on Automatic Control
    13 (1968).
    """
    a, b, q, r = (np.atleast_2d(trace.traced(each)) for each in (a, b, q, r))
    # With an input for each state, there is a solution for any sizes of identity matrices.
    more = max(a.shape[0] - b.shape[1], 0)
    inputs = np.pad(b, ((0, 0), (0, more)))
    weights = np.pad(r, ((0, more), (0, more))) + np.diag([0.0] * b.shape[1] + [1.0] * more)
    found = trace.ruled(f"_{name}_riccati", a, inputs, q, weights)
    solve = getattr(sys.modules["scipy.linalg"], f"solve_{name}_lyapunov")
    back = np.conjugate(b.T)
    for _ in range(2):
        if name == "continuous":
            gain = np.linalg.solve(r, back @ found)
        else:
            gain = np.linalg.solve(r + back @ found @ b, back @ found @ a)
        cost = q + np.conjugate(gain.T) @ r @ gain
        found = solve(np.conjugate((a - b @ gain).T), -cost if name == "continuous" else cost)
    return found


@records("scipy.linalg", "solve_continuous_are")
def _continuous_riccati(trace: Trace, a: Any, b: Any, q: Any, r: Any) -> Any:
    return _riccati("continuous", trace, a, b, q, r)


@records("scipy.linalg", "solve_discrete_are")
def _discrete_riccati(trace: Trace, a: Any, b: Any, q: Any, r: Any) -> Any:
    return _riccati("discrete", trace, a, b, q, r)
