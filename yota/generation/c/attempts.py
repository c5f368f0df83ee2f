"""Code for all sizes is made at several: sizes at which it has one form, and functions traced there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from yota.codegen.c.names import FOREIGN, FileNames, LocalNames
from yota.codegen.c.tables import Tables
from yota.errors import ArgumentError, CodegenError
from yota.generation.c.interface import Parameter
from yota.generation.c.texts import Conditions, DifferentError, Texts
from yota.generation.demands import demand
from yota.generation.provenance import called
from yota.generation.request import Request
from yota.generation.sizes import Samples, samples_of
from yota.generation.sizing import sized
from yota.generation.subject import Call, Subject, subject_of
from yota.generation.varying import Separated, separated
from yota.ir.tape import Tape

__all__ = ["AllSizes", "at_samples", "same_tables"]

_T = TypeVar("_T")
_SMALLEST, _SMALLEST_OF_MANY = (340, 440, 560), (135, 170, 210)
"""Extents from which on code is no longer written in another way for its arrays being small.

More than one is tried: statements are also cut where they are long, which numbers with more digits make them.
"""
_APART = 13
"""Loops of about the same length run together: extents that are not meant to be alike must not look it."""


class AllSizes:
    """What is made of a function that was traced at several sizes.

    Parameters
    ----------
    samples, subjects
        The sizes, and the function traced at each.
    title
        Its name in the file.
    names
        What sizes are called in C.
    """

    def __init__(
        self, request: Request, samples: Samples, subjects: Sequence[Subject], title: str, names: Mapping[str, str]
    ) -> None:
        self.request, self.samples, self.subjects, self.title, self.names = request, samples, subjects, title, names
        self.sizes = tuple(names.values())
        self.conditions = Conditions(samples, names)
        self.texts = Texts(samples, names, self.conditions)
        demand([subject.tape for subject in subjects], self.conditions.demand)

    def file_names(self) -> FileNames:
        """Names of one file, of which the title is one."""
        names = FileNames()
        names.fresh(self.title)
        return names

    def local_names(self, tape: Tape) -> LocalNames:
        """Names that are none of the function's own."""
        return LocalNames(self.title, [*FOREIGN, *self.sizes, *(entry.name for entry in tape.inputs)])

    def separated(self, tapes: Sequence[Tape]) -> Separated:
        """The tapes of one function without constants that depend on sizes."""
        found = separated(tapes, self.samples)
        demand(tapes, self.conditions.demand)
        return found

    def told(self, inputs: Iterable[Parameter]) -> Iterator[tuple[str, str, int]]:
        """Each size with the name of the argument, and the axis, that tells it first."""
        known: set[str] = set()
        for each in inputs:
            for axis, extent in enumerate(each.type.shape):
                for size, sampled in self.samples.sizes[0].items():
                    if extent == sampled and size not in known:
                        known.add(size)
                        yield self.names[size], each.name, axis

    def extents(self) -> list[tuple[str, int]]:
        """Extents for a test of the file, by what sizes are called in C."""
        least = self.conditions.least
        return [(self.names[name], least[name] + 4 + place) for place, name in enumerate(self.samples.names)]


def same_tables(each: Iterable[Tables]) -> None:
    """Refuse constant arrays that differ."""
    if len({tuple(tables.lines) for tables in each}) != 1:
        raise ArgumentError(
            "the function uses an array of numbers that depends on sizes in no known way; pass it as an argument"
        )


def at_samples(request: Request, write: Callable[[Samples, Sequence[Subject], str, Mapping[str, str]], _T]) -> _T:
    """What ``write`` makes of samples, the function traced at each, its name, and those of sizes in C.

    Raises
    ------
    ArgumentError
        If the function does something else at another size, or the code for one size differs in more than numbers.
    """
    call, wrt = request.call, request.wrt
    call = sized(call, wrt, strict=request.strict).subjects[0].call
    title = FileNames().fresh(called(request.wish))
    names = _size_names(title, call.dimensions())
    starts = _SMALLEST if len(names) < 3 else _SMALLEST_OF_MANY
    for start in starts:
        samples = _samples(call, start)
        try:
            subjects = [subject_of(call, wrt, size) for size in samples.sizes]
            return write(samples, subjects, title, names)
        except DifferentError:
            if start == starts[-1]:
                raise
        except CodegenError as fault:
            raise CodegenError(_with_names(str(fault), samples)) from None
    raise AssertionError("unreachable")


def _samples(call: Call, start: int) -> Samples:
    """Sizes that are large, and unlike one another and the extents that are numbers."""
    names = call.dimensions()
    _, arguments = call.arguments(dict.fromkeys(names, 1))
    known = {extent for leaf in arguments.leaves for extent in getattr(leaf.value, "shape", ())}
    return samples_of(names, start, _APART, sorted(known))


def _with_names(text: str, samples: Samples) -> str:
    """A message with names for the sizes of the first sample."""
    for name, extent in samples.sizes[0].items():
        text = re.sub(rf"(?<=[\[,]){extent}(?=[\],])", name, text)
    return text


def _size_names(title: str, names: Sequence[str]) -> dict[str, str]:
    local = LocalNames(title, FOREIGN)
    return {name: local.fresh(name) for name in names}
