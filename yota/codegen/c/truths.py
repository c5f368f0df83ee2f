"""Rewrites `any`, `all` and `count_nonzero` as sums of ones, for code that has no reductions of truths."""

from __future__ import annotations

import numpy as np

from yota.ir.catalog import primitive
from yota.ir.semantics import AccessMap
from yota.ir.tape import Op, Tape
from yota.passes.rewrite import Rewriting, rewritten

__all__ = ["as_counts"]


def as_counts(tape: Tape) -> Tape:
    """``tape`` in which what asks how many elements are true counts them in double precision."""
    if not any(_is_asked(op) for op in tape.ops):
        return tape
    return rewritten(tape, lambda rewriting, op: _answer(rewriting, op) if _is_asked(op) else None)


def _is_asked(op: Op) -> bool:
    return op.access == AccessMap.COUNT and isinstance(op.keyword("axis"), tuple)


def _answer(rewriting: Rewriting, op: Op) -> int:
    (found,) = rewriting.operands(op)
    type = rewriting.type(found)
    if type.dtype.kind != "b":
        zero = rewriting.builder.constant(np.zeros((), type.dtype)[()])
        found = rewriting.emit("not_equal", (found, zero))
    if op.semantics.fold == "logical_and":
        found = rewriting.emit("logical_not", (found,))
    ones = rewriting.emit("astype", (found,), {"dtype": np.dtype(np.float64)})
    static = {"axis": op.keyword("axis"), "keepdims": op.keyword("keepdims")}
    count = rewriting.emit(primitive("sum"), (ones,), static) if op.keyword("axis") else ones
    if op.semantics.fold == "add":
        return rewriting.emit("astype", (count,), {"dtype": rewriting.tape.types[op.result].dtype})
    zero = rewriting.builder.constant(np.float64(0))
    return rewriting.emit("not_equal" if op.semantics.fold == "logical_or" else "equal", (count, zero))
