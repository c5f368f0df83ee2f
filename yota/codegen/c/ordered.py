"""What standalone C does one element after another, in an order that decides: sorting, and writing at places."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from yota.codegen.c.lines import Needs, filled
from yota.codegen.c.patterns import is_uniform
from yota.codegen.c.sizes import bytes_of
from yota.codegen.c.types import c_type, is_known, literal
from yota.ir.indexing import GATHER
from yota.ir.semantics import AccessMap, Positions
from yota.ir.tape import Op, Tape

__all__ = ["is_ordered", "is_sort", "sorting", "writing"]


def is_sort(tape: Tape, op: Op) -> bool:
    """Whether an op finds the places of real numbers along an axis from the smallest on."""
    type = tape.types[op.operands[0]] if op.semantics.positions == Positions.SORTED else None
    return type is not None and bool(type.shape) and is_known(type.dtype) and type.dtype.kind != "c"


def is_ordered(tape: Tape, op: Op) -> bool:
    """Whether an op is done here."""
    if op.access == AccessMap.WRITE and op.keyword("index") == (GATHER,):
        return all(is_known(tape.types[each].dtype) for each in (*op.operands, op.result))
    return is_sort(tape, op)


def sorting(tape: Tape, op: Op, source: str, target: str, spare: str, needs: Needs) -> list[str]:
    """The call that puts the places of ``source`` in order; ``spare`` is memory for twice as many as an axis has."""
    type, axis = tape.types[op.operands[0]], op.keyword("axis")
    name = "sorted_places" if type.dtype.kind == "f" else "whole_sorted_places"
    needs.parts.add((name, type.dtype.name))
    axis %= type.ndim
    rows, step = math.prod(type.shape[:axis]), math.prod(type.shape[axis + 1 :])
    given = ", ".join((target, source, str(rows), str(type.shape[axis]), str(step), spare))
    return filled(f"{name}_{c_type(type.dtype)}({given});")


def writing(tape: Tape, op: Op, texts: Sequence[str], target: str) -> list[str]:
    """Statements that write values at places, of which the last one stays; ``texts`` are those of the operands."""
    source, value, places = texts
    type, constant = tape.types[op.result], tape.constants.get(op.operands[0])
    if constant is not None and is_uniform(constant):
        number = literal(np.asarray(constant).reshape(-1)[0], type.dtype)
        start = [f"for (ptrdiff_t at = 0; at < {type.size!s}; at++)", f"    {target}[at] = {number};"]
    else:
        start = [f"memcpy({target}, {source}, {bytes_of(type.size, target)});"]
    shape = tape.types[op.operands[1]].shape
    element = value if not shape else f"{value}[0]" if shape == (1,) else f"{value}[at]"
    count = tape.types[op.operands[2]].size
    return [*start, f"for (ptrdiff_t at = 0; at < {count!s}; at++)", f"    {target}[{places}[at]] = {element};"]
