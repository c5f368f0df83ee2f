"""Loops of a tape as loops in C: one function that does all trips, and kernels that it calls."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from yota.emit.c.c_plan import KernelPlan
from yota.emit.c.c_standalone import Shared, statements_of
from yota.emit.c.dialect import NAMES, c_type
from yota.emit.c.frame import ArrayNames, result_hint
from yota.emit.c.kernels import WORTH_RELEASING, Kernel, argument_of, result_of
from yota.emit.c.statements import Sizes
from yota.emit.tree import Memory
from yota.errors import CodegenError
from yota.ir.inputs import Input
from yota.ir.semantics import CONTRACTIONS
from yota.ir.tape import Op, Tape
from yota.ir.types import TensorType
from yota.schedule.nests.contractions import is_small

_SIZES = Sizes(on_stack=4096)
_LARGEST_PRODUCT = 65_536
"""Multiplications of a product up to which a trip does without BLAS."""
_GUESSED = 100
"""Trips of a loop whose number is not known."""
_DTYPES = {c_type(dtype): dtype for dtype in map(np.dtype, NAMES)}


def plan_loop(op: Op, tape: Tape, name: str, shared: Shared) -> tuple[Kernel, tuple[KernelPlan, ...]] | None:
    """The kernel of a ``loop``, and those that its trips call; None if C cannot do all of it.

    Results of the kernel behind its outputs are memory to work in.
    """
    items = {each.keyword("index"): each for each in tape.ops if each.operands[:1] == (op.result,)}
    outputs = tuple([each.result for each in items.values()])
    fixed = {each: value for each, value in tape.constants.items() if not tape.types[each].shape}
    inputs = tuple([each for each in dict.fromkeys(op.operands) if each not in fixed])
    if any(map(_needs_library, _bodies(op))):
        return None
    names = shared.needs.language.names(name)
    known = ArrayNames(tape, names)
    taken, given = [known[each] for each in inputs], [names.fresh(result_hint(tape, each)) for each in outputs]
    alone = replace(
        tape,
        inputs=tuple([Input(each, number, taken[number]) for number, each in enumerate(inputs)]),
        constants=fixed,
        ops=(op, *items.values()),
        outputs=outputs,
        guards=(),
        captured={},
    )
    own = replace(shared, kernels={})
    try:
        definitions, lines, helpers = statements_of(alone, name, taken, given, own, _SIZES)
    except CodegenError:
        return None
    rooms = [each for each in definitions if isinstance(each, Memory)]
    lines = [*(each for each in definitions if each not in rooms), *lines]
    results = [result_of(text, tape.types[each]) for text, each in zip(given, outputs, strict=True)]
    results += [result_of(each.name, TensorType(_DTYPES[each.type], (each.count,))) for each in rooms]
    work = sum(each.work for each in helpers) * _trips(op)
    plan = KernelPlan(
        name=name,
        arguments=tuple([argument_of(text, tape.types[each], True) for text, each in zip(taken, inputs, strict=True)]),
        results=tuple(results),
        lines=tuple(shared.needs.language.printed(lines)),
        work=work,
        released=work >= WORTH_RELEASING,
        runs=f"{name}_loops",
    )
    return Kernel(inputs, outputs, plan), tuple(helpers)


def _bodies(op: Op) -> Iterator[Tape]:
    """The tapes of a loop, and of the loops in them."""
    for tape in op.regions:
        yield tape
        for each in tape.ops:
            yield from _bodies(each)


def _needs_library(tape: Tape) -> bool:
    """Whether a library multiplies matrices in less time."""
    return any(op.access in CONTRACTIONS and not is_small(tape, op, _LARGEST_PRODUCT) for op in tape.ops)


def _trips(op: Op) -> int:
    """About how often the innermost loop of ``op`` runs."""
    region = op.keyword("region")
    trips = region.trips if region.is_fixed else max(region.seen, _GUESSED)
    return int(trips or 1) * max((_trips(each) for each in region.body.ops if each.regions), default=1)
