"""Holds a module for all sizes against tapes of one size each, at sizes that it was not made from."""

from __future__ import annotations

import sys
import threading
import types
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from yota.errors import ArgumentError, YotaError
from yota.ir.tape import Tape
from yota.package.recorded_matrices import Derivative, recorded
from yota.package.size_recordings import Sized, quietly, shown
from yota.package.subject import Call, Subject, subject_of
from yota.run.arguments import Arguments
from yota.run.gradient_layout import Wrt
from yota.tracing.replay import evaluate
from yota.transform.reverse.backward import Adjoints
from yota.transform.sizes.evaluation import evaluated
from yota.transform.sizes.generalise import at_size

_LARGE, _MOST_LARGE = 67, 3
_LARGEST = 347
"""A size from which on code has its general form, for one name at a time: arrays may have several axes of it."""
_FEW = 4
"""Sizes below which code is tried at each of them."""
_ENOUGH = 9
"""What the other sizes are where one is too small."""
_FEW_TRIPS = 13
"""The same for code that has loops over sizes."""
_TOLERANCE, _TOLERANCE_OF_SINGLE = 1e-9, 1e-4
_STEP, _CLOSE = 1e-5, 1e-5
"""How far arguments are moved for central differences, and how close the gradient is to these."""
_MOST_ROWS = 256
"""Rows of a matrix up to which all of it is compared; the product with a vector is at every size."""


class TooSmallError(ArgumentError):
    """Code computes something else at small sizes.

    least: the sizes from which on it may be right.
    """

    def __init__(self, text: str, least: Mapping[str, int]) -> None:
        super().__init__(text)
        self.least = least


def proved(
    text: str, name: str, call: Call, wrt: Wrt, wanted: Sequence[str], sized: Sized | None, *, strict: bool = False
) -> None:
    """Hold a module against yota at small, mixed and large sizes; raises TooSmallError if only small ones are wrong."""
    # Other threads may prove modules too.
    module = types.ModuleType(f"yota.proved_{threading.get_ident()}")
    # Named tuples look their module up by name.
    sys.modules[module.__name__] = module
    try:
        exec(compile(text, "<module under proof>", "exec"), module.__dict__)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            names = call.dimensions()
            # Code for any number of axes was made from recordings with other ones.
            if sized is not None and sized.samples.names == names:
                sizes, call = _trials_of(sized), sized.subjects[0].call
            else:
                sizes = [*trials(names), {each: 2 if position else _LARGEST for position, each in enumerate(names)}]
            for size in sizes:
                if sized is not None and not sized.conditions.allow(size):
                    continue
                if (what := _fault(module, name, call, wrt, wanted, size, strict, sized)) is None:
                    continue
                if sized is None or min(size.values()) > _FEW:
                    raise ArgumentError(f"{'' if sized is None else sized.place(size)}{what}")
                alone = [{**dict.fromkeys(names, _ENOUGH), each: extent} for each, extent in size.items()]
                faults = [_fault(module, name, call, wrt, wanted, each, strict) for each in alone]
                least = {each: size[each] + 1 for each, found in zip(names, faults, strict=True) if found}
                raise TooSmallError(
                    f"{sized.place(size)}{what}", least or {each: extent + 1 for each, extent in size.items()}
                )
    finally:
        del sys.modules[module.__name__]


def _fault(
    module: types.ModuleType,
    title: str,
    call: Call,
    wrt: Wrt,
    wanted: Sequence[str],
    size: Mapping[str, int],
    strict: bool,
    sized: Sized | None = None,
) -> str | None:
    """What is wrong with a module at one size; None if nothing is."""
    try:
        for case in cases_at(title, call, wrt, wanted, size, sized):
            _held(module, title, case, strict=strict)
    except YotaError as fault:
        return str(fault)
    except (ArithmeticError, IndexError, ValueError) as fault:
        return f"at {shown(size)} the code for all sizes raises {type(fault).__name__}: {fault}"
    return None


def _trials_of(sized: Sized) -> list[Mapping[str, int]]:
    names = sized.samples.names
    # Those at which a decision comes out otherwise are mixed already.
    small = trials(names)[: _FEW - 1 if sized.small else -1]
    if sized.subjects[0].call.loops:
        small = [dict.fromkeys(names, extent) for extent in range(1, _FEW_TRIPS)]
    # Beside the smallest those that a part of an array may not fit, and the next one.
    whole = [size for size in small[1:] if not sized.clips(size)]
    small = [size for size in small if size == small[0] or size in whole[:1] or sized.clips(size)]
    found = [*small, *sized.largest, *(size for size, _ in sized.small)]
    return list({tuple(size[name] for name in names): size for size in found}.values())


def trials(names: Sequence[str]) -> list[Mapping[str, int]]:
    """Sizes at which code for all of them is tried."""
    same = [dict.fromkeys(names, size) for size in range(1, _FEW)]
    mixed = [{name: 1 + (position + shift) % 3 for position, name in enumerate(names)} for shift in (0, 1)]
    # An array that has many axes is large soon enough.
    large = {name: _LARGE - 4 * position if position < _MOST_LARGE else 2 for position, name in enumerate(names)}
    sizes = {tuple(size.values()): size for size in (*same, *mixed, large)}
    return list(sizes.values())


@dataclass(frozen=True, slots=True)
class Case:
    """A call: the function, sizes, arguments, and what it should give, one after the other."""

    name: str
    size: Mapping[str, int]
    inputs: tuple[Any, ...]
    expected: tuple[Any, ...]
    what: str

    def check(self, found: Sequence[Any]) -> None:
        """Raise unless the call gave what it should."""
        single = is_single([*self.inputs, *self.expected])
        for one, expected in zip(found, self.expected, strict=True):
            compared(one, expected, self.what, single=single)


def cases_at(
    title: str, call: Call, wrt: Wrt, wanted: Sequence[str], size: Mapping[str, int], sized: Sized | None = None
) -> Iterator[Case]:
    """What the functions of a file, of which the first is ``title``, should give at one size.

    The gradient is that of a recording at the size, or of the tape of ``sized`` where central differences confirm it.
    """
    function, arguments = call.arguments(size)
    try:
        value = quietly(function, arguments.values)
    except Exception:  # noqa: BLE001
        # Where the function has no value, the code has none to be held against.
        return
    leaves = tuple(leaf.value for leaf in arguments.leaves)
    if "value" in wanted:
        yield Case(title, size, leaves, value if isinstance(value, tuple) else (value,), f"the value at {shown(size)}")
    if set(wanted) <= {"value"} or not is_finite(value):
        return
    what, found = f"the gradient at {shown(size)}", None
    if sized is not None and sized.samples.names == call.dimensions() and set(wanted) <= {"value", "gradient"}:
        found = _confirmed(sized, function, arguments, size)
    if found is not None:
        yield Case(f"{title}_value_and_gradient", size, leaves, (value, *found), what)
        return
    subject = subject_of(call, wrt, size)
    if "gradient" in wanted:
        found = _arrays([leaves[leaf] for leaf in subject.layout.wanted], slopes_of(subject.adjoints, leaves))
        yield Case(f"{title}_value_and_gradient", size, leaves, (value, *found), what)
    for what, given, expected in products_of(subject, leaves, wanted):
        yield Case(f"{title}_{what}", size, (*leaves, *given), (expected,), f"the {what} at {shown(size)}")


def _held(module: types.ModuleType, title: str, case: Case, *, strict: bool) -> None:
    """Hold a function of a module against what it should give; the bits of a ``strict`` value too."""
    found = getattr(module, case.name)(*case.inputs)
    if case.name == f"{title}_value_and_gradient":
        found = (found[0], *(found[1] if isinstance(found[1], tuple) else found[1:]))
    results = found if isinstance(found, tuple) else (found,)
    case.check(results)
    if not strict or case.name not in (title, f"{title}_value_and_gradient"):
        return
    count = len(results) if case.name == title else 1
    bits = [[np.asarray(each).tobytes() for each in values[:count]] for values in (results, case.expected)]
    if bits[0] != bits[1]:
        raise ArgumentError(f"{case.what}: the code for all sizes has other bits than NumPy; leave strict out")


def _arrays(leaves: Sequence[Any], slopes: Sequence[Any]) -> list[Any]:
    """Gradients by ``leaves``, zeros where there is none."""
    return [
        np.zeros_like(leaf) if each is None else np.asarray(each, np.asarray(leaf).dtype)
        for leaf, each in zip(leaves, slopes, strict=True)
    ]


def _confirmed(
    sized: Sized, function: Callable[..., Any], arguments: Arguments, size: Mapping[str, int]
) -> list[Any] | None:
    """Gradients by the tape for all sizes, op by op; None unless central differences of the function are close."""
    leaves = [leaf.value for leaf in arguments.leaves]
    places = sized.subjects[0].layout.wanted
    by = [leaves[place] for place in places]
    if any(np.asarray(each).dtype != np.float64 for each in by):
        return None
    found, varying = sized.derived("gradient")
    assert isinstance(found, Adjoints)
    try:
        given = [*leaves, *(evaluated(each.text, size) for each in varying)]
        slopes = _arrays(by, slopes_of(replace(found, tape=at_size(found.tape, size)), given))
        steps = {place: _STEP * np.cos(np.arange(float(np.size(leaves[place])))) for place in places}
        ends = []
        for sign in (1.0, -1.0):
            moved = [_moved(leaf, sign * steps.get(place, 0.0)) for place, leaf in enumerate(leaves)]
            ends.append(float(quietly(function, arguments.rebuild(moved))))
    except Exception:  # noqa: BLE001  (whatever the function or an op raises)
        return None
    parts = [np.ravel(slope) * steps[place] for slope, place in zip(slopes, places, strict=True)]
    scale = sum(float(np.sum(np.abs(part))) for part in parts)
    error = abs(ends[0] - ends[1] - 2.0 * sum(float(np.sum(part)) for part in parts))
    return slopes if error <= _CLOSE * scale + 1e-14 * abs(ends[0]) else None


def _moved(value: Any, step: Any) -> Any:
    """An argument with ``step`` added to its elements; a copy, which the function may write to."""
    if not isinstance(value, np.ndarray):
        return value if np.ndim(step) == 0 else type(value)(value + float(step[0]))
    return value.copy() if np.ndim(step) == 0 else value + np.reshape(step, value.shape)


def slopes_of(found: Adjoints, leaves: Sequence[Any]) -> list[Any]:
    """Gradients by a tape of one size, op by op; None where there is none."""
    rest = iter(_played(found.tape, leaves)[1:])
    return [None if variable is None else next(rest) for variable in found.variables]


def _played(tape: Tape, values: Sequence[Any]) -> Sequence[Any]:
    return evaluate(tape, {entry.variable: value for entry, value in zip(tape.inputs, values, strict=True)})


def products_of(
    subject: Subject, leaves: Sequence[Any], wanted: Sequence[str]
) -> Iterator[tuple[str, tuple[Any, ...], Any]]:
    """Functions that involve a vector or give a matrix, with further arguments and what they should give."""
    for what in wanted:
        if what in ("value", "gradient"):
            continue
        found = recorded(subject, what, subject)
        assert isinstance(found, Derivative)
        if found.extra is None:
            yield what, (), _played(found.tape, leaves)[0]
            continue
        like = np.asarray(found.extra.value)
        if what == "hvp":
            direction = np.cos(np.arange(float(like.size))).reshape(like.shape).astype(like.dtype)[()]
            yield what, (direction,), _played(found.tape, (*leaves, direction))[0]
        elif like.size <= _MOST_ROWS:
            units = np.eye(like.size, dtype=like.dtype).reshape(-1, *like.shape)
            matrix = [_played(found.tape, (*leaves, unit[()]))[0] for unit in units]
            yield what, (), np.reshape(matrix, found.like.shape)


def is_finite(value: Any) -> bool:
    """Whether a function's value is finite throughout: at a pole, derivatives depend on the order of operations."""
    return all(bool(np.all(np.isfinite(part))) for part in (value if isinstance(value, tuple) else (value,)))


def is_single(values: Iterable[Any]) -> bool:
    """Whether there are numbers of single precision among ``values``."""
    return any(each.dtype.char in "efF" for each in map(np.asarray, values))


def compared(found: Any, expected: Any, what: str, *, single: bool) -> None:
    """Raise unless ``what`` was found as expected, of numbers of ``single`` precision or not."""
    # Where large terms cancel, what is left has errors of their size.
    finite = np.isfinite(expected)
    tolerance = _TOLERANCE_OF_SINGLE if single else _TOLERANCE
    scale = tolerance * max(1.0, float(np.abs(np.asarray(expected)[finite]).max(initial=0.0)))
    same = np.shape(found) == np.shape(expected) and np.array_equal(np.isfinite(found), finite)
    if not (same and np.allclose(np.asarray(found)[finite], np.asarray(expected)[finite], rtol=tolerance, atol=scale)):
        raise ArgumentError(
            f"{what} is not what the code for all sizes gives: the function does something else there, as with a "
            "branch on the size. Fix the size, or write the function without it"
        )
