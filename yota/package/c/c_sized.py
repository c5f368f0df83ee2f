"""C for all sizes, written from tapes whose shapes have extents."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from yota.emit.c.kernels import mentions
from yota.emit.c.statements import NO_MEMORY, WRONG_SIZES, Made, Sizes
from yota.emit.tree import Return, Statement, Unused
from yota.errors import ArgumentError
from yota.ir.extents import Extent, extents_in
from yota.ir.tape import Tape
from yota.package.c.attempts import AllSizes
from yota.package.c.c_filling import COUNTERS, filling, triangle
from yota.package.c.c_functions import FunctionWriter
from yota.package.c.interface import Function, SizedCall
from yota.package.c.size_arithmetic import whole
from yota.package.varying import Varying

ON_STACK = 128
"""Bytes of an array that may stand on the stack: none whose extent is a size has so few."""


class SizedInC(AllSizes):
    """Writes one file for all sizes."""

    def writer(self, *given: Any) -> FunctionWriter:
        """What writes functions."""
        return FunctionWriter(*given)

    def prepared(self, tapes: Sequence[Tape]) -> tuple[Tape, Sizes]:
        """The tape for all sizes, and what it takes from them."""
        tape, varying, names = self.separated(tapes)
        counters = [names.fresh(each) for each in COUNTERS]
        made = tuple(self._made(each, counters) for each in varying)
        return tape, Sizes(self.sizes, made, ON_STACK, self.conditions.may_be_none)

    def _made(self, varying: Varying, counters: Sequence[str]) -> Made:
        name, kind = varying.hint, self.names.language.type(varying.type.dtype)
        if not varying.type.shape:
            return Made(name, kind, self.number(varying))
        extents = list(map(str, varying.shape))
        loops, element = filling(varying.text, name, extents, varying.type.dtype, self.names, counters)
        counted = triangle(varying.text, self.names) is not None
        return Made(name, kind, "", math.prod(varying.shape), loops, element, counted, varying.counts)

    def finish(self, writer: FunctionWriter) -> None:
        """Put checks of sizes ahead of everything."""
        writer.functions = list(map(self._finished, writer.functions))
        arguments = {each.name: each for function in writer.functions if function.public for each in function.inputs}
        told = list(self.told(arguments.values()))
        found = {name: tuple((size, axis) for size, by, axis in told if by == name) for name in arguments}
        writer.call = SizedCall(self.sizes, found)
        writer.test = writer.test and replace(writer.test, sizes=tuple(self.extents()))

    def _finished(self, function: Function) -> Function:
        """The function with checks of sizes ahead of everything."""
        if any(mentions(piece.lines, size) for piece in function.pieces for size in self.sizes):
            raise ArgumentError("the function is too long for code in C for all sizes; fix the sizes")
        checks = self._checks(function.memory) if function.public and not function.delegate else []
        lines = [*self._printed(checks), *function.lines]
        unused = [Unused(name) for name in self.sizes if not mentions(lines, name)]
        return replace(function, lines=(*self._printed(unused), *lines))

    def _printed(self, statements: Iterable[Statement]) -> list[str]:
        return [f"    {line}" for line in self.names.language.printed(statements)]

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
