"""Tapes that were recorded: whether two are the same, and evaluation op by op, on values or onto a running trace."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from yota.errors import StaleTapeError
from yota.ir.location import where
from yota.ir.semantics import AccessMap
from yota.ir.tape import Guard, Op, Tape
from yota.structures import is_on_device
from yota.tracing.captures import copied
from yota.tracing.trace import Trace


def same(left: Tape, right: Tape) -> bool:
    """Whether two tapes do the same, whatever their variables are numbered: imports while one was made leave gaps."""
    partner = {one.variable: other.variable for one, other in zip(left.inputs, right.inputs, strict=False)}

    def alike(ours: Sequence[int], theirs: Sequence[int]) -> bool:
        return len(ours) == len(theirs) and all(
            _equal(left.constants[one], right.constants[other])
            if one in left.constants and other in right.constants
            else partner.get(one) == other
            for one, other in zip(ours, theirs, strict=True)
        )

    if len(left.ops) != len(right.ops):
        return False
    for a, b in zip(left.ops, right.ops, strict=True):
        if a.primitive is not b.primitive or not _same_keywords(a, b) or not alike(a.operands, b.operands):
            return False
        partner[a.result] = b.result
    return alike(left.outputs, right.outputs)


def _same_keywords(one: Op, other: Op) -> bool:
    if one.regions:
        return len(one.regions) == len(other.regions) and all(map(same, one.regions, other.regions))
    return one.static == other.static


def same_arrays(left: Mapping[int, Any], right: Mapping[int, Any]) -> bool:
    """Whether two mappings hold equal arrays in the same order; a NaN is like another."""
    return len(left) == len(right) and all(map(_equal, left.values(), right.values()))


def _equal(value: Any, other: Any) -> bool:
    value, other = (each.get() if is_on_device(each) else each for each in (value, other))
    return np.array_equal(value, other, equal_nan=np.asarray(value).dtype.kind in "fc")


CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "bool": bool,
    "int": int,
    "float": float,
    "complex": complex,
    "value": lambda value: value,
    "layout": int,
    "hermitian": bool,
    "solver": int,
    "points": int,
}


ASYMMETRIC = (
    "the matrix was Hermitian (symmetric) when the function was traced and is not now; NumPy reads one triangle of it, "
    "and what was recorded takes both for the same. Make it Hermitian ahead of this, as by "
    "`a = (a + np.conjugate(np.swapaxes(a, -1, -2))) / 2`,"
)
"""What is said of a guard that a matrix is Hermitian; one more cure comes after it."""


def stale(guard: Guard, found: Any, index: int) -> StaleTapeError:
    """The error for a decision that went another way."""
    found = found.item() if isinstance(found, (np.generic, np.ndarray)) and np.ndim(found) == 0 else found
    fault = StaleTapeError(where(guard.location) + _difference(guard, found))
    fault.decision, fault.layout = (index, found), guard.kind == "layout" or guard.signs
    return fault


def _difference(guard: Guard, found: Any) -> str:
    if guard.kind == "layout":
        return (
            "what this does depends on how the arguments lie in memory, by which a reshape is a view or a copy; they "
            "lie otherwise now than when the function was traced. Pass np.ascontiguousarray(x)."
        )
    if guard.signs:
        return (
            "an array of indices counts from the end now, or did when the function was traced and does not now. Take "
            "them modulo the extent: np.mod(i, len(x))."
        )
    if guard.kind == "points" and not found:
        return (
            "this branches on the values of a point, and no point branches as the first one did when the function was "
            "traced. Pass dynamic=True to trace again, or write the choice with np.where."
        )
    if guard.kind == "points":
        return (
            "this branches on the values of a point, and points of one batch branch in different ways: "
            f"{found} of {guard.expected} as the first does. Write the choice with np.where, or call the function in a "
            "loop."
        )
    if guard.kind == "solver":
        return (
            "a solver of SciPy's ended otherwise than when the function was traced, or its function takes another "
            "branch at the solution, or on the way there. Pass dynamic=True to trace again."
        )
    if guard.kind == "hermitian":
        return f"{ASYMMETRIC} or pass dynamic=True to trace again."
    subject = f"{guard.kind}() of a traced value"
    if guard.kind == "value":
        subject = "a traced value, of which a hash or text was made,"
    return (
        f"{subject} was {guard.expected!r} when the function was traced and is {found!r} now, so the recorded tape "
        "does not hold. Pass dynamic=True to trace again when a branch goes another way, or write the choice with "
        "np.where."
    )


def agrees(found: Any, expected: Any) -> bool:
    """Whether a decision is the same one; a NaN is like another."""
    return bool(found == expected or (found != found and expected != expected))


def failing(tape: Tape, inputs: Mapping[int, Any]) -> tuple[int, Any] | None:
    """Index of the first guard that fails, and what was found there; None if all hold."""
    try:
        evaluate(tape, inputs)
    except StaleTapeError as fault:
        return fault.decision
    except (ValueError, IndexError):
        return None
    return None


def evaluate(tape: Tape, inputs: Mapping[int, Any]) -> list[Any]:
    """Values of the outputs, computed by NumPy one op at a time; StaleTapeError if a guard fails."""
    values: dict[int, Any] = {**tape.constants, **inputs}
    guards: dict[int, list[tuple[int, Guard]]] = {}
    for index, guard in enumerate(tape.guards):
        guards.setdefault(guard.after, []).append((index, guard))
    with np.errstate(all="ignore"):
        for count, op in enumerate(tape.ops):
            _check(guards.get(count, ()), values)
            result = op.primitive.function(*(values[operand] for operand in op.operands), **dict(op.static))
            values[op.result] = np.asarray(result).item() if tape.types[op.result].weak else result
        _check(guards.get(len(tape.ops), ()), values)
    # The caller may write into results, and must not write into the tape's own arrays.
    return [copied(values[each]) if each in tape.constants else values[each] for each in tape.outputs]


def _check(guards: Iterable[tuple[int, Guard]], values: Mapping[int, Any]) -> None:
    for index, guard in guards:
        found = CONVERSIONS[guard.kind](values[guard.variable])
        if not agrees(found, guard.expected):
            raise stale(guard, found, index)


def _weakly(op: Op) -> Callable[..., Any]:
    """The op on Python scalars, which gives a Python scalar rather than NumPy's."""
    return lambda *values, **static: np.asarray(op.primitive.function(*values, **static)).item()


def inline(tape: Tape, trace: Trace, inputs: Mapping[int, Any]) -> list[Any]:
    """Record the ops of ``tape`` onto ``trace``; gives tracers for the outputs."""
    known: dict[int, Any] = {variable: trace.traced(value) for variable, value in inputs.items()}
    for variable, value in tape.constants.items():
        known[variable] = trace.constant(value)
    for op in tape.ops:
        if op.access == AccessMap.ITEM:
            known[op.result] = known[op.operands[0]][op.keyword("index")]
            continue
        operands = tuple(known[operand] for operand in op.operands)
        known[op.result] = trace.apply(
            op.primitive, operands, dict(op.static), python=_weakly(op) if tape.types[op.result].weak else None
        )
    for guard in tape.guards:
        trace.decide(trace.lift(known[guard.variable]), guard.kind, guard.expected, signs=guard.signs)
    return [known[variable] for variable in tape.outputs]
