"""Decides where each array of a schedule lives: workspace, an array of its own, another one, or an expression."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from yota.emit.python.numpy_arrays import cuts_bits, overwritten
from yota.emit.python.numpy_calls import has_out
from yota.ir.extents import Extent
from yota.ir.semantics import AccessMap
from yota.ir.tape import Op, Tape
from yota.optimize.array_writes import is_view, roots, shares
from yota.schedule.blocked.units import Member, Unit, copied_whole, first_pieces
from yota.schedule.liveness import Request, Slot, assign

WORKSPACE_BYTES = 16 * 1024
"""Smaller arrays are cheaper to allocate anew than to look up."""

Key = Hashable


@dataclass(slots=True)
class Storage:
    """Where arrays live.

    slot: number of the slot of a whole variable (key: its number) or of a piece inside a loop (key: the unit's position
        and the variable's number).
    inherits: for a variable that is written over another one: that other.
    roots: for each variable, those whose memory it may look at.
    made: owners of memory that this call allocates and nobody else keeps.
    """

    slot: dict[Key, int]
    slots: tuple[Slot, ...]
    inherits: dict[int, int]
    roots: Mapping[int, frozenset[int]]
    owner: dict[int, int] = field(default_factory=dict)
    made: frozenset[int] = frozenset()

    def lent(self, variable: int) -> bool:
        """Whether a result must copy ``variable``, since its memory is not this call's own."""
        found = self.roots[variable]
        if len(found) != 1:
            return True
        (root,) = found
        return root not in self.made or self.owner.get(root, root) in self.slot


def _owns(unit: Unit) -> bool:
    """Whether results are written into memory of their own: those of a kernel or a loop, views too."""
    return unit.is_kernel or bool(unit.extent)


class StoragePlanner:
    """Finds storage for all variables that ``units`` compute; those in ``exact`` stay out of the workspace."""

    def __init__(self, tape: Tape, units: Sequence[Unit], exact: frozenset[int] = frozenset()) -> None:
        self.tape, self.units, self.types, self.exact = tape, units, tape.types, exact
        owned = frozenset(variable for unit in units if _owns(unit) for variable in unit.results)
        self.roots = roots(tape, owned)
        self.begin: list[int] = []
        self.end: list[int] = []
        clock = 0
        for unit in units:
            self.begin.append(clock)
            clock += max(1, len(unit.members))
            self.end.append(clock - 1)
        self.forever = clock + 1
        self.last = self._last_uses()

    def _last_uses(self) -> dict[int, int]:
        """When the memory of each root is last looked at."""
        last: dict[int, int] = {}
        for position, unit in enumerate(self.units):
            for operand in unit.reads:
                for root in self.roots[operand]:
                    last[root] = self.end[position]
        for variable in (*self.tape.outputs, *(guard.variable for guard in self.tape.guards)):
            for root in self.roots[variable]:
                last[root] = self.forever
        return last

    def plan(self) -> Storage:
        """Where all arrays live."""
        inherits = self._inherited()
        owner: dict[int, int] = {}
        for variable, other in inherits.items():
            owner[variable] = owner.get(other, other)
        stop: dict[int, int] = {}
        for variable in self.types:
            first = owner.get(variable, variable)
            stop[first] = max(stop.get(first, -1), self.last.get(variable, -1))
        requests: list[Request] = []
        for position, unit in enumerate(self.units):
            if unit.extent:
                requests += self._loop_requests(position, unit, stop)
            elif unit.is_op:
                requests += self._single_request(position, unit.members[0], inherits, stop)
        slot, slots = assign(requests)
        made = frozenset(op.result for unit in self.units for op in self._makers(unit))
        return Storage(slot, slots, inherits, self.roots, owner, made)

    def _makers(self, unit: Unit) -> list[Op]:
        results = set(unit.results)
        return [
            member.op
            for member in unit.members
            if member.op.result in results and (_owns(unit) or not shares(member.op, self.types))
        ]

    def _inherited(self) -> dict[int, int]:
        """Variables that are written over an operand of theirs, since nobody looks at that again.

        These are updated arrays, and large results, whose arrays hold temporary values before them.
        """
        made = frozenset(op.result for unit in self.units for op in self._makers(unit))
        found = self._updated()
        ending = {each for each in self.tape.outputs if not self._is_small(each)}
        # From the last unit to the first, so that a chain of operations has one array.
        for position, unit in reversed([*enumerate(self.units)]):
            op = unit.members[0].op
            if not unit.is_op or op.result not in ending:
                continue
            if op.result not in found and op.result in made and has_out(op, self.types):
                free = (each for each in self._may_replace(op) if each in made and self._ends(each, op, position))
                if (source := next(free, None)) is not None:
                    found[op.result] = source
            if op.result in found:
                ending.add(found[op.result])
        computed = [variable for unit in self.units for variable in unit.results]
        return {variable: found[variable] for variable in computed if variable in found}

    def _ends(self, variable: int, op: Op, position: int) -> bool:
        """Whether ``op`` at this position is the last to look at a variable, and does so at no view of it."""
        seen = any(variable in self.roots[each] for each in op.operands if each != variable)
        free = self.exact.isdisjoint((variable, op.result)) and not seen
        return free and self.last[variable] == self.begin[position]

    def _updated(self) -> dict[int, int]:
        """Updated arrays that are written over what they were."""
        found: dict[int, int] = {}
        made: set[int] = set()
        # Pieces are added into what lies row by row alone: elsewhere a flat look at an array would be a copy.
        ordered: set[int] = set()
        for position, unit in enumerate(self.units):
            made.update(op.result for op in self._makers(unit))
            op = unit.members[0].op
            if unit.extent or op.access in (AccessMap.MATMUL, AccessMap.SCATTER, AccessMap.DEPOSIT):
                ordered.update(unit.results)
            written = op.access == AccessMap.WRITE
            if not unit.is_op or not self.types[op.result].shape or not (written or op.access == AccessMap.DEPOSIT):
                continue
            source = op.operands[0]
            if not written and source not in ordered and self.types[op.result].ndim > 1:
                continue
            # NumPy reads a value before it writes it over what it looks at. Of several pieces it sees one at a time.
            others = op.operands[1:]
            looked = others if written else frozenset().union(*(self.roots[each] for each in others))
            if self.roots[source] == {source} and source in made and source not in looked:
                same = self.types[source] == self.types[op.result]
                if same and self.last[source] == self.begin[position]:
                    found[op.result] = source
        return found

    def _worthwhile(self, variable: int, stop: Mapping[int, int]) -> bool:
        if isinstance(self.types[variable].size, Extent):
            return False  # The workspace is made before sizes are known.
        return not self._is_small(variable) and stop.get(variable, -1) < self.forever

    def _is_small(self, variable: int) -> bool:
        type = self.types[variable]
        return not isinstance(type.size, Extent) and type.nbytes < WORKSPACE_BYTES

    def _single_request(
        self, position: int, member: Member, inherits: Mapping[int, int], stop: Mapping[int, int]
    ) -> list[Request]:
        op, now = member.op, self.begin[position]
        result = self.types[op.result]
        if op.result in inherits or shares(op, self.types) or not has_out(op, self.types):
            return []
        if op.result in self.exact or not self._worthwhile(op.result, stop):
            return []
        over = self._may_replace(op)
        return [Request(op.result, result.dtype, result.size, now, max(now, stop[op.result]), over)]

    def _may_replace(self, op: Op) -> tuple[int, ...]:
        """Operands over which ``op`` may write its result."""
        if op.semantics.chooses:
            operands = overwritten(op, self.roots)
        else:
            operands = op.operands if op.semantics.ufunc else ()
        result = self.types[op.result]
        return tuple(
            operand
            for operand in operands
            if self.types[operand].shape == result.shape
            and self.types[operand].dtype == result.dtype
            and self.roots[operand] == {operand}
        )

    def _loop_requests(self, position: int, unit: Unit, stop: Mapping[int, int]) -> list[Request]:
        found = []
        begin, end = self.begin[position], self.end[position]
        local, direct = unit.local, self._direct(unit)
        for variable in unit.results:
            if self.types[variable].size > 1 and self._worthwhile(variable, stop):
                type = self.types[variable]
                last = max(end, stop.get(variable, end))
                found.append(Request(variable, type.dtype, type.size, begin, last))
        last_piece: dict[int, int] = {}
        for offset, member in enumerate(unit.members):
            for operand in member.op.operands:
                for root in self.roots[operand] if operand in local else ():
                    last_piece[root] = begin + offset
        for offset, member in enumerate(unit.members):
            op = member.op
            if op.result not in local or op.result in unit.stored or is_view(op, self.types):
                continue
            if op.result in direct:
                continue
            type = self.types[op.result]
            if not has_out(op, self.types):
                continue
            now = begin + offset
            over = tuple(
                (position, operand)
                for operand in self._may_replace(op)
                if operand in local
                and operand not in unit.stored
                and local[operand] == local[op.result]
                and operand not in direct
            )
            size = type.size // unit.extent * unit.block
            until = max(now, last_piece.get(op.result, now))
            found.append(Request((position, op.result), type.dtype, size, now, until, over))
        return found + self._copy_requests(position, unit)

    def _direct(self, unit: Unit) -> set[int | None]:
        """Pieces that are computed right where they land in a longer array."""
        firsts = first_pieces(unit, self.types, self.roots)
        return {first.direct for first in firsts.values() if first is not None}

    def _copy_requests(self, position: int, unit: Unit) -> list[Request]:
        """Pieces of operands from outside that are copied into the loop's layout."""
        found: dict[Key, Request] = {}
        begin, local = self.begin[position], unit.local
        for offset, member in enumerate(unit.members):
            for operand, axis in zip(member.op.operands, member.placement.reads, strict=True):
                type = self.types[operand]
                if operand in local or axis is None or unit.layout.order(type, axis) is None:
                    continue
                if not copied_whole(type, unit, self.types):
                    key = (position, "read", operand, axis)
                    size = type.size // unit.extent * unit.block
                    found[key] = Request(key, type.dtype, size, begin, begin + offset)
        return list(found.values())


_STATEMENTS = (AccessMap.WRITE, AccessMap.SCATTER, AccessMap.DEPOSIT)
"""Ops that are statements, and may name an operand more than once."""


def nested(tape: Tape, units: Sequence[Unit], storage: Storage) -> frozenset[int]:
    """Variables that are used once, by an expression that can hold theirs, and that the user gave no name.

    A view may be written where it is used, however much later: what it looks at is kept until then. Anything else, an
    element of an array too, is written into the very next statement alone, so that no value outlives its use. Nor is
    it written into a view that is written further down.
    """
    uses = Counter(operand for unit in units for operand in unit.operands)
    uses.update(tape.outputs)
    uses.update(guard.variable for guard in tape.guards)
    users = {
        operand: position
        for position, unit in enumerate(units)
        if not unit.extent and (unit.is_kernel or not _is_statement(unit.members[0].op, tape))
        for operand in unit.operands
    }
    inherited = (*storage.inherits, *storage.inherits.values())
    kept = {*tape.outputs, *tape.names, *(guard.variable for guard in tape.guards), *inherited}
    found = set()
    written: dict[int, int] = {}
    """By the unit of a result that is written where it is used, the unit of the statement that it is written in."""
    for position, unit in reversed([*enumerate(units)]):
        op = unit.members[0].op
        result = op.result
        if not unit.is_op or _is_statement(op, tape) or uses[result] != 1 or result in kept or result in storage.slot:
            continue
        user = users.get(result)
        if user is None:
            continue
        statement = written.get(user, user)
        is_next = user == position + 1 and all(each in written for each in range(user, statement))
        if is_next or (tape.types[result].shape and is_view(op, tape.types)):
            found.add(result)
            written[position] = statement
    return frozenset(found)


def _is_statement(op: Op, tape: Tape) -> bool:
    if op.access == AccessMap.CALL:
        return bool(op.keyword("form").writes)
    return op.access in _STATEMENTS or cuts_bits(op, tape.types)
