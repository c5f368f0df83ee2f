"""One pass backwards over a tape; adjoints are appended as primitives, so the result can be differentiated again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from yota.errors import DifferentiationError
from yota.ir.catalog import primitive
from yota.ir.regions import LOOP
from yota.ir.semantics import AccessMap
from yota.ir.solved import SOLVED
from yota.ir.tape import Op, Tape, TapeBuilder
from yota.rules.registry import Registry
from yota.settings import settings
from yota.transform.reverse.checkpoints import checkpointed
from yota.transform.reverse.implicit_functions import equation_adjoints
from yota.transform.reverse.instantiate import contributions
from yota.transform.reverse.loop_adjoints import active_from, loop_adjoints, zeros_like
from yota.transform.reverse.masking import choice
from yota.transform.reverse.tape_parts import Reversal, match

__all__ = ["Adjoints", "gradient_tape", "reverse", "zeros_like"]


@dataclass(frozen=True, slots=True)
class Adjoints:
    """A tape with adjoints, and for each variable asked for the adjoint, or None where it is exactly zero."""

    tape: Tape
    variables: tuple[int | None, ...]

    def whole(self, outputs: Sequence[int], wrt: Sequence[int]) -> Tape:
        """The tape of ``outputs`` and all adjoints by ``wrt``, zeros included."""
        builder = self.tape.builder()
        found = zip(wrt, self.variables, strict=True)
        adjoints = [zeros_like(builder, variable) if adjoint is None else adjoint for variable, adjoint in found]
        return builder.finish([*outputs, *adjoints])


def gradient_tape(tape: Tape, wrt: Sequence[int], registry: Registry) -> Adjoints:
    """Extend ``tape``, which has one real scalar output, by the gradient with respect to the inputs ``wrt``.

    The outputs of the new tape are the value and then the adjoints that are not exactly zero.

    Raises
    ------
    DifferentiationError
        If the output is not a real floating scalar.
    """
    if len(tape.outputs) != 1:
        raise DifferentiationError(
            f"{tape.name} returned {len(tape.outputs)} values; a gradient needs one scalar. "
            "Return the loss alone, or use yota.jacobian."
        )
    output = tape.outputs[0]
    type_ = tape.types[output]
    if type_.shape:
        raise DifferentiationError(
            f"{tape.name} returned an array of type {type_}; a gradient needs a scalar. "
            f"Reduce it (np.sum), or use yota.jacobian({tape.name}) for all partial derivatives."
        )
    if type_.is_complex:
        raise DifferentiationError(
            f"{tape.name} returned a complex number; a gradient needs a real one. Take .real, or np.abs(z)**2."
        )
    tape = checkpointed(tape, wrt, settings.memory)
    builder = tape.builder()
    if builder.definition(output) is not None:
        builder.names.setdefault(output, "value")
    one = (type_.dtype.type if type_.differentiable else np.float64)(1)
    seed = builder.constant(one.item() if type_.weak else one)
    found = reverse(tape, builder, {output: seed}, wrt, registry)
    outputs = [output, *(variable for variable in found if variable is not None)]
    return Adjoints(builder.finish(outputs), found)


def reverse(
    tape: Tape, builder: TapeBuilder, seeds: Mapping[int, int], wrt: Sequence[int], registry: Registry
) -> tuple[int | None, ...]:
    """Append the adjoints of ``wrt`` to ``builder``, which holds ``tape``; ``seeds`` are adjoints of outputs."""
    active = active_from(tape, wrt)
    pending: dict[int, list[int]] = {variable: [seed] for variable, seed in seeds.items() if variable in active}
    parts: dict[int, dict[int, list[int]]] = {}
    for op in reversed(tape.ops):
        builder.location = op.location
        if op.result in parts:
            # In the order of the results, whatever the order in which they were read.
            slopes = sorted(parts.pop(op.result).items())
            adjoints = {number: _accumulate(builder, each) for number, each in slopes}
            if op.primitive in (LOOP, SOLVED):
                found_by = loop_adjoints if op.primitive is LOOP else op.keyword("host").adjoints
                for operand, slope in found_by(Reversal(builder, registry, op, adjoints, active, reverse)):
                    pending.setdefault(operand, []).append(slope)
                continue
            _spread(Reversal(builder, registry, op, adjoints, active, reverse), pending)
            continue
        if op.result not in pending:
            continue
        adjoint = _accumulate(builder, pending.pop(op.result))
        if op.result in tape.names:
            _call_adjoint(builder, adjoint, tape.names[op.result])
        if op.access == AccessMap.ITEM:
            parts.setdefault(op.operands[0], {}).setdefault(op.keyword("index"), []).append(adjoint)
        else:
            _spread(Reversal(builder, registry, op, {0: adjoint}, active, reverse), pending)
    builder.location = None
    called = {item.variable: "_".join((item.name, *map(str, item.path))) for item in tape.inputs}
    gradient = [_accumulate(builder, pending[each]) if each in pending else None for each in wrt]
    for variable, found in zip(wrt, gradient, strict=True):
        if found is not None and variable in called:
            _call_adjoint(builder, found, called[variable])
    return tuple(gradient)


def _call_adjoint(builder: TapeBuilder, adjoint: int, name: str) -> None:
    """Name an adjoint after its variable, unless it has a name of its own or is no op's result."""
    if builder.definition(adjoint) is not None:
        builder.names.setdefault(adjoint, f"d_{name}")


def _spread(at: Reversal, pending: dict[int, list[int]]) -> None:
    """Pass the adjoints of an op's results on to its operands."""
    builder, registry, op = at.builder, at.registry, at.op
    if not op.primitive.elementwise:
        rule = registry.rule(op.name, tuple([builder.types[operand].ndim for operand in op.operands]))
        if rule.kind == "tensor" and rule.equation is not None:
            for operand, slope in equation_adjoints(rule, at):
                pending.setdefault(operand, []).append(slope)
            return
    positions = [position for position, operand in enumerate(op.operands) if operand in at.active]
    for position, found in contributions(builder, registry, op, positions, at.adjoints):
        operand = op.operands[position]
        pending.setdefault(operand, []).append(match(builder, found, builder.types[operand]))


def _accumulate(builder: TapeBuilder, contributions: list[int]) -> int:
    """The sum of all contributions; those of indexed reads are assembled in one array."""
    if len(contributions) == 1:
        return contributions[0]
    reads = [_scatter_of(builder, each) for each in contributions]
    pieces = [op for op in reads if op is not None]
    rest = [each for each, op in zip(contributions, reads, strict=True) if op is None]
    if len(pieces) > 1:
        operands = tuple(operand for op in pieces for operand in op.operands)
        indices = tuple(index for op in pieces for index in op.keyword("indices"))
        static = {"shape": builder.types[contributions[0]].shape, "indices": indices}
        rest.append(builder.emit(primitive("scatter"), operands, static))
    elif pieces:
        rest.append(pieces[0].result)
    total = rest[0]
    for each in rest[1:]:
        total = _sum(builder, total, each)
    return total


def _sum(builder: TapeBuilder, one: int, other: int) -> int:
    """The sum of two adjoints, which stays a choice where both are chosen alike."""
    first, second = choice(builder, one), choice(builder, other)
    if first is None or second is None or not first.is_like(second):
        return builder.emit(primitive("add"), (one, other))
    return first.of(builder, _sum(builder, first.inner, second.inner))


def _scatter_of(builder: TapeBuilder, variable: int) -> Op | None:
    op = builder.definition(variable)
    return op if op is not None and op.access == AccessMap.SCATTER else None
