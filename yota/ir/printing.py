"""Printing of tapes, one op per line, and counts of their operations."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from yota.ir.indexing import GATHER, NEWAXIS, Slice
from yota.ir.semantics import AccessMap

if TYPE_CHECKING:
    from yota.ir.tape import Op, Tape


def operations(tape: Tape) -> dict[str, int]:
    """Count of each primitive that computes, most frequent first.

    Reads, writes and rearrangements of elements do not count; ops in a loop count once.
    """
    counts = Counter(op.name for op in tape.ops if not op.semantics.free)
    for op in tape.ops:
        for inner in op.regions:
            counts.update(operations(inner))
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def listed(counts: dict[str, int]) -> str:
    """Counts as text, e.g. ``2 multiply, 1 sum``."""
    return ", ".join(f"{count} {name}" for name, count in counts.items()) or "none"


def total(tape: Tape) -> int:
    """Number of ops that compute something."""
    return sum(not op.semantics.free for op in tape.ops)


def elements(tape: Tape) -> int:
    """Number of element operations: each op weighs as much as the largest array it reads or makes.

    Named sizes count with their values at the first sample, for which of two sums is larger may depend on them.
    """
    types, total = tape.types, 0
    for op in tape.ops:
        primitive = op.primitive
        if not primitive.semantics.free:
            total += 1 if primitive.elementwise and not types[op.result].shape else _weight(tape, op)
    return total


def _weight(tape: Tape, op: Op) -> int:
    if op.access == AccessMap.MATMUL:
        return int(tape.types[op.result].size) * int((tape.types[op.operands[0]].shape or (1,))[-1])
    return max(int(tape.types[variable].size) for variable in (op.result, *op.operands))


_COLUMN = 64


def show(tape: Tape) -> str:
    """The tape as text: operation counts, inputs, constants, and each op with its type and its source line."""
    return "\n".join([f"Tape of {tape.name}: {listed(tape.operations)}", *_lines(tape)])


def _lines(tape: Tape) -> list[str]:
    """All lines but the title; the body of a loop is indented."""
    lines = [_noted(f"  inp %{each.variable}::{tape.types[each.variable]}", each.place) for each in tape.inputs]
    used = {operand for op in tape.ops for operand in op.operands} | set(tape.outputs)
    for variable, value in tape.constants.items():
        if variable in used:
            lines.append(f"  const %{variable} = {show_constant(value)}::{tape.types[variable]}")
    guards = {guard.after: guard for guard in tape.guards}
    for count, op in enumerate(tape.ops, start=1):
        lines.append(_noted(f"  {show_op(tape, op)}", _line(op)))
        for inner in op.regions:
            lines += [f"    {line}" for line in _lines(inner)]
        if count in guards:
            guard = guards[count]
            lines.append(f"  guard {guard.kind}(%{guard.variable}) == {guard.expected!r}")
    lines.append("  return " + ", ".join(f"%{variable}" for variable in tape.outputs))
    return lines


def _noted(text: str, note: str) -> str:
    return f"{text:<{_COLUMN}}  # {note}".rstrip() if note else text


def _line(op: Op) -> str:
    if op.location is None:
        return ""
    return op.location.text or str(op.location)


def show_op(tape: Tape, op: Op) -> str:
    """One op, e.g. ``%3 = matmul(%1, %2)::float64[3,5]``."""
    arguments = [f"%{operand}" for operand in op.operands]
    arguments += [f"{name}={_static(value)}" for name, value in op.static]
    return f"%{op.result} = {op.name}({', '.join(arguments)})::{tape.types[op.result]}"


def _static(value: Any) -> str:
    if isinstance(value, np.dtype):
        return value.name
    if isinstance(value, tuple):
        if any(isinstance(entry, Slice) or entry is GATHER or entry is NEWAXIS for entry in value):
            return "[" + ", ".join(map(str, value)) + "]"
        inner = ", ".join(map(_static, value))
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    return repr(value)


def show_constant(value: Any) -> str:
    """A scalar in full, an array by its first elements."""
    if not isinstance(value, np.ndarray):
        return repr(value.item() if isinstance(value, np.generic) else value)
    if value.size <= 6:
        return repr(value.tolist())
    return "[" + ", ".join(repr(item) for item in value.ravel()[:4].tolist()) + ", ...]"
