"""The loops of one CUDA kernel: how its threads run over the points, and join the totals that they have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from yota.codegen.c.frame import Sink
from yota.codegen.c.kernel import mentions
from yota.codegen.cuda.memory import Memory
from yota.codegen.cuda.shape import Counters, Shape
from yota.codegen.render import render_lines

__all__ = ["Total", "loops"]


@dataclass(frozen=True, slots=True)
class Total:
    """A value that threads add up: its name and type, the result it ends in, over all loops or not, and where in it."""

    name: str
    type: str
    sink: Sink
    full: bool
    target: str


def loops(
    memory: Memory,
    counters: Counters,
    shape: Shape,
    hoisted: Sequence[Sequence[str]],
    inner: Sequence[str],
    totals: Sequence[Total],
) -> list[str]:
    """A kernel's statements: loops around those for one point.

    Parameters
    ----------
    memory, counters, shape
        Where elements are, what counts the points, and how threads share them out.
    hoisted
        Statements ahead of all loops, and of the inner one.
    inner
        Statements for one point.
    totals
        What threads add up.
    """
    form = "packed" if memory.packs else "rows" if memory.held else "flat" if shape.flat else "folded"
    start = ("first + " if shape.splits > 1 else "") + "lane"
    if shape.deep == 1:
        start = "first" if shape.splits > 1 else "0"
    counter = counters.names[shape.kept[0]] if shape.kept else ""
    return render_lines(
        f"cuda/loops/{form}.cu.jinja",
        memory=memory,
        counters=counters,
        shape=shape,
        hoisted=hoisted,
        inner=list(inner),
        totals=[total for total in totals if total.full],
        own=[total for total in totals if not total.full],
        index=counters.type,
        start=start,
        counter=counter,
        counts=mentions(inner, counter),
        packs=memory.all_packs(),
        rows=memory.all_rows(),
    )
