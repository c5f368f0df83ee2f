"""Generated C and CUDA code; the source comment above a line links it to ops."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping

from yota.codegen.c.lines import comment
from yota.codegen.targets import c, cuda
from yota.ir.tape import Tape
from yota.passes.pipeline import run
from yota.report.origins import MOST, Generated
from yota.report.plan import Part
from yota.tracing.location import source_line

_COMMENT = re.compile(r"\s*(/\* .* \*/|# .*)$")
_SHOWN = (80, 100)
"""Number of characters of a source line in comments, in loops and before functions."""


def native(tape: Tape, target: str, *, strict: bool = False) -> Generated:
    """The code of ``tape`` for a target.

    tape: the function with its adjoints.
    target: ``"c"`` or ``"cuda"``.
    """
    final = run(tape, strict=strict)
    found = c.generate(final, strict=strict) if target == "c" else cuda.generate(final)
    parts = [Part("python", found.driver)] if found.driver else []
    title = f"# {found.entry}.{'c' if target == 'c' else 'cu'}"
    if found.code:
        parts.append(Part(target, f"\n\n{title}\n\n{found.code}" if parts else found.code))
    text = "".join(part.text for part in parts)
    lines = _linked(text.split("\n"), _ops_by_line(tape))
    return Generated(tuple(parts), lines, final, kernels=len(found.kernels))


def _ops_by_line(tape: Tape) -> dict[str, set[int]]:
    """Ops by the comment text of their source lines."""
    found: dict[str, set[int]] = defaultdict(set)
    for op in tape.ops:
        line = source_line(op.location)
        for length in _SHOWN if line else ():
            found[comment(line[:length])].add(op.result)
            found[f"# {line[:length].rstrip()}"].add(op.result)
    return {line: ops for line, ops in found.items() if len(ops) <= MOST}


def _linked(rows: Iterable[str], ops: Mapping[str, set[int]]) -> dict[int, tuple[int, ...]]:
    """Line numbers, from 1, with their ops."""
    found: dict[int, tuple[int, ...]] = {}
    ahead: set[int] = set()  # of the function that begins
    current: set[int] = set()
    for number, row in enumerate(rows, start=1):
        inside = row.startswith(" ")
        if not row.strip() or row == "}":
            ahead, current = set(), set()
            continue
        match = _COMMENT.match(row)
        if match and match[1] in ops:
            current = ops[match[1]]
            ahead |= set() if inside else current
            found[number] = tuple(sorted(current))
        elif inside and (current or ahead):
            found[number] = tuple(sorted(current or ahead))
        elif row == "{":
            # Lines before the first comment of a body belong to all of its ops.
            current = set()
    return found
