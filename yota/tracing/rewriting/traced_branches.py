"""Decisions by traced values in a trip of a loop: both branches are recorded, and a `where` selects their results."""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np

from yota.errors import TracingError
from yota.ir.catalog import primitive
from yota.ir.semantics import CONTRACTIONS, JOINS, VIEWS, AccessMap
from yota.ir.tape import Op
from yota.tracing.current import current
from yota.tracing.indices import only_counts
from yota.tracing.methods import is_tracer
from yota.tracing.patching import ABSENT
from yota.tracing.rewriting.builtin import BUILT_IN
from yota.tracing.rewriting.carried_values import is_same
from yota.tracing.rewriting.effects import made
from yota.tracing.rewriting.native_calls import natively
from yota.tracing.rewriting.operator_rules import iterate, truth
from yota.tracing.rewriting.rewritten import rule
from yota.tracing.trace import Trace
from yota.tracing.tracer import Tracer
from yota.tracing.views import UNREAD

_INDEXED = (AccessMap.READ, AccessMap.WRITE)
_TOTAL = {
    *(AccessMap.ELEMENTWISE, AccessMap.REDUCTION, AccessMap.COUNT, AccessMap.SCAN, AccessMap.ITEM),
    *(*_INDEXED, *VIEWS, *JOINS, *CONTRACTIONS),
}
"""Access maps of ops that raise no error, whatever the values are."""


@rule("either")
def either(test: Any, one: Callable[[Any], Any], other: Callable[[Any], Any], names: Sequence[str] = ()) -> Any:
    """What ``one`` gives where ``test`` holds, else ``other``; they take the caller's variables of these names."""
    variables = sys._getframe(1).f_locals
    given = [variables.get(name, ABSENT) for name in names]
    trace = current()
    if not _selects(trace, test):
        return (one if truth(test) else other)(given)
    assert trace is not None
    arrays = _Arrays(trace, given)
    with _branch(trace, test, True, arrays):
        first = arrays.after(one(arrays.copies))
    with _branch(trace, test, False, arrays):
        second = arrays.after(other(arrays.copies))
    return arrays.written(_selected(trace, test, first, second))


@rule("fails")
def fails(test: Any) -> bool:
    """Whether ``test`` holds, where an error is raised then; of a trip, that it never does may be checked later."""
    trace = current()
    if not _selects(trace, test) or test._value():
        return truth(test)
    assert trace is not None
    trace.failures.append(functools.reduce(np.logical_and, [*trace.path, test]))
    return False


class _Arrays:
    """Arrays that a branch may write: it is given others, and no other name leads to what they are before it."""

    def __init__(self, trace: Trace, given: Sequence[Any]) -> None:
        self._trace, self._given = trace, given
        self._places = [place for place, each in enumerate(given) if type(each) is Tracer and each.ndim]
        self._places = [place for place in self._places if given[place]._base is None]
        self._written = set[int]()
        self.copies: list[Any] = [*given]

    def __enter__(self) -> None:
        self._before = [(self._given[place], self._given[place]._current()) for place in self._places]
        for place, (array, variable) in zip(self._places, self._before, strict=True):
            self.copies[place] = Tracer(self._trace, variable)
            array._variable = UNREAD

    def __exit__(self, *failure: object) -> None:
        for array, variable in self._before:
            array._variable = variable

    def after(self, found: Any) -> Any:
        """What a branch gave, with the arrays from before in the place of what it was given for them."""
        back = {}
        for place, (array, variable) in zip(self._places, self._before, strict=True):
            copy = self.copies[place]
            if copy._variable == variable:
                back[id(copy)] = array
            elif not (type(found) is tuple and len(found) == len(self._given) and found[place] is copy):
                raise TracingError("a branch writes an array and goes on with another one")
            else:
                self._written.add(place)
        return _replaced(found, back)

    def written(self, found: Any) -> Any:
        """What was selected, where it was written into what there was before."""
        if not self._written:
            return found
        every = [*found]
        for place in self._written:
            every[place] = self._given[place]
            every[place][...] = found[place]
        return tuple(every)


def _replaced(value: Any, back: Mapping[int, Any]) -> Any:
    if type(value) in (tuple, list):
        return made(type(value)(_replaced(each, back) for each in value))
    return back.get(id(value), value)


@rule("joint")
def joint(is_and: bool, *parts: Callable[[], Any]) -> Any:
    """``part and part and ...``, or ``or``; a part behind a traced one is computed whatever that is."""
    found = parts[0]()
    trace = current()
    for part in parts[1:]:
        if not _selects(trace, found):
            if truth(found) is not is_and:
                return found
            found = part()
            continue
        assert trace is not None
        with _branch(trace, found, is_and):
            last = part()
        found = (np.logical_and if is_and else np.logical_or)(found, last)
    return found


def _extreme(function: Any, beats: Callable[[Any, Any], Any], *args: Any, **keywords: Any) -> Any:
    """The first of the largest or smallest values: a `where` selects among numbers of one class, or in a trip."""
    trace = current()
    if keywords or trace is None:
        return natively(function, args, keywords)
    values = list(args if len(args) > 1 else iterate(*args))
    selects = trace.first_run is not None and trace.first_run.selects
    if not values or not (selects or _are_alike(values)):
        return natively(function, (values,), {})
    best, *others = values
    for each in others:
        wins = beats(each, best)
        if is_tracer(wins) and not wins.ndim and trace.varies(wins):
            best = _selected(trace, wins, each, best)
        else:
            best = each if truth(wins) else best
    return best


def _are_alike(values: Sequence[Any]) -> bool:
    """Whether all values are real numbers of one class: Python's raise errors where NumPy's do not."""
    kinds = {type(each._value()) if is_tracer(each) else type(each) for each in values}
    return len(kinds) == 1 and issubclass(kinds.pop(), (float, np.floating))


BUILT_IN[max] = functools.partial(_extreme, max, operator.gt)
BUILT_IN[min] = functools.partial(_extreme, min, operator.lt)


@rule("negated")
def negated(value: Any) -> Any:
    """``not value``."""
    return np.logical_not(value) if _selects(current(), value) else not truth(value)


def _selects(trace: Trace | None, test: Any) -> bool:
    """Whether a decision is recorded by a selection."""
    is_traced = trace is not None and trace.first_run is not None and trace.first_run.selects
    return is_traced and is_tracer(test) and not test.ndim and trace.varies(test)  # type: ignore[union-attr]


@contextmanager
def _branch(trace: Trace, test: Any, holds: bool, arrays: _Arrays | None = None) -> Iterator[None]:
    """Record what is done where ``test`` is ``holds``: it may write nothing else, and raise no error elsewhere."""
    first_run, ops = trace.first_run, trace.builder.ops
    assert first_run is not None
    outer, own, number = trace.branch, first_run.own, len(ops)
    trace.path.append(test if holds else np.logical_not(test))
    trace.branch, first_run.own = trace.builder.count + 1, {}
    quiet: Any = nullcontext() if bool(test._value()) is holds else np.errstate(all="ignore")
    try:
        with arrays or nullcontext(), quiet:
            if arrays is not None:
                first_run.own.update((id(each), each) for each in arrays.copies if type(each) is Tracer)
            yield
    finally:
        trace.branch, first_run.own = outer, own
        trace.path.pop()
    for op in ops[number:]:
        if op.access not in _TOTAL or (op.access in _INDEXED and not _is_at_known_place(trace, op)):
            raise TracingError(f"{op.name} in a branch may raise an error where the branch is not taken")


def _is_at_known_place(trace: Trace, op: Op) -> bool:
    """Whether an op reads or writes at places that depend on the number of the trip alone."""
    arrays = op.operands[1 if op.access == AccessMap.READ else 2 :]
    return all(only_counts(trace.builder, each) for each in arrays)


def _selected(trace: Trace, test: Any, one: Any, other: Any) -> Any:
    """What two branches gave, by ``test``."""
    if is_same(one, other):
        return one
    if type(one) is type(other) and type(one) in (tuple, list) and len(one) == len(other):
        return made(type(one)(_selected(trace, test, *pair) for pair in zip(one, other, strict=True)))
    if one is ABSENT or other is ABSENT:
        return ABSENT
    if all(map(_is_number, (one, other))):
        return _number(trace, test, one, other)
    raise TracingError("two branches give something else than numbers and arrays")


def _is_number(value: Any) -> bool:
    return is_tracer(value) or type(value) in (int, float, complex) or isinstance(value, (np.number, np.ndarray))


def _number(trace: Trace, test: Any, one: Any, other: Any) -> Any:
    left, right = (trace.builder.types[trace.lift(each)] for each in (one, other))
    dtype = np.result_type(left.dtype, right.dtype)
    strong = [each.dtype for each in (left, right) if not each.weak]
    if left.shape != right.shape or any(each != dtype for each in strong):
        raise TracingError("two branches give numbers or arrays of different types")

    def number(holds: Any, x: Any, y: Any) -> Any:
        found = dtype.type(x if holds else y)
        return found if strong else found.item()

    return trace.apply(primitive("where"), (test, one, other), python=None if left.shape else number)
