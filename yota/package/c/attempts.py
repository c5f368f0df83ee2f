"""Code for all sizes: recordings at several of them, what the writers of C and CUDA share, and the writer of C."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from yota.emit.c.dialect import FOREIGN, language_of
from yota.emit.c.kernels import mentions
from yota.emit.c.statements import NO_MEMORY, WRONG_SIZES, Sizes
from yota.emit.tree import Return, Statement, Unused
from yota.errors import ArgumentError, CodegenError
from yota.ir.extents import Extent, extents_in
from yota.package.c.c_functions import FileWriter, FunctionWriter
from yota.package.c.interface import Function, Parameter, SizedCall
from yota.package.c.size_spelling import SizeNames, whole
from yota.package.recorded_matrices import Recording
from yota.package.request import Request, called
from yota.package.size_recordings import Sized, sized
from yota.package.subject import Subject
from yota.package.varying import computed
from yota.transform.sizes.conditions import Conditions, demand


class AllSizes:
    """Writes the functions of a file from a function that was traced at several sizes.

    names: what sizes are called in the language.
    """

    def __init__(self, request: Request, sized: Sized, names: SizeNames) -> None:
        self.request, self.subjects, self.sized, self.names = request, sized.subjects, sized, names
        self.samples = replace(sized.large, spell=lambda text: whole(text, names), smallest=request.smallest)
        self.sizes = tuple(names.values())
        self.conditions = Conditions(self.samples, names, lambda text: str(whole(text, names)), sized.least)
        demand([subject.tape for subject in self.subjects], self._demand)

    def written(self) -> Any:
        """The writer, when it has written all functions."""
        subject = self.computed("value")
        assert isinstance(subject, Subject)
        writer = self.writer(self.request, subject, self.sizes)
        writer.fill((word, subject if word == "value" else self.computed(word)) for word in self.request.ordered)
        for values in self.samples.demands:
            self.conditions.demand(values)
        self.finish(writer)
        writer.condition = self.conditions.described()
        return writer

    def computed(self, word: str) -> Recording:
        """What a function is written from, with ops that compute from the sizes what depends on them."""
        found, varying = self.sized.derived(word)
        return replace(found, tape=computed(found.tape, varying, self.samples, self.sized.samples))

    def writer(self, *given: Any) -> FileWriter:
        """What writes functions."""
        raise NotImplementedError

    def finish(self, writer: Any) -> None:
        """Put checks of sizes ahead of everything."""
        raise NotImplementedError

    def _demand(self, values: Sequence[int]) -> None:
        if (len(set(values)) > 1 or values[0] < 0) and self.sized.samples.whole(values) is not None:
            self.conditions.demand(self._larger(values))

    def _larger(self, values: Sequence[int]) -> Sequence[int]:
        """What has ``values`` at the sizes of the recordings, at sizes for which code has its general form."""
        found = self.sized.larger(Extent(tuple(values), self.sized.samples))
        return found.values if isinstance(found, Extent) else (found,)

    def told(self, inputs: Iterable[Parameter]) -> Iterator[tuple[str, str, int]]:
        """Each size with the name of the argument, and the axis, that tells it first."""
        known: set[str] = set()
        for each in inputs:
            for axis, extent in enumerate(map(str, each.type.shape)):
                if extent in self.sizes and extent not in known:
                    known.add(extent)
                    yield extent, each.name, axis

    def extents(self) -> list[tuple[str, int]]:
        """Extents for a test of the file, by what sizes are called in C."""
        least = self.conditions.least
        return [(self.names[name], least[name] + 4 + place) for place, name in enumerate(self.samples.names)]


def at_samples(request: Request, kind: Callable[[Request, Sized, SizeNames], AllSizes]) -> Any:
    """What ``kind`` writes of the function at several sizes."""
    language = language_of(request.target)
    title = language.file_names().fresh(called(request.wish))
    local = language.names(title, FOREIGN)
    names = SizeNames({name: local.fresh(name) for name in request.call.dimensions()}, language)
    try:
        return kind(request, sized(request.call, request.wrt, strict=request.strict, few=True), names).written()
    except (ArgumentError, CodegenError):
        return kind(request, sized(request.call, request.wrt, strict=request.strict), names).written()


ON_STACK = 128
"""Bytes of an array that may stand on the stack: none whose extent is a size has so few."""


class SizedInC(AllSizes):
    """Writes one file for all sizes."""

    def writer(self, *given: Any) -> FunctionWriter:
        """What writes functions."""
        made = FunctionWriter(*given)
        made.body_sizes = Sizes(self.sizes, ON_STACK, self.conditions.may_be_none)
        return made

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
        text = self.samples.expression(count.values)
        return str(whole(text, SizeNames({name: f"(double){each}" for name, each in self.names.items()})))
