"""A function for all sizes: traced at several, simplified alike, and generalised."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

import yota
from yota.compilation.layout import Wrt
from yota.errors import ArgumentError, YotaError
from yota.generation.generalise import General, UnknownForm, elements, generalised, held
from yota.generation.sizes import Samples, samples_of
from yota.generation.subject import Call, Subject, subject_of
from yota.generation.thresholds import Threshold, noting, thresholds
from yota.ir.tape import Tape
from yota.passes import fold
from yota.passes.pipeline import passes
from yota.passes.rewrite import Rewriting

__all__ = ["Sized", "canonical", "sized"]

_FIRST = 5
_STEP = 4
_LARGER = (64, 256, 1024, 4096, 16384)
"""Sizes at which the function must still do the same."""
_MOST_WORK = 4_000_000
"""Elements that all arrays of a tape may have together."""
_MOST_TRIED = 20_000_000
"""The same where the function compares a size with a number."""
_MOST_THRESHOLDS = 24
_SMALLEST = 2
_OWN, _NUMPY = (str(Path(place).parent) for place in (yota.__file__, np.__file__))
_RESERVED = ("np", "npt", "math", "Any", "float", "further")


@dataclass(frozen=True, slots=True, eq=False)
class Sized:
    """A function at several sizes.

    Parameters
    ----------
    samples
        The sizes.
    subjects
        The function, traced at each.
    strict
        Whether the value keeps NumPy's bits.
    """

    samples: Samples
    subjects: tuple[Subject, ...]
    strict: bool = False

    def general(self, tapes: Sequence[Tape]) -> General:
        """The tape that ``tapes``, one for each size, are cases of."""
        return generalised([canonical(_simplified(tape, self.strict)) for tape in tapes], self.samples)

    def value(self) -> General:
        """The function itself for all sizes."""
        return self.general([subject.valued(subject.tape, self.strict) for subject in self.subjects])

    def gradient(self) -> General:
        """Value and gradient for all sizes."""
        return self.general([subject.valued(subject.adjoints().tape, self.strict) for subject in self.subjects])

    def shapes(self) -> list[tuple[int | str, ...]]:
        """Shape of each leaf, by the names of sizes."""
        leaves = zip(*(subject.arguments.leaves for subject in self.subjects), strict=True)
        return [self.shape([np.shape(leaf.value) for leaf in each]) for each in leaves]

    def shape(self, shapes: Sequence[tuple[int, ...]]) -> tuple[int | str, ...]:
        """The shape that is one of ``shapes`` at each size, by the names of sizes."""
        return tuple(self._extent(values) for values in zip(*shapes, strict=True))

    def _extent(self, values: Sequence[int]) -> int | str:
        text = self.samples.whole(values)
        return values[0] if text is None or text.isdigit() else text


def sized(call: Call, wrt: Wrt, *, strict: bool = False) -> Sized:
    """Trace the call at several sizes.

    Raises
    ------
    ArgumentError
        If a size has a name that the module needs itself.
    """
    try:
        return _sized(call, wrt, strict)
    except UnknownForm as fault:
        try:
            # An array that was computed from a grid has no form that could be told; the grid itself may have one.
            return _sized(replace(call, keeps=True), wrt, strict)
        except (YotaError, ArithmeticError, LookupError, TypeError, ValueError):
            raise fault from None


def _sized(call: Call, wrt: Wrt, strict: bool) -> Sized:
    names = call.dimensions()
    for name in names:
        if name in _RESERVED or not name.isascii() or name.startswith("_"):
            raise ArgumentError(f"{name!r} cannot name a size; use a plain name such as N")
    samples = samples_of(names)
    first, functions = noting(lambda: _at(call, wrt, samples.sizes[0]))
    found = Sized(samples, (first, *(subject_of(call, wrt, size) for size in samples.sizes[1:])), strict)
    # The recordings themselves are compared first: there the lines are still those of the function.
    general = generalised([canonical(subject.tape) for subject in found.subjects], samples)
    for size, larger in _larger(call, wrt, names):
        held(general, canonical(larger.tape), size, samples)
    for size in _around(general, names, thresholds(functions)):
        try:
            subject = subject_of(call, wrt, size)
        except (ArithmeticError, ValueError):
            continue
        held(general, canonical(subject.tape), size, samples)
    return found


def _at(call: Call, wrt: Wrt, size: Mapping[str, int]) -> Subject:
    """The function at one size; where it fails there, what the sizes were is said too."""
    try:
        return subject_of(call, wrt, size)
    except YotaError:
        raise
    except (ArithmeticError, IndexError, ValueError) as fault:
        files = [frame for frame in traceback.extract_tb(fault.__traceback__) if not _is_foreign(frame.filename)]
        place = f"{files[-1].name}, line {files[-1].lineno}: `{files[-1].line}`: " if files else ""
        sizes = ", ".join(f"{name} = {extent}" for name, extent in size.items())
        text = " ".join(str(fault).split())
        raise ArgumentError(
            f"{place}at {sizes} this raises {type(fault).__name__}: {text}. Sizes that must agree need the same name"
        ) from fault


def _is_foreign(file: str) -> bool:
    """Whether a file is of NumPy's or of yota's own."""
    return file.startswith((_OWN, _NUMPY))


def _around(general: General, names: Sequence[str], numbers: Sequence[Threshold]) -> Iterator[dict[str, int]]:
    """Sizes at which, and next to which, the function may branch.

    Raises
    ------
    ArgumentError
        If it branches on a size at which arrays are too large to be tried.
    """
    small = _small(names)
    for each in sorted(numbers, key=lambda each: not each.of_size)[:_MOST_THRESHOLDS]:
        for name in names:
            sizes = [{**small, name: each.number + step} for step in (-1, 0, 1) if each.number + step >= _SMALLEST]
            if all(elements(general, size) <= _MOST_TRIED for size in sizes):
                yield from sizes
            elif each.of_size:
                raise ArgumentError(
                    f"{each.place}: arrays of such a size are too large to find out whether the function does "
                    "something else there. Fix the size, as in float64[100], or write it without the comparison"
                )


def _small(names: Sequence[str]) -> dict[str, int]:
    return {name: _FIRST + place for place, name in enumerate(names)}


def _larger(call: Call, wrt: Wrt, names: Sequence[str]) -> Iterator[tuple[dict[str, int], Subject]]:
    """The function with one size after the other grown, for as long as its arrays stay small.

    A branch on a size is seen only where it goes the other way.
    """
    small = _small(names)
    for name in names:
        work, growth = 0, _STEP**2
        for extent in _LARGER:
            if work * growth > _MOST_WORK:
                break
            size = {**small, name: extent}
            try:
                subject = subject_of(call, wrt, size)
            except (ArithmeticError, ValueError):
                # The values that it was given there are none that it takes.
                break
            yield size, subject
            now = sum(type.size for type in subject.tape.types.values())
            work, growth = now, max(_STEP, -(-now // work)) if work else _STEP**2


def _simplified(tape: Tape, strict: bool) -> Tape:
    """The tape after the passes that do not depend on sizes; the form of a folded array could not be told."""
    for name, rewrite in passes(strict=strict):
        if name != "scalarize":
            tape = fold.run(tape, arrays=False) if name == "fold" else rewrite(tape)
    return tape


class _Canonical(Rewriting):
    """A copy of a tape in which each use of a constant has one of its own."""

    def __getitem__(self, variable: int) -> int:
        return self.mapping[variable] if variable in self.mapping else self.own_constant(variable)


def canonical(tape: Tape) -> Tape:
    """The tape with a constant of its own for each use, so that equal numbers of different origin are kept apart."""
    rewriting = _Canonical(tape)
    for op in tape.ops:
        rewriting.copy(op)
    return rewriting.finish()
