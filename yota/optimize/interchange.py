"""Pass `interchange`: all trips of elementwise loops are done for one block of elements after the other.

A trip over a large array reads and writes memory. The arrays of a block stay in the cache from trip to trip, and so
does what the reverse of the loop needs of them. What lies between loops goes along: a loop over blocks has the loops
over trips in its body.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from yota.ir.catalog import item_of, primitive
from yota.ir.extents import Extent
from yota.ir.regions import LOOP, Region
from yota.ir.semantics import AccessMap
from yota.ir.tape import Op, Tape
from yota.optimize import dce, loop_bodies
from yota.optimize.blocked_chains import BlockedChain, Blocks
from yota.optimize.elementwise_chains import Chain, chain_of
from yota.optimize.elementwise_loops import Known, Shape, is_whole_sum, trips_of
from yota.optimize.rewrite import protected, use_counts, users, with_ops


def run(tape: Tape, blocks: Blocks, known: Known = lambda tape, op: True, *, values: int = 1) -> Tape:
    """``tape`` with loops over blocks around loops over trips, where arrays are too large for caches."""
    done: set[int] = set()
    changed = False
    while True:
        chain = _found(tape, known, done)
        if chain is None:
            # Numbers that were carried for the sake of elements are carried no more.
            return loop_bodies.trimmed(tape) if changed else tape
        done.update(chain.loops)
        interchange = BlockedChain(tape, chain, blocks)
        if not interchange.is_worthy or any(each.variable in chain.after | chain.inside for each in tape.guards):
            continue
        value = protected(tape, values)
        derived = [op for op in chain.ops if op.regions and op.result not in value]
        wide = next(filter(None, (_with_wide_totals(tape, op, chain.shape) for op in derived)), None)
        again = wide or _repeated(tape, chain, known)
        if again is None:
            tape, changed = interchange.run(), True
        else:
            tape = again
            done.clear()


def _found(tape: Tape, known: Known, done: set[int]) -> Chain | None:
    for op in tape.ops:
        region: Region | None = op.keyword("region") if op.regions else None
        if region is None or op.result in done:
            continue
        done.add(op.result)
        carried = [region.body.types[each.variable] for each in region.body.inputs[1 : 1 + region.carries]]
        shapes = {type.shape for type in carried if type.shape}
        if len(shapes) == 1 and not isinstance(math.prod(shape := shapes.pop()), Extent):
            chain = chain_of(tape, op, shape, known)
            if chain is not None:
                return chain
    return None


def _repeated(tape: Tape, chain: Chain, known: Known) -> Tape | None:
    """``tape`` with loops a second time ahead of their reverse, which is not in their chain; None if there is none.

    Computing what each trip begins with again, within blocks, takes less time than writing and reading it.
    """
    definitions, read = tape.definitions(), users(tape)
    for result in chain.loops:
        items = [op for op in read.get(result, ()) if tape.types[op.result].shape[1:] == chain.shape]
        late = [op for each in items for op in read.get(each.result, ()) if op.result in chain.after]
        if not late or not all(_is_reverse(op, chain, known) for op in late):
            continue
        if any(each.result in tape.outputs for each in items):
            continue
        builder = tape.builder()
        builder.ops = []
        found = definitions[result]
        again = builder.variable(tape.types[result])
        moved = {each.result: replace(each, operands=(again,)) for each in items}
        for op in tape.ops:
            if op == late[0]:
                builder.ops += [replace(found, result=again), *moved.values()]
            if op.result not in moved:
                builder.ops.append(op)
        return loop_bodies.trimmed(with_ops(replace(tape, types=builder.types), builder.ops))
    return None


def _is_reverse(op: Op, chain: Chain, known: Known) -> bool:
    return bool(op.regions) and trips_of(op, chain.shape, known) is not None


def _with_wide_totals(tape: Tape, op: Op, shape: Shape) -> Tape | None:
    """``tape`` with a loop that adds up numbers for each element, and their sum behind it; None if it has no total.

    Trips have no sum over elements then, and may run for a block of them.
    """
    region: Region = op.keyword("region")
    body = region.body.builder()
    outputs, inputs = list(region.body.outputs), list(region.body.inputs)
    wide: list[int] = []
    for k in range(region.carries):
        terms = _terms(region, k, shape)
        if not terms:
            continue
        type = body.types[terms[0]]
        start = body.variable(type)
        total = start
        for term in terms:
            total = body.emit(primitive("add"), (total, term), (), type)
        outputs[k], inputs[1 + k] = total, replace(inputs[1 + k], variable=start)
        wide.append(k)
    if not wide:
        return None
    body.inputs = inputs
    made = dce.run(body.finish(outputs))
    builder = tape.builder()
    builder.ops = []
    for each in tape.ops:
        builder.location = each.location
        if each is op:
            operands = list(op.operands)
            for k in wide:
                zero = np.zeros((), made.types[made.outputs[k]].dtype)
                operands[k] = builder.constant(np.broadcast_to(zero, shape))
            found = builder.emit(LOOP, operands, {"region": replace(region, body=made)})
        elif op.result in each.operands and each.access == AccessMap.ITEM:
            number = each.keyword("index")
            item = item_of(builder, found, number)
            if number in wide:
                static = {"axis": tuple(range(len(shape))), "keepdims": False}
                total = builder.emit(primitive("sum"), (item,), static)
                builder.emit(primitive("add"), (op.operands[number], total), (), tape.types[each.result])
            builder.ops[-1] = replace(builder.ops[-1], result=each.result)
        else:
            builder.ops.append(each)
    return with_ops(replace(tape, types=builder.types, constants=builder.constants), builder.ops)


def _terms(region: Region, carry: int, shape: Shape) -> list[int]:
    """The arrays whose sums a trip adds to a carried number, of which it does nothing else; empty if there are none."""
    body = region.body
    definitions, counts = body.definitions(), use_counts(body)
    start = body.inputs[1 + carry].variable
    terms: list[int] = []
    starts = 0
    open_ = [body.outputs[carry]]
    while open_:
        each = open_.pop()
        op = definitions.get(each)
        if counts.get(each) != 1 or body.types[each].dtype != body.types[start].dtype:
            return []
        if each == start:
            starts += 1
        elif (
            op is not None
            and (op.primitive is primitive("add") or op.semantics.casts)
            and not any(body.types[operand].shape for operand in op.operands)
        ):
            open_ += reversed(op.operands)
        elif op is not None and is_whole_sum(op, body.types, shape):
            terms.append(op.operands[0])
        else:
            return []
    return terms if starts == 1 else []
