"""The semantics table: one record for each primitive, which passes, batching, sparsity and schedules read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np


class AccessMap:
    """Access maps: from which operand elements each result element is computed."""

    OPAQUE: Final = "opaque"
    """From any operand elements."""
    ELEMENTWISE: Final = "elementwise"
    """From the element at the same position of each operand, after broadcasting."""
    RESHAPE: Final = "reshape"
    """From the element with the same flat index in C order."""
    TRANSPOSE: Final = "transpose"
    """From the element whose indices are permuted by ``axes``."""
    BROADCAST: Final = "broadcast"
    """From the element with the same indices, aligned at the last axis; index 0 along axes of extent 1."""
    READ: Final = "read"
    """From the element of the first operand that ``index`` and the index arrays select."""
    CONCATENATE: Final = "concatenate"
    """From an element of one operand, which the position along ``axis`` selects."""
    STACK: Final = "stack"
    """The same, along a new axis."""
    WRITE: Final = "write"
    """From the second operand at positions that ``index`` selects, else from the first operand."""
    SCATTER: Final = "scatter"
    """Sum of the elements of the pieces that ``indices`` map to the position."""
    DEPOSIT: Final = "deposit"
    """The same sum, plus the element of the first operand."""
    REDUCTION: Final = "reduction"
    """From all elements along the axes ``axis``, combined by `Semantics.fold`."""
    COUNT: Final = "count"
    """Boolean reduction along the axes ``axis``: the count of true elements, any, or all."""
    SCAN: Final = "scan"
    """From all elements up to the position along one axis, combined by `Semantics.fold`."""
    MATMUL: Final = "matmul"
    """Contraction of rows with columns."""
    EINSUM: Final = "einsum"
    """Contraction over the letters that are not in the result."""
    LINE: Final = "line"
    """From all elements along one axis."""
    MATRIX: Final = "matrix"
    """From all elements of a matrix in the last two axes."""
    ITEM: Final = "item"
    """From the element at the same position of one of several results."""
    POSITIONS: Final = "positions"
    """From no element: the result is an affine function of the indices."""
    LAYOUT: Final = "layout"
    """From no element: the result depends on the memory layout of the operand."""
    CALL: Final = "call"
    """The recorded call determines the dependence."""


class Positions:
    """Kinds of elements whose positions a result contains."""

    NONE: Final = ""
    """No positions."""
    SORTED: Final = "sorted"
    """Positions of all elements along an axis, in sorted order."""
    PARTED: Final = "parted"
    """Positions of all elements along an axis, partitioned."""
    TRUE: Final = "true"
    """Positions of the true elements in C order; their number depends on values."""
    EXTREME: Final = "extreme"
    """Positions of the largest or smallest elements."""
    BETWEEN: Final = "between"
    """Insertion positions, which include the end."""


VIEWS = frozenset((AccessMap.RESHAPE, AccessMap.TRANSPOSE, AccessMap.BROADCAST))
"""Maps whose results are views of the first operand, with positions that follow from the types."""
JOINS = frozenset((AccessMap.CONCATENATE, AccessMap.STACK))
"""Maps that join operands."""
MOVES = VIEWS | JOINS | {AccessMap.READ, AccessMap.WRITE}
"""Maps whose results contain unchanged elements of the operands."""
CONTRACTIONS = frozenset((AccessMap.MATMUL, AccessMap.EINSUM))
"""Sums of products; `access.letters` gives the letters of their axes."""
INDEXED = frozenset((AccessMap.READ, AccessMap.WRITE, AccessMap.SCATTER, AccessMap.DEPOSIT))
"""Indexing maps, with index arrays among the operands."""


@dataclass(frozen=True, slots=True)
class Semantics:
    """The record of one primitive.

    access: the access map, one of `AccessMap`.
    fold: the ufunc of two numbers that combines elements, e.g. ``"add"`` of a sum; empty if there is none.
    owns: whether the result is in memory of its own, and never shares that of an operand.
    ufunc: whether NumPy computes it by a ufunc: piece by piece, into memory that is given, an operand's too.
    rowwise: whether rows of the result are computed from rows of the operands, as a ufunc does it.
    chooses, casts: whether it is ``where``; whether it only changes the dtype.
    component: ``"real"`` or ``"imag"`` of what takes that part of numbers, a view of complex arrays; empty for all
        else.
    commutes: whether its operands can be exchanged.
    signs: for a sum the sign of each operand; for all else empty.
    powers: for a product the power, 1 or -1, of each operand; for all else empty.
    positions: of which elements of the operand the result holds the positions, one of `Positions`.
    batched: whether it maps over all axes before the last two by itself.
    free, cheap: whether nothing is computed; whether computing it again costs less than reading it from memory.
    exact: whether Python's operator, on numbers, gives the bits of NumPy's function.
    wraps: whether results that are too large for whole numbers of 64 bits wrap around.
    quiet: whether NumPy gives no floating-point warnings for it. SciPy's special functions clear the processor's flags.
    """

    access: str = AccessMap.OPAQUE
    fold: str = ""
    owns: bool = False
    ufunc: bool = False
    rowwise: bool = False
    chooses: bool = False
    casts: bool = False
    component: str = ""
    commutes: bool = False
    signs: tuple[int, ...] = ()
    powers: tuple[int, ...] = ()
    positions: str = Positions.NONE
    batched: bool = False
    free: bool = False
    cheap: bool = False
    exact: bool = False
    wraps: bool = False
    quiet: bool = False


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ACCESS = {
    "reshape": AccessMap.RESHAPE,
    "transpose": AccessMap.TRANSPOSE,
    "broadcast_to": AccessMap.BROADCAST,
    "getitem": AccessMap.READ,
    "setitem": AccessMap.WRITE,
    "scatter": AccessMap.SCATTER,
    "deposit": AccessMap.DEPOSIT,
    "concatenate": AccessMap.CONCATENATE,
    "stack": AccessMap.STACK,
    "item": AccessMap.ITEM,
    "call": AccessMap.CALL,
    "strides": AccessMap.LAYOUT,
    "positions": AccessMap.POSITIONS,
    **dict.fromkeys(_names("sum prod max min"), AccessMap.REDUCTION),
    **dict.fromkeys(_names("any all count_nonzero"), AccessMap.COUNT),
    **dict.fromkeys(_names("cumsum cumprod"), AccessMap.SCAN),
    "matmul": AccessMap.MATMUL,
    "einsum": AccessMap.EINSUM,
    **dict.fromkeys(_names("fft ifft rfft irfft"), AccessMap.LINE),
    **dict.fromkeys(_names("inv det cholesky solve pinv eigvalsh svdvals"), AccessMap.MATRIX),
}
_FOLDS = {
    "sum": "add",
    "prod": "multiply",
    "max": "maximum",
    "min": "minimum",
    "any": "logical_or",
    "all": "logical_and",
    "count_nonzero": "add",
    "cumsum": "add",
    "cumprod": "multiply",
}
_OWNS = _names(
    "inv solve cholesky pinv where astype setitem scatter deposit sum prod max min matmul concatenate stack cumsum"
    " cumprod sort"
)
_COMMUTES = _names("add multiply equal not_equal logical_and logical_or bitwise_and bitwise_or")
_SIGNS = {"add": (1, 1), "subtract": (1, -1), "negative": (-1,), "positive": (1,)}
_POWERS = {"multiply": (1, 1), "divide": (1, -1)}
_POSITIONS = {
    "argsort": Positions.SORTED,
    "argpartition": Positions.PARTED,
    "flatnonzero": Positions.TRUE,
    "nonzero": Positions.TRUE,
    "argmax": Positions.EXTREME,
    "argmin": Positions.EXTREME,
    "searchsorted": Positions.BETWEEN,
}
_BATCHED = _names("inv det cholesky pinv eigvalsh svdvals eig eigh qr slogdet svd")
_FREE = _names(
    "getitem setitem scatter reshape transpose broadcast_to concatenate stack item astype real imag copy positive"
)
_CHEAP = _names(
    "add subtract multiply negative square absolute less less_equal greater greater_equal equal not_equal maximum"
    " minimum where sign astype"
)
_EXACT = _names("add subtract multiply negative less less_equal greater greater_equal equal not_equal")
_WRAPS = _names("add subtract multiply negative absolute square power sum prod cumsum cumprod left_shift")
_QUIET = _names(
    "negative positive absolute fabs conjugate sign where real imag maximum minimum fmax fmin copysign less less_equal"
    " greater greater_equal equal not_equal isnan isinf isfinite logical_and logical_or logical_not signbit invert"
    " bitwise_and bitwise_or item getitem setitem reshape transpose broadcast_to concatenate stack lambertw zeta"
    " spherical_jn spherical_yn"
)


def semantics(name: str, target: str | None, elementwise: bool, function: Callable[..., Any]) -> Semantics:
    """The record of a primitive name; for names without a record, one derived from the arguments.

    >>> semantics("sum", "numpy.sum", False, np.sum).fold
    'add'
    """
    ufunc = isinstance(function, np.ufunc)
    rowwise = elementwise and (ufunc or name in ("where", "astype", "real", "imag"))
    return Semantics(
        _ACCESS.get(name, AccessMap.ELEMENTWISE if elementwise else AccessMap.OPAQUE),
        fold=_FOLDS.get(name, ""),
        owns=ufunc or name in _OWNS or (target or "").startswith("numpy.fft."),
        ufunc=ufunc,
        rowwise=rowwise,
        chooses=name == "where",
        casts=name == "astype",
        component=name if name in ("real", "imag") else "",
        commutes=name in _COMMUTES,
        signs=_SIGNS.get(name, ()),
        powers=_POWERS.get(name, ()),
        positions=_POSITIONS.get(name, Positions.NONE),
        batched=name in _BATCHED,
        free=name in _FREE,
        cheap=name in _CHEAP,
        exact=name in _EXACT,
        wraps=name in _WRAPS,
        quiet=name in _QUIET or (ufunc and (target or "").startswith("scipy.special.")),
    )
