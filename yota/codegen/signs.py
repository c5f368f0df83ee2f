"""Indices that count from the end: NumPy, CuPy and kernels take them, so that nothing need be decided about signs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from yota.codegen.c.patterns import index_arrays
from yota.ir.tape import Op, Tape
from yota.passes.dce import run as without_dead
from yota.passes.rewrite import with_ops

__all__ = ["unsigned"]


def unsigned(tape: Tape) -> Tape:
    """``tape`` without what makes indices positive: those that count from the end are taken where they are used."""
    definitions = tape.definitions()
    uses: dict[int, list[tuple[Op, int | None]]] = {}
    for op in tape.ops:
        extents = dict(index_arrays(tape, op))
        for operand in set(op.operands):
            whole = op.operands.count(operand) == sum(v == operand for v, _ in index_arrays(tape, op))
            uses.setdefault(operand, []).append((op, extents.get(operand) if whole else None))
    kept = set(tape.outputs) | {guard.variable for guard in tape.guards}
    renamed: dict[int, int] = {}
    for op in tape.ops:
        found = _before_wrapping(tape, definitions, op)
        if found is not None and op.result not in kept:
            array, extent = found
            if all(each == extent for _, each in uses.get(op.result, ())):
                renamed[op.result] = array
    ops = [replace(op, operands=tuple(renamed.get(v, v) for v in op.operands)) for op in tape.ops]
    return without_dead(with_ops(tape, ops, guards=[guard for guard in tape.guards if not guard.signs]))


def _before_wrapping(tape: Tape, definitions: Mapping[int, Op], op: Op) -> tuple[int, int] | None:
    """The array and extent of ``where((array < 0) & (array >= -extent), array + extent, array)``; None if it is not."""
    if not op.semantics.chooses:
        return None
    both, sum_ = definitions.get(op.operands[0]), definitions.get(op.operands[1])
    array = op.operands[2]
    if both is None or sum_ is None or both.name != "bitwise_and" or sum_.name != "add":
        return None
    below, above = (definitions.get(each) for each in both.operands)
    if below is None or above is None or below.name != "less" or above.name != "greater_equal":
        return None
    if {below.operands[0], above.operands[0], sum_.operands[0]} != {array}:
        return None
    zero, first, extent = (tape.constants.get(each.operands[1]) for each in (below, above, sum_))
    if type(zero) is not int or type(first) is not int or type(extent) is not int or (zero, first) != (0, -extent):
        return None
    return (array, extent) if tape.types[op.result] == tape.types[array] else None
