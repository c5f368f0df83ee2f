"""Scalar code of functions of numbers and small arrays, and of their gradients.

A gradient in reverse mode takes a small multiple of the value's operations, whatever these are. See W. Baur and V.
Strassen, "The complexity of partial derivatives" (Theoretical Computer Science 22, 1983).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from yota.emit.python.scalar import is_scalar
from yota.ir.tape import Tape
from yota.optimize import pipeline, scalarize, unroll
from yota.rules.registry import Registry
from yota.run.specialise import Target, simplified
from yota.transform.reverse.backward import gradient_tape

_MOST_OPS = 20_000
"""Largest number of scalar ops of an unrolled function."""
_LARGEST_ARRAY = 4096
"""Largest number of array elements for which unrolling is tried."""


def unrolled(tape: Tape, *, once: bool = False, most: int = _MOST_OPS) -> Tape | None:
    """``tape`` as scalar ops to differentiate; None if it is too long or cannot be unrolled."""
    found = pipeline.run(tape, inlined=False, once=once)
    if is_scalar(found, inlined=False):
        return found
    found = scalarize.run(found, most=most)
    return pipeline.run(found, inlined=False) if is_scalar(found, inlined=False) else None


def short_value(tape: Tape, target: Target) -> Tape:
    """The simplified tape of values alone."""
    return shortest(tape, tape, lambda form: iter([form]), target, values=len(tape.outputs))


def short_gradient(tape: Tape, leaves: Sequence[int], registry: Registry, target: Target, values: int = 1) -> Tape:
    """The simplified tape of a value and its adjoints by the inputs ``leaves``, in reverse mode."""
    value = replace(tape, outputs=tape.outputs[:values])
    return shortest(tape, value, lambda form: iter([_differentiated(form, leaves, registry)]), target, values=values)


def shortest(
    tape: Tape, value: Tape, derive: Callable[[Tape], Iterator[Tape]], target: Target, *, values: int = 1
) -> Tape:
    """The simplified tape of a derivative, by ``derive`` of several forms of the value, the most promising first."""
    found = simplified(tape, target)
    if target.strict or any(tape.types[op.result].size > _LARGEST_ARRAY for op in tape.ops):
        return found
    scalar = is_scalar(found)
    # The rules of these functions divide by determinants, which may be zero where the derivatives of elements exist.
    expanded = not unroll.FUNCTIONS.keys().isdisjoint(op.name for op in value.ops)
    if scalar and not expanded and target.effort == "quick":
        return found
    plain = unrolled(value) if scalar and expanded else pipeline.run(value, inlined=False)
    if plain is None or not is_scalar(plain, inlined=False):
        return found
    if target.effort == "quick":
        return simplified(next(derive(plain)), target)
    from yota.optimize.polynomials.symbolic import forms, search

    derived = [simplified(each, target) for form in forms(plain) for each in derive(form)]
    return search([found, *derived] if scalar else derived, values=values)[1]


def _differentiated(value: Tape, leaves: Sequence[int], registry: Registry) -> Tape:
    variables = [value.inputs[leaf].variable for leaf in leaves]
    found = gradient_tape(replace(value, outputs=value.outputs[:1]), variables, registry)
    return found.whole(value.outputs, variables)
