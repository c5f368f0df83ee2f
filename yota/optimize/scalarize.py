"""Pass `scalarize`: a tape whose arrays fall apart into few elements becomes straight-line scalar ops.

Arrays live on as inputs, read by ``getitem`` at one index each, and as outputs, put together by one ``stack``
(and ``reshape``), or by one ``scatter`` when most of their elements are zero.
"""

from __future__ import annotations

import numpy as np

from yota.ir.extents import extents_in
from yota.ir.semantics import MOVES, VIEWS, AccessMap
from yota.ir.tape import Op, Tape
from yota.optimize.rewrite import protected
from yota.optimize.scalar_ops import unroll
from yota.optimize.unroll import FUNCTIONS, Unrolling, Unsuitable

# Measured with NumPy 2 on x86-64, in nanoseconds: a float operation in a Python function, a call of a NumPy function
# on a small array, a view of an array, arithmetic on NumPy scalars, and one element in or out of an array.
_SCALAR_OP, _ARRAY_CALL, _ARRAY_VIEW, _NUMPY_SCALAR_OP, _ELEMENT = 30, 700, 200, 80, 30
_LARGEST_DENSE_OUTPUT = 64
_ASSEMBLED = (AccessMap.STACK, AccessMap.SCATTER)
_MOST_UNROLLED = 1024
"""Scalar ops that arrays may unroll to: longer functions would run faster still, but nobody could read them."""
_PER_OP, _PER_OP_COMPILED, _MOST_COMPILED = 2, 6, 20_000
"""The same for each op of a long tape: a C compiler takes longer for an op on arrays than for as many scalar ops.

The last is where it takes too long for those.
"""
_PER_OP_LOOPED = 64
"""The same for the body of a compiled loop with functions of matrices: beside LAPACK the loop would be Python's."""


def run(
    tape: Tape,
    *,
    strict: bool = False,
    compiled: bool = False,
    looped: bool = False,
    most: int | None = None,
    values: int | None = 1,
) -> Tape:
    """Unroll ``tape`` when scalar code is estimated to be no slower; otherwise give it back as it is.

    With ``strict``, only a tape whose value is computed by scalar ops already qualifies: NumPy's order of
    summation is kept by leaving sums to NumPy. With ``most`` it is unrolled if that takes at most so many ops, slower
    or not. ``compiled`` says that scalar ops will not be Python's: they cost next to nothing beside a call of LAPACK.
    ``looped`` says that the tape is the body of a loop. For ``values`` see `yota.optimize.pipeline.run`.
    """
    if strict and not _is_scalar_value(tape, values):
        return tape
    if not looped and any(op.name == "slogdet" for op in tape.ops):
        # One call of LAPACK costs little, and cannot overflow.
        return tape
    if any(True for type in tape.types.values() for _ in extents_in(type.shape)):
        return tape
    longest = max(_MOST_UNROLLED, _PER_OP * len(tape))
    if compiled:
        small = not FUNCTIONS.keys().isdisjoint(op.name for op in tape.ops)
        per_op = _PER_OP_LOOPED if small and looped else _PER_OP_COMPILED
        longest = max(longest, min(per_op * len(tape), _MOST_COMPILED))
        if small and most is None:
            most = longest
    budget = _array_cost(tape)
    limit = min(budget // _SCALAR_OP + 64, longest) if most is None else most
    unrolling = Unrolling(tape, limit)
    try:
        for op in tape.ops:
            unroll(unrolling, op)
        outputs = [_assemble(unrolling, variable) for variable in tape.outputs]
        for guard in tape.guards:
            unrolling.scalar(guard.variable)
    except Unsuitable:
        return tape
    found = unrolling.finish(outputs)
    return found if most is not None or _scalar_cost(found) <= budget else tape


def is_scalar(tape: Tape) -> bool:
    """Whether there is nothing to unroll: arrays are only read at one place, or put together as outputs."""
    inputs, assembled = {entry.variable for entry in tape.inputs}, set(tape.outputs)
    for op in reversed(tape.ops):
        if op.result in assembled and op.access == AccessMap.RESHAPE:
            assembled.add(op.operands[0])
        elif op.result in assembled and op.access in _ASSEMBLED:
            if any(tape.types[operand].shape for operand in op.operands):
                return False
        elif op.access == AccessMap.READ:
            if tape.types[op.result].shape or op.operands[0] not in inputs:
                return False
        elif tape.types[op.result].shape or not _is_plain(tape, op):
            return False
    return True


def _is_scalar_value(tape: Tape, values: int | None) -> bool:
    kept = protected(tape, values)
    return all(
        op.access in MOVES or (not tape.types[op.result].shape and _is_plain(tape, op))
        for op in tape.ops
        if op.result in kept
    )


def _is_plain(tape: Tape, op: Op) -> bool:
    return op.primitive.elementwise and not any(tape.types[operand].shape for operand in op.operands)


def _array_cost(tape: Tape) -> int:
    total = 0
    for op in tape.ops:
        shape = tape.types[op.result].shape
        if op.access in _ASSEMBLED:
            total += _ARRAY_CALL + 2 * _ELEMENT * len(op.operands)
        elif not shape and (op.access == AccessMap.READ or _is_plain(tape, op)):
            total += _NUMPY_SCALAR_OP
        elif op.access in VIEWS or op.access == AccessMap.READ:
            total += _ARRAY_VIEW
        else:
            total += _ARRAY_CALL
    # What a call costs that works on arrays, whatever it does: workspace, errstate.
    return total + _ARRAY_CALL


def _scalar_cost(tape: Tape) -> int:
    total = 0
    for op in tape.ops:
        if op.access in _ASSEMBLED:
            total += _ELEMENT * len(op.operands)
        else:
            total += _ELEMENT if op.access == AccessMap.READ else _SCALAR_OP
    return total


def _assemble(unrolling: Unrolling, variable: int) -> int:
    """The variable of an output, put together from its elements."""
    type = unrolling.tape.types[variable]
    if not type.shape:
        return unrolling.scalar(variable)
    if not type.size:
        raise Unsuitable
    elements = unrolling.elements(variable)
    # Positions of the elements that are not the constant 0.
    filled = np.flatnonzero(~np.isin(elements.ravel(), list(unrolling.zeros))).tolist()
    if type.size > _LARGEST_DENSE_OUTPUT and 2 * len(filled) < type.size:
        if not filled:
            raise Unsuitable
        operands = unrolling.variables(elements.ravel()[filled])
        indices = tuple(tuple(map(int, np.unravel_index(position, type.shape))) for position in filled)
        return unrolling.emit("scatter", operands, {"shape": type.shape, "indices": indices})
    operands = unrolling.variables(elements)
    found = unrolling.emit("stack", operands, {"axis": 0})
    if unrolling.type(found).dtype != type.dtype:
        raise Unsuitable
    return found if len(type.shape) == 1 else unrolling.emit("reshape", (found,), {"shape": type.shape})
