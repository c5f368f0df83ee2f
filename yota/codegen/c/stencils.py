"""Results that their readers look at in several places, as the steps of a stencil do: each is kept in memory.

Loops that computed them again for every reader would do a multiple of the work with each step.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping
from typing import TypeAlias

from yota.ir.indexing import Index
from yota.ir.tape import Op, Tape
from yota.passes.views import is_view
from yota.passes.writes import is_basic, meet

__all__ = ["SMALLEST", "read_apart", "source_of_parts"]

SMALLEST = 65
"""Elements; smaller arrays are written out."""
_MOST_PLACES = 16
_PARTS = frozenset({"getitem", "setitem", "scatter"})

Place: TypeAlias = tuple[str, tuple[int, ...], Index]
"""Whether elements are taken from the index or put there, in an array of which shape."""


def read_apart(tape: Tape, wanted: Collection[int], costs: Mapping[int, int], most: int) -> set[int]:
    """Which results among ``wanted`` are looked at in places that overlap, directly or through elementwise ops.

    What elementwise ops make of what is in memory is not kept if that costs at most ``most`` (of ``costs``).
    """
    local = _since_parts(tape, costs)
    places: dict[int, dict[Place, None]] = {}
    apart: set[int] = set()
    found: set[int] = set()
    for op in reversed(tape.ops):
        own = places.pop(op.result, {})
        is_apart = op.result in apart or _overlap(list(own)[:_MOST_PLACES])
        worthy = op.result in wanted and tape.types[op.result].size >= SMALLEST
        if is_apart and worthy and local.get(op.result, most + 1) > most:
            found.add(op.result)
            is_apart, own = False, {}
        for operand, place in _looks(tape, op):
            places.setdefault(operand, {})[place] = None
        for operand in _origins(tape, op):
            places.setdefault(operand, {}).update(own)
            if is_apart:
                apart.add(operand)
    return found


def _origins(tape: Tape, op: Op) -> Iterator[int]:
    """What an op that does little by itself is made from, element by element."""
    if op.primitive.elementwise:
        shape = tape.types[op.result].shape
        yield from (operand for operand in op.operands if tape.types[operand].shape == shape)
    elif is_view(op, tape.types):
        yield op.operands[0]


def _since_parts(tape: Tape, costs: Mapping[int, int]) -> dict[int, int]:
    """Of results of elementwise ops: their work since an array was last put together."""
    found: dict[int, int] = {}
    for op in tape.ops:
        before = sum(found.get(operand, 0) for operand in op.operands)
        if op.primitive.elementwise:
            found[op.result] = costs.get(op.result, 0) + before
        elif is_view(op, tape.types):
            found[op.result] = before
    return found


def _looks(tape: Tape, op: Op) -> Iterator[tuple[int, Place]]:
    """What an op takes apart or puts together, and where."""
    shape = tape.types[op.result].shape
    if op.name == "getitem" and len(op.operands) == 1:
        looks = [(op.operands[0], ("from", tape.types[op.operands[0]].shape, op.keyword("index")))]
    elif op.name == "setitem" and len(op.operands) == 2:
        looks = [(op.operands[1], ("into", shape, op.keyword("index")))]
    elif op.name == "scatter" and len(op.operands) == len(op.keyword("indices")):
        pieces = zip(op.operands, op.keyword("indices"), strict=True)
        looks = [(operand, ("into", shape, index)) for operand, index in pieces]
    else:
        return
    yield from ((operand, place) for operand, place in looks if is_basic(place[2]))


def _overlap(places: list[Place]) -> bool:
    return any(one[:2] == two[:2] and meet(one[2], two[2], one[1]) for one, two in itertools.combinations(places, 2))


def source_of_parts(tape: Tape, definitions: Mapping[int, Op], visited: Collection[int], variable: int) -> int | None:
    """The last result on the way to ``variable`` that is taken apart or put together again, if there is one."""
    parts = (definitions[each] for each in {*visited, variable} if each in definitions)
    sources = {operand for op in parts if op.name in _PARTS for operand in op.operands} & set(visited)
    found = [
        each for each in sources if tape.types[each].size >= SMALLEST and not is_view(definitions[each], tape.types)
    ]
    return max(found, default=None)
