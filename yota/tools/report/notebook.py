"""Short HTML forms of tapes and gradients for notebooks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from yota.emit.render import render
from yota.ir.inputs import spelled
from yota.ir.op_counts import total
from yota.ir.printing import show_constant, show_op
from yota.ir.tape import Tape
from yota.ir.types import type_of
from yota.tracing.source_lines import source_line

if TYPE_CHECKING:
    from yota.run.result import GradResult

_MOST = 200
"""Largest number of ops of a tape in a notebook."""
_MOST_OPS = 60
"""Largest number of ops of a tape that is also shown as formulas."""


@dataclass(frozen=True, slots=True)
class _Line:
    """An op and its source line."""

    kind: str
    text: str
    note: str


@dataclass(frozen=True, slots=True)
class _Tape:
    """A tape as input of the template."""

    title: str
    lines: tuple[_Line, ...]
    left_out: int
    formulas: Sequence[str]


@dataclass(frozen=True, slots=True)
class _Gradient:
    """The gradient by one argument or field."""

    name: str
    type: str
    value: str


def tape_html(tape: Tape) -> str:
    """A tape as HTML."""
    return render("report/tape.html.jinja", tape=_tape(tape), shut=False)


def result_html(result: GradResult) -> str:
    """Gradients as HTML: types and values, the code, and the tape."""
    known = {entry.argument: entry.name for entry in result.tape.inputs}
    gradients = [
        row for place, value in enumerate(result) for row in _gradients(known.get(place, f"argument {place}"), value)
    ]
    tape = _tape(result.tape)
    return render("report/result.html.jinja", gradients=gradients, source=result.source, tape=tape, shut=True)


def _gradients(name: str, value: Any) -> Iterator[_Gradient]:
    if value is None:
        yield _Gradient(name, "no derivative", "")
    elif isinstance(value, Mapping):
        for path, part in value.items():
            yield from _gradients(spelled(name, path), part)
    else:
        with np.printoptions(threshold=6, edgeitems=3, precision=6):
            yield _Gradient(name, str(type_of(value)), str(value))


def _tape(tape: Tape) -> _Tape:
    types = tape.types
    found = [_Line("quiet", f"inp %{entry.variable}::{types[entry.variable]}", entry.name) for entry in tape.inputs]
    shown = tape.ops[:_MOST]
    used = {operand for op in shown for operand in op.operands} | set(tape.outputs)
    for variable, value in tape.constants.items():
        if variable in used:
            found.append(_Line("quiet", f"const %{variable} = {show_constant(value)}::{types[variable]}", ""))
    found += [_Line("op", show_op(tape, op), source_line(op.location)) for op in shown]
    count = total(tape)
    title = f"Tape of {tape.name}: {count} operation{'' if count == 1 else 's'}"
    results = ", ".join(f"%{variable}" for variable in tape.outputs)
    lines = (*found, _Line("quiet", f"return {results}", ""))
    return _Tape(title, lines, max(0, len(tape.ops) - _MOST), formulas(tape))


def formulas(tape: Tape) -> list[str]:
    """The formulas of a short tape in MathML; empty for other tapes."""
    if len(tape.ops) > _MOST_OPS:
        return []
    # Sympy is imported only when a tape is displayed.
    from yota.interop.sympy_export import math_markup

    return math_markup(tape)
