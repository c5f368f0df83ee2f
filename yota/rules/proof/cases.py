"""Operands at which adjoints are proved: keywords, shapes, ties, zeros, complex numbers; drawn, but always the same."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from yota.ir.indexing import GATHER, NEWAXIS, Slice
from yota.ir.linear_solvers import Direct, Factored

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
Case = tuple[str, tuple[Any, ...], dict[str, Any]]
"""Name of a primitive, operands and static keywords."""


def real(*shape: int, seed: int = 0, shift: float = 0.0) -> Any:
    """Normal numbers."""
    return np.random.default_rng(seed + sum(shape)).standard_normal(shape) + shift


def compound(*shape: int, seed: int = 0) -> Any:
    """Complex ones."""
    return real(*shape, seed=seed) + 1j * real(*shape, seed=seed + 1)


def regular(*shape: int) -> Any:
    """Matrices far from singular ones."""
    return real(*shape) + 4 * np.eye(shape[-1])


def symmetric(*shape: int) -> Any:
    """Symmetric matrices."""
    a = real(*shape)
    return a + np.swapaxes(a, -1, -2)


def hermitian(*shape: int) -> Any:
    """Hermitian matrices."""
    a = compound(*shape)
    return a + np.conjugate(np.swapaxes(a, -1, -2))


def spd(*shape: int) -> Any:
    """Symmetric positive matrices."""
    a = real(*shape)
    return a @ np.swapaxes(a, -1, -2) + 3 * np.eye(shape[-1])


REDUCED = [
    ((3, 4), (0,), False),
    ((3, 4), (1,), True),
    ((3, 4), (0, 1), False),
    ((2, 3, 4), (0, 2), True),
    ((2, 3, 4), (1,), False),
    ((), (), False),
    ((5,), (0,), False),
    ((1, 1), (0, 1), True),
    ((2, 7), (1,), False),
    ((2, 8), (), False),
]
EMPTY = ((0, 3), (3, 0), (0, 0))
TIED = np.array([[1.0, 1.0, 0.5], [0.25, 3.0, 3.0], [2.0, -1.0, -1.0]])
NOT_A_NUMBER = np.array([[1.0, np.nan, 1.0]])
ZERO = real(3, 5)
ZERO[0, 1] = ZERO[2, 0] = ZERO[2, 3] = 0

CONTRACTIONS: list[tuple[str, list[tuple[int, ...]]]] = [
    ("ij,jk->ik", [(2, 3), (3, 4)]),
    ("ij->ji", [(2, 3)]),
    ("ij->", [(2, 3)]),
    ("ij->i", [(2, 3)]),
    ("ii->i", [(3, 3)]),
    ("ii->", [(3, 3)]),
    ("iij->j", [(3, 3, 2)]),
    ("i,j->ij", [(2,), (3,)]),
    ("bij,bjk->bik", [(2, 3, 4), (2, 4, 2)]),
    ("ij,jk,kl->il", [(2, 3), (3, 2), (2, 4)]),
    ("ij,ij->", [(2, 3), (2, 3)]),
    ("i,j->i", [(2,), (3,)]),
    ("i,,j->ij", [(2,), (), (3,)]),
    ("iji,j->i", [(2, 3, 2), (3,)]),
    ("i->i", [(2,)]),
]

FACTORS: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    *(((3,), (3,)), ((2, 3), (3,)), ((5, 2, 3), (3,)), ((4, 5, 2, 3), (3,)), ((3,), (3, 4)), ((3,), (5, 3, 4))),
    *(((2, 3), (3, 4)), ((6, 5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4)), ((5, 2, 3), (5, 3, 4)), ((6, 1, 2, 3), (5, 3, 4))),
]

CASES: list[Case] = [
    *(("sum", (real(*shape),), {"axis": axis, "keepdims": kept}) for shape, axis, kept in REDUCED),
    *(("prod", (real(*shape, shift=1.5),), {"axis": axis, "keepdims": kept}) for shape, axis, kept in REDUCED),
    *(("max", (real(*shape),), {"axis": axis, "keepdims": kept}) for shape, axis, kept in REDUCED),
    *(("min", (real(*shape),), {"axis": axis, "keepdims": kept}) for shape, axis, kept in REDUCED),
    ("sum", (compound(3, 2),), {"axis": (0,), "keepdims": False}),
    ("prod", (compound(3, 5),), {"axis": (1,), "keepdims": False}),
    ("prod", (ZERO,), {"axis": (1,), "keepdims": False}),
    (
        "prod",
        (np.where(np.arange(15).reshape(3, 5) == 7, 0.0, real(3, 5, shift=2.0)),),
        {"axis": (0, 1), "keepdims": False},
    ),
    *((name, (real(4, 5),), {"axis": axis}) for name in ("cumsum", "cumprod") for axis in (0, 1)),
    ("cumprod", (ZERO,), {"axis": 1}),
    ("cumprod", (compound(6),), {"axis": 0}),
    ("cumsum", (compound(6),), {"axis": 0}),
    ("cumprod", (real(1),), {"axis": 0}),
    ("reshape", (real(3, 4),), {"shape": (2, 6)}),
    ("reshape", (real(1),), {"shape": ()}),
    ("transpose", (real(2, 3, 4),), {"axes": (2, 0, 1)}),
    ("broadcast_to", (real(3, 1),), {"shape": (2, 3, 4)}),
    ("broadcast_to", (real(),), {"shape": (2, 3)}),
    ("concatenate", (real(2, 3), real(4, 3), real(1, 3)), {"axis": 0}),
    ("concatenate", (real(2, 3), compound(2, 1)), {"axis": 1}),
    ("stack", (real(2, 3), real(2, 3, seed=5)), {"axis": 1}),
    ("stack", (real(), real(seed=5)), {"axis": 0}),
    ("getitem", (real(4, 5),), {"index": (2, Slice(1, 5, 2))}),
    ("getitem", (real(4, 5),), {"index": (Slice(3, None, -1), NEWAXIS, 1)}),
    ("getitem", (real(4, 5), np.array([1, 1, 3])), {"index": (GATHER, Slice(0, 5))}),
    ("getitem", (real(4, 5), np.array([[1], [2]]), np.array([0, 0, 4])), {"index": (GATHER, GATHER)}),
    ("getitem", (real(4),), {"index": (2,)}),
    ("setitem", (real(4, 5), real(5)), {"index": (Slice(0, 2), Slice(0, 5))}),
    ("setitem", (real(4, 5), real()), {"index": (1, Slice(0, 5))}),
    ("setitem", (compound(4), real(2), np.array([3, 0])), {"index": (GATHER,)}),
    ("scatter", (real(3), np.array([1, 1, 3])), {"shape": (5,), "indices": ((GATHER,),)}),
    (
        "scatter",
        (real(2, 2), real(3), np.array([0, 0, 2]), real()),
        {"shape": (4, 2), "indices": ((Slice(1, 3), Slice(0, 2)), (GATHER, 1), (3, 0))},
    ),
    ("scatter", (real(1), np.array([1, 1, 3])), {"shape": (5,), "indices": ((GATHER,),)}),
    ("where", (np.array([True, False, True]), real(2, 3), real()), {}),
    ("where", (np.array([[True], [False]]), compound(3), real(2, 1)), {}),
    *((name, (real(2, 3), real(3, seed=2)), {}) for name in ("maximum", "minimum", "fmax", "fmin")),
    ("maximum", (real(2, 1), real(3, seed=2)), {}),
    ("conjugate", (compound(3),), {}),
    ("astype", (real(3),), {"dtype": np.dtype("complex128")}),
    ("astype", (compound(3),), {"dtype": np.dtype("float64")}),
    *(("matmul", (make(*left), make(*right, seed=2)), {}) for left, right in FACTORS for make in (real, compound)),
    *(
        ("einsum", tuple(real(*shape, seed=i) for i, shape in enumerate(shapes)), {"subscripts": text})
        for text, shapes in CONTRACTIONS
    ),
    ("einsum", (compound(2, 3), compound(3, 2)), {"subscripts": "ij,jk->ik"}),
    ("inv", (spd(3, 3) + real(3, 3),), {}),
    ("inv", (compound(2, 3, 3) + 4 * np.eye(3),), {}),
    ("solve", (spd(3, 3), real(3)), {}),
    ("solve", (compound(2, 3, 3) + 4 * np.eye(3), compound(3)), {}),
    ("solve", (compound(3, 3) + 4 * np.eye(3), compound(3, 2)), {}),
    ("solve", (real(2, 3, 3) + 4 * np.eye(3), real(3, 2)), {}),
    ("solve", (real(3, 3) + 4 * np.eye(3), real(2, 3, 2)), {}),
    ("det", (real(3, 3),), {}),
    ("det", (compound(2, 3, 3),), {}),
    ("cofactors", (real(5, 5),), {}),
    ("cofactors", (compound(2, 4, 4),), {}),
    *(
        (name, (compound(2, 5),), {"n": n, "axis": 1, "norm": "backward"})
        for name in ("fft", "ifft")
        for n in (4, 5, 7)
    ),
    *(("rfft", (real(2, 5),), {"n": n, "axis": 1, "norm": "ortho"}) for n in (1, 4, 5, 7, 8)),
    *(("irfft", (compound(5, 2),), {"n": n, "axis": 0, "norm": "forward"}) for n in (1, 2, 5, 8, 9, 12)),
    ("convolve", (real(5), real(3)), {}),
    ("convolve", (compound(3), compound(5)), {}),
    ("correlate", (real(5), real(3)), {}),
    ("correlate", (compound(5), compound(5, seed=2)), {}),
    ("pinv", (real(5, 3),), {"rcond": 1e-15, "hermitian": False}),
    ("pinv", (compound(2, 3, 5),), {"rcond": 1e-15, "hermitian": False}),
    ("pinv", (real(5, 3),), {"rcond": 0.6, "hermitian": False}),
    ("pinv", (compound(2, 3, 5),), {"rcond": 0.6, "hermitian": False}),
    ("lstsq_solution", (real(5, 3), real(5)), {"rcond": 1e-12}),
    ("lstsq_solution", (compound(3, 5), compound(3, 2)), {"rcond": 1e-12}),
    ("svdvals", (real(2, 3, 4),), {}),
    ("svdvals", (compound(4, 3),), {}),
    *(("svd", (real(*shape),), {"full_matrices": False}) for shape in [(3, 3), (4, 3), (3, 4), (2, 3, 3)]),
    *(("qr", (each,), {}) for each in (real(3, 3), real(4, 3), real(2, 3, 4), compound(4, 3), compound(3, 4))),
    ("slogdet", (real(3, 3),), {}),
    ("slogdet", (compound(2, 3, 3),), {}),
    ("eig", (np.diag(np.arange(3.0)) + 0.1 * real(3, 3),), {}),
    *((name, (TIED,), {"axis": (1,), "keepdims": kept}) for name in ("max", "min") for kept in (True, False)),
    *((name, (real(2, 3), real(2, 3)), {}) for name in ("maximum", "minimum", "fmax", "fmin")),
    *((name, (real(4, 5), real(4, 5, seed=9)), {}) for name in ("maximum", "minimum", "fmax", "fmin")),
    *((name, (real(2, 3), real(2, 3) * NOT_A_NUMBER), {}) for name in ("fmax", "fmin")),
    *((name, (np.zeros(shape),), {"axis": (0,), "keepdims": False}) for name in ("sum", "prod") for shape in EMPTY),
    *((name, (np.zeros(shape),), {"axis": 0}) for name in ("cumsum", "cumprod") for shape in EMPTY),
    ("reshape", (np.zeros((0, 3)),), {"shape": (3, 0)}),
    ("matmul", (np.zeros((0, 3)), np.zeros((3, 2))), {}),
    ("concatenate", (np.zeros((0, 3)), real(1, 3)), {"axis": 0}),
    ("stack", (real(2, 3), real(2, 3, seed=5)), {"axis": 2}),
]

SYMMETRIC: list[Case] = [
    ("cholesky", (spd(4, 4),), {}),
    ("cholesky", (spd(2, 3, 3),), {}),
    ("cholesky", (hermitian(3, 3) + 6 * np.eye(3),), {}),
    *(("eigvalsh", (hermitian(2, 4, 4),), {"UPLO": half}) for half in "LU"),
    *(("eigvalsh", (symmetric(2, 4, 4),), {"UPLO": half}) for half in "LU"),
    *(("eigh", (symmetric(2, 4, 4),), {"UPLO": half}) for half in "LU"),
]

UNSTEADY = ("linalg_eigh",)
"""What gives eigenvectors of one sign or the other for nearly the same matrix; tests look at what has no sign."""


class _Factors:
    """SuperLU's object of a matrix."""

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix

    def solve(self, x: Any, trans: str) -> Any:
        forms = {"N": self.matrix, "T": self.matrix.T, "H": np.conjugate(self.matrix.T)}
        return np.linalg.solve(forms[trans], x)


PLACES = np.repeat(np.arange(3), 3), np.tile(np.arange(3), 3)
SOLVER = {"solver": Direct(), "transposed": False}
TRIANGULAR = [{"lower": lower, "unit_diagonal": unit} for lower in (True, False) for unit in (True, False)]
FULL = {"mode": "full", "method": "auto"}
VALID = {"mode": "valid", "method": "direct"}
SCIPY: list[Case] = [
    *(("solve_triangular", (regular(3, 3), real(3)), keywords) for keywords in TRIANGULAR),
    *(("solve_triangular", (regular(3, 3), real(3, 2)), keywords) for keywords in TRIANGULAR),
    ("solve_triangular", (regular(3, 3) + 1j * real(3, 3), compound(3)), TRIANGULAR[1]),
    ("solve_triangular", (regular(3, 3) + 1j * real(3, 3), compound(3, 2)), TRIANGULAR[3]),
    ("sparse_solve", (regular(3, 3).ravel(), real(3), *PLACES[::-1]), SOLVER),
    ("sparse_solve", (regular(3, 3).ravel(), real(3, 2), *PLACES), SOLVER | {"transposed": True}),
    ("sparse_solve", ((regular(3, 3) + 1j * real(3, 3)).ravel(), compound(3), *PLACES), SOLVER | {"transposed": True}),
    ("sparse_solve", ((regular(3, 3) + 1j * real(3, 3)).ravel(), compound(3, 2), *PLACES[::-1]), SOLVER),
    *(("linear_map", (compound(3),), {"map": Factored(_Factors(compound(3, 3)), trans)}) for trans in "NTH"),
    ("linear_map", (real(3, 2),), {"map": Factored(_Factors(regular(3, 3)), "T")}),
    ("solve_sylvester", (regular(3, 3), regular(2, 2), real(3, 2)), {}),
    ("solve_sylvester", (compound(3, 3) + 4 * np.eye(3), compound(2, 2), compound(3, 2)), {}),
    ("solve_continuous_lyapunov", (compound(3, 3) + 4 * np.eye(3), compound(3, 3)), {}),
    ("solve_continuous_lyapunov", (regular(3, 3), real(3, 3)), {}),
    ("_sylvester", (regular(3, 3), regular(2, 2), real(3, 2)), {}),
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
