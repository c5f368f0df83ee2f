"""Arrays to which each trip of a loop adds at positions of its own: what is added leaves it, and is added after it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from yota.ir.indexing import layout, pattern_shape, pieces_of
from yota.ir.inputs import Input
from yota.ir.regions import Region
from yota.ir.semantics import AccessMap
from yota.ir.tape import Op, Tape
from yota.optimize.fission import FEWEST_TRIPS
from yota.optimize.rewrite import use_counts

_LARGEST = 1 << 24
"""Elements that leave a loop, of one array, at the most."""


@dataclass(frozen=True, slots=True)
class Deposit:
    """What follows a loop in the place of an array that it carried.

    static: the shape, and the indices of the pieces that trips added.
    result: the number of the array among the results of the loop.
    before: the array ahead of the loop, outside.
    rows: the numbers of the results that give the pieces and their positions, from all trips.
    """

    static: Mapping[str, Any]
    result: int
    before: int
    rows: tuple[int, ...]


def without_deposits(
    region: Region, operands: list[int], results: list[int], first: int
) -> tuple[Region, list[int], list[Deposit]]:
    """A loop that gives rows in the place of arrays to which it only adds, its operands, and what follows it.

    results: the number of each result of the loop; those of the rows, from ``first`` on, take the place of the arrays'.
    """
    body = region.body
    found: dict[int, list[Op]] = {}
    if region.is_fixed and region.trips is not None and int(region.trips) >= FEWEST_TRIPS:
        sums = _Sums(body, int(region.trips))
        found = {place: ops for place in range(region.carries) if (ops := sums.into(place))}
    if not found:
        return region, operands, []
    deposits, outputs = list[Deposit](), [each for place, each in enumerate(body.outputs) if place not in found]
    kept = [each for place, each in enumerate(results) if place not in found]
    removed = set[int]()
    for place, ops in found.items():
        pieces = [each for op in ops if op.access == AccessMap.SCATTER for each in op.operands]
        rows = tuple(range(first, first := first + len(pieces)))
        indices = tuple([each for op in ops for each in op.keyword("indices", ())])
        static = {"shape": body.types[body.outputs[place]].shape, "indices": indices}
        deposits.append(Deposit(static, results[place], operands[place], rows))
        removed.update(op.result for op in ops)
        outputs += pieces
        kept += rows
    results[:] = kept
    entries = [each.variable for place, each in enumerate(body.inputs) if place - 1 not in found]
    inputs = tuple([Input(each, number, f"c{number}" if number else "i") for number, each in enumerate(entries)])
    remaining = tuple([op for op in body.ops if op.result not in removed])
    left = replace(region, body=replace(body, ops=remaining, inputs=inputs, outputs=tuple(outputs)))
    given = [each for place, each in enumerate(operands) if place not in found]
    return replace(left, carries=region.carries - len(found)), given, deposits


class _Sums:
    """Finds the arrays to which a body adds what others scatter."""

    def __init__(self, body: Tape, trips: int) -> None:
        self._body, self._trips = body, trips
        self._made, self._counts = body.definitions(), use_counts(body)

    def into(self, place: int) -> list[Op]:
        """The sums, and what they add, by which a carried array becomes what is carried next; none if it is not so."""
        body, found = self._body, list[Op]()
        array, last = body.inputs[1 + place].variable, body.outputs[place]
        while last != array:
            op = self._made.get(last)
            if op is None or op.semantics.signs != (1, 1) or self._counts[last] != 1:
                return []
            added = next((each for each in op.operands if self._is_of_rows(each)), None)
            if added is None or op.operands[0] == op.operands[1]:
                return []
            found += op, self._made[added]
            last = next(each for each in op.operands if each != added)
        return found if self._counts[array] == 1 and body.types[array] == body.types[body.outputs[place]] else []

    def _is_of_rows(self, variable: int) -> bool:
        """Whether pieces are added to zeros at positions that trips give, so that those of all trips can be at once."""
        op, types = self._made.get(variable), self._body.types
        if op is None or op.access != AccessMap.SCATTER or self._counts[variable] != 1:
            return False
        for piece, positions, index in pieces_of(op.operands, op.keyword("indices")):
            if layout(index) != (0, True) or not positions or any(types[each].shape for each in positions):
                return False
            tail = pattern_shape(index, [()])
            if types[piece].shape != tail or self._trips * math.prod(map(int, tail)) > _LARGEST:
                return False
        return True
