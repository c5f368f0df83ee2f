"""Ops of a tape that compute each element of arrays by itself, with loops among them."""

from __future__ import annotations

from dataclasses import dataclass, field

from yota.ir.semantics import AccessMap
from yota.ir.tape import Op, Tape
from yota.optimize.elementwise_loops import Known, Shape, Trips, is_by_element, is_whole_sum, trips_of


@dataclass(slots=True)
class Chain:
    """Ops that compute elements by themselves, with a loop among them.

    inside: their results, without those of numbers that depend on sums.
    after: variables that depend on these numbers, or on what is no elementwise op.
    """

    shape: Shape
    ops: list[Op] = field(default_factory=list)
    loops: dict[int, Trips] = field(default_factory=dict)
    inside: set[int] = field(default_factory=set)
    after: set[int] = field(default_factory=set)


def chain_of(tape: Tape, first: Op, shape: Shape, known: Known) -> Chain | None:
    """The elementwise ops that hang together with a loop."""
    chain = Chain(shape)
    for op in tape.ops:
        inside = not chain.inside.isdisjoint(op.operands)
        if not chain.after.isdisjoint(op.operands) or (op.result == first.result and inside):
            chain.after.add(op.result)
        elif op.regions:
            trips = trips_of(op, shape, known) if inside or op.result == first.result else None
            if trips is not None:
                chain.loops[op.result] = trips
                chain.inside.add(op.result)
                chain.ops.append(op)
            elif inside:
                chain.after.add(op.result)
            elif op.result == first.result:
                return None
        elif inside:
            _join(tape, op, chain, known)
    return chain


def _join(tape: Tape, op: Op, chain: Chain, known: Known) -> None:
    """Add an op that reads what the chain computes, or what comes after it."""
    loop = chain.loops.get(op.operands[0])
    if op.access == AccessMap.ITEM and loop is not None:
        fits = not loop.results[op.keyword("index")][0]
    elif is_whole_sum(op, tape.types, chain.shape):
        chain.ops.append(op)
        chain.after.add(op.result)
        return
    else:
        numbers = [each for each in op.operands if each in chain.inside and not tape.types[each].shape]
        fits = (
            tape.types[op.result].shape == chain.shape and not numbers and is_by_element(tape, op, chain.shape, known)
        )
    if fits:
        chain.ops.append(op)
        chain.inside.add(op.result)
    else:
        chain.after.add(op.result)
