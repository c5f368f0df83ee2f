"""CUDA for all sizes: made at several of them, and written as one where nothing but numbers differs."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from yota.codegen.c.patterns import gathered_extents, index_arrays
from yota.codegen.c.types import c_type
from yota.codegen.cuda.launches import Body
from yota.codegen.cuda.leading import is_addition
from yota.codegen.cuda.plan import KernelPlan, Parameter
from yota.codegen.cuda.sorting import MOST
from yota.codegen.cuda.standalone import body_of
from yota.errors import ArgumentError
from yota.generation.c.arithmetic import real, whole
from yota.generation.c.attempts import AllSizes, at_samples, same_tables
from yota.generation.cuda.filling import fillings
from yota.generation.cuda.functions import Function, FunctionWriter, Written, filled
from yota.generation.cuda.open_axes import OpenAxes
from yota.generation.cuda.selftest import SelfTest
from yota.generation.provenance import summary
from yota.generation.request import Request
from yota.generation.sizes import Samples
from yota.generation.subject import Subject
from yota.generation.varying import Separated, Varying
from yota.ir.tape import Op, Tape
from yota.passes.pipeline import run

__all__ = ["written_for_all_sizes"]

_WORD = re.compile(r"[A-Za-z_]\w*")


def written_for_all_sizes(request: Request, *, open: bool = False) -> Written:
    """Functions that take the sizes of their arguments.

    Parameters
    ----------
    open
        Whether the last size stands for any number of axes.

    Raises
    ------
    ArgumentError
        If the function does something else at another size, or the code for one size differs in more than numbers.
    """
    return at_samples(request, lambda *found: _Sized(request, *found, open=open).written())


class _Reading(FunctionWriter):
    """Notes the tapes of functions, and writes none."""

    def body(self, name: str, tape: Tape, inputs: list[str], results: list[str]) -> Body:
        """Nothing."""
        self.noted.append(tape)
        return Body((), (), 0, "")

    noted: list[Tape]


class _Writing(FunctionWriter):
    """Writes the functions of one sample, from tapes without constants that depend on sizes."""

    prepared: Sequence[Separated]
    number: int
    size_names: Mapping[str, str]

    def body(self, name: str, tape: Tape, inputs: list[str], results: list[str]) -> Body:
        """What one function does."""
        found = self.prepared[len(self.functions)]
        tape = run(found.tapes[self.number])
        return body_of(
            tape, name, inputs, results, self.tables, self.needs, self.totals, sizes=self.sizes,
            made=[each.hint for each in found.varying], fillings=fillings(name, found.varying, self.size_names),
        )  # fmt: skip


class _Sized(AllSizes):
    """Writes one pair of files for all sizes."""

    def __init__(
        self,
        request: Request,
        samples: Samples,
        subjects: Sequence[Subject],
        title: str,
        names: Mapping[str, str],
        *,
        open: bool,
    ) -> None:
        super().__init__(request, samples, subjects, title, names)
        self.axes = OpenAxes(self.sizes[-1]) if open else None
        self.about = summary(request.call.function)

    def written(self) -> Written:
        """All of it."""
        tapes = []
        for subject in self.subjects:
            reading = _Reading(self.title, subject, self.file_names(), self.about, self.sizes)
            reading.noted = []
            filled(reading, self.request.wanted)
            tapes.append(reading.noted)
        prepared = [self._prepared(each) for each in zip(*tapes, strict=True)]
        writers = []
        for number, subject in enumerate(self.subjects):
            writer = _Writing(self.title, subject, self.file_names(), self.about, self.sizes)
            writer.prepared, writer.number, writer.size_names = prepared, number, self.names
            filled(writer, self.request.wanted)
            writers.append(writer)
        same_tables(writer.tables for writer in writers)
        first = writers[0]
        kernels = tuple(self._kernel(each) for each in zip(*(writer.kernels for writer in writers), strict=True))
        needed = {kernel.name: self._sizes_of(kernel) for kernel in kernels}
        written = zip(*(writer.functions for writer in writers), strict=True)
        functions = [self._function(each, first, found, needed) for each, found in zip(written, prepared, strict=True)]
        return Written(
            self.title,
            tuple(functions),
            kernels,
            first.needs,
            set().union(*(writer.totals for writer in writers)),
            tuple(first.tables.lines),
            (self.subjects[0].tape, *(each.general.tape for each in prepared)),
            self._test([writer.self_test() for writer in writers]) if self.request.self_test else None,
            self.conditions.described(),
        )

    def _test(self, each: Sequence[SelfTest]) -> SelfTest:
        """The check, at sizes that will do."""
        extents = [f"{name} = {extent}" for name, extent in self.extents()]
        return replace(each[0], points=(*extents, *self.texts.remarks([one.points for one in each])))

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
                    self.conditions.demand_at_most(MOST, counts)

    def _kernel(self, each: Sequence[KernelPlan]) -> KernelPlan:
        """A kernel that takes the sizes which it mentions."""
        lines = self.texts.lines([one.lines for one in each])
        if len({one.launch for one in each}) != 1 or len({one.records for one in each}) != 1:
            raise ArgumentError("a kernel is launched in another way at another size; fix the sizes")
        own = [name for name in self.sizes if name in {word for line in lines for word in _WORD.findall(line)}]
        parameters = [Parameter("const int64_t ", name, "") for name in own]
        rows = zip(*(one.parameters for one in each), strict=True)
        parameters += [replace(row[0], what=self.texts.line([one.what for one in row])) for row in rows]
        return replace(each[0], lines=lines, parameters=tuple(parameters))

    def _sizes_of(self, kernel: KernelPlan) -> tuple[str, ...]:
        return tuple(each.name for each in kernel.parameters if each.name in self.sizes)

    def _function(
        self, each: Sequence[Function], writer: _Writing, found: Separated, needed: Mapping[str, tuple[str, ...]]
    ) -> Function:
        """A function that takes sizes, checks them, and hands them on."""
        first, line = each[0], self.texts.line
        parameters = [("int64_t ", name, "extent") for name in self.sizes]
        rows = zip(*(one.parameters for one in each), strict=True)
        parameters += [(row[0][0], row[0][1], line([one[2] for one in row])) for row in rows]
        cleared = zip(*(one.cleared for one in each), strict=True)
        buffers = zip(*(one.buffers for one in each), strict=True)
        launches = self.texts.remarks([one.launches for one in each])
        python = self.texts.remarks([one.python for one in each])
        return replace(
            first,
            parameters=tuple(parameters),
            cleared=tuple((row[0][0], line([one[1] for one in row])) for row in cleared),
            buffers=tuple((row[0][0], row[0][1], "", line([one[3] for one in row])) for row in buffers),
            launches=tuple(_launched(each, needed) for each in launches),
            python=(*self._opening(writer, found), *(self._in_python(each, needed) for each in python)),
            sizes=self.sizes,
            failed=self.conditions.failed(),
            made=tuple(f"const {c_type(one.type.dtype)} {one.hint} = {self._value(one)};" for one in _numbers(found)),
        )

    def _in_python(self, line: str, needed: Mapping[str, tuple[str, ...]]) -> str:
        line = _launched_by_python(line, needed)
        return self.axes.shaped(line) if self.axes else line

    def _value(self, varying: Varying) -> str:
        spelled = whole if varying.type.dtype.kind in "iu" else real
        return str(spelled(varying.text, self.names))

    def _from_axis(self, size: str, name: str, axis: int) -> Sequence[str]:
        """Statements of Python that find a size from an axis of the argument ``name``."""
        if self.axes is not None and size == self.axes.size:
            return self.axes.found(name, axis)
        return [f"{size} = _extent({name}, {axis})"]

    def _opening(self, writer: _Writing, found: Separated) -> list[str]:
        """Statements of the Python function that find the sizes, and what is computed from them."""
        lines: list[str] = []
        for size, name, axis in self.told(writer.inputs):
            lines += self._from_axis(size, name, axis)
        lines += [f"if {self.conditions.failed().replace('||', 'or')}:"]
        lines += [f'    raise ValueError("sizes must be {self.conditions.described()}")']
        for one in _numbers(found):
            value = self._value(one).replace("(double)", "").replace("sqrt(", "math.sqrt(")
            lines.append(f"{one.hint} = {value if one.type.dtype.kind == 'f' else _whole(value)}")
        return lines


def _numbers(found: Separated) -> list[Varying]:
    return [each for each in found.varying if not each.type.shape]


def _additions(op: Op, tape: Tape) -> list[int]:
    """How many places and pieces additions by index arrays have."""
    shape = op.keyword("shape")
    places = [math.prod(gathered_extents(index, shape)) for index in op.keyword("indices")]
    return [*places, *(tape.types[each].size for each, _ in index_arrays(tape, op))]


def _whole(text: str) -> str:
    return text.replace(" / ", " // ")


def _launched(line: str, needed: Mapping[str, tuple[str, ...]]) -> str:
    """A launch in C++ with the sizes that its kernel takes."""
    name = line.partition("<<<")[0]
    given = "".join(f"{size}, " for size in needed.get(name, ()))
    return line.replace(">>>(", f">>>({given}", 1)


def _launched_by_python(line: str, needed: Mapping[str, tuple[str, ...]]) -> str:
    """The same in Python, where quotients of whole numbers are spelled otherwise."""
    match = re.match(r'_kernel\("(\w+)"\)\(\(\d+,\), \(\d+,\), \(', line)
    if match is None:
        return _whole(line)
    given = "".join(f"cp.int64({size}), " for size in needed.get(match[1], ()))
    return line[: match.end()] + given + line[match.end() :]
