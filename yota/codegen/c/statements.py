"""What C functions that stand alone return, and the statements around what they do."""

from __future__ import annotations

import linecache
from collections.abc import Sequence

import numpy as np

from yota.codegen.c.lines import filled
from yota.codegen.c.types import literal
from yota.errors import CodegenError
from yota.ir.tape import Guard, Op, Tape

__all__ = ["NO_MEMORY", "OUT_OF_BOUNDS", "WRONG_SIZES", "failed", "framed", "refusal"]

NO_MEMORY = -1
"""What a function returns if there is no memory for its intermediate arrays."""
WRONG_SIZES = -2
"""What a function returns if sizes are too small for what it does."""
OUT_OF_BOUNDS = -3
"""What a function returns if an array of indices has one that is out of bounds for its axis."""


def framed(own: Sequence[str], heap: Sequence[str], lines: Sequence[str]) -> list[str]:
    """Statements between getting memory and giving it back."""
    if not heap and "    goto done;" not in lines:
        return [*own, *lines, "return 0;"]
    found = [*own, f"int status = {NO_MEMORY if heap else 0};"]
    if heap:
        found += filled(f"if ({' || '.join(f'{name} == NULL' for name in heap)})")
        found += ["    goto done;", "status = 0;"]
    return [*found, *lines, "", "done:", *(f"free({name});" for name in heap), "return status;"]


def failed(tape: Tape, guard: Guard, text: str) -> str:
    """The condition under which a decision would be another one."""
    expected, type = guard.expected, tape.types[guard.variable]
    if type.shape:
        raise CodegenError("the function decides by the values of a whole array, which generated C does not check")
    if guard.kind == "bool" or isinstance(expected, (bool, np.bool_)):
        return f"!{text}" if expected else text
    if expected != expected:
        return f"{text} == {text}"
    value = f"trunc({text})" if guard.kind == "int" and type.dtype.kind == "f" else text
    return f"{value} != {literal(expected, type.dtype)}"


def refusal(tape: Tape, op: Op) -> str:
    """Why an op is refused, where it stands, and what to do instead."""
    target = op.primitive.target or op.name
    target = op.name if target.startswith("yota.") else target
    types = ", ".join(str(tape.types[operand]) for operand in op.operands)
    place = op.location
    line = linecache.getline(place.filename, place.line).strip() if place else ""
    where = f"\n  {place}: {line}" if place and line else ""
    return (
        f"{target} of {types} cannot be said in C that needs libm only{where}\n"
        'Generate a module for NumPy instead (target="numpy"), or compute this outside and pass it as an argument.'
    )
