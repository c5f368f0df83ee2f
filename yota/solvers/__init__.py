"""SciPy's solvers inside of traced functions: each call is one op with the derivative of its solution."""

from yota.solvers import (  # noqa: F401  (they register what they record)
    boundary,
    differential,
    eigenvalues,
    elementwise_searches,
    integrals,
    linear_programs,
    minima,
    operators,
    other_spellings,
    roots,
)
