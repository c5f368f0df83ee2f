"""Solvers of SciPy's inside of traced functions: each call is one op, whose derivative is that of what it solves."""

from yota.solvers import boundary, differential, minima, roots  # noqa: F401  (they register what they record)
