"""CUDA for all sizes, written from tapes whose shapes have extents."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from yota.emit.c.c_types import c_type
from yota.emit.c.dialect import CUDA
from yota.emit.c.lines import Needs
from yota.emit.cuda.runtime_indices import MOST
from yota.emit.cuda.scatter import is_addition
from yota.emit.language import tabled
from yota.ir.extents import Extent
from yota.ir.tape import Op, Tape
from yota.package.c.attempts import AllSizes, at_samples
from yota.package.c.c_functions import Recording
from yota.package.c.size_arithmetic import SizeNames, whole
from yota.package.cuda.cuda_filling import fillings
from yota.package.cuda.cuda_functions import FURTHER, FromSizes, Function, FunctionWriter
from yota.package.cuda.cuda_selftest import SelfTest
from yota.package.provenance import summary
from yota.package.request import Request
from yota.package.size_recordings import Sized
from yota.package.varying import Separated, Varying
from yota.schedule.nests.index_patterns import gathered_extents, index_arrays


def written_for_all_sizes(request: Request, *, open: bool = False) -> FunctionWriter:
    """Functions that take the sizes of their arguments.

    open: whether the last size stands for any number of axes.
    Raises ArgumentError if the function does something else at another size, or the code would depend on how large a
        size is.
    """
    return at_samples(request, lambda *found: _Sized(request, *found, open=open).written())


class _Sized(AllSizes):
    """Writes one pair of files for all sizes; with ``open``, the last size stands for any number of axes."""

    def __init__(self, request: Request, sized: Sized, title: str, names: SizeNames, *, open: bool) -> None:
        super().__init__(request, sized, title, names)
        self.open = self.sizes[-1] if open else ""
        self.in_python = SizeNames(names, tabled("python"))
        self.python = replace(self.samples, spell=lambda text: whole(text, self.in_python))

    def written(self) -> FunctionWriter:
        """All of it."""
        each = self.recordings()
        subject = replace(self.subjects[0], tape=self._prepared([subject.tape for subject in self.subjects]).tape)
        about = summary(self.request.call.function)
        writer = FunctionWriter(self.title, subject, self.file_names(), about, self.sizes, self._in_python)
        writer.open = self.open
        writer.needs = Needs(required=lambda number: self.conditions.demand(number.values), language=CUDA)
        recordings: dict[str, Recording] = {}
        openings = []
        for word, first in each[0].items():
            found = self._prepared([all[word].tape for all in each])
            recordings[word] = replace(first, tape=found.tape)
            varying = found.varying
            writer.made[id(found.tape)] = FromSizes(varying, partial(fillings, found=varying, names=self.names))
            openings.append(tuple(each for each in varying if not each.type.shape))
        writer.fill(recordings.items())
        writer.functions = [self._function(*both, writer) for both in zip(writer.functions, openings, strict=True)]
        writer.test = self._test(writer.self_test()) if self.request.self_test else None
        writer.condition = self.conditions.described()
        return writer

    def _in_python(self, number: int) -> object:
        return Extent(number.values, self.python) if isinstance(number, Extent) else number

    def _test(self, test: SelfTest) -> SelfTest:
        """The check, at sizes that will do."""
        extents = [f"{name} = {extent}" for name, extent in self.extents()]
        return replace(test, points=(*extents, *test.points))

    def _prepared(self, tapes: Sequence[Tape]) -> Separated:
        found, names = self.separated(tapes), self.local_names(tapes[0])
        self._demand_few(tapes)
        return replace(found, varying=tuple(replace(each, hint=names.fresh(each.hint)) for each in found.varying))

    def _demand_few(self, tapes: Sequence[Tape]) -> None:
        """No more places, and no more pieces, of an addition by index arrays than keys have room for."""
        for ops in zip(*(tape.ops for tape in tapes), strict=True):
            if is_addition(ops[0]):
                found = [_additions(op, tape) for op, tape in zip(ops, tapes, strict=True)]
                for counts in zip(*found, strict=True):
                    self.demand_at_most(MOST, counts)

    def _function(self, function: Function, made: Sequence[Varying], writer: FunctionWriter) -> Function:
        """A function that checks sizes, and computes numbers from them."""
        return replace(
            function,
            python=(*self._opening(writer, made), *function.python),
            failed=self.conditions.failed(),
            made=tuple(f"const {c_type(one.type.dtype)} {one.hint} = {self.number(one)};" for one in made),
        )

    def _from_axis(self, size: str, name: str, axis: int) -> Sequence[str]:
        """Statements of Python that find a size from an axis of the argument ``name``."""
        if size == self.open:
            return f"{FURTHER} = _further({name}, {axis})", f"{size} = math.prod({FURTHER})"
        return [f"{size} = _extent({name}, {axis})"]

    def _opening(self, writer: FunctionWriter, made: Sequence[Varying]) -> list[str]:
        """Statements of the Python function that find the sizes, and what is computed from them."""
        lines: list[str] = []
        for size, name, axis in self.told(writer.inputs):
            lines += self._from_axis(size, name, axis)
        lines += [f"if {self.conditions.failed('or')}:"]
        lines += [f'    raise ValueError("sizes must be {self.conditions.described()}")']
        return [*lines, *(f"{one.hint} = {self.number(one, self.in_python)}" for one in made)]


def _additions(op: Op, tape: Tape) -> list[int]:
    """How many places and pieces additions by index arrays have."""
    shape = op.keyword("shape")
    places = [math.prod(gathered_extents(index, shape)) for index in op.keyword("indices")]
    return [*places, *(tape.types[each].size for each, _ in index_arrays(tape, op))]
