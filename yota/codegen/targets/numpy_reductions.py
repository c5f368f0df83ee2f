"""Sums and other reductions spelled as NumPy code: by BLAS or by counting where that is quicker."""

from __future__ import annotations

import math

from yota.codegen.literals import dtype_text, tuple_text
from yota.codegen.targets.call import Call, owner
from yota.ir.extents import Extent

__all__ = ["column_sums", "is_count", "reduction"]

_FEWEST_ROWS = 8
_LONGEST_ROW = 64
"""NumPy's sums of longer rows are pairwise, and more accurate than those of any BLAS."""


def column_sums(call: Call, count: int, cut: str = "") -> str | None:
    """The sum over all axes but the last as a product by ones, which BLAS does 1.4 to 26 times faster (measured).

    ``count`` is the number of rows, and ``cut`` takes as many of the ones as there are in the last piece of a loop.
    None where that is not what the op does, or where rows do not lie side by side in memory.
    """
    op, type = call.op, call.types[0]
    whole = type.ndim > 1 and op.keyword("axis") == tuple(range(type.ndim - 1)) and not op.keyword("keepdims")
    if (
        call.ones is None
        or isinstance(count, Extent)
        or not call.dense
        or op.semantics.fold != "add"
        or not whole
        or type.dtype.char not in "fd"
    ):
        return None
    if type.shape[-1] < 2 or count < _FEWEST_ROWS or call.type.dtype != type.dtype:
        return None
    rows = call.operands[0] if type.ndim == 2 else f"{owner(call.operands[0])}.reshape(-1, {type.shape[-1]})"
    return f"np.matmul({call.ones(count, type.dtype)}{cut}, {rows})"


def reduction(call: Call) -> str:
    """The reduction as an expression."""
    if is_count(call):
        return f"{dtype_text(call.type.dtype)}(np.count_nonzero({call.operands[0]}))"
    product = column_sums(call, math.prod(call.types[0].shape[:-1])) if call.types[0].ndim else None
    if product is not None:
        return product
    if _sums_short_rows(call):
        return _row_sums(call)
    op, axis = call.op, call.op.keyword("axis")
    ndim = call.types[0].ndim
    parts = [call.operands[0]]
    if len(axis) == ndim and ndim != 1:
        parts.append("axis=None")
    elif axis != (0,):
        parts.append(f"axis={axis[0] if len(axis) == 1 else tuple_text(axis)}")
    if op.keyword("keepdims"):
        parts.append("keepdims=True")
    return f"np.{op.semantics.fold}.reduce({', '.join(parts)})"


def _sums_short_rows(call: Call) -> bool:
    """Whether the op sums short rows, which a product by ones does 2 to 15 times faster (measured)."""
    op, type = call.op, call.types[0]
    if call.ones is None or op.semantics.fold != "add" or type.ndim < 2 or op.keyword("axis") != (type.ndim - 1,):
        return False
    if type.dtype.char not in "fd" or call.type.dtype != type.dtype or isinstance(type.shape[-1], Extent):
        return False
    if not 2 <= type.shape[-1] <= _LONGEST_ROW:
        return False
    return type.shape[-2] >= _FEWEST_ROWS * (1 if type.ndim == 2 else 8)


def _row_sums(call: Call) -> str:
    assert call.ones is not None
    ones = call.ones(call.types[0].shape[-1], call.types[0].dtype)
    return f"np.matmul({call.operands[0]}, {ones}{'[:, None]' if call.op.keyword('keepdims') else ''})"


def is_count(call: Call) -> bool:
    """Whether the op counts the true elements of a mask, which takes a tenth of the time of their sum (measured)."""
    one = call.op.semantics.fold == "add" and not call.type.shape
    return one and call.types[0].dtype.kind == "b" and call.type.dtype.kind == "f"
