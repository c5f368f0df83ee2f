"""C for all sizes, written from tapes whose shapes have extents."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from yota.emit.c.c_standalone import Shared
from yota.emit.c.kernels import mentions
from yota.emit.c.lines import Needs
from yota.emit.c.parts import Tables
from yota.emit.c.statements import NO_MEMORY, WRONG_SIZES, Made, Sizes
from yota.emit.tree import Return, Statement, Unused
from yota.errors import ArgumentError
from yota.ir.extents import Extent, extents_in
from yota.ir.tape import Tape
from yota.package.c.attempts import AllSizes, at_samples
from yota.package.c.c_filling import COUNTERS, filling, triangle
from yota.package.c.c_functions import FunctionWriter, Recording
from yota.package.c.extension import SizedCall
from yota.package.c.interface import Function, inputs_of, parameter_names
from yota.package.c.size_arithmetic import whole
from yota.package.provenance import summary
from yota.package.recorded_matrices import Derivative
from yota.package.request import Request
from yota.package.varying import Varying

ON_STACK = 128
"""Bytes of an array that may stand on the stack: none whose extent is a size has so few."""


def written_for_all_sizes(request: Request) -> FunctionWriter:
    """Functions that take the sizes of their arguments.

    Raises ArgumentError if the function does something else at another size, or the code would depend on how large a
        size is.
    """
    return at_samples(request, lambda *found: _Sized(request, *found).written())


class _Sized(AllSizes):
    """Writes one file for all sizes."""

    def written(self) -> FunctionWriter:
        """All of it."""
        each = self.recordings()
        names = self.file_names()
        language = self.names.language
        needs = Needs(required=lambda number: self.conditions.demand(number.values), language=language)
        shared = Shared(names, needs, Tables(names, language))
        tape, sizes = self._prepared([subject.tape for subject in self.subjects])
        subject = replace(self.subjects[0], tape=tape)
        about = summary(self.request.call.function)
        inputs = inputs_of(subject, parameter_names(self.title, self.sizes, language), language=language)
        writer = FunctionWriter(self.title, subject, inputs, about, shared, self.request.strict)
        writer.sizes = self.sizes
        recordings: dict[str, Recording] = {}
        for word in each[0]:
            recordings[word], own = (
                (subject, sizes) if word == "value" else self._recording([all[word] for all in each])
            )
            writer.made[id(recordings[word].tape)] = own
        writer.fill(recordings.items(), self.request)
        writer.guards = self.subjects[0].tape.guards
        writer.functions = list(map(self._finished, writer.functions))
        writer.condition, writer.call = self.conditions.described(), self._call(writer.functions)
        writer.test = writer.test and replace(writer.test, sizes=tuple(self.extents()))
        return writer

    def _recording(self, each: Sequence[Recording]) -> tuple[Recording, Sizes]:
        """The recording that all of ``each``, one for each sample, are cases of, and what it takes from sizes."""
        tape, sizes = self._prepared([one.tape for one in each])
        found = replace(each[0], tape=tape)
        if isinstance(found, Derivative):
            shapes = zip(*(one.like.shape for one in each if isinstance(one, Derivative)), strict=True)
            shape = tuple(self.larger(extents) for extents in shapes)
            found = replace(found, like=replace(found.like, shape=shape))
        return found, sizes

    def _prepared(self, tapes: Sequence[Tape]) -> tuple[Tape, Sizes]:
        """The tape for all sizes, and what it takes from them."""
        found, names = self.separated(tapes), self.local_names(tapes[0])
        hints = [names.fresh(each.hint) for each in found.varying]
        counters = [names.fresh(each) for each in COUNTERS]
        made = tuple(self._made(each, name, counters) for each, name in zip(found.varying, hints, strict=True))
        return found.tape, Sizes(self.sizes, made, ON_STACK, self.conditions.may_be_none)

    def _made(self, varying: Varying, name: str, counters: Sequence[str]) -> Made:
        kind = self.names.language.type(varying.type.dtype)
        if not varying.type.shape:
            return Made(name, kind, self.number(varying))
        extents = list(map(str, varying.shape))
        loops, element = filling(varying.text, name, extents, varying.type.dtype, self.names, counters)
        counted = triangle(varying.text, self.names) is not None
        return Made(name, kind, "", math.prod(varying.shape), loops, element, counted, varying.counts)

    def _finished(self, function: Function) -> Function:
        """The function with checks of sizes ahead of everything."""
        if any(mentions(piece.lines, size) for piece in function.pieces for size in self.sizes):
            raise ArgumentError("the function is too long for code in C for all sizes; fix the sizes")
        checks = self._checks(function.memory) if function.public and not function.delegate else []
        lines = [*_indented(self.names.language.printed(checks)), *function.lines]
        unused = [Unused(name) for name in self.sizes if not mentions(lines, name)]
        return replace(function, lines=(*_indented(self.names.language.printed(unused)), *lines))

    def _checks(self, memory: Sequence[int]) -> Iterator[Statement]:
        """What sizes must be, and that so much memory can be asked for."""
        language = self.names.language
        yield Return(self.conditions.failed(language["either"]), WRONG_SIZES)
        if language.inlines:
            return
        products = [text for text in map(self._in_double, extents_in(tuple(memory))) if text.count("(double)") > 1]
        if products:
            tests = " || ".join(f"{each} > most" for each in dict.fromkeys(products))
            yield "const double most = (double)(PTRDIFF_MAX / 16);"
            yield Return(tests, NO_MEMORY)

    def _in_double(self, count: Extent) -> str:
        """A count of elements in floating point, where it does not overflow."""
        text = self.samples.whole(count.values)
        return str(whole(text or "", {name: f"(double){each}" for name, each in self.names.items()}))

    def _call(self, functions: Sequence[Function]) -> SizedCall:
        """Which axis of which argument tells each size first."""
        arguments = {each.name: each for function in functions if function.public for each in function.inputs}
        told = list(self.told(arguments.values()))
        found = {name: tuple((size, axis) for size, by, axis in told if by == name) for name in arguments}
        return SizedCall(self.sizes, found)


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines]
