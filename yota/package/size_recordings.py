"""A function for all sizes: traced at several, simplified alike, and generalised."""

from __future__ import annotations

import functools
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

import yota
from yota.errors import ArgumentError, YotaError
from yota.ir.extents import Extent, extent_of, tentative
from yota.package.recorded_matrices import Recording, recorded
from yota.package.subject import Call, Subject, subject_of
from yota.package.varying import Varying, separated
from yota.run.gradient_layout import Wrt
from yota.structures import mapped
from yota.tracing.captures import copied
from yota.tracing.traced_sizes import Decision
from yota.transform.rolling import roll
from yota.transform.sizes.conditions import Conditions, demand
from yota.transform.sizes.evaluation import evaluated
from yota.transform.sizes.generalise import (
    General,
    OtherSteps,
    UnknownForm,
    at_size,
    canonical,
    check_same_ops,
    elements,
    generalised,
    held,
    is_case,
)
from yota.transform.sizes.literal_sizes import with_literals
from yota.transform.sizes.size_branches import Branches, place_of
from yota.transform.sizes.size_expressions import Samples, samples_of

_FIRST, _FIRST_OF_LOOPS = 5, 13
_SMALLEST, _SMALLEST_OF_MANY = 340, 135
"""Extents from which on code is no longer written in another way for its arrays being small."""
_APART = 13
"""Loops of about the same length run together: extents that are not meant to be alike must not look it."""
_LARGER = (43, 89, 173, 347, 691, 1381, 2767, 5531, 11059, 22123)
"""Sizes at which the function must still do the same where sizes escape: one in each octave."""
_LARGEST = 347
"""The largest of them where none escapes: from there on code has its general form."""
_MOST_WORK, _MOST_LARGEST, _MOST_QUICK = 4_000_000, 1_200_000, 120_000
"""Elements that all arrays of a tape may have together at such sizes, at the largest, and at more than the first."""
_OP = 250
"""Elements that are computed in about the time of recording an op."""
_MOST_TRIED = 20_000_000
"""The same where the function decides otherwise."""
_MOST_ROUNDS = 8
_OWN, _NUMPY = (str(Path(place).parent) for place in (yota.__file__, np.__file__))
_RESERVED = ("np", "npt", "math", "Any", "float", "further")


@dataclass(frozen=True, eq=False)
class Sized:
    """A function at several sizes.

    small: sizes at which it takes another decision on them, so that generated code is to be tried there, and the
        decision.
    least: the smallest extents for which it is defined, where they are more than 0.
    largest: large sizes at which it was recorded.
    is_checked: whether code checks that each part of an array which the function takes lies inside.
    general: the tape that all recordings are cases of.
    """

    samples: Samples
    subjects: tuple[Subject, ...]
    general: General
    strict: bool = False
    small: tuple[tuple[Mapping[str, int], Decision], ...] = ()
    least: Mapping[str, int] = field(default_factory=dict)
    largest: tuple[Mapping[str, int], ...] = ()
    is_checked: bool = False
    few: bool = False

    def place(self, size: Mapping[str, int]) -> str:
        """The line of what is decided otherwise at a small size, to begin a message with."""
        return next((place_of(decision.location) for small, decision in self.small if small == size), "")

    @functools.cached_property
    def conditions(self) -> Conditions:
        """What sizes must be for the function."""
        found = Conditions(self.samples, {name: name for name in self.samples.names}, str, self.least)
        if self.is_checked:
            demand([subject.tape for subject in self.subjects], found.demand)
        return found

    def decided(self) -> None:
        """Add to the conditions what code was decided by."""
        for values in self.large.demands:
            text = self.large.expression(values)
            self.conditions.require([evaluated(text, size) for size in self.samples.sizes])

    def clips(self, size: Mapping[str, int]) -> bool:
        """Whether a part of an array may have another length at this size than its formula says."""
        return any(distance is None or evaluated(distance, size) < 0 for distance in self._distances)

    @functools.cached_property
    def _distances(self) -> set[str | None]:
        """How far each read is inside of its array, as expressions of the sizes; None for what is none."""
        found: list[Sequence[int]] = []
        demand([subject.tape for subject in self.subjects], found.append)
        return {self.samples.whole(values) for values in found if len(set(values)) > 1 or values[0] < 0}

    @functools.cached_property
    def large(self) -> Samples:
        """Sizes that are large, and unlike one another and the extents that are numbers."""
        names = self.samples.names
        start = _SMALLEST if len(names) < 3 else _SMALLEST_OF_MANY
        _, arguments = self.subjects[0].call.arguments(dict.fromkeys(names, 1))
        known = {extent for leaf in arguments.leaves for extent in getattr(leaf.value, "shape", ())}
        return samples_of(names, start, _APART, sorted(known), few=self.few)

    @functools.cached_property
    def function(self) -> tuple[Subject, tuple[Varying, ...]]:
        """The function for all sizes, and the constants that are its last inputs."""
        tape, varying = separated(self.general, self.larger)
        return replace(self.subjects[0], tape=tape), varying

    def derived(self, word: str, *, valued: bool = False) -> tuple[Recording, tuple[Varying, ...]]:
        """What `recorded` derives from the function for all sizes, and the constants that are the last inputs.

        The result is held against that of the first recording. Where a rule needs the number that a size is, and where
        the value is to have the bits of strict evaluation (``valued``), each recording is derived from.
        """
        if (word, valued) not in self._derived:
            self._derived[word, valued] = self._valued(word) if valued else self._for_all(word)
        return self._derived[word, valued]

    @functools.cached_property
    def _derived(self) -> dict[tuple[str, bool], tuple[Recording, tuple[Varying, ...]]]:
        return {}

    def _for_all(self, word: str) -> tuple[Recording, tuple[Varying, ...]]:
        subject, varying = self.function
        if word == "value":
            return subject, varying
        first, size = recorded(self.subjects[0], word, subject), self.samples.sizes[0]
        with suppress(YotaError, ArithmeticError, LookupError, TypeError, ValueError):
            # The comparison with a recording decides; what rules compare on the way refuses no sizes.
            with tentative():
                found = recorded(subject, word, subject)
            if is_case(at_size(found.tape, size), [evaluated(each.text, size) for each in varying], first.tape):
                return found, varying
        return self._generalised([first, *(recorded(each, word, subject) for each in self.subjects[1:])])

    def _valued(self, word: str) -> tuple[Recording, tuple[Varying, ...]]:
        each = [(one, recorded(one, word, self.function[0])) for one in self.subjects]
        return self._generalised([replace(found, tape=one.valued(found.tape, strict=True)) for one, found in each])

    def _generalised(self, recordings: Sequence[Recording]) -> tuple[Recording, tuple[Varying, ...]]:
        """What all of ``recordings``, one for each sample, are cases of."""
        general = generalised([canonical(each.tape) for each in recordings], self.samples)
        tape, varying = separated(general, self.larger)
        return replace(recordings[0], tape=tape), varying

    def larger(self, extent: Extent) -> int:
        """An extent of the recordings, at sizes for which code has its general form."""
        known, key = self._known, extent.values
        if key not in known:
            text = self.samples.expression(key)
            known[key] = extent_of([evaluated(text, size) for size in self.large.sizes], self.large)
        return known[key]

    @functools.cached_property
    def _known(self) -> dict[tuple[int, ...], int]:
        return {}


def sized(call: Call, wrt: Wrt, *, strict: bool = False, few: bool = False) -> Sized:
    """Trace the call at several sizes, as many as tell polynomials apart, or at a ``few`` that tell simple ones."""
    if call.rolls and not call.loops and _is_long(call, wrt):
        with suppress(YotaError, ArithmeticError, LookupError, TypeError, ValueError):
            return _sized(replace(call, loops=True), wrt, strict, few)
    try:
        return _sized(call, wrt, strict, few)
    except (OtherSteps, UnknownForm) as fault:
        # A Python loop over a size takes other steps at each. An array that was computed from a grid has no form that
        # could be told; the grid itself may have one.
        loops = isinstance(fault, OtherSteps)
        try:
            found = _sized(replace(call, loops=True) if loops else replace(call, keeps=True), wrt, strict, few)
        except UnknownForm as other:
            raise (other if loops else fault) from None
        except (YotaError, ArithmeticError, LookupError, TypeError, ValueError):
            raise fault from None
        if loops and not any(op.regions for op in found.subjects[0].tape.ops):
            raise
        return found


def _is_long(call: Call, wrt: Wrt) -> bool:
    """Whether a recording repeats so often that it has a loop."""
    tape = _at(call, wrt, samples_of(_names(call), _FIRST, few=True).sizes[0]).tape
    return any(op.regions for op in roll.run(tape, call.worth).ops)


def _names(call: Call) -> tuple[str, ...]:
    """The named sizes of a call."""
    names = call.dimensions()
    for name in names:
        if name in _RESERVED or not name.isascii() or name.startswith("_"):
            raise ArgumentError(f"{name!r} cannot name a size; use a plain name such as N")
    return names


def _sized(call: Call, wrt: Wrt, strict: bool, few: bool) -> Sized:
    names = _names(call)
    samples = samples_of(names, _FIRST_OF_LOOPS if call.loops else _FIRST, few=few)
    if not call.literals:
        # What changes with the sizes is no number of the function's own.
        call.literals.update(set.intersection(*(_literals(call, size) for size in samples.sizes[:2])))
    # A loop that is not recorded as such is found with as few trips as can be.
    one, two = (canonical(_at(call, wrt, size).tape) for size in samples.sizes[:2])
    check_same_ops(one, two, samples)
    subjects = tuple(_at(call, wrt, size) for size in samples.sizes)
    # The recordings themselves are compared first: there the lines are still those of the function.
    general = generalised([canonical(subject.tape) for subject in subjects], samples)
    trials = _Trials(call, wrt, samples, general)
    for size, subject in zip(samples.sizes, subjects, strict=True):
        trials.branches.add(size, subject.decisions)
    shapes = zip(*([np.shape(leaf.value) for leaf in each.arguments.leaves] for each in subjects), strict=True)
    extents = {extents for shape in shapes for extents in zip(*shape, strict=True)}
    trials.run([*call.literals, *(extents[0] for extents in extents if len(set(extents)) == 1)])
    return Sized(
        samples, subjects, general, strict, tuple(trials.small), trials.least(), tuple(trials.largest), few=few
    )


class _Trials:
    """Recordings at sizes at which the function may do something else than at those of the samples."""

    def __init__(self, call: Call, wrt: Wrt, samples: Samples, general: General) -> None:
        self.call, self.wrt, self.samples, self.general = call, wrt, samples, general
        self.branches = Branches(samples.names)
        self.small: list[tuple[Mapping[str, int], Decision]] = []
        """Sizes that are too small for the recordings to be alike: the generated code is tried there."""
        self._first = _FIRST_OF_LOOPS if call.loops else _FIRST
        self._tried = {tuple(size.values()) for size in samples.sizes}

    def run(self, numbers: Sequence[int]) -> None:
        """Try sizes at which a decision comes out otherwise, those next to ``numbers``, and large ones."""
        self._decide()
        again = False
        for size in self._further(numbers):
            if tuple(size.values()) not in self._tried and elements(self.general, size) <= _MOST_WORK:
                self._tried.add(tuple(size.values()))
                try:
                    again |= self._hold(size, subject_of(self.call, self.wrt, size))
                except (ArithmeticError, IndexError, ValueError) as fault:
                    if isinstance(fault, YotaError):
                        raise
                    # What the arguments are made up of there is nothing that the function takes.
        if again:
            self._decide()

    def least(self) -> dict[str, int]:
        """The smallest extents for which the function is defined, where they are more than 0."""
        first = self.samples.sizes[0]
        found = {}
        for name in self.samples.names:
            undefined = (
                extent for extent in range(_FIRST - 1, -1, -1) if not _is_defined(self.call, {**first, name: extent})
            )
            found[name] = next(undefined, -1) + 1
        return {name: extent for name, extent in found.items() if extent > 0}

    def _decide(self) -> None:
        for _ in range(_MOST_ROUNDS):
            again = False
            for size, decision in self.branches.untried():
                if min(size.values()) < self._first:
                    self.small.append((size, decision))
                    self.branches.add(size, ())
                elif elements(self.general, size) > _MOST_TRIED:
                    if decision.is_library:
                        continue  # Such as the dtype of positions, which libraries choose by how many there are.
                    raise ArgumentError(
                        f"{place_of(decision.location)}arrays of such a size are too large to find out whether the "
                        "function does something else there. Fix the size, as in float64[100], or write it without "
                        "the decision"
                    )
                else:
                    again |= self._hold(size, _at(self.call, self.wrt, size))
            if not again:
                return

    def _hold(self, size: Mapping[str, int], subject: Subject) -> bool:
        held(self.general, canonical(subject.tape), size, self.samples)
        return self.branches.add(size, subject.decisions)

    def _further(self, numbers: Sequence[int]) -> Iterator[dict[str, int]]:
        names = self.samples.names
        small = {name: self._first + place for place, name in enumerate(names)}
        yield from self.largest
        for name in names:
            # What begins or ends below the largest size that is tried is found there.
            top = max((size[name] for size in self.largest), default=0)
            near = {number + step for number in numbers for step in (0, 1) if number >= top}
            near |= set(numbers if self.branches.escaped else ())
            yield from ({**small, name: extent} for extent in sorted(near) if extent >= self._first)
        # What changes with an octave stays so in those above: names take turns.
        for place, extent in enumerate(_LARGER if self.branches.escaped else ()):
            yield {**small, names[place % len(names)]: extent}

    @functools.cached_property
    def largest(self) -> list[dict[str, int]]:
        """The largest sizes at which recording is quick: of the first name, and of all names together."""
        names = self.samples.names
        small = {name: self._first + place for place, name in enumerate(names)}
        found = self._quick({**small, names[0]: extent} for extent in _LARGER if extent <= _LARGEST)
        if len(names) > 1:
            together = [extent for extent in _LARGER if extent < _LARGEST]
            found += self._quick({name: each + 2 * place for place, name in enumerate(names)} for each in together)
        return found

    def _quick(self, sizes: Iterable[dict[str, int]]) -> list[dict[str, int]]:
        """The last of the sizes, in their order, at which recording is quick."""
        counts = [(elements(self.general, size, _OP), size) for size in sizes]
        quick = [size for count, size in counts if count <= _MOST_QUICK]
        return quick[-1:] or [size for count, size in counts if count <= _MOST_LARGEST][:1]


def _literals(call: Call, size: Mapping[str, int]) -> set[int]:
    """The whole numbers that the functions hold which run at one size."""
    return set(with_literals(lambda: _is_defined(call, size))[1])


def _is_defined(call: Call, size: Mapping[str, int]) -> bool:
    """Whether the function gives something at one size."""
    try:
        function, args = call.given(size)
        quietly(function, args)
    except (ArithmeticError, np.linalg.LinAlgError):
        return True  # That is a matter of the values.
    except Exception:  # noqa: BLE001  (whatever the function raises)
        return False
    return True


def shown(size: Mapping[str, int]) -> str:
    """Sizes for a message."""
    return ", ".join(f"{name} = {extent}" for name, extent in size.items())


def quietly(function: Callable[..., Any], values: Sequence[Any]) -> Any:
    """What a function gives, which may write into its arguments; without warnings."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return function(*mapped(tuple(values), copied))


def _at(call: Call, wrt: Wrt, size: Mapping[str, int]) -> Subject:
    """The function at one size; where it fails there, what the sizes were is said too."""
    try:
        return subject_of(call, wrt, size)
    except YotaError:
        raise
    except (ArithmeticError, IndexError, ValueError) as fault:
        files = [frame for frame in traceback.extract_tb(fault.__traceback__) if not _is_foreign(frame.filename)]
        place = f"{files[-1].name}, line {files[-1].lineno}: `{files[-1].line}`: " if files else ""
        text = " ".join(str(fault).split())
        raise ArgumentError(
            f"{place}at {shown(size)} this raises {type(fault).__name__}: {text}. Sizes that must agree need the same "
            "name"
        ) from fault


def _is_foreign(file: str) -> bool:
    return file.startswith((_OWN, _NUMPY))
