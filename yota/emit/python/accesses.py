"""What the units of a schedule read and write, in which memory and which rows: checked before anything is generated.

It says again, from units and storage alone, what `yota.emit.python.lower`, `yota.emit.python.blocked_loops` and
`yota.emit.python.totals` write as statements.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence

from yota.emit.python.numpy_arrays import overwritten
from yota.emit.python.storage import Storage
from yota.ir.semantics import AccessMap
from yota.ir.tape import Op, Tape
from yota.optimize.array_writes import is_view, roots
from yota.schedule.blocked.units import First, Kernel, Member, Unit, copied_whole, first_pieces, in_order, landing
from yota.schedule.liveness import WHOLE, Access, Action, Rows, Unfinished, simulate


def check(
    tape: Tape,
    units: Sequence[Unit],
    storage: Storage,
    nested: frozenset[int] = frozenset(),
    freed: Mapping[int, Sequence[int]] | None = None,
) -> None:
    """Refuse a schedule in which something reads what is not there any more, or not yet."""
    _Schedule(tape, units, storage, nested, freed or {}).check()


def check_steps(tape: Tape, steps: Sequence[Op | Kernel]) -> None:
    """The same for steps whose results all have memory of their own."""
    definitions = tape.definitions()
    units = [Unit.of(step, definitions) for step in steps]
    made = frozenset(variable for unit in units for variable in unit.results)
    check(tape, units, Storage({}, (), {}, roots(tape, made), made=made))


class _Schedule:
    def __init__(
        self,
        tape: Tape,
        units: Sequence[Unit],
        storage: Storage,
        nested: frozenset[int],
        freed: Mapping[int, Sequence[int]],
    ) -> None:
        self.tape, self.units, self.storage, self.freed = tape, units, storage, freed
        self.nested = {v: op for v, op in tape.definitions().items() if v in nested}

    def check(self) -> None:
        simulate(self._actions())

    def buffer(self, root: int) -> Hashable:
        """The memory of a variable that looks at no other one."""
        owner = self.storage.owner.get(root, root)
        slot = self.storage.slot.get(owner)
        return ("memory of", owner) if slot is None else ("slot", slot)

    def read(self, variable: int) -> Iterator[Access]:
        """What a whole variable is read from; of one that is written where it is used, what that is computed from."""
        op = self.nested.get(variable)
        if op is not None:
            for operand in op.operands:
                yield from self.read(operand)
            return
        for root in sorted(self.storage.roots[variable]):
            yield Access(self.buffer(root), root)

    def _actions(self) -> Iterator[Action]:
        entered = [*(entry.variable for entry in self.tape.inputs), *self.tape.constants]
        yield Action("the call", writes=tuple(Access(self.buffer(v), v) for v in entered))
        for position, unit in enumerate(self.units):
            if unit.extent:
                yield from _Loop(self, position, unit).actions()
            elif unit.is_kernel:
                yield self._kernel(unit)
            else:
                yield from self._single(unit.members[0].op)
            freed = tuple(self.buffer(v) for v in self.freed.get(unit.members[0].op.result, ()))
            if freed:
                yield Action(f"after {named(unit.members[0].op)}", frees=freed)
        kept = (*self.tape.outputs, *(guard.variable for guard in self.tape.guards))
        yield Action("the end", reads=tuple(access for variable in kept for access in self.read(variable)))

    def _kernel(self, unit: Unit) -> Action:
        reads = tuple(access for variable in unit.reads for access in self.read(variable))
        writes = tuple(Access(self.buffer(variable), variable) for variable in unit.results)
        return Action("the kernel of " + ", ".join(f"%{v}" for v in unit.results), reads, writes)

    def _single(self, op: Op) -> Iterator[Action]:
        reads = tuple(access for operand in op.operands for access in self.read(operand))
        if self.storage.roots[op.result] != {op.result}:
            # Memory of its own is made only where it turns out to be no view.
            own = [op.result] if op.result in self.storage.roots[op.result] else []
            yield Action(named(op), reads, tuple(Access(self.buffer(v), v) for v in own))
            return
        buffer = self.buffer(op.result)
        yield Action(named(op), reads, (Access(buffer, op.result),), self._over(op, buffer))

    def _over(self, op: Op, buffer: Hashable) -> frozenset[Hashable]:
        """Buffers that an op on whole arrays may write while it reads them."""
        direct = [self.buffer(root) for each in op.operands for root in self.storage.roots[each]]
        if op.access in (AccessMap.WRITE, AccessMap.DEPOSIT):
            # NumPy copies a value that overlaps with where it goes. Of several pieces it sees one at a time.
            pieces = len(op.keyword("indices")) if op.access == AccessMap.DEPOSIT else 1
            held = self.storage.inherits.get(op.result) == op.operands[0]
            return frozenset([buffer] if held and (pieces == 1 or direct.count(buffer) == 1) else [])
        if op.semantics.chooses:
            return frozenset(self.buffer(v) for v in overwritten(op, self.storage.roots))
        return frozenset([buffer] if op.semantics.ufunc and not op.static else [])


class _Loop:
    def __init__(self, schedule: _Schedule, position: int, unit: Unit) -> None:
        self.schedule, self.position, self.unit = schedule, position, unit
        self.types, self.local = schedule.tape.types, unit.local
        self.views = {m.op.result: m.op for m in unit.members if is_view(m.op, self.types)}
        self.firsts = first_pieces(unit, self.types, schedule.storage.roots)
        self.direct = {
            first.direct: (total, first.shift)
            for total, first in self.firsts.items()
            if first is not None and first.direct is not None
        }

    def actions(self) -> Iterator[Action]:
        """What happens ahead of the loop, in each of its rounds, and after it."""
        extent, block = self.unit.extent, self.unit.block
        yield from self._ahead()
        for start in range(0, extent, block):
            yield from self._copies(start)
            for member in self.unit.members:
                if member.op.result not in self.views:
                    yield from self._member(member, (start, min(start + block, extent)))
        for variable in self.unit.results:
            reads: tuple[Access, ...] = ()
            whole = self._whole(variable, variable, WHOLE)
            if variable in self.local:
                reads = (self._whole(variable, variable),)
            elif self.types[variable].size != 1:
                first = self.firsts.get(variable)
                rows = (0, self._length(variable, first)) if first is not None else WHOLE
                reads = (self._whole(variable, Unfinished(variable), rows),)
            yield Action(f"the end of the loop of %{variable}", reads, (whole,), frozenset([whole.buffer]))

    def _whole(self, variable: int, value: Hashable, rows: Rows | None = None) -> Access:
        return Access(self.schedule.buffer(variable), value, rows or (0, self.unit.extent))

    def _length(self, variable: int, first: First) -> int:
        return self.types[variable].shape[first.axis]

    def _ahead(self) -> Iterator[Action]:
        """Totals are filled: all of them, or the rows that no piece is the first to reach."""
        for variable in self.unit.results:
            if variable in self.local or self.types[variable].size == 1:
                continue
            first = self.firsts.get(variable)
            rows: list[Rows] = [WHOLE]
            if first is not None:
                end = first.shift + self.unit.extent
                rows = [(0, first.shift), (end, self._length(variable, first))]
            writes = (self._whole(variable, Unfinished(variable), each) for each in rows if each[0] < each[1])
            yield Action(f"the loop of %{variable}", writes=tuple(writes))

    def _copy(self, operand: int, axis: int | None) -> Hashable | None:
        """The buffer that pieces of an operand are copied to, into the loop's layout."""
        slot = self.schedule.storage.slot.get((self.position, "read", operand, axis))
        return None if slot is None else ("slot", slot)

    def _copies(self, start: int) -> Iterator[Action]:
        for operand, axis in dict.fromkeys(
            each
            for m in self.unit.members
            if m.placement.reads
            for each in zip(m.op.operands, m.placement.reads, strict=True)
        ):
            buffer = self._copy(operand, axis) if operand not in self.local else None
            if buffer is not None and not copied_whole(self.types[operand], self.unit, self.types):
                made = Access(buffer, ("copy", operand, axis, start))
                yield Action(f"the copy of %{operand}", tuple(self.schedule.read(operand)), (made,))

    def _piece(self, variable: int, rows: Rows) -> Access:
        if variable in self.direct:
            total, shift = self.direct[variable]
            return self._whole(total, ("piece", variable), (rows[0] + shift, rows[1] + shift))
        if variable in self.unit.stored:
            return self._whole(variable, variable, rows)
        slot = self.schedule.storage.slot.get((self.position, variable))
        buffer = ("piece of", variable) if slot is None else ("slot", slot)
        return Access(buffer, ("piece", variable, rows[0]))

    def _reads(self, member: Member, rows: Rows, only: int | None = None) -> Iterator[Access]:
        """What a member reads of its operands, or of a single one."""
        for number in range(len(member.op.operands)) if only is None else (only,):
            operand, axis = member.op.operands[number], member.placement.reads[number]
            source = operand
            while source in self.local and source in self.views:
                source = self.views[source].operands[0]
            copied = self._copy(operand, axis) if operand not in self.local else None
            if source in self.local:
                yield self._piece(source, rows)
            elif copied is not None:
                yield Access(copied, ("copy", operand, axis, rows[0]))
            else:
                yield from self.schedule.read(source)

    def _member(self, member: Member, rows: Rows) -> Iterator[Action]:
        op = member.op
        reads = tuple(self._reads(member, rows))
        if op.result in self.local:
            piece = self._piece(op.result, rows)
            ufunc = op.semantics.ufunc and not op.static
            over = [piece.buffer] if ufunc else []
            if op.semantics.chooses:
                over = [
                    self._piece(v, rows).buffer for v in overwritten(op, self.schedule.storage.roots) if v in self.local
                ]
            yield Action(named(op), reads, (piece,), frozenset(over))
        elif op.access == AccessMap.SCATTER:
            yield from self._scattered(member, rows, reads)
        elif self.types[op.result].size == 1:
            yield Action(named(op), reads)
        else:
            total = self._whole(op.result, Unfinished(op.result), WHOLE)
            yield Action(named(op), (*reads, total), (total,), frozenset([total.buffer]))

    def _scattered(self, member: Member, rows: Rows, reads: tuple[Access, ...]) -> Iterator[Action]:
        """Pieces that are added one after the other, each at its own shift."""
        op, first = member.op, self.firsts[member.op.result]
        for number in in_order(op, first):
            read = member.placement.reads[number]
            assert read is not None
            _, shift = landing(op.keyword("indices")[number], read)
            place = (rows[0] + shift, rows[1] + shift)
            written = self._whole(op.result, Unfinished(op.result), place if first is not None else WHOLE)
            over = frozenset([written.buffer])
            if first is None or number != first.number:
                yield Action(named(op), (*self._reads(member, rows, number), written), (written,), over)
            else:
                yield Action(named(op), reads, (written,), over if first.direct is not None else frozenset())


def named(op: Op) -> str:
    """An op in messages."""
    return f"{op.name} -> %{op.result}"
