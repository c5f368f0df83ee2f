"""`strict=True`: adds a value with NumPy's bits to a gradient tape, computed by the function's own calls."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from yota.ir.tape import Guard, Tape, TapeBuilder
from yota.tracing.record import Recording


def with_value(tape: Tape, captured: tuple[Any, ...], exact: Recording) -> tuple[Tape, tuple[Any, ...]]:
    """``tape`` with its first outputs as ``exact`` computes them, and the captured arrays that it now reads."""
    builder = tape.builder()
    known = _inputs(builder, tape, captured, exact)
    for variable, value in exact.tape.constants.items():
        known[variable] = builder.variable(exact.tape.types[variable])
        builder.constants[known[variable]] = value
    for op in exact.tape.ops:
        builder.location = op.location
        operands = tuple(known[operand] for operand in op.operands)
        known[op.result] = builder.emit(op.primitive, operands, op.static, exact.tape.types[op.result])
    shift = len(tape.ops)
    guards = [replace(guard, variable=known[guard.variable], after=guard.after + shift) for guard in exact.tape.guards]
    builder.guards = [*_others(tape.guards, exact.tape.guards), *guards]
    added = tuple(array for variable, array in exact.captured.items() if not any(array is other for other in captured))
    values = [known[each] for each in exact.tape.outputs]
    return builder.finish((*values, *tape.outputs[len(values) :])), captured + added


def _inputs(builder: TapeBuilder, tape: Tape, captured: tuple[Any, ...], exact: Recording) -> dict[int, int]:
    """Variables of the builder's tape for the inputs of ``exact``."""
    first = len(tape.inputs) - len(captured)
    arguments = iter(tape.inputs[:first])
    outside = dict(zip(map(id, captured), tape.inputs[first:], strict=True))
    known: dict[int, int] = {}
    for entry in exact.tape.inputs:
        array = exact.captured.get(entry.variable)
        if array is None:
            known[entry.variable] = next(arguments).variable
        elif id(array) in outside:
            known[entry.variable] = outside[id(array)].variable
        else:
            known[entry.variable] = builder.input(exact.tape.types[entry.variable], -1, entry.name, ())
            builder.captured[known[entry.variable]] = array
    return known


def _others(guards: tuple[Guard, ...], exact: tuple[Guard, ...]) -> Iterator[Guard]:
    """Guards without an equivalent guard of the exact recording."""
    rest = [(guard.location, guard.kind, repr(guard.expected)) for guard in exact]
    for guard in guards:
        key = (guard.location, guard.kind, repr(guard.expected))
        if key in rest:
            rest.remove(key)
        else:
            yield guard
