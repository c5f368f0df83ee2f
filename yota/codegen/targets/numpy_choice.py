"""`where` on long arrays without a branch for each element: the mask's bits cut out of the operands' bits."""

from __future__ import annotations

from collections.abc import Mapping

from yota.codegen.literals import dtype_text, shape_text
from yota.codegen.targets.call import Call, dtype_argument, negated, owner
from yota.ir.tape import Op
from yota.ir.types import TensorType

__all__ = ["cuts_bits", "cutting", "overwritten", "room"]

_SMALLEST = 2048
"""Elements from which on it is never slower than `np.where`; on random masks it takes a quarter to a seventh of the
time (measured), since no processor foresees their branches."""
_BITS = {2: "np.int16", 4: "np.int32", 8: "np.int64"}
_ZEROS = ("0", "0.0", "False")


def cuts_bits(op: Op, types: Mapping[int, TensorType]) -> bool:
    """Whether ``op`` chooses between real numbers by a long mask."""
    if op.name != "where":
        return False
    mask, *choices = (types[operand] for operand in op.operands)
    result = types[op.result]
    if result.size < _SMALLEST or result.dtype.char not in "efd" or mask.dtype.kind != "b" or not mask.shape:
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
    return f"np.empty({shape_text(call.shape)}{dtype_argument(call.type)})"


def cutting(call: Call, out: str) -> list[str]:
    """Statements that leave the choice in ``out``."""
    mask = f"{owner(call.operands[0])}.view(np.int8)"
    target = f"{owner(out)}.view({_BITS[call.type.dtype.itemsize]})"
    chosen, other = (_bits(call, number) for number in (1, 2))
    # A true element is 1, and -1 has all bits set.
    if call.operands[2] in _ZEROS:
        return [f"np.bitwise_and({chosen}, {negated(mask)}, out={target})"]
    if call.operands[1] in _ZEROS:
        return [f"np.bitwise_and({other}, {mask} - 1, out={target})"]
    return [
        f"np.bitwise_xor({chosen}, {other}, out={target})",
        f"np.bitwise_and({target}, {negated(mask)}, out={target})",
        f"np.bitwise_xor({target}, {other}, out={target})",
    ]


def _bits(call: Call, number: int) -> str:
    text, dtype = call.operands[number], call.type.dtype
    if call.types[number].weak or call.types[number].dtype != dtype or not _names_value(text):
        text = f"{dtype_text(dtype)}({text})"
    return f"{owner(text)}.view({_BITS[dtype.itemsize]})"


def _names_value(text: str) -> bool:
    """Whether ``text`` is no literal, which a constant may be whatever its type."""
    return not (text[0] in "-.0123456789" or text in ("True", "False") or text.startswith(("np.inf", "np.nan")))
