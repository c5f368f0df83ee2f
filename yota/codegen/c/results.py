"""Results of several axes that are put together from scalars, written at their places at once: no view is taken."""

from __future__ import annotations

import numpy as np

from yota.ir.semantics import AccessMap
from yota.ir.tape import Op, Tape
from yota.passes import dce
from yota.passes.rewrite import Rewriting, rewritten, use_counts

__all__ = ["in_place"]


def in_place(tape: Tape) -> Tape:
    """``tape`` with each output ``reshape(stack(...))`` of scalars as one ``scatter`` to all places."""
    uses, definitions = use_counts(tape), tape.definitions()
    chosen = {}
    for variable in tape.outputs:
        op = definitions.get(variable)
        inner = definitions.get(op.operands[0]) if op is not None and op.access == AccessMap.RESHAPE else None
        if (
            inner is not None
            and inner.access == AccessMap.STACK
            and uses[variable] == uses[inner.result] == 1
            and not any(tape.types[operand].shape for operand in inner.operands)
        ):
            chosen[variable] = inner
    if not chosen:
        return tape

    def placed(rewriting: Rewriting, op: Op) -> int | None:
        if op.result not in chosen:
            return None
        type = tape.types[op.result]
        indices = tuple(tuple(int(each) for each in index) for index in np.ndindex(type.shape))
        operands = rewriting.operands(chosen[op.result])
        return rewriting.emit("scatter", operands, {"shape": type.shape, "indices": indices}, type)

    return dce.run(rewritten(tape, placed))
