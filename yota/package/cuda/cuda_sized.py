"""CUDA for all sizes, written from tapes whose shapes have extents."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from yota.emit.c.c_types import c_type
from yota.emit.cuda.runtime_indices import MOST
from yota.emit.cuda.scatter import is_addition
from yota.emit.language import tabled
from yota.ir.tape import Op, Tape
from yota.package.c.attempts import AllSizes
from yota.package.c.size_arithmetic import SizeNames, whole
from yota.package.cuda.cuda_filling import fillings
from yota.package.cuda.cuda_functions import FURTHER, FromSizes, FunctionWriter
from yota.package.request import Request
from yota.package.size_recordings import Sized
from yota.schedule.nests.index_patterns import gathered_extents, index_arrays


class SizedInCuda(AllSizes):
    """Writes one pair of files for all sizes; with ``open``, the last size stands for any number of axes."""

    def __init__(self, request: Request, sized: Sized, names: SizeNames, *, open: bool) -> None:
        super().__init__(request, sized, names)
        self.open = self.sizes[-1] if open else ""
        self.in_python = SizeNames(names, tabled("python"))

    def writer(self, *given: Any) -> FunctionWriter:
        """What writes functions."""
        made = FunctionWriter(*given)
        made.python, made.open = replace(self.samples, spell=lambda text: whole(text, self.in_python)), self.open
        return made

    def prepared(self, tapes: Sequence[Tape]) -> tuple[Tape, FromSizes]:
        """The tape for all sizes, and what it takes from them."""
        tape, varying, _ = self.separated(tapes)
        self._demand_few(tapes)
        numbers = [each for each in varying if not each.type.shape]
        return tape, FromSizes(
            tuple(each.hint for each in varying),
            partial(fillings, found=varying, names=self.names),
            tuple(f"const {c_type(one.type.dtype)} {one.hint} = {self.number(one)};" for one in numbers),
            tuple(f"{one.hint} = {self.number(one, self.in_python)}" for one in numbers),
        )

    def _demand_few(self, tapes: Sequence[Tape]) -> None:
        """No more places, and no more pieces, of an addition by index arrays than keys have room for."""
        for ops in zip(*(tape.ops for tape in tapes), strict=True):
            if is_addition(ops[0]):
                found = [_additions(op, tape) for op, tape in zip(ops, tapes, strict=True)]
                for counts in zip(*found, strict=True):
                    self.demand_at_most(MOST, counts)

    def finish(self, writer: FunctionWriter) -> None:
        """Put what finds sizes, and checks them, ahead of everything."""
        lines: list[str] = []
        for size, name, axis in self.told(writer.inputs):
            if size == self.open:
                lines += [f"{FURTHER} = _further({name}, {axis})", f"{size} = math.prod({FURTHER})"]
            else:
                lines.append(f"{size} = _extent({name}, {axis})")
        lines += [f"if {self.conditions.failed('or')}:"]
        lines += [f'    raise ValueError("sizes must be {self.conditions.described()}")']
        failed = self.conditions.failed()
        writer.functions = [replace(one, python=(*lines, *one.python), failed=failed) for one in writer.functions]
        if writer.test:
            extents = [f"{name} = {extent}" for name, extent in self.extents()]
            writer.test = replace(writer.test, points=(*extents, *writer.test.points))


def _additions(op: Op, tape: Tape) -> list[int]:
    """How many places and pieces additions by index arrays have."""
    shape = op.keyword("shape")
    places = [math.prod(gathered_extents(index, shape)) for index in op.keyword("indices")]
    return [*places, *(tape.types[each].size for each, _ in index_arrays(tape, op))]
