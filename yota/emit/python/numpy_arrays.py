"""How views, products, reductions and choices of arrays are spelled, by the quickest of NumPy's functions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from yota.emit.numpy_literals import brackets, dtype_argument, dtype_text, shape_text, tuple_text
from yota.emit.python.op_call import Call, owner
from yota.ir import choices
from yota.ir.catalog import primitive
from yota.ir.extents import Extent
from yota.ir.indexing import GATHER, takes_all
from yota.ir.semantics import AccessMap
from yota.ir.tape import Op
from yota.ir.types import TensorType

_MOST_PRODUCTS = 1_000_000
"""Multiplications up to which BLAS may have loops of its own for small matrices; they want no transposes."""
_FEWEST_ROWS = 64


def product(call: Call) -> Call:
    """``call``, if it is of a matrix product, as NumPy does it best.

    A column times a row is a product of elements, at two fifths of the time. A transposed factor on the right of a
    small product is copied in order: measured with OpenBLAS on AVX-512, a tenth to three fifths less time; elsewhere
    the copy costs next to nothing, for the product reads each of its elements many times.
    """
    if call.op.access != AccessMap.MATMUL or call.exact or call.type.dtype.char not in "fd":
        return call
    left, right = call.types
    if left.ndim != 2 or right.ndim != 2 or left.dtype != right.dtype:
        return call
    (rows, inner), columns = left.shape, right.shape[1]
    if inner == 1 and min(int(rows), int(columns)) > 1:
        return replace(call, op=replace(call.op, primitive=primitive("multiply")))
    count = rows * inner * columns
    small = not isinstance(count, Extent) and count <= _MOST_PRODUCTS and rows >= _FEWEST_ROWS and columns > 1
    if small and call.operands[1].endswith(".T"):
        return replace(call, operands=(call.operands[0], f"{call.operands[1]}.copy()"))
    return call


_FEWEST_SUMMED = 8
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
    if int(type.shape[-1]) < 2 or count < _FEWEST_SUMMED or call.type.dtype != type.dtype:
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
        assert call.ones is not None
        ones = call.ones(call.types[0].shape[-1], call.types[0].dtype)
        return f"np.matmul({call.operands[0]}, {ones}{'[:, None]' if call.op.keyword('keepdims') else ''})"
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
    return int(type.shape[-2]) >= _FEWEST_SUMMED * (1 if type.ndim == 2 else 8)


def is_count(call: Call) -> bool:
    """Whether the op counts the true elements of a mask, which takes a tenth of the time of their sum (measured)."""
    one = call.op.semantics.fold == "add" and not call.type.shape
    return one and call.types[0].dtype.kind == "b" and call.type.dtype.kind == "f"


def view(call: Call) -> str:
    """Another look at the first operand."""
    op, source, type = call.op, call.operands[0], call.types[0]
    if op.access == AccessMap.READ:
        if type.weak:
            source = f"np.asarray({source})"
        if _takes_rows(call):
            return f"np.take({source}, {call.operands[1]}, axis=0)"
        return owner(source) + brackets(op.keyword("index"), type.shape, call.operands[1:])
    if op.access == AccessMap.TRANSPOSE:
        axes = op.keyword("axes")
        if axes == (1, 0):
            return f"{owner(source)}.T"
        return f"{owner(source)}.transpose({', '.join(map(str, axes))})"
    if op.access == AccessMap.BROADCAST:
        return f"np.broadcast_to({source}, {shape_text(call.shape)})"
    if op.semantics.component:
        return f"{owner(source)}.{op.semantics.component}"
    source, old, shape = call.operands[0], call.types[0], call.type.shape
    if not old.shape:
        return f"np.reshape({source}, {shape_text(shape)})" if shape else source
    marks = _unit_axes(old.shape, shape)
    if marks is not None:
        while marks and marks[-1] == ":":
            marks.pop()
        return f"{owner(source)}[{', '.join(marks)}]" if marks else source
    return f"{owner(source)}.reshape({', '.join(map(str, call.shape))})"


def _takes_rows(call: Call) -> bool:
    """Whether whole rows are gathered, which ``np.take`` does several times faster than brackets (measured)."""
    index, shape = call.op.keyword("index"), call.types[0].shape
    return len(shape) > 1 and index[0] is GATHER and takes_all(index[1:], shape[1:]) and not call.exact


def _unit_axes(old: tuple[int, ...], shape: tuple[int, ...]) -> list[str] | None:
    """Index entries that only put in, or only take out, axes of extent 1."""
    longer, shorter, mark = (shape, old, "None") if len(shape) >= len(old) else (old, shape, "0")
    marks, position = [], 0
    for extent in longer:
        if position < len(shorter) and extent == shorter[position]:
            marks.append(":")
            position += 1
        elif extent == 1:
            marks.append(mark)
        else:
            return None
    return marks if position == len(shorter) else None


_SMALLEST = 2048
"""Elements from which on it is never slower than `np.where`; on random masks it takes a quarter to a seventh of the
time (measured), since no processor foresees their branches."""
_ZEROS = ("0", "0.0", "False")


def cuts_bits(op: Op, types: Mapping[int, TensorType]) -> bool:
    """Whether ``op`` chooses between real numbers by a long mask."""
    if not op.semantics.chooses:
        return False
    mask, *choices = (types[operand] for operand in op.operands)
    result = types[op.result]
    if (
        isinstance(result.size, Extent)
        or result.size < _SMALLEST
        or result.dtype.char not in "efd"
        or mask.dtype.kind != "b"
        or not mask.shape
    ):
        return False
    return all(
        each.dtype == result.dtype or (not each.shape and (each.weak or each.dtype.kind in "bi")) for each in choices
    )


def overwritten(op: Op, roots: Mapping[int, frozenset[int]]) -> tuple[int, ...]:
    """Operands over which the result may be written, though it takes several statements."""
    _, chosen, other = op.operands
    return () if chosen in roots.get(other, ()) else (chosen,)


def room(call: Call) -> str:
    """An expression that allocates the result, in the order in memory of an operand of its shape."""
    for number in (1, 2):
        if call.types[number] == call.type and call.operands[number].isidentifier():
            return f"np.empty_like({call.operands[number]})"
    return f"np.empty({shape_text(call.shape)}{dtype_argument(call.type.dtype)})"


def cutting(call: Call, out: str) -> str:
    """The statement that leaves the choice in ``out``."""
    mask, chosen, other = call.operands
    if other in _ZEROS:
        name, numbers = "keep", [chosen]
    elif chosen in _ZEROS:
        name, numbers = "drop", [other]
    else:
        name, numbers = "choose", [chosen, other]
    call.import_module(choices.__name__)
    return f"{choices.__name__}.{name}({', '.join([mask, *numbers])}, out={out})"
