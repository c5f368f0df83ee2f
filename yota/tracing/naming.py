"""Names for the variables of a tape, taken from the lines that computed them."""

from __future__ import annotations

import re

from yota.ir.location import Location
from yota.ir.semantics import AccessMap
from yota.ir.tape import Op, TapeBuilder
from yota.tracing.location import source_line

__all__ = ["name_variables"]

_ASSIGNMENTS = re.compile(r"^([A-Za-z_][A-Za-z_0-9]*(?:\s*,\s*[A-Za-z_][A-Za-z_0-9]*)+)\s*=(?!=)")
_ASSIGNMENT = re.compile(r"^([A-Za-z_][A-Za-z_0-9]*)(?:\s*:[^=]+)?\s*[-+*/@]?=(?!=)")


def name_variables(builder: TapeBuilder) -> None:
    """Give the last variable that a line ``name = ...`` computes that name; of ``q, r = ...`` the last ones theirs."""
    assigned: dict[Location, str] = {}
    for op, following in zip(builder.ops, [*builder.ops[1:], None], strict=False):
        if op.location is None or (following is not None and following.location == op.location):
            continue
        name = assigned.get(op.location)
        if name is None:
            match = _ASSIGNMENT.match(source_line(op.location))
            name = assigned[op.location] = match.group(1) if match else ""
        if name:
            builder.names[op.result] = name
        elif op.access == AccessMap.ITEM:
            _name_items(builder, op)


def _name_items(builder: TapeBuilder, last: Op) -> None:
    match = _ASSIGNMENTS.match(source_line(last.location))
    names = match.group(1).split(",") if match else []
    items = {
        op.keyword("index"): op for op in builder.ops if op.access == AccessMap.ITEM and op.operands == last.operands
    }
    if len(names) == len(items):
        for number, name in enumerate(names):
            builder.names[items[number].result] = name.strip()
