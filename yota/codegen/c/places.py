"""Index arrays that are known only at run time, in code that stands alone: they are looked at ahead of all loops."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

from yota.codegen.c.patterns import index_operands
from yota.codegen.c.types import is_known
from yota.ir.primitive import Primitive
from yota.ir.semantics import VIEWS, AccessMap, Positions
from yota.ir.tape import Op, Tape
from yota.ir.types import TensorType
from yota.passes.rewrite import Rewriting

__all__ = ["PLACES", "is_inside", "is_places", "with_places"]


def _counted(index: Any, *, extent: int) -> Any:
    return np.where(np.asarray(index) < 0, np.asarray(index) + extent, index).astype(np.int64)


PLACES = Primitive("places", None, False, _counted)
"""Places on an axis of ``extent`` elements, counted from its start; it fails if one is outside."""


def is_places(op: Op) -> bool:
    """Whether an op looks at an index array."""
    return op.primitive is PLACES


def with_places(
    tape: Tape, as_they_are: Collection[int] = (), counting: Collection[int] = (), *, checked: bool = True
) -> Tape:
    """``tape`` in which each index array of gathers, scatters and writes is in memory, and places on one axis only.

    Parameters
    ----------
    as_they_are
        Arguments that are so already; so are constants, and positions that are found on no longer an axis.
    counting
        Arguments that are all places of an axis in order.
    checked
        Whether they come from `PLACES`; if not, whoever reads looks at them, and what is not read is left alone.
    """
    arrays = {op.operands[at] for op in tape.ops for at in _looked_at(tape, op, checked)}
    if arrays <= set(tape.constants):
        return tape
    rewriting = Rewriting(tape)
    known: dict[tuple[int, int], int] = {}
    for op in tape.ops:
        extents = _looked_at(tape, op, checked)
        operands = [
            _placed(rewriting, operand, extents[at], known, checked)
            if at in extents and operand not in as_they_are
            else rewriting[operand]
            for at, operand in enumerate(op.operands)
        ]
        if checked and extents and _counts(tape, op, counting) and _is_inside(rewriting, operands[1], extents[1]):
            rewriting.bind(op.result, operands[1])
            continue
        rewriting.builder.location = op.location
        made = rewriting.builder.emit(op.primitive, operands, op.static, tape.types[op.result])
        rewriting.bind(op.result, made)
    return rewriting.finish()


def _looked_at(tape: Tape, op: Op, checked: bool) -> dict[int, int]:
    """Which operands of an op that reads, or writes if those are ``checked``, are index arrays, with extents."""
    return index_operands(tape, op) if checked or op.access == AccessMap.READ else {}


def _counts(tape: Tape, op: Op, counting: Collection[int]) -> bool:
    """Whether an op reads the array of all places of an axis."""
    if op.access != AccessMap.READ or len(op.operands) != 2:
        return False
    if op.operands[0] in counting:
        return True
    value = np.asarray(tape.constants.get(op.operands[0], 0))
    return value.ndim == 1 and np.array_equal(value, np.arange(value.size))


def is_inside(
    definition: Callable[[int], Op | None], types: Mapping[int, TensorType], variable: int, extent: int
) -> bool:
    """Whether an index array is sure to have places on an axis of ``extent`` only, counted from its start."""
    op = definition(variable)
    while op is not None and (op.access == AccessMap.READ or op.access in VIEWS):
        op = definition(op.operands[0])
    if op is None:
        return False
    if op.primitive is PLACES:
        return bool(op.keyword("extent") == extent)
    return op.semantics.positions == Positions.SORTED and types[op.result].shape[op.keyword("axis")] <= extent


def _is_inside(rewriting: Rewriting, variable: int, extent: int) -> bool:
    return is_inside(rewriting.builder.definition, rewriting.builder.types, variable, extent)


def _placed(rewriting: Rewriting, operand: int, extent: int, known: dict[tuple[int, int], int], checked: bool) -> int:
    type = rewriting.tape.types[operand]
    if operand in rewriting.tape.constants or not type.shape or type.dtype.kind not in "iu" or not is_known(type.dtype):
        return rewriting[operand]
    if checked and _is_inside(rewriting, rewriting[operand], extent):
        return rewriting[operand]
    key = operand, extent
    if key not in known:
        own = TensorType(np.dtype(np.int64), type.shape)
        if checked:
            known[key] = rewriting.builder.emit(PLACES, (rewriting[operand],), {"extent": extent}, own)
        else:
            known[key] = rewriting.emit("astype", (rewriting[operand],), {"dtype": own.dtype}, own)
        rewriting.builder.names[known[key]] = f"{_name(rewriting.tape, operand)}_places"
    return known[key]


def _name(tape: Tape, variable: int) -> str:
    inputs = {entry.variable: "_".join((entry.name, *map(str, entry.path))) for entry in tape.inputs}
    return inputs.get(variable) or tape.names.get(variable) or "index"
