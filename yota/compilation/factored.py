"""Gradients of scalar code whose arithmetic is factored before it is differentiated: fewer operations come out.

A gradient in reverse mode takes a small multiple of the value's operations, whatever these are; so the value is brought
to few operations first. See W. Baur and V. Strassen, "The complexity of partial derivatives" (Theoretical Computer
Science 22, 1983).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from yota.autodiff.reverse import gradient_tape, zeros_like
from yota.ir.tape import Tape
from yota.rules.registry import Registry

__all__ = ["leanest", "several_forms", "unrolled"]

_MOST_FORMS = 3
"""Ways to write a small function that are differentiated, to take the best."""
_SMALL = 600
"""Ops up to which more than one is."""
_LARGEST_ARRAY = 4096
_MOST_OPS = 20_000
"""Scalar ops that a function may unroll to."""


def leanest(tape: Tape, leaves: Sequence[int], registry: Registry, *, compiled: bool = False) -> Tape:
    """A tape with the outputs of ``tape``, which are a value and its adjoints, in fewer operations if possible.

    Parameters
    ----------
    tape
        From reverse mode.
    leaves
        Numbers of the inputs that the adjoints belong to.
    registry
        Rules.
    compiled
        Whether the code will be compiled, so that scalar ops are cheap.
    """
    if any(tape.types[op.result].size > _LARGEST_ARRAY for op in tape.ops):
        return tape
    # Only who compiles needs these.
    from yota.codegen.scalar import is_scalar
    from yota.codegen.symbolic import best, nested
    from yota.passes import pipeline

    alone = replace(tape, outputs=tape.outputs[:1])
    value: Tape | None = pipeline.run(alone, inlined=False)
    scalar_value = value is not None and is_scalar(value, inlined=False)
    # A long tape is not worth these passes where the value alone tells that it is scalar code.
    plain = pipeline.run(tape, compiled=compiled) if len(tape) <= _SMALL or not scalar_value else None
    if not scalar_value:
        value = unrolled(alone) if plain is not None and is_scalar(plain) else None
    if value is None:
        return tape
    forms = [*several_forms(value), *nested(value)]
    found = [pipeline.run(_differentiated(form, leaves, registry)) for form in forms]
    if plain is not None and len(tape) <= _SMALL and is_scalar(plain):
        found.append(plain)
    return found[best(found)]


def unrolled(tape: Tape) -> Tape | None:
    """``tape`` as scalar ops alone, to be differentiated; None if it is too long for that, or not of that kind."""
    from yota.codegen.scalar import is_scalar
    from yota.passes import pipeline, scalarize

    found = pipeline.run(tape, inlined=False)
    if is_scalar(found, inlined=False):
        return found
    found = scalarize.run(found, most=_MOST_OPS)
    return pipeline.run(found, inlined=False) if is_scalar(found, inlined=False) else None


def several_forms(tape: Tape) -> Iterator[Tape]:
    """Ways to write a scalar tape; a long one only with its arithmetic factored."""
    from yota.codegen.symbolic import forms

    found = forms(tape, values=len(tape.outputs))
    yield found[0]
    if len(tape) <= _SMALL:
        yield from (form for form in found[1:_MOST_FORMS] if form.ops != found[0].ops and len(form) < len(tape))


def _differentiated(value: Tape, leaves: Sequence[int], registry: Registry) -> Tape:
    variables = [value.inputs[leaf].variable for leaf in leaves]
    found = gradient_tape(value, variables, registry)
    builder = found.tape.builder()
    adjoints = [
        zeros_like(builder, variable) if adjoint is None else adjoint
        for variable, adjoint in zip(variables, found.variables, strict=True)
    ]
    return builder.finish([value.outputs[0], *adjoints])
