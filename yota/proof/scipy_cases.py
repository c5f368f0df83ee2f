"""Operands at which the adjoints of SciPy's functions are proved."""

from __future__ import annotations

import numpy as np

from yota.proof.drawn import Case, compound, real, regular

__all__ = ["CASES", "UNSTEADY"]

UNSTEADY = ("linalg_eigh",)
"""What gives eigenvectors of one sign or the other for nearly the same matrix; tests look at what has no sign."""

TRIANGULAR = [{"lower": lower, "unit_diagonal": unit} for lower in (True, False) for unit in (True, False)]
FULL = {"mode": "full", "method": "auto"}
VALID = {"mode": "valid", "method": "direct"}
CASES: list[Case] = [
    *(("solve_triangular", (regular(3, 3), real(3)), keywords) for keywords in TRIANGULAR),
    *(("solve_triangular", (regular(3, 3), real(3, 2)), keywords) for keywords in TRIANGULAR),
    ("solve_triangular", (regular(3, 3) + 1j * real(3, 3), compound(3)), TRIANGULAR[1]),
    ("solve_triangular", (regular(3, 3) + 1j * real(3, 3), compound(3, 2)), TRIANGULAR[3]),
    ("solve_sylvester", (regular(3, 3), regular(2, 2), real(3, 2)), {}),
    ("solve_sylvester", (compound(3, 3) + 4 * np.eye(3), compound(2, 2), compound(3, 2)), {}),
    ("sqrtm", (regular(3, 3),), {}),
    ("expm", (real(3, 3),), {}),
    ("expm", (compound(3, 3),), {}),
    ("logm", (regular(3, 3),), {}),
    ("_expm_slope", (real(3, 3), real(3, 3, seed=4)), {}),
    ("_logm_slope", (regular(3, 3), real(3, 3, seed=4)), {}),
    *(("linalg_svd", (real(*shape),), {"full_matrices": False}) for shape in ((3, 3), (4, 3), (3, 4))),
    *(("linalg_qr", (each,), {"mode": "economic"}) for each in (real(4, 3), compound(4, 3), compound(3, 4))),
    ("signal_convolve", (real(7), real(3)), FULL),
    ("signal_convolve", (real(3), real(7)), FULL),
    ("signal_convolve", (compound(4, 3), compound(2, 2)), FULL),
    ("signal_correlate", (real(7), real(3)), VALID),
    ("signal_correlate", (compound(4, 3), compound(2, 2)), VALID),
    ("lfilter", (real(3), np.array([1.3, -0.4, 0.2, 0.1]), real(2, 9)), {"axis": 1}),
    ("lfilter", (real(3), np.array([1.3, -0.4]), real(9, 2)), {"axis": 0}),
    ("lfilter", (real(5), np.array([0.7]), real(3)), {"axis": 0}),
    ("lfilter", (compound(3), np.array([1.3, -0.4j]), compound(7)), {"axis": 0}),
]
