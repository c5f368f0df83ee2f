"""Cuts a tape into kernels and calls of NumPy: what is kept in memory, and what one loop nest computes together."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

import numpy as np

from yota.emit.c.dialect import cost, is_known, is_known_op
from yota.ir.access_maps import pieces
from yota.ir.indexing import GATHER
from yota.ir.semantics import MOVES, AccessMap
from yota.ir.tape import Op, Tape
from yota.ir.types import is_uniform
from yota.optimize.array_writes import is_view
from yota.optimize.rewrite import users
from yota.schedule.nests.index_patterns import is_fixed
from yota.schedule.nests.linear_index import UnreachableError
from yota.schedule.nests.stencils import read_apart
from yota.schedule.nests.tiling import LONGEST_UNROLLED, Root, studied

GATHERS = (AccessMap.READ, AccessMap.SCATTER)
"""What kernels of C do by index arrays."""
_WORTH_STORING = 8
"""Work above which a value is stored rather than computed again."""
_MOST_ROUNDS = 12
_SHORT = 10_000
"""Ops times results up to which code of numbers alone is looked through for each result."""
_MOST_ARRAYS = 200
"""Arrays that one kernel puts together; compilers take time that grows with the square of their number."""
_CLOSE = 8
"""Loops of about the same length may run together."""


@dataclass(slots=True)
class Group:
    """Roots that one kernel computes."""

    extents: tuple[int, ...]
    roots: list[Root] = field(default_factory=list)
    stage: int = 0


@dataclass(frozen=True, slots=True)
class Schedule:
    """What runs where.

    steps: kernels and single ops in the order in which they run.
    leaves: the variables that are in memory.
    """

    tape: Tape
    definitions: dict[int, Op]
    steps: tuple[Group | Op, ...]
    leaves: frozenset[int]


def schedule(
    tape: Tape,
    outside: frozenset[int] = frozenset(),
    known: Callable[[Tape, Op], bool] = is_known_op,
    *,
    looks: bool = True,
    gathers: Collection[str] = (),
    places: frozenset[int] = frozenset(),
    stored: frozenset[int] = frozenset(),
) -> Schedule:
    """The schedule of a tape.

    tape: an optimised tape.
    outside: results to be left to NumPy.
    known: whether kernels can compute an elementwise op.
    looks: whether an array may be another look at memory; if not, it is written out wherever it is needed in memory.
    gathers: which of reads and additions kernels can do by index arrays that are constants; the tape must be
        `normalised` for them.
    places: arguments and results that may be index arrays besides: whoever calls kernels, or reads them, checks them.
    stored: results to keep in memory, where kernels compute them.
    """
    planner = _Planner(tape, known, looks, gathers, places, outside)
    planner.stored |= planner.inside & stored
    for _ in range(2 * len(tape.ops) + _MOST_ROUNDS):
        found = planner.attempt()
        if found is not None:
            return found
    raise AssertionError("the schedule does not settle")


class _Planner:
    def __init__(
        self,
        tape: Tape,
        known: Callable[[Tape, Op], bool],
        looks: bool,
        gathers: Collection[str],
        places: frozenset[int],
        outside: frozenset[int],
    ) -> None:
        self.tape, self.types, self.known = tape, tape.types, known
        self.looks, self.gathers = looks, gathers
        # Positions are computed where they are read.
        positions = frozenset(op.result for op in tape.ops if op.access == AccessMap.POSITIONS)
        self.places = places | positions
        self.definitions = tape.definitions()
        self.users = users(tape)
        # Of an array whose elements are all the same, code has the number.
        self.tables = frozenset(v for v, value in tape.constants.items() if np.ndim(value) and not is_uniform(value))
        self.inside = {op.result for op in tape.ops if op.result not in outside and self._is_known(op)}
        work, costs = self._work(frozenset()), {op.result: self._cost(op) for op in tape.ops}
        worthy = {each for each in self.inside if work[each] > _WORTH_STORING}
        self.stored = read_apart(tape, worthy, costs, _WORTH_STORING)
        self.stored |= self.inside & places - positions
        numbers = not tape.guards and not any(type.shape for type in tape.types.values())
        self.is_short = numbers and len(tape.ops) * len(tape.outputs) <= _SHORT
        self.rounds = 0
        self.studied: dict[int, tuple[Root, frozenset[int], frozenset[int]]] = {}
        """What was found about roots, with the variables that it depends on and which of these were in memory."""

    def _is_known(self, op: Op) -> bool:
        types = [self.types[variable] for variable in (*op.operands, op.result)]
        if op.primitive.elementwise:
            return op.primitive.expand is None and self.known(self.tape, op)
        if not all(is_known(type.dtype) for type in types):
            return False
        if op.access == AccessMap.REDUCTION:
            real = types[0].dtype.kind == "f" or (types[0].is_complex and op.semantics.fold == "add")
            return types[0].dtype == types[1].dtype and real
        if op.access == AccessMap.POSITIONS or (op.access in self.gathers and is_fixed(self.tape, op, self.places)):
            return True
        if op.access in MOVES or op.access == AccessMap.SCATTER:
            if sum(1 for each in types[:-1] if each.shape) > _MOST_ARRAYS:
                return False
            return not any(GATHER in index for _, _, index in pieces(op))
        return False

    def attempt(self) -> Schedule | None:
        """One try; None if something was learned and it must be done again."""
        made = leaves = self._leaves()
        if self.is_short and len(self.inside) == len(self.tape.ops):
            # One kernel computes all results, and what they have in common once.
            leaves = leaves - self.inside
        roots: dict[int, Root] = {}
        for op in self.tape.ops:
            if op.result in made and op.result in self.inside and not self._is_look(op, leaves):
                try:
                    roots[op.result] = self._studied(op.result, leaves)
                except UnreachableError as error:
                    # Have in memory what loops cannot go through; leave to others what they cannot compute at all.
                    if error.variable is None or error.variable == op.result or error.variable in self.stored:
                        self.inside.discard(op.result)
                    else:
                        self.stored.add(error.variable)
                    return None
        steps = self._staged(roots, leaves)
        if self.rounds < _MOST_ROUNDS and self._store_more(steps, leaves):
            self.rounds += 1
            return None
        return Schedule(self.tape, self.definitions, tuple(steps), leaves)

    def _studied(self, variable: int, leaves: frozenset[int]) -> Root:
        """How a root is computed; what an earlier try found out counts as long as the same is in memory."""
        known = self.studied.get(variable)
        if known is not None and known[1] & leaves == known[2]:
            return known[0]
        root = studied(self.tape, self.definitions, variable, leaves - {variable})
        visited = (self.definitions[each] for each in {variable, *root.visited} if each in self.definitions)
        around = frozenset(each for op in visited for each in (op.result, *op.operands))
        self.studied[variable] = root, around, around & leaves
        return root

    def _leaves(self) -> frozenset[int]:
        """Variables that are in memory as a whole."""
        tape = self.tape
        found = {entry.variable for entry in tape.inputs}
        found.update(self.tables)
        found.update(self.stored)
        wanted = [*tape.outputs, *(guard.variable for guard in tape.guards)]
        for op in tape.ops:
            if op.result not in self.inside:
                found.add(op.result)
                wanted.extend(op.operands)
            elif op.access == AccessMap.REDUCTION:
                shape = self.types[op.operands[0]].shape
                if math.prod(int(shape[axis]) for axis in op.keyword("axis")) > LONGEST_UNROLLED:
                    found.add(op.result)
            elif op.access == AccessMap.SCATTER and is_fixed(tape, op, self.places):
                found.add(op.result)
        for variable in wanted:
            self._want(variable, found)
        return frozenset(found)

    def _want(self, variable: int, found: set[int]) -> None:
        """Have a variable in memory; one that only looks at another's memory needs just that."""
        source = variable
        while (
            self.looks
            and source not in found
            and source in self.definitions
            and is_view(self.definitions[source], self.types)
        ):
            source = self.definitions[source].operands[0]
        if self.looks and (source in found or source in self.tape.constants):
            while variable not in found and variable in self.definitions:
                found.add(variable)
                variable = self.definitions[variable].operands[0]
        elif variable in self.definitions:
            found.add(variable)

    def _is_look(self, op: Op, leaves: frozenset[int]) -> bool:
        """Whether a variable in memory is another look at one that is there too."""
        source = op.operands[0] if op.operands else None
        there = source in leaves or source in self.tape.constants
        return self.looks and is_view(op, self.types) and there and bool(self.types[op.result].shape)

    def _staged(self, roots: dict[int, Root], leaves: frozenset[int]) -> list[Group | Op]:
        """Kernels and ops, each after what it needs."""
        stage: dict[int, int] = {}
        groups: list[Group] = []
        ops: list[tuple[int, int, Op]] = []
        for position, op in enumerate(self.tape.ops):
            root = roots.get(op.result)
            if root is None and op.result not in leaves:
                continue
            if root is None:
                needs = (stage.get(operand, 0) for operand in op.operands)
                # A look costs nothing and is ready as soon as what it looks at.
                stage[op.result] = max(needs, default=0) + (not self._is_look(op, leaves))
                ops.append((stage[op.result], position, op))
                continue
            first = 1 + max((stage.get(v, 0) for v in self._needs(root, leaves)), default=0)
            group = self._fitting(groups, root, first)
            group.roots.append(root)
            stage[op.result] = group.stage
        order: list[tuple[int, int, int, Group | Op]] = [(when, 1, position, op) for when, position, op in ops]
        order += [(group.stage, 0, number, group) for number, group in enumerate(groups)]
        return [step for *_, step in sorted(order, key=lambda item: item[:3])]

    def _needs(self, root: Root, leaves: frozenset[int]) -> Iterable[int]:
        """Variables in memory that a root is computed from."""
        own = {root.variable} if root.variable not in root.visited else set()
        through = {*root.visited, *own} | ({root.reduction.result} if root.reduction else set())
        return {
            operand
            for variable in through
            for operand in self.definitions[variable].operands
            if operand in leaves and operand != root.variable
        }

    def _fitting(self, groups: list[Group], root: Root, first: int) -> Group:
        for group in sorted(groups, key=lambda group: group.stage):
            if group.stage >= first and _close(group.extents, root.extents):
                group.extents = tuple(map(max, group.extents, root.extents))
                return group
        group = Group(root.extents, stage=first)
        groups.append(group)
        return group

    def _store_more(self, steps: list[Group | Op], leaves: frozenset[int]) -> bool:
        """Store what several kernels, or several points of one, would compute again."""
        where, repeated = self._visits(steps)
        work, chosen, again = self._work(leaves), set[int](), 0
        near: dict[int, tuple[int, int]] = {}
        """For what is computed from one variable alone: this variable, and the work from there."""
        for op in self.tape.ops:
            variable = op.result
            times = len(where.get(variable, ()))
            if variable in leaves or (times < 2 and variable not in repeated):
                continue
            again += (times - 1) * self._cost(op)
            sources = {near.get(each, (each, 0)) for each in op.operands if each not in self.tape.constants}
            if len({source for source, _ in sources}) == 1:
                near[variable] = next(iter(sources))[0], self._cost(op) + sum(extra for _, extra in sources)
            source, extra = near.get(variable, (variable, 0))
            is_near = source in chosen and extra <= _WORTH_STORING
            if work[variable] <= _WORTH_STORING or is_near or is_view(op, self.types):
                continue
            if self._is_frontier(variable, where, repeated):
                chosen.add(variable)
                near[variable] = variable, 0
        if not chosen & repeated and again <= _WORTH_STORING * len(chosen):
            return False  # A kernel computes each of them once, whatever the number of its users.
        self.stored |= chosen
        return bool(chosen)

    def _visits(self, steps: list[Group | Op]) -> tuple[dict[int, set[int]], set[int]]:
        """The numbers of the kernels that compute each variable, and variables that one computes several times."""
        groups = [step for step in steps if isinstance(step, Group)]
        where: dict[int, set[int]] = {}
        repeated: set[int] = set()
        for number, group in enumerate(groups):
            lanes = 1
            for root in group.roots:
                lanes = max(lanes, sum(1 for _ in root.lanes))
                for variable, count in root.visited.items():
                    where.setdefault(variable, set()).add(number)
                    type = self.types[variable]
                    elements = int(type.shape[-1]) if type.shape and int(type.shape[-1]) <= LONGEST_UNROLLED else 1
                    # A loop nest would compute a smaller array over and over.
                    smaller = int(type.size) * 4 <= int(math.prod(group.extents))
                    if group.extents and (count > lanes * elements or smaller):
                        repeated.add(variable)
        return where, repeated

    def _is_frontier(self, variable: int, where: dict[int, set[int]], repeated: set[int]) -> bool:
        """Whether some user of a variable is not computed as often, so that storing the user would not do."""
        for op in self.users.get(variable, ()):
            if is_view(op, self.types):
                # A view of which every element is overwritten is gone through by nobody.
                if op.result in where and self._is_frontier(op.result, where, repeated):
                    return True
                continue
            if op.result not in where or where[op.result] != where[variable]:
                return True
            if variable in repeated and op.result not in repeated:
                return True
        return False

    def _cost(self, op: Op) -> int:
        if is_view(op, self.types):
            return 0
        special = (op.primitive.target or "").startswith("scipy.special.")
        return cost("erf" if special else op.name, self.types[op.result].dtype)

    def _work(self, leaves: frozenset[int]) -> dict[int, int]:
        """About how much work it is to compute one element of each variable from what is in memory."""
        found: dict[int, int] = {}
        for op in self.tape.ops:
            factor = 1
            if op.access == AccessMap.REDUCTION:
                size = int(self.types[op.operands[0]].size)
                factor = max(1, size // max(1, int(self.types[op.result].size)))
            inner = sum(found.get(operand, 0) for operand in op.operands if operand not in leaves)
            found[op.result] = min(self._cost(op) + factor * inner, 10_000)
        return found


def _close(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    return len(one) == len(other) and all(
        left == right
        or (type(left - right) is int and abs(left - right) <= _CLOSE and min(int(left), int(right)) > 4 * _CLOSE)
        for left, right in zip(one, other, strict=True)
    )
