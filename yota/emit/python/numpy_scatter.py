"""How values are written, and pieces added, at indices of an array."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from yota.emit.numpy_literals import brackets, tuple_text
from yota.emit.python.op_call import Call, owner
from yota.ir.access_maps import pieces
from yota.ir.indexing import GATHER, NEWAXIS, Index, pattern_shape, takes_all
from yota.ir.types import TensorType
from yota.optimize.array_writes import meet

_SHORT_ROW = 4


def assignment(call: Call, out: str) -> str:
    """The statement of a ``setitem`` on ``out``."""
    index = call.op.keyword("index")
    place = brackets(index, call.type.shape, call.operands[2:])
    return f"{out}{place} = {call.operands[1]}"


def deposits(call: Call, out: str) -> list[str]:
    """Statements that add the pieces of a ``deposit`` to what ``out`` holds."""
    return additions(call, out, empty=False)[0]


def additions(call: Call, out: str, *, empty: bool = True) -> tuple[list[str], bool]:
    """Statements that put the pieces in place, and whether they write every element.

    A piece that meets no earlier one is written, not added, if ``out`` is ``empty`` of anything else.
    """
    lines: list[str] = []
    boxes: list[Index] = []
    written, plain = 0, empty
    operands = list(zip(call.operands, call.types, strict=True))
    for number, numbers, index in pieces(call.op):
        (text, piece), arrays = operands[number], [operands[each] for each in numbers]
        place = brackets(index, call.type.shape, [each for each, _ in arrays])
        if arrays:
            if _meets_none(call, numbers):
                lines.append(f"{out}{place} {'=' if empty and not lines else '+='} {text}")
            else:
                plus = call.unsigned.issuperset(numbers)
                lines += _gathered_addition(call, out, index, place, arrays, operands[number], plus=plus)
            plain = False
            continue
        box = tuple(entry for entry in index if entry is not NEWAXIS)
        apart = plain and not any(meet(box, other, call.type.shape) for other in boxes)
        boxes.append(box)
        written += piece.size if apart else 0
        lines.append(f"{out}{place} {'=' if apart else '+='} {text}")
    return lines, written == call.type.size


def _meets_none(call: Call, arrays: Sequence[int]) -> bool:
    """Whether index arrays lead to no place twice: one of them, as large as all together, holds no index twice."""
    if not any(call.types[number].shape for number in arrays):
        return True  # single numbers
    shapes = {call.types[number].shape for number in arrays}
    spread = math.prod(shapes.pop() if len(shapes) == 1 else np.broadcast_shapes(*shapes))
    return any(number in call.distinct and call.types[number].size == spread for number in arrays)


def _gathered_addition(
    call: Call,
    out: str,
    index: Index,
    place: str,
    arrays: Sequence[tuple[str, TensorType]],
    piece: tuple[str, TensorType],
    *,
    plus: bool,
) -> list[str]:
    """Adds at places where some are repeated.

    ``np.add.at`` is fast for flat arrays alone (4 to 12 times faster, measured), so rows are spread to elements, and
    short rows are taken column by column. Type checkers refuse slices among its indices.
    """
    shape, count = call.type.shape, len(arrays)
    (text, type), (first, found) = piece, arrays[0]
    shapes = {array.shape for _, array in arrays}
    spread = shapes.pop() if len(shapes) == 1 else np.broadcast_shapes(*shapes)
    leading = all(entry is GATHER for entry in index[:count])
    usual = leading and takes_all(index[count:], shape[count:]) and type.shape == spread + shape[count:]
    alike = type.shape == pattern_shape(index, [array.shape for _, array in arrays]) and call.rows is None
    if call.type.size and ":" in place and alike and not usual:
        places = f"np.arange({math.prod(shape)!s}).reshape({', '.join(map(str, shape))}){place}"
        return [f"np.add.at({out}.reshape(-1), {places}.reshape(-1), {text}.reshape(-1))"]
    if not usual or not call.type.size or (len(shape) == 1 and len(spread) == 1):
        return [f"np.add.at({out}, {_index_tuple(place)}, {text})"]
    if len(shape) == 2 and count == len(spread) == 1 and int(shape[1]) <= _SHORT_ROW and text.isidentifier():
        return [f"for column in range({shape[1]}):", f"    np.add.at({out}[:, column], {first}, {text}[:, column])"]
    row = math.prod(shape[count:])
    if count == 1:
        # Indices below 0 count from the end of elements too, but not of rows.
        flat = first if plus or row == 1 else f"({first} % {shape[0]})"
    else:
        texts = tuple_text(text for text, _ in arrays)
        flat = f'np.ravel_multi_index({texts}, {tuple_text(shape[:count])}, mode="wrap")'
    if row != 1 or count < len(shape):
        wide = ".astype(np.int64)" if found.dtype.itemsize < 8 and count == 1 else ""
        flat = f"({owner(flat)}{wide}[..., None] * {row} + np.arange({row}))"
    target = f"{out}.reshape(-1)" if len(shape) > 1 else out
    index_text = f"{owner(flat)}.reshape(-1)" if len(spread) != 1 or count < len(shape) else flat
    return [f"np.add.at({target}, {index_text}, {text}{'' if type.ndim == 1 else '.reshape(-1)'})"]


def _index_tuple(place: str) -> str:
    inner = place[1:-1]
    if ":" in inner or "None" in inner:
        return f"np.s_[{inner}]"
    return f"({inner})" if "," in inner else inner
