"""Printing of tapes, one op per line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from yota.ir.indexing import GATHER, NEWAXIS, Slice
from yota.ir.op_counts import listed

if TYPE_CHECKING:
    from yota.ir.tape import Op, Tape

_COLUMN = 64


def show(tape: Tape) -> str:
    """The tape as text.

    It starts with the operation counts, the inputs and the constants. Then each op follows with its type and its
    source line.
    """
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
            return show_index(value)
        inner = ", ".join(map(_static, value))
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    return repr(value)


def show_index(index: tuple[Any, ...]) -> str:
    """An index in brackets."""
    return "[" + ", ".join(map(str, index)) + "]"


def show_constant(value: Any) -> str:
    """A scalar in full, an array by its first elements."""
    if not isinstance(value, np.ndarray):
        return repr(value.item() if isinstance(value, np.generic) else value)
    if value.size <= 6:
        return repr(value.tolist())
    return "[" + ", ".join(repr(item) for item in value.ravel()[:4].tolist()) + ", ...]"
