"""Names for the variables of a tape, taken from the lines that computed them."""

from __future__ import annotations

import re
from itertools import compress
from operator import is_not

from yota.ir.location import Location
from yota.ir.semantics import AccessMap
from yota.ir.tape import Op, TapeBuilder
from yota.tracing.location import source_line

_ASSIGNMENTS = re.compile(r"^([A-Za-z_][A-Za-z_0-9]*(?:\s*,\s*[A-Za-z_][A-Za-z_0-9]*)+)\s*=(?!=)")
_ASSIGNMENT = re.compile(r"^([A-Za-z_][A-Za-z_0-9]*)(?:\s*:[^=]+)?\s*[-+*/@]?=(?!=)")


def name_variables(builder: TapeBuilder) -> None:
    """Give the last variable that a line ``name = ...`` computes that name; of ``q, r = ...`` the last ones theirs."""
    assigned: dict[Location, str] = {}
    locations = [op.location for op in builder.ops]
    following = [*locations[1:], None]
    for op, after in compress(zip(builder.ops, following, strict=False), map(is_not, locations, following)):
        location = op.location
        if location is None or location == after:
            continue
        name = assigned.get(location)
        if name is None:
            match = _ASSIGNMENT.match(source_line(location))
            name = assigned[location] = match.group(1) if match else ""
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
