"""Short HTML forms of tapes and gradients for notebooks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from yota.emit.render import render
from yota.ir.inputs import spelled
from yota.ir.printing import show_constant, show_op, total
from yota.ir.tape import Tape
from yota.ir.types import type_of
from yota.tracing.source_lines import source_line

if TYPE_CHECKING:
    from yota.run.result import GradResult

_MOST = 200
"""Largest number of ops of a tape in a notebook."""
_MOST_OPS = 60
"""Largest number of ops of a tape that is also shown as formulas."""


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


def _gradients(name: str, value: Any) -> Iterator[dict[str, str]]:
    if value is None:
        yield {"name": name, "type": "no derivative", "value": ""}
    elif isinstance(value, Mapping):
        for path, part in value.items():
            yield from _gradients(spelled(name, path), part)
    else:
        with np.printoptions(threshold=6, edgeitems=3, precision=6):
            yield {"name": name, "type": str(type_of(value)), "value": str(value)}


def _tape(tape: Tape) -> dict[str, Any]:
    types = tape.types
    found = [_quiet(f"inp %{entry.variable}::{types[entry.variable]}", entry.name) for entry in tape.inputs]
    shown = tape.ops[:_MOST]
    used = {operand for op in shown for operand in op.operands} | set(tape.outputs)
    for variable, value in tape.constants.items():
        if variable in used:
            found.append(_quiet(f"const %{variable} = {show_constant(value)}::{types[variable]}"))
    found += [{"kind": "op", "text": show_op(tape, op), "note": source_line(op.location)} for op in shown]
    found.append(_quiet(f"return {', '.join(f'%{variable}' for variable in tape.outputs)}"))
    count = total(tape)
    title = f"Tape of {tape.name}: {count} operation{'' if count == 1 else 's'}"
    return {"title": title, "lines": found, "left_out": max(0, len(tape.ops) - _MOST), "formulas": formulas(tape)}


def _quiet(text: str, note: str = "") -> dict[str, str]:
    return {"kind": "quiet", "text": text, "note": note}


def formulas(tape: Tape) -> list[str]:
    """The formulas of a short tape in MathML; empty for other tapes."""
    if len(tape.ops) > _MOST_OPS:
        return []
    # Sympy is imported only when a tape is displayed.
    from yota.interop.sympy_export import math_markup

    return math_markup(tape)
