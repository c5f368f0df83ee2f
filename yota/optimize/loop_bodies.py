"""Pass `loops`: bodies are rewritten like tapes; invariant ops are hoisted, and dead values leave the loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from yota.ir.catalog import item_of
from yota.ir.inputs import Input
from yota.ir.regions import LOOP, Region
from yota.ir.semantics import AccessMap
from yota.ir.tape import Op, Rewrite, Tape, TapeBuilder
from yota.optimize import dce
from yota.optimize.array_writes import is_view
from yota.optimize.cse import constant_key
from yota.optimize.deposits import Deposit, without_deposits
from yota.optimize.elementwise_loops import with_inputs
from yota.optimize.fission import parted, split
from yota.optimize.rewrite import Rewriting, cone, protected, users

_MOST_HOISTED = 64
"""Values computed ahead of a loop: each is an argument of every trip."""


_Improve: TypeAlias = Callable[[Tape, int | None], Tape]
"""Rewrites a body, of whose outputs so many are part of the value: none or, for None, all."""


def run(tape: Tape, improve: _Improve, *, values: int | None = 1, moves: bool = True) -> Tape:
    """``tape`` with ``improve`` done to the bodies of its loops; without ``moves`` no computation leaves its place."""
    loops = sum(bool(op.regions) for op in tape.ops)
    if not loops:
        return tape
    tape = trimmed(tape) if loops > 1 else tape
    return trimmed(_swept(tape, improve, protected(tape, values), moves=moves))


def trimmed(tape: Tape) -> Tape:
    """``tape`` without what nobody reads of its loops; one loop may be the only reader of another."""
    loops = [op for op in tape.ops if op.regions]
    if len(loops) == 1 and _is_trim(loops[0].keyword("region").body):
        return tape
    sizes: list[int] = []
    while sizes != (sizes := [len(op.operands) for op in tape.ops if op.regions]):
        tape = _swept(tape, lambda body, _: body, set(), moves=False)
        if len(sizes) == 1:
            break
    return tape


def _is_trim(body: Tape) -> bool:
    """Whether all ops are needed, all inputs but the number of the trip are read, and each output is computed."""
    needed, inputs = cone(body, body.outputs), [entry.variable for entry in body.inputs]
    return needed.issuperset([*inputs[1:], *(op.result for op in body.ops)]) and not {*inputs} & {*body.outputs}


def _swept(tape: Tape, improve: _Improve, value: set[int], *, moves: bool) -> Tape:
    tape = dce.run(tape)
    rewriting = Rewriting(tape)
    read = users(tape)
    results: dict[int, dict[int, int]] = {}
    for op in tape.ops:
        rewriting.builder.location = op.location
        if op.regions:
            wanted = {user.keyword("index") for user in read.get(op.result, ())}
            part = None if op.result in value else 0
            results[op.result] = _rewritten(rewriting, op, wanted, _with_values(improve, part), moves)
        elif op.access == AccessMap.ITEM and op.operands[0] in results:
            rewriting.bind(op.result, results[op.operands[0]][op.keyword("index")])
        else:
            rewriting.copy(op)
    return rewriting.finish()


def _with_values(improve: _Improve, values: int | None) -> Rewrite:
    return lambda body: improve(body, values)


def _rewritten(rewriting: Rewriting, op: Op, wanted: set[int], improve: Rewrite, moves: bool) -> dict[int, int]:
    """Append the loop; the variable of each result that is ``wanted``."""
    region: Region = op.keyword("region")
    operands = list(rewriting.operands(op))
    count = [operands.pop(0)] if region.counted else []
    region = _settled(region, operands, rewriting.builder)
    carries = _needed(region, wanted)
    inputs = region.body.inputs
    fast = [k for k in range(region.carries) if region.body.outputs[k] == inputs[1 + k].variable and k in carries]
    moving = [k for k in sorted(carries) if k not in fast]
    rows = [k for k in range(region.carries, len(region.body.outputs)) if k in wanted]
    outputs = [region.body.outputs[k] for k in (*moving, *rows)]
    known = {k: operands[k] for k in fast if k in wanted}
    if not outputs:
        return known
    used = cone(region.body, outputs)
    body = dce.run(replace(region.body, outputs=tuple(outputs)))
    spare = region.first_invariant
    slices = [k for k in range(1 + region.carries, spare) if inputs[k].variable in used]
    fixed = [1 + k for k in fast] + list(range(spare, len(inputs)))
    fixed = [k for k in fixed if inputs[k].variable in used or _condition_reads(region, k)]
    order = [0, *(1 + k for k in moving), *slices, *fixed]
    condition = region.condition
    if condition is not None:
        places = [0, *(1 + k for k in moving), *fixed]
        condition = with_inputs(condition, [k if k <= region.carries else k - region.slices for k in places])
    made = replace(region, body=with_inputs(body, order), condition=condition, carries=len(moving), slices=len(slices))
    operands = [operands[k - 1] for k in order[1:]]
    results: list[int] = [*moving, *rows]
    deposits: list[Deposit] = []
    if moves:
        made, operands, deposits = without_deposits(made, operands, results, first=len(region.body.outputs))
        made, operands, arrays = parted(rewriting, made, operands)
        known.update((results[number], array) for number, array in arrays.items())
        results = [k for number, k in enumerate(results) if number not in arrays]
    if results:
        wanted = {*wanted, *(each for deposit in deposits for each in deposit.rows)}
        known.update(_appended(rewriting, made, (count, operands), results, wanted, improve, moves))
    for each in deposits:
        added = rewriting.emit("scatter", [known[row] for row in each.rows], each.static)
        known[each.result] = rewriting.emit("add", [each.before, added])
    return known


def _appended(
    rewriting: Rewriting,
    made: Region,
    given: tuple[list[int], list[int]],
    results: Sequence[int],
    wanted: set[int],
    improve: Rewrite,
    moves: bool,
) -> dict[int, int]:
    """Append a loop, given its count and its operands; the variable of each result that is ``wanted``."""
    known: dict[int, int] = {}
    count, operands = given
    condition = None if made.condition is None else improve(made.condition)
    made = replace(made, body=_improved(made.body, improve), condition=condition)
    if moves:
        made, operands = _hoisted(rewriting, made, operands)
    region, operands, counts = split(rewriting, made, operands)
    result = rewriting.emit(LOOP, (*count, *operands), {"region": region})
    first = 0
    for k, size in zip(results, counts, strict=True):
        if k in wanted:
            items = [item_of(rewriting.builder, result, first + number) for number in range(size or 1)]
            known[k] = rewriting.emit("stack", items, {"axis": 0}) if size else items[0]
        first += size or 1
    return known


def _improved(body: Tape, improve: Rewrite) -> Tape:
    """``body`` rewritten; what it gives as it was given stays so."""
    places = {entry.variable: number for number, entry in enumerate(body.inputs)}
    found = improve(replace(body, outputs=tuple([each for each in body.outputs if each not in places])))
    made = iter(found.outputs)
    outputs = [found.inputs[places[each]].variable if each in places else next(made) for each in body.outputs]
    return replace(found, outputs=tuple(outputs))


def _settled(region: Region, operands: Sequence[int], around: TapeBuilder) -> Region:
    """The loop whose trips do not read carried values that begin as the constant that every trip gives."""
    body = region.body
    same = {
        entry.variable: output
        for entry, output, operand in zip(body.inputs[1 : 1 + region.carries], body.outputs, operands, strict=False)
        if output in body.constants
        and operand in around.constants
        and constant_key(body.types[output], body.constants[output])
        == constant_key(around.types[operand], around.constants[operand])
    }
    if not same:
        return region
    ops = tuple([replace(op, operands=tuple([same.get(each, each) for each in op.operands])) for op in body.ops])
    kept = [
        entry.variable if entry.variable in same else same.get(output, output)
        for entry, output in zip(body.inputs[1 : 1 + region.carries], body.outputs, strict=False)
    ]
    rows = [same.get(each, each) for each in body.outputs[region.carries :]]
    return replace(region, body=replace(body, ops=ops, outputs=(*kept, *rows)))


def _needed(region: Region, wanted: set[int]) -> set[int]:
    """The carried values that results, or what is carried elsewhere, depend on."""
    body = region.body
    numbers = {entry.variable: k for k, entry in enumerate(body.inputs[1 : 1 + region.carries])}
    found = {k for k in wanted if k < region.carries}
    if region.condition is not None:
        places = {entry.variable: k for k, entry in enumerate(region.condition.inputs[1 : 1 + region.carries])}
        found |= {places[each] for each in cone(region.condition, region.condition.outputs) if each in places}
    while True:
        roots = [body.outputs[k] for k in {*found, *(k for k in wanted if k >= region.carries)}]
        more = {numbers[each] for each in cone(body, roots) if each in numbers} - found
        if not more:
            return found
        found |= more


def _condition_reads(region: Region, place: int) -> bool:
    """Whether the condition reads what is the same in every trip, by its place among the body's inputs."""
    if region.condition is None:
        return False
    place = place if place <= region.carries else place - region.slices
    return region.condition.inputs[place].variable in cone(region.condition, region.condition.outputs)


def _hoisted(rewriting: Rewriting, region: Region, operands: list[int]) -> tuple[Region, list[int]]:
    """Compute ahead of a loop what is the same in every trip; the loop that is left, with its operands."""
    body, first = region.body, region.first_invariant
    same = {entry.variable for entry in body.inputs[first:]}
    moving = [op for op in body.ops if _is_same(op, same, body)]
    if not moving or region.condition is not None:
        return region, operands
    inside = {op.result for op in moving}
    read = users(body)
    kept = set(body.outputs)
    # Another look at memory costs nothing in a loop, and may cost memory outside.
    for op in reversed(moving):
        last = op.result in kept or any(user.result not in inside for user in read.get(op.result, ()))
        if last and (is_view(op, body.types) or op.access in (AccessMap.BROADCAST, AccessMap.ITEM)):
            inside.discard(op.result)
    left = {operand for op in body.ops if op.result not in inside for operand in op.operands}
    if len(inside & left) > _MOST_HOISTED:
        return region, operands
    known = {entry.variable: each for entry, each in zip(body.inputs[first:], operands[first - 1 :], strict=True)}
    inputs, operands = list(body.inputs), list(operands)
    for op in moving:
        made = []
        for operand in op.operands:
            if operand not in known:
                known[operand] = rewriting.builder.constant_of(body.constants[operand], body.types[operand])
            made.append(known[operand])
        known[op.result] = rewriting.builder.emit(op.primitive, made, op.static, body.types[op.result])
        if op.result not in inside:
            continue
        inputs.append(Input(op.result, len(inputs), f"same{len(inputs)}"))
        operands.append(known[op.result])
    ops = tuple([op for op in body.ops if op.result not in inside])
    wanted = {*body.outputs, *(operand for op in ops for operand in op.operands)}
    numbers = [k for k, entry in enumerate(inputs) if k < first or entry.variable in wanted]
    body = with_inputs(replace(body, ops=ops, inputs=tuple(inputs)), numbers)
    return replace(region, body=body), [operands[k - 1] for k in numbers[1:]]


def _is_same(op: Op, same: set[int], body: Tape) -> bool:
    """Whether an op gives the same in every trip; then its result is added to ``same``."""
    found = not op.regions and all(each in same or each in body.constants for each in op.operands)
    if found and any(each in same for each in op.operands):
        same.add(op.result)
        return True
    return False
