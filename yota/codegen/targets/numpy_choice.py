"""`where` on long arrays without a branch for each element, by the functions of `yota.ir.choices`."""

from __future__ import annotations

from collections.abc import Mapping

from yota.codegen.literals import shape_text
from yota.codegen.targets.call import Call, dtype_argument
from yota.ir import choices
from yota.ir.extents import Extent
from yota.ir.tape import Op
from yota.ir.types import TensorType

__all__ = ["cuts_bits", "cutting", "overwritten", "room"]

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
    return f"np.empty({shape_text(call.shape)}{dtype_argument(call.type)})"


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
