"""Index arrays that are known only at run time, in code that stands alone: they are looked at ahead of all loops."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from yota.codegen.c.patterns import index_arrays
from yota.codegen.c.types import is_known
from yota.ir.primitive import Primitive
from yota.ir.tape import Op, Tape
from yota.ir.types import TensorType
from yota.passes.rewrite import Rewriting

__all__ = ["PLACES", "is_places", "with_places"]


def _counted(index: Any, *, extent: int) -> Any:
    return np.where(np.asarray(index) < 0, np.asarray(index) + extent, index).astype(np.int64)


PLACES = Primitive("places", None, False, _counted)
"""Places on an axis of ``extent`` elements, counted from its start; it fails if one is outside."""


def is_places(op: Op) -> bool:
    """Whether an op looks at an index array."""
    return op.primitive is PLACES


def with_places(tape: Tape, as_they_are: Collection[int] = (), *, checked: bool = True) -> Tape:
    """``tape`` in which each index array of gathers and scatters is in memory, and places on one axis only.

    Parameters
    ----------
    as_they_are
        Arguments that are so already; so are constants.
    checked
        Whether they come from `PLACES`; if not, whoever reads looks at them, and scatters are left alone.
    """
    if not any(variable not in tape.constants for op in tape.ops for variable, _ in _looked_at(tape, op, checked)):
        return tape
    rewriting = Rewriting(tape)
    known: dict[tuple[int, int], int] = {}
    for op in tape.ops:
        extents = iter(_looked_at(tape, op, checked))
        awaited = next(extents, None)
        operands = []
        for operand in op.operands:
            if awaited is None or operand != awaited[0]:
                operands.append(rewriting[operand])
                continue
            if operand in as_they_are:
                operands.append(rewriting[operand])
            else:
                operands.append(_placed(rewriting, operand, awaited[1], known, checked))
            awaited = next(extents, None)
        rewriting.builder.location = op.location
        made = rewriting.builder.emit(op.primitive, operands, op.static, tape.types[op.result])
        rewriting.bind(op.result, made)
    return rewriting.finish()


def _looked_at(tape: Tape, op: Op, adds: bool) -> list[tuple[int, int]]:
    """Index arrays of an op that reads, or ``adds``, with extents."""
    return index_arrays(tape, op) if op.name == "getitem" or (adds and op.name == "scatter") else []


def _placed(rewriting: Rewriting, operand: int, extent: int, known: dict[tuple[int, int], int], checked: bool) -> int:
    type = rewriting.tape.types[operand]
    if operand in rewriting.tape.constants or not type.shape or type.dtype.kind not in "iu" or not is_known(type.dtype):
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
