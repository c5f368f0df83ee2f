"""Moves ops between loops so that fewer whole arrays are stored: work is done where its result is used.

A first loop ends in a sum on which a second one depends. What only the second one reads is moved there; what both
read and is cheap to compute is computed twice, since arithmetic in the cache costs less than memory traffic.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence

from yota.ir.semantics import AccessMap
from yota.ir.tape import Op, Tape
from yota.ir.types import TensorType
from yota.optimize.array_writes import is_view
from yota.schedule.blocked.row_ops import place
from yota.schedule.blocked.units import Growing, Member


class _Readers:
    """The readers of each variable; a lone view stands for those who read the view.

    units: all units; more may come.
    kept: variables that are read from outside, too.
    """

    def __init__(self, units: Sequence[Growing], kept: Container[int], types: Mapping[int, TensorType]) -> None:
        self._kept, self._types = kept, types
        self._units: list[Growing] = []
        self._number: dict[int, int] = {}
        self._direct: dict[int, set[int]] = {}
        """For each variable, the numbers of the units that read it."""
        self._known: dict[int, list[Growing]] = {}
        for unit in units:
            self.add(unit, (member.op for member in unit.members))

    def of(self, variable: int) -> list[Growing]:
        """Who reads ``variable``, each once."""
        found = self._known.get(variable)
        if found is None:
            units: dict[int, Growing] = {}
            for number in sorted(self._direct.get(variable, ())):
                units.update((id(unit), unit) for unit in self._behind_view(self._units[number]))
            found = self._known[variable] = list(units.values())
        return found

    def add(self, unit: Growing, ops: Iterable[Op]) -> None:
        """``unit`` reads what ``ops`` read."""
        number = self._number.setdefault(id(unit), len(self._units))
        if number == len(self._units):
            self._units.append(unit)
        for op in ops:
            for operand in op.operands:
                self._direct.setdefault(operand, set()).add(number)
        self._known.clear()

    def drop(self, unit: Growing, ops: Iterable[Op]) -> None:
        """``unit`` has lost ``ops``."""
        left = {operand for member in unit.members for operand in member.op.operands}
        for op in ops:
            for operand in op.operands:
                if operand not in left:
                    self._direct[operand].discard(self._number[id(unit)])
        self._known.clear()

    def _behind_view(self, unit: Growing) -> list[Growing]:
        """``unit`` itself, or who reads it if it is a lone view."""
        op = unit.members[0].op
        if unit.extent or not is_view(op, self._types):
            return [unit]
        return [*self.of(op.result), *([unit] if op.result in self._kept else ())]


_MOST_REPEATED = 4


def sink(tape: Tape, units: list[Growing]) -> None:
    """Rearrange the members of the loops among ``units`` in place; views of what stays whole may be added."""
    _Sinker(tape, units).run()


class _Sinker:
    def __init__(self, tape: Tape, units: list[Growing]) -> None:
        self.types, self.units = tape.types, units
        self.groups = [unit for unit in units if unit.extent]
        self.kept = set(tape.outputs) | {guard.variable for guard in tape.guards}
        self.ops = tape.definitions()
        self.number = {op.result: number for number, op in enumerate(tape.ops)}
        self.readers = _Readers(units, self.kept, self.types)
        self.home = {v: group for group in self.groups for v in group.axes}

    def run(self) -> None:
        """Move first, so that nothing is repeated that could stand in one place."""
        if len(self.groups) < 2:
            return
        for group in reversed(self.groups):
            for target in self.groups:
                if target is group or target.extent != group.extent or target.before & group.bit == 0:
                    continue
                moved = self._movable(group, target)
                if moved:
                    self._transfer(group, target, moved, keep=False)
        for group in self.groups:
            for variable in [v for v in group.axes if self.home.get(v) is group]:
                self._repeat(group, variable)

    def _movable(self, group: Growing, target: Growing) -> list[Op]:
        """Ops whose results only ``target``, or other such ops, read; if moving them saves arrays."""
        readers = self.readers.of
        inner: dict[int, set[int]] = {}
        for member in group.members:
            for operand in member.op.operands:
                inner.setdefault(operand, set()).add(member.op.result)
        moved: dict[int, Op] = {}
        for member in reversed(group.members):
            variable = member.op.result
            outside = [unit for unit in readers(variable) if unit is not group]
            if variable not in group.axes or variable in self.kept or not (outside or inner.get(variable)):
                continue
            if all(unit is target for unit in outside) and inner.get(variable, set()) <= moved.keys():
                moved[variable] = member.op
        gone = {v for v in moved if any(unit is target for unit in readers(v))}
        needed = {v for op in moved.values() for v in op.operands if v in group.axes and v not in moved}
        extra = {v for v in needed if v not in self.kept and all(unit is group for unit in readers(v))}
        gone = {v for v in gone if not is_view(moved[v], self.types)}
        if not moved or len(extra) > len(gone) or (len(extra) == len(gone) and extra):
            return []
        return list(reversed(moved.values()))

    def _repeat(self, group: Growing, variable: int) -> None:
        """Compute a cheap variable again in each loop that reads it, rather than store it."""
        outside = [unit for unit in self.readers.of(variable) if unit is not group]
        if not outside or variable in self.kept or any(unit.extent != group.extent for unit in outside):
            return
        ops = self._recipe(group, variable, _MOST_REPEATED)
        if ops is None:
            return
        for target in outside:
            if not self._transfer(group, target, [op for op in ops if op.result not in target.axes], keep=True):
                return

    def _recipe(self, group: Growing, variable: int, most: int) -> list[Op] | None:
        """Ops that compute ``variable`` from whole arrays; None if they are too many or too dear."""
        needed: dict[int, Op] = {}
        pending = [variable]
        while pending:
            op = self.ops[pending.pop()]
            view = is_view(op, self.types)
            if not view and (not op.semantics.cheap or most == 0):
                return None
            most -= not view
            needed[op.result] = op
            for v in op.operands:
                inside = v in group.axes and v not in needed and v not in self.kept
                if inside and all(unit.extent == group.extent for unit in self.readers.of(v)):
                    pending.append(v)
        return sorted(needed.values(), key=lambda op: self.number[op.result])

    def _transfer(self, group: Growing, target: Growing, ops: Sequence[Op], keep: bool) -> bool:
        """Put ``ops`` into ``target``, and take them out of ``group`` unless ``keep``."""
        axes = dict(target.axes)
        placed, outside = [], []
        wishes = {v: group.axes[v] for v in group.axes}
        for op in ops:
            known = {v: axes[v] for v in op.operands if v in axes}
            wish: int | None = wishes[op.result]
            if op.access == AccessMap.REDUCTION:
                wish = next(m.placement.reads[0] for m in group.members if m.op is op)
            found = place(op, self.types, group.extent, known, wish)
            if found is None and not known and is_view(op, self.types):
                outside.append(op)
                continue
            if found is None or found.axis != wishes[op.result]:
                return False
            axes[op.result] = found.axis
            placed.append(Member(op, found))
        # Views that stood outside must come along where their operand does.
        along = self._views_along(target, axes, {member.op.result for member in placed})
        if along is None or not self._consistent(target, axes):
            return False
        placed += along
        self._stand_outside(outside)
        self.readers.add(target, (member.op for member in placed))
        target.members += placed
        target.members.sort(key=lambda member: self.number[member.op.result])
        target.axes = axes
        target.before |= group.before
        if keep:
            target.repeated.update(op.result for op in ops)
        else:
            names = {op.result for op in ops}
            group.members = [m for m in group.members if m.op.result not in names]
            self.readers.drop(group, ops)
            for name in names:
                group.axes.pop(name, None)
                self.home[name] = target
        return True

    def _stand_outside(self, views: Iterable[Op]) -> None:
        """Give views of whole arrays a place of their own, so that their readers are known to read those arrays."""
        alone = {unit.members[0].op.result for unit in self.units if not unit.extent}
        for op in views:
            if op.result not in alone:
                self.units.append(Growing([Member(op)]))
                self.readers.add(self.units[-1], (op,))

    def _views_along(self, target: Growing, axes: dict[int, int], arrived: set[int]) -> list[Member] | None:
        """Views of what has arrived; None if one of them needs it whole."""
        found = []
        alone = [unit.members[0].op for unit in self.units if not unit.extent]
        for op in sorted(alone, key=lambda op: self.number[op.result]):
            if not is_view(op, self.types) or op.operands[0] not in arrived or op.result in axes:
                continue
            placement = place(op, self.types, target.extent, {op.operands[0]: axes[op.operands[0]]}, None)
            if placement is None or placement.axis is None:
                return None
            axes[op.result] = placement.axis
            arrived.add(op.result)
            found.append(Member(op, placement))
        return found

    def _consistent(self, target: Growing, axes: Mapping[int, int]) -> bool:
        """Whether each member of ``target`` cuts what the loop now computes itself along that very axis."""
        for member in target.members:
            for operand, read in zip(member.op.operands, member.placement.reads, strict=True):
                if operand in axes and operand not in target.axes and read != axes[operand]:
                    return False
        return True
