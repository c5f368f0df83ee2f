"""Groups ops into blocked loops: one pass over memory for a chain of array ops, forward and backward together."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping

from yota.ir.extents import extents_in
from yota.ir.semantics import AccessMap
from yota.ir.tape import Op, Tape
from yota.ir.types import TensorType
from yota.optimize.array_writes import is_view
from yota.schedule.blocked.row_ops import Placement, place
from yota.schedule.blocked.sink import sink
from yota.schedule.blocked.units import ROWS, Growing, Member, Unit, choose

CACHE_BYTES = 2 * 1024 * 1024
"""What the pieces in flight in one loop may take.

Measured: below 0.5 MiB the cost of the calls shows, from 1 to 8 MiB the time is the same within 10 %.
"""
_SMALLEST_RUN = 256
_LARGEST_ROW = 16384


def _leading_shape(op: Op, types: Mapping[int, TensorType]) -> tuple[int, ...]:
    """The shape that an op that starts a loop runs over."""
    return types[op.operands[0] if op.access == AccessMap.REDUCTION else op.result].shape


def _wish(op: Op, types: Mapping[int, TensorType]) -> int | None:
    """The axis along which to cut an op that starts a loop: the first whose rows are not too long."""
    if is_view(op, types) or not op.operands:
        return None
    shape = _leading_shape(op, types)
    size = math.prod(shape)
    if size < 2:
        return None
    for axis, extent in enumerate(shape):
        row = size // extent
        inner = math.prod(shape[axis + 1 :])
        rows = max(1, _LARGEST_ROW // row)
        if extent > 1 and row <= _LARGEST_ROW and (axis == 0 or rows * inner >= _SMALLEST_RUN):
            return axis
    return max(range(len(shape)), key=lambda axis: shape[axis])


def _block(group: Growing, types: Mapping[int, TensorType]) -> int:
    """Rows in one piece, so that what is live at a time stays in the cache; pieces of about equal size."""
    extent = group.extent
    last: dict[int, int] = {}
    for position, member in enumerate(group.members):
        for operand in member.op.operands:
            last[operand] = position
    live, peak, streams = 0, 0, {}
    ends: dict[int, int] = {}
    for position, member in enumerate(group.members):
        op, placement = member.op, member.placement
        for operand, read in zip(op.operands, placement.reads, strict=True):
            if read is not None and operand not in group.axes:
                streams[operand] = types[operand]
        if placement.axis is not None and not is_view(op, types):
            row = types[op.result].nbytes // extent
            live += row
            end = last.get(op.result, position)
            ends[end] = ends.get(end, 0) + row
        peak = max(peak, live)
        live -= ends.pop(position, 0)
    row = peak + sum(type.nbytes // extent for type in streams.values())
    # Rows in a piece, ``most`` at the most: if possible all pieces are of one size.
    most = max(1, CACHE_BYTES // max(row, 1))
    if most >= extent:
        return extent
    fewest = -(-extent // most)
    for pieces in range(fewest, min(fewest + fewest // 3, extent) + 1):
        if extent % pieces == 0:
            return extent // pieces
    even = -(-extent // fewest)
    return min(most, -(-even // 8) * 8) if most >= 8 else even


_LOOK_BACK = 8
_SMALLEST_TURNED = 4096


def fuse(tape: Tape, whole: frozenset[int] = frozenset()) -> tuple[Unit, ...]:
    """The tape's ops as units in the order in which they run; ``whole`` variables are computed as NumPy would."""
    if next(extents_in(tuple(type.shape for type in tape.types.values())), None) is not None:
        # How many rows a piece has room for is not known where rows have sizes of their own.
        return tuple(Unit((Member(op),)) for op in tape.ops)
    grower = _Grower(tape, whole)
    for op in tape.ops:
        grower.add(op)
    units = _pruned(tape, _dissolved(tape, grower.units))
    sink(tape, units)
    _restore_views(tape, units)
    return _sorted(tape, _settled(tape, _pruned(tape, units)))


class _Grower:
    """Puts op after op into the group where it fits, or into a unit of its own."""

    def __init__(self, tape: Tape, whole: frozenset[int]) -> None:
        self.types = tape.types
        self.whole = whole
        self.units: list[Growing] = []
        self.groups: list[Growing] = []
        self.producer: dict[int, Growing] = {}

    def add(self, op: Op) -> None:
        axis = None if op.result in self.whole else _wish(op, self.types)
        placed = op.result not in self.whole and self._join(op, axis)
        if not placed and axis is not None:
            placed = self._start(op, axis)
        if not placed or is_view(op, self.types):
            # A view costs nothing: it stands outside too, for those who need it there.
            unit = Growing([Member(op)], before=self._before(op.operands))
            self.units.append(unit)
            self.producer[op.result] = unit

    def _before(self, operands: Iterable[int]) -> int:
        """Groups that must be complete before ``operands`` are, as a bit mask."""
        mask = 0
        for operand in operands:
            unit = self.producer.get(operand)
            if unit is not None:
                mask |= unit.before | unit.bit
        return mask

    def _join(self, op: Op, axis: int | None) -> bool:
        recent = self.groups[: -_LOOK_BACK - 1 : -1]
        for related in (True, False):
            for group in recent:
                known = {v: group.axes[v] for v in op.operands if v in group.axes}
                if bool(known) is not related:
                    continue
                before = self._before(v for v in op.operands if v not in known)
                if before & group.bit:
                    continue
                found = place(op, self.types, group.extent, known, axis)
                if found is not None:
                    self._put(group, op, found, before)
                    return True
        return False

    def _put(self, group: Growing, op: Op, found: Placement, before: int) -> None:
        group.members.append(Member(op, found))
        if found.axis is not None:
            group.axes[op.result] = found.axis
        self.producer[op.result] = group
        gained = before & ~group.before
        if gained:
            group.before |= gained
            for unit in self.units:
                if unit.before & group.bit:
                    unit.before |= gained

    def _start(self, op: Op, axis: int) -> bool:
        shape = _leading_shape(op, self.types)
        found = place(op, self.types, shape[axis], {}, axis)
        if found is None:
            return False
        group = Growing([], shape[axis], bit=1 << len(self.groups))
        self.units.append(group)
        self.groups.append(group)
        self._put(group, op, found, self._before(op.operands))
        return True


def _dissolved(tape: Tape, units: Iterable[Growing]) -> list[Growing]:
    """Groups that fit into the cache as a whole become lone ops again."""
    found = []
    for unit in units:
        work = [member for member in unit.members if not is_view(member.op, tape.types)]
        if not unit.extent or (work and _worthwhile(tape, unit)):
            found.append(unit)
            continue
        # Views of what a loop computes stand outside already.
        found += [Growing([Member(member.op)], before=unit.before) for member in work]
    return found


def _worthwhile(tape: Tape, group: Growing) -> bool:
    """Whether a group is too large for the cache, or gains from another order in memory."""
    rows = _block(group, tape.types)
    if rows < group.extent:
        return True
    largest = max(tape.types[member.op.result].size for member in group.members)
    return largest >= _SMALLEST_TURNED and choose(group.members, group.axes, tape.types, rows) != ROWS


def _pruned(tape: Tape, units: list[Growing]) -> list[Growing]:
    """Units without what nobody reads any more: idle views, and ops that were moved or are repeated elsewhere."""
    wanted = set(tape.outputs) | {guard.variable for guard in tape.guards}
    count = -1
    while count != sum(len(unit.members) for unit in units):
        count = sum(len(unit.members) for unit in units)
        whole = set(wanted)
        for unit in units:
            whole.update(v for member in unit.members for v in member.op.operands if v not in unit.axes)
        for unit in units:
            needed: set[int] = set()
            kept = []
            for member in reversed(unit.members):
                result = member.op.result
                view = is_view(member.op, tape.types)
                # A unit of its own keeps what anybody reads, views too.
                stored = result in whole and not (unit.extent and (view or result in unit.repeated))
                if result in needed or stored or (unit.extent and result not in unit.axes):
                    needed.update(member.op.operands)
                    kept.append(member)
            unit.members = kept[::-1]
            for result in unit.axes.keys() - {member.op.result for member in kept}:
                del unit.axes[result]
    return [unit for unit in units if unit.members]


def _restore_views(tape: Tape, units: list[Growing]) -> None:
    """Views that stood only inside of a loop stand outside too where a moved op reads them there."""
    views = {op.result: op for op in tape.ops if is_view(op, tape.types)}
    made = {member.op.result for unit in units for member in unit.members if not unit.extent}
    wanted = {v for unit in units for member in unit.members for v in member.op.operands if v not in unit.axes}
    for variable in sorted(views, reverse=True):
        if variable in wanted and variable not in made:
            units.append(Growing([Member(views[variable])]))
            wanted.update(views[variable].operands)


def _settled(tape: Tape, units: Iterable[Growing]) -> list[Unit]:
    """Fix the size of the pieces, and what must be stored whole."""
    wanted = set(tape.outputs) | {guard.variable for guard in tape.guards}
    for unit in units:
        wanted.update(v for member in unit.members for v in member.op.operands if v not in unit.axes)
    found = []
    for unit in units:
        if not unit.extent or len(unit.members) == 1:
            found.append(Unit((Member(unit.members[0].op),)))
            continue
        rows = min(_block(unit, tape.types), unit.extent)
        layout = choose(unit.members, unit.axes, tape.types, rows)
        views = {member.op.result for member in unit.members if is_view(member.op, tape.types)}
        stored = frozenset(v for v in unit.axes if v in wanted and v not in views | unit.repeated)
        found.append(Unit(tuple(unit.members), unit.extent, rows, stored, layout))
    return found


def _sorted(tape: Tape, units: list[Unit]) -> tuple[Unit, ...]:
    """Units in an order that respects their reads; those that guards wait for come first."""
    producer = {variable: number for number, unit in enumerate(units) for variable in unit.results}
    needs = [sorted({producer[variable] for variable in unit.reads if variable in producer}) for unit in units]
    urgent: set[int] = set()
    pending = [producer[guard.variable] for guard in tape.guards if guard.variable in producer]
    while pending:
        number = pending.pop()
        if number not in urgent:
            urgent.add(number)
            pending.extend(needs[number])
    users: list[list[int]] = [[] for _ in units]
    missing = [len(need) for need in needs]
    for number, need in enumerate(needs):
        for other in need:
            users[other].append(number)
    ready = [(number not in urgent, number) for number, count in enumerate(missing) if not count]
    heapq.heapify(ready)
    order: list[Unit] = []
    while ready:
        _, number = heapq.heappop(ready)
        order.append(units[number])
        for user in users[number]:
            missing[user] -= 1
            if not missing[user]:
                heapq.heappush(ready, (user not in urgent, user))
    assert len(order) == len(units), "units depend on each other in a circle"
    return tuple(order)
