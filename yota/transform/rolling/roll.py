"""Pass `roll`: ops that repeat, alike but for constants and positions, become a ``loop``."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeAlias

from yota.ir.compact_recording import Recorded
from yota.ir.indexing import GATHER
from yota.ir.semantics import AccessMap
from yota.ir.tape import Op, Tape
from yota.optimize import dce
from yota.transform.rolling.bodies import Looping
from yota.transform.rolling.iterations import Planner, Refused, Rolling
from yota.transform.rolling.periods import Columns, Worth, runs

LONG, SHORT = Worth(), Worth(trips=4, ops=8, computed=0, written=1 << 31)
"""Lengths from which a run becomes a loop where the number of trips is fixed, and where it is not."""
COMPILED = Worth(trips=4, heavy=64)
"""Lengths for C: straight code of arrays takes much longer to compile than loops, and runs no faster."""
WRITTEN = Worth(ops=512, heavy=64)
"""Lengths for files in compiled languages, which people read."""
_Places: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Chain:
    """Writes one after the other at places of one kind: these are the same place, or have nothing in common.

    root: the array before the first of them, on the tape that is read.
    pattern: the index without its integers.
    writes: by place, the number of each write in the chain, and what was written.
    order: the arrays that it made.
    """

    root: int
    pattern: tuple[object, ...]
    writes: dict[_Places, list[tuple[int, int]]] = field(default_factory=dict)
    order: list[int] = field(default_factory=list)


class _Forwarding:
    def __init__(self, tape: Tape) -> None:
        self.tape = tape
        self.values: dict[int, int] = {}
        """By result of a read that is dropped, the variable that was written."""
        self.versions: dict[int, tuple[_Chain, int]] = {}
        """By array, the chain that made it, and after how many writes."""

    def run(self) -> Tape:
        """The tape, with the same variables."""
        tape, values = self.tape, self.values
        ops: list[Op] = []
        counts = [0]
        for op in tape.ops:
            if not values.keys().isdisjoint(op.operands):
                op = replace(op, operands=tuple([values.get(each, each) for each in op.operands]))
            found = self._forwarded(op) if op.access in (AccessMap.READ, AccessMap.WRITE) else op
            if found is not None:
                ops.append(found)
            counts.append(len(ops))
        guards = [
            replace(each, variable=values.get(each.variable, each.variable), after=counts[each.after])
            for each in tape.guards
        ]
        outputs = tuple([values.get(each, each) for each in tape.outputs])
        return replace(tape, ops=tuple(ops), outputs=outputs, guards=tuple(guards))

    def _forwarded(self, op: Op) -> Op | None:
        """A read or write as it is without what was written elsewhere; None for a read of what is known."""
        index = op.keyword("index")
        places = tuple([entry for entry in index if isinstance(entry, int)])
        if GATHER in index or not places:
            return op
        pattern = tuple([None if isinstance(entry, int) else entry for entry in index])
        array = op.operands[0]
        chain, count = self.versions.get(array, (None, 0))
        if op.access == AccessMap.WRITE:
            if chain is None or chain.pattern != pattern or len(chain.order) != count:
                chain, count = _Chain(array, pattern), 0
            chain.order.append(op.result)
            chain.writes.setdefault(places, []).append((count, op.operands[1]))
            self.versions[op.result] = chain, count + 1
            return op
        if chain is None or chain.pattern != pattern:
            return op
        for number, value in reversed(chain.writes.get(places, ())):
            # Later writes are of other versions of the array.
            if number < count:
                if self.tape.types[value] != self.tape.types[op.result]:
                    return op
                self.values[op.result] = value
                return None
        return replace(op, operands=(chain.root,))


def run(tape: Tape, worth: Worth = LONG) -> Tape:
    """``tape`` with loops in the place of ops that repeat; everything is computed in the same order."""
    if not worth(len(tape), len(tape) if len(tape) >= worth.ops else sum(worth.weights(tape, tape.ops))):
        return replace(tape, ops=tuple(tape.ops))
    if not isinstance(tape.ops, Recorded):
        tape = dce.run(tape)
    columns = Columns(tape, worth)
    if isinstance(tape.ops, Recorded) and (columns.last < 0).any():
        tape = dce.run(tape)
        columns = Columns(tape, worth)
    found: list[Tape] = []
    if columns.writes:
        # Reads of single places that were written before are reads of what was written.
        found += _with_loops(Columns(dce.run(_Forwarding(tape).run()), worth))
    if not found or len(found[0]) >= worth.ops:
        found += _with_loops(columns)
    return min(found, key=len) if found else replace(tape, ops=tuple(tape.ops))


def _with_loops(columns: Columns) -> list[Tape]:
    found = _rolled(columns)
    return [found] if any(op.regions for op in found.ops) else []


def _rolled(columns: Columns) -> Tape:
    tape, worth = columns.tape, columns.worth
    found = runs(columns)
    if not found:
        return tape
    rolling = Rolling(columns)
    planner, done = Planner(columns, rolling.rows), 0
    for each in found:
        plan = planner.plan(each, done)
        if plan is None:
            continue
        rolling.copied(done, plan.run.start)
        done = plan.run.start
        with suppress(Refused):
            Looping(rolling, plan, partial(run, worth=worth)).emit()
            done = plan.run.stop
    rolling.copied(done, len(tape.ops))
    return dce.run(rolling.finish())
