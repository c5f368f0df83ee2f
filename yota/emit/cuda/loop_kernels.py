"""Loops of a tape in CUDA kernels of one thread, with what lies between them if all of it is short."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from yota.emit.c.c_plan import Tables
from yota.emit.c.c_standalone import Shared, statements_of
from yota.emit.c.dialect import NAMES, THREAD, c_type, is_known
from yota.emit.c.frame import ArrayNames
from yota.emit.c.lines import Needs
from yota.emit.c.statements import Sizes
from yota.emit.cuda.cuda_plan import KernelPlan, Launch, Parameter, Step, read, words_of, written
from yota.emit.cuda.thread_memory import Layout
from yota.emit.tree import Define, Memory, Statement
from yota.errors import CodegenError
from yota.ir.extents import Extent
from yota.ir.inputs import Input
from yota.ir.location import where
from yota.ir.semantics import AccessMap
from yota.ir.tape import Op, Tape
from yota.ir.types import TensorType, TupleType
from yota.schedule.nests.groups import Group, Schedule

_MOST = 1_024
"""Elements of an array up to which one thread computes it."""
_BYTES = {c_type(np.dtype(name)): np.dtype(name).itemsize for name in NAMES}


def with_threads(plan: Schedule) -> Iterator[Group | Op | tuple[Op, ...]]:
    """The steps of a schedule; ops that one thread does stand together."""
    tape = plan.tape
    loops = {op.result: [op] for op in tape.ops if op.regions}
    for op in tape.ops:
        if op.access == AccessMap.ITEM and op.operands[0] in loops:
            loops[op.operands[0]].append(op)
    own = {op.result for each in loops.values() for op in each}
    others = [step for step in plan.steps if isinstance(step, Op) and step.result not in own]
    if loops and not others and not any(map(_is_long, _computed(tape))):
        yield tape.ops
        return
    for step in plan.steps:
        if isinstance(step, Group) or step.result not in own:
            yield step
        elif step.regions:
            yield tuple(loops[step.result])


def plan_thread(
    tape: Tape, ops: Sequence[Op], name: str, needs: Needs, tables: Tables, layout: Layout, sizes: Sequence[str] = ()
) -> Step:
    """The kernel ``name``, in which one thread does ``ops`` of a tape.

    Raises CodegenError if they are not for one thread.
    """
    own = {op.result for op in ops}
    read_later = {each for op in tape.ops if op.result not in own for each in op.operands}
    read_later |= {*tape.outputs, *(guard.variable for guard in tape.guards)}
    outputs = tuple([op.result for op in ops if op.result in read_later])
    entered = {each for op in ops for each in op.operands} - own
    inputs = sorted(entered - tape.constants.keys())
    alone = replace(tape, name=name, ops=tuple(ops), outputs=outputs, guards=())
    place = where(next(op for op in ops if op.regions).location)
    types = [*(tape.types[each] for each in entered), *_types(alone)]
    if layout.stored or not all(is_known(type.dtype) and type.size for type in types):
        raise CodegenError(f"{place}a loop of numbers of 16 bits, or of arrays without elements, has no form in CUDA")
    if any(map(_is_long, _computed(alone))):
        raise CodegenError(f"{place}a trip computes arrays of more than {_MOST} elements, too many for one thread")
    names = THREAD.names(name, sizes)
    called = ArrayNames(tape, names)
    texts, given = [called[each] for each in inputs], [called[each] for each in outputs]
    taken, first = (*texts, *given), list[Statement]()
    for number, variable in enumerate(inputs):
        if variable in layout.pointers:
            texts[number] = names.fresh(f"{texts[number]}_now")
            first.append(Define(c_type(tape.types[variable].dtype), texts[number], f"*{called[variable]}"))
    results = [text if tape.types[each].shape else f"*{text}" for text, each in zip(given, outputs, strict=True)]
    entries = tuple([Input(each, number, text) for number, (each, text) in enumerate(zip(inputs, texts, strict=True))])
    needs.complex |= any(type.is_complex for type in types)
    shared = Shared(names, replace(needs, language=THREAD), tables)
    definitions, lines, _ = statements_of(
        replace(alone, inputs=entries), name, texts, results, shared, Sizes((*sizes, *taken))
    )
    rooms = [each for each in definitions if isinstance(each, Memory)]
    rest = [each for each in definitions if not isinstance(each, Memory)]
    printed = tuple(THREAD.printed([*first, *rest, *lines]))
    needs.device.update(words_of(printed))
    parameters = (
        *(read(tape, layout, each, called[each]) for each in inputs),
        *(Parameter(f"{each.type} *__restrict__ ", each.name, "") for each in rooms),
        *(written(tape, layout, each, called[each]) for each in outputs),
    )
    parts = tuple([(each.name, each.type, each.count * _BYTES[each.type]) for each in rooms])
    kernel = KernelPlan(name, (), (), parameters, printed, Launch(1, 1))
    return Step(tuple(inputs), outputs, (kernel,), parts, dense=True)


def _is_long(type: TensorType) -> bool:
    return isinstance(type.size, Extent) or type.size > _MOST


def _tapes(tape: Tape) -> Iterator[Tape]:
    """The tape, and those of its loops."""
    yield tape
    for region in (region for op in tape.ops for region in op.regions):
        yield from _tapes(region)


def _types(tape: Tape) -> Iterator[TensorType]:
    """Types of all that ``tape`` computes."""
    for each in _tapes(tape):
        for op in each.ops:
            type = each.types[op.result]
            yield from type.parts if isinstance(type, TupleType) else (type,)


def _computed(tape: Tape) -> Iterator[TensorType]:
    """Types of what is computed by no loop."""
    for each in _tapes(tape):
        yield from (each.types[op.result] for op in each.ops if not op.regions and op.access != AccessMap.ITEM)
