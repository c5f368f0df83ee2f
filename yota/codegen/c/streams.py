"""Results that no cache holds: a block of them is computed at hand, and written past the caches in whole lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from yota.codegen.c.frame import Frame, Sink
from yota.codegen.c.index import Linear
from yota.codegen.c.lines import offset_text
from yota.codegen.c.types import c_type

__all__ = ["Stream", "streams"]

_LARGE = 1 << 25
"""Bytes of results that have left the caches before someone reads them."""
_AT_HAND = 1 << 15
"""Bytes of all blocks together that the nearest cache holds."""
_ROUNDS = (128, 64, 32, 16)
"""Lengths of blocks, in rounds of the loop."""


@dataclass(frozen=True, slots=True)
class Stream:
    """A part of a result that one loop writes from its start to its end.

    Parameters
    ----------
    result
        Name of the result.
    start
        The place that is written first.
    step
        How many places are written in one round.
    type
        Type of the elements.
    held, to
        Names of the block at hand, and of what points to where the loop writes.
    sinks
        What is written in one round, in the order of the places.
    """

    result: str
    start: int
    step: int
    type: str
    held: str
    to: str
    sinks: tuple[Sink, ...]

    def declared(self, block: str, rounds: int) -> list[str]:
        """Statements that make room for so many rounds, of which ``block`` is the first."""
        return [
            f"{self.type} {self.held}[{self.step * rounds}];",
            f"{self.type} *const {self.to} = at_hand({self.held}, {self._first(block)});",
        ]

    def target(self, sink: Sink, counter: str, block: str) -> str:
        """Where a value goes in one round."""
        return f"{self.to}[{self._place(f'{counter} - {block}', sink.offset.constant - self.start)}]"

    def written(self, block: str, end: str) -> str:
        """The statement that writes the block."""
        rounds = f"({end} - {block})" if self.step == 1 else f"{self.step} * ({end} - {block})"
        return f"write_past_caches({self._first(block)}, {self.to}, {rounds} * sizeof *{self.to});"

    def _first(self, block: str) -> str:
        return f"{self.result} + {self._place(block, self.start)}"

    def _place(self, rounds: str, further: int) -> str:
        counter = f"({rounds})" if " " in rounds and self.step > 1 else rounds
        return offset_text(Linear(further, ((0, self.step),)), [counter])


def streams(frame: Frame, sinks: Sequence[Sink], axes: Sequence[int]) -> tuple[list[Stream], int]:
    """What the only loop of a kernel writes in such an order, if it is much, and how many rounds a block has."""
    if frame.whole or len(axes) != 1:
        return [], 0
    by_result: dict[int, list[Sink]] = {}
    for sink in sinks:
        if not sink.merge:
            by_result.setdefault(sink.root.variable, []).append(sink)
    runs = [run for each in by_result.values() for run in _runs(each, axes[0])]
    size = sum(len(run) * run[0].dtype.itemsize for run in runs)
    rounds = next((each for each in _ROUNDS if size * each <= _AT_HAND), 0)
    if size * frame.extent(axes[0]) < _LARGE or not rounds:
        return [], 0
    frame.needs.parts.add(("past_caches", "uint8"))
    return [_stream(frame, run) for run in runs], rounds


def _runs(sinks: Sequence[Sink], axis: int) -> list[list[Sink]]:
    """The places that are neighbours in one round, and beside them those of the next round; empty if some are not."""
    step = sinks[0].offset.coefficient(axis)
    if step < 1 or len(sinks) % step or any(sink.offset.terms != ((axis, step),) for sink in sinks):
        return []
    ordered = sorted(sinks, key=lambda sink: sink.offset.constant)
    runs = [ordered[start : start + step] for start in range(0, len(ordered), step)]
    beside = all(sink.offset.constant == run[0].offset.constant + at for run in runs for at, sink in enumerate(run))
    return runs if beside else []


def _stream(frame: Frame, run: Sequence[Sink]) -> Stream:
    result = frame.results[run[0].root.variable]
    return Stream(
        result,
        run[0].offset.constant,
        len(run),
        c_type(run[0].dtype),
        frame.names.fresh(f"{result}_held"),
        frame.names.fresh(f"{result}_at"),
        tuple(run),
    )
