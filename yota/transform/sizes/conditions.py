"""What sizes must be for code to hold, and for the reads of a function to lie inside of its arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from yota.errors import ArgumentError
from yota.ir.access_maps import pieces
from yota.ir.catalog import primitive
from yota.ir.extents import Extent
from yota.ir.indexing import GATHER, NEWAXIS, Slice
from yota.ir.semantics import AccessMap, Positions
from yota.ir.tape import Op, Tape
from yota.transform.sizes.evaluation import evaluated
from yota.transform.sizes.size_expressions import Samples


def demand(tapes: Sequence[Tape], required: Callable[[Sequence[int]], None]) -> None:
    """Call ``required`` with values, one for each of the ``tapes`` of several sizes, that must not be negative."""
    for ops in zip(*(tape.ops for tape in tapes), strict=True):
        rows = [list(_distances(op, tape)) for op, tape in zip(ops, tapes, strict=True)]
        for values in zip(*rows, strict=True):
            required(values)


_SLIDING = (primitive("convolve"), primitive("correlate"))


def _distances(op: Op, tape: Tape) -> Iterator[int]:
    """How far each read of an op is inside of its array, at one size."""
    if op.semantics.fold in ("maximum", "minimum"):
        shape = tape.types[op.operands[0]].shape
        yield from (shape[axis] - 1 for axis in op.keyword("axis"))
    if op.semantics.positions == Positions.EXTREME:
        type, axis = tape.types[op.operands[0]], op.keyword("axis")
        yield (type.size if axis is None else type.shape[axis]) - 1
    if op.primitive in _SLIDING:
        one, other = (tape.types[operand].size for operand in op.operands)
        yield from (one - 1, other - 1) if op.primitive is not primitive("correlate") else (other - 1, one - other)
    if op.regions:
        yield (op.keyword("region").trips or 1) - 1
    for _, arrays, index in pieces(op):
        shape = tape.types[op.operands[0] if op.access == AccessMap.READ else op.result].shape
        yield from _inside(index, shape, [op.operands[each] for each in arrays], tape)


def _inside(index: Any, shape: Sequence[int], arrays: list[int], tape: Tape) -> Iterator[int]:
    extents = iter(shape)
    for entry in index:
        if entry is NEWAXIS:
            continue
        extent = next(extents)
        if entry is GATHER:
            yield from _positions(tape.constants.get(arrays.pop(0)), extent)
        elif isinstance(entry, Slice):
            yield from _sliced(entry, extent)
        else:
            yield from (int(entry), extent - 1 - int(entry))


def _positions(array: Any, extent: int) -> Iterator[int]:
    """Positions that are constants; those that are arguments are not known."""
    values = np.asarray(0 if array is None else array)
    if values.dtype.kind in "iu" and values.size:
        yield extent - 1 - int(values.max())
        yield extent + min(int(values.min()), 0)


def _sliced(entry: Slice, extent: int) -> Iterator[int]:
    start, stop = entry.start, entry.stop
    if entry.step > 0:
        stop = extent if stop is None else stop
        yield from (start, stop - start, extent - stop)
    else:
        stop = -1 if stop is None else stop
        yield from (extent - 1 - start, start - stop, stop + 1)


class Conditions:
    """What sizes must be for code to hold: expressions of them that are not negative.

    names: what sizes are called in the code.
    spell: how the code writes an expression of sizes, which is given in Python.
    least: the smallest extents for which the function is defined.
    """

    def __init__(
        self, samples: Samples, names: Mapping[str, str], spell: Callable[[str], str], least: Mapping[str, int]
    ) -> None:
        self.samples, self.names, self.spell = samples, names, spell
        self._least: dict[str, int] = dict.fromkeys(samples.names, samples.smallest) | dict(least)
        self._others: dict[str, str] = {}
        self._expressions: list[tuple[str, int]] = []
        """Expressions, each with the number that it must not be less than."""
        self._met: set[tuple[int, ...]] = set()

    def demand(self, values: Sequence[int]) -> None:
        """What has ``values`` at the samples, at which the function is defined, must not be negative."""
        if min(values) < 0:
            raise ArgumentError("the function has no value at some of the sizes that it was tried at")
        self.require(values)

    def require(self, values: Sequence[int]) -> None:
        """What has ``values`` at the samples must not be negative, for code to hold."""
        key = tuple(values)
        if key in self._met:
            return
        self._met.add(key)
        if len(set(values)) == 1 or self.samples.never_negative(values):
            return
        for name in self.samples.names:
            distance = {size[name] - value for size, value in zip(self.samples.sizes, values, strict=True)}
            if len(distance) == 1:
                self._least[name] = max(self._least[name], distance.pop())
                return
        text = self.samples.whole(values)
        if text is not None:
            found = self.spell(text)
            self._expressions.append((text, 0))
            self._others[_compared(found, "<", ">")] = _compared(found, ">=", "<=")

    def demand_at_most(self, most: int, values: Sequence[int]) -> None:
        """What has ``values`` at the samples must not be more than ``most``."""
        text = self.samples.whole(values)
        if len(set(values)) == 1 or text is None:
            self.demand([most - value for value in values])
        else:
            found = self.spell(text)
            self._expressions.append((f"-({text})", -most))
            self._others[f"{found} > {most}"] = f"{found} <= {most}"

    @property
    def least(self) -> dict[str, int]:
        """The smallest extent of each size that is certain to do."""
        return dict(self._least)

    def allow(self, size: Mapping[str, int]) -> bool:
        """Whether these sizes will do."""
        return all(size.get(name, least) >= least for name, least in self._least.items()) and all(
            evaluated(text, size) >= least for text, least in self._expressions
        )

    def may_be_none(self, count: int) -> bool:
        """Whether ``count`` is 0 at the smallest sizes that will do."""
        return isinstance(count, Extent) and evaluated(self.samples.expression(count.values), self._least) <= 0

    def failed(self, either: str = "||", smallest: int = 0) -> str:
        """The condition under which sizes will not do; ``smallest`` is what they are at least."""
        found = [f"{self.names[name]} < {least}" for name, least in self._least.items() if least >= smallest]
        return f" {either} ".join([*found, *self._others])

    def described(self, smallest: int = 0) -> str:
        """What sizes must be, in words."""
        found = [f"{self.names[name]} >= {least}" for name, least in self._least.items() if least >= smallest]
        return ", ".join([*found, *self._others.values()])


def _compared(text: str, sign: str, turned: str) -> str:
    """An expression beside 0, or what it takes away beside the number that it takes it from."""
    number, minus, rest = text.partition(" - ")
    if minus and number.isdigit() and " - " not in rest and " + " not in rest:
        return f"{rest} {turned} {number}"
    return f"{text} {sign} 0"
