"""Running a function once on tracers, and checking that no number slipped off the tape."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from types import CodeType
from typing import Any

import numpy as np

from yota.errors import TracingError, YotaError
from yota.ir.callables import name_of
from yota.ir.inputs import Leaf, Static
from yota.ir.location import where
from yota.ir.tape import Op, Tape
from yota.rules.registry import Registry
from yota.tracing import randomness
from yota.tracing.captures import copied
from yota.tracing.conversions import SHIFTS, FirstRun, Interpret, LongLoop, left, refusal
from yota.tracing.current import current, entered, innermost
from yota.tracing.from_source import Source, passes
from yota.tracing.intercept import interceptions, opaque
from yota.tracing.library_calls import raised_by
from yota.tracing.memory import guard_order, reference, sharing
from yota.tracing.namespace import PatchedNames, prepared
from yota.tracing.observation import Running
from yota.tracing.randomness import Draws
from yota.tracing.replay import same, same_arrays
from yota.tracing.results import outputs
from yota.tracing.source_lines import is_masked_file, name_variables, positions_of, raised_at
from yota.tracing.trace import Trace
from yota.tracing.traced_sizes import Decision, Decisions, length, plain

_REPEATS = 6
"""Runs that show whether random numbers matter: a coin comes up the same that often once in 64 times."""


_MENDED = (Interpret, TypeError, AttributeError, NotImplementedError)
"""What may end a run by which the source is not read, and not one by which it is."""


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """What one run gave: the tape, the function's result with concrete values, and what it read of a trace around it.

    outer, captured: tracers around, and arrays from outside, by input variables after those of the leaves.
    watched: functions that give arrays from outside, while they exist, with the content that the tape relies on.
    written: of each leaf, whether the function writes into it.
    ran, uses, calls: the user's code that ran, and what it did with arrays from outside; see `Observation`.
    """

    tape: Tape
    value: Any
    outer: Mapping[int, Any] = field(default_factory=dict)
    captured: Mapping[int, Any] = field(default_factory=dict)
    watched: Sequence[tuple[Callable[[], Any], Any]] = ()
    written: Sequence[bool] = ()
    ran: Sequence[Running] = ()
    uses: Mapping[int, Collection[tuple[int, int]]] = field(default_factory=dict)
    calls: Mapping[tuple[int, int], Sequence[tuple[CodeType, Mapping[str, Any]]]] = field(default_factory=dict)
    decisions: Sequence[Decision] = ()
    rolls: bool = False


def record(
    function: Callable[..., Any],
    leaves: Sequence[Leaf],
    rebuild: Callable[[Sequence[Any]], tuple[Any, ...]],
    *,
    registry: Registry,
    primitives: Collection[Callable[..., Any]] = (),
    live: bool = False,
    exact: bool = False,
    keeps: bool = False,
    reads: bool = False,
    generators: Collection[Any] = (),
    statics: tuple[Static, ...] = (),
    trips: int = 0,
    sized: bool = False,
    rolls: bool = False,
) -> Recording:
    """Trace ``function``; again from its source, or with shifted numbers, where one run does not settle what it does.

    rebuild: makes the arguments from tracers that stand for the leaves.
    primitives: further functions to be recorded as one op each.
    live, exact, keeps: see `Trace`.
    reads: whether ``function`` runs from its source, so that only libraries need patched names.
    generators: generators of random numbers that the function can reach.
    statics: what the arguments hold besides the leaves.
    trips: the most trips, if ``function`` is one of a loop, with its number as the first argument.
    sized: whether to record the decisions that the function takes on sizes.
    rolls: whether ops that repeat may become loops: those of the recording, and of derivatives in it.
    Raises TracingError if something cannot be recorded; the user's own exceptions come through as they are.
    """
    known = [*registry.user_targets(), *map(opaque, primitives)]
    name = name_of(function)
    own, places = interceptions(known)
    places = [*places, length()] if sized else places
    installed = prepared(own)

    def trace_of(*, shift: float = 0.0) -> Trace:
        how = {"live": live, "exact": exact, "keeps": keeps, "wide": source.wide, "deep": source.deep}
        trace = Trace(name, registry, shift=shift, reads=source.chosen or reads, **how)
        trace.builder.statics = statics
        if current() is None:
            trace.outlets.roots = lambda: (function, *rebuild([leaf.value for leaf in leaves]))
        trace.trips, trace.rolls = trips, rolls
        trace.builder.looks = rolls and not sized and not trips
        trace.sizes = Decisions() if sized else None
        trace.intercepted = own
        trace.readable, trace.has_loop = source.reads, source.has_loop
        if seeks_loops and rolls and not sized and not exact and current() is None:
            trace.builder.alarm = trace.restart_in_loop
        return trace

    def run(trace: Trace) -> Recording:
        chosen = source.function if source.chosen else function

        def names(roots: Sequence[Any]) -> PatchedNames:
            # What code that runs from its source calls is not known before.
            everything = trace.reads or getattr(function, "yota_interpreted", False)
            return PatchedNames(installed, roots, places, everything=everything)

        return _run(trace, chosen, leaves, rebuild, names, source)

    def explained(fault: Any) -> Any:
        if reads or isinstance(fault, (YotaError, Interpret)) or current() is not None:
            return fault
        return _explained(fault, function, rebuild([copied(leaf.value) for leaf in leaves]))

    source = Source(function)
    draws = Draws(generators)
    seeks_loops = not (source.chosen or reads)
    trace = trace_of()
    try:
        trace, found = _recorded(source, trace, trace_of, run, explained)
    except LongLoop as signal:
        once_more = _with_loops(source, trace, signal, trace_of, run)
        seeks_loops = False
        trace, found = once_more or _recorded(source, trace_of(), trace_of, run, explained)
    _refuse_draws(trace, draws, found, lambda: run(trace_of()), generators)
    found = _complete(source, trace, found, trace_of, run)
    trace.forget()
    return found


def _recorded(
    source: Source,
    trace: Trace,
    trace_of: Callable[[], Trace],
    run: Callable[[Trace], Recording],
    explained: Callable[[Any], Any],
) -> tuple[Trace, Recording]:
    """What ``trace`` records, or another one from the source where it comes to something that only this tells."""
    try:
        found = run(trace)
        if (trace.outlets.raised or (not trace.exact and left(trace))) and source.is_there and not source.chosen:
            raise Interpret
        # The user's code may have caught what it must not.
        if (caught := trace.interrupted or trace.refused) is not None:
            raise caught
        return trace, found
    except BaseException as raised:
        fault: Any = trace.interrupted or raised
        if trace.refused is not None and trace.refused in (raised.__cause__, raised.__context__):
            raise trace.refused from None  # a library has made an error of its own of it
        if isinstance(fault, LongLoop):
            raise fault from None
        if not isinstance(fault, _MENDED):
            raise
        if not source.goes_on(trace, fault):
            raise explained(fault) from fault.__cause__
    if isinstance(fault, Interpret) and fault.deep:
        try:
            return _from_source(source, trace, fault, trace_of, run)
        except Exception:  # noqa: BLE001  (what a library does may not be recorded, and not matter)
            source.wide = source.deep = False
    return _mended(lambda: _from_source(source, trace, fault, trace_of, run), explained)


def _with_loops(
    source: Source, first: Trace, signal: LongLoop, trace_of: Callable[[], Trace], run: Callable[[Trace], Recording]
) -> tuple[Trace, Recording] | None:
    """Record from the source, which shows the loop that ``first`` ended in; None if that is not recorded as one."""
    source.chosen = True
    trace = trace_of()
    trace.first_run = FirstRun(first, signal.positions)
    first.forget()
    try:
        found = run(trace)
        if trace.interrupted is None and trace.refused is None:
            return trace, found
    except (Exception, Interpret):  # noqa: BLE001  (without the loop it may be recorded all the same)
        pass
    trace.forget()
    source.chosen = source.wide = source.deep = False
    return None


def _complete(
    source: Source, trace: Trace, found: Recording, trace_of: Callable[..., Trace], run: Callable[[Trace], Recording]
) -> Recording:
    """``found``, by ``trace``, or what another form of the function gives if a value was lost in this one."""
    while not trace.exact and (lost := left(trace)) is not None:
        if all(_is_same(found, trace_of(shift=shift), run) for shift in SHIFTS):
            break
        fault = refusal(lost, readable=trace.reads)
        if not source.goes_on(trace, None):
            raise fault
        trace, found = _from_source(source, trace, fault, trace_of, run)
    return found


def _from_source(
    source: Source, first: Trace, fault: BaseException, trace_of: Callable[[], Trace], run: Callable[[Trace], Recording]
) -> tuple[Trace, Recording]:
    """Record from the source what ``first`` could not; what the source does not mend is refused as it was."""
    trace = trace_of()
    trace.first_run = FirstRun(first, fault.positions if isinstance(fault, Interpret) else positions_of(fault))
    trace.first_run.over = isinstance(fault, Interpret) and not fault.begun
    try:
        found = run(trace)
        if trace.refused is not None:
            raise trace.refused
    except Exception as other:
        if source.goes_on(trace, other):
            try:
                return _from_source(source, trace, other, trace_of, run)
            except Exception:
                source.chosen = True
                if passes(other, is_masked_file):
                    raise  # else it says less than what came before
        if trace.first_run.blocked and isinstance(fault, TracingError):
            raise type(fault)(f"{fault} It may be recorded from its source, but {other}") from None
        if isinstance(other, YotaError) and passes(fault, is_masked_file):
            raise
        if isinstance(fault, YotaError) or type(fault) is type(other):
            raise fault from None
        raise
    source.remember()
    first.forget()
    return trace, found


def _mended(record: Callable[[], tuple[Trace, Recording]], explained: Callable[[Any], Any]) -> tuple[Trace, Recording]:
    try:
        return record()
    except (TypeError, AttributeError, NotImplementedError) as raised:
        raise explained(raised) from raised.__cause__


def _is_same(recorded: Recording, trace: Trace, run: Callable[[Trace], Recording]) -> bool:
    """Whether a run of which numbers leave the tape otherwise gives the same."""
    try:
        other = run(trace)
        # A number that left may come back in a plain array, which is an input of the tape.
        return same(recorded.tape, other.tape) and same_arrays(recorded.captured, other.captured)
    except Exception:  # noqa: BLE001  (whatever a number that is a little off leads to in the user's code)
        return False
    finally:
        trace.forget()


def _refuse_draws(
    trace: Trace, draws: Draws, recorded: Recording, again: Callable[[], Recording], generators: Collection[Any]
) -> None:
    """Refuse random numbers that come out otherwise when the function runs again."""
    own, common = draws.own(), draws.common() or trace.unseeded
    if not (own or common):
        return
    draws = Draws(generators)
    for _ in range(_REPEATS):
        other = again()
        if own and draws.own():
            raise randomness.refusal(trace.builder.name, own)
        # Another thread may have drawn from what all share, or the function has seeded it: then nothing differs.
        if not (same(recorded.tape, other.tape) and same_arrays(recorded.captured, other.captured)):
            raise randomness.refusal(trace.builder.name, own or common)


def _run(
    trace: Trace,
    function: Callable[..., Any],
    leaves: Sequence[Leaf],
    rebuild: Callable[[Sequence[Any]], tuple[Any, ...]],
    naming: Callable[[Sequence[Any]], PatchedNames],
    source: Source,
) -> Recording:
    around, depth = current(), len(innermost.stack)
    try:
        inputs = [trace.input(leaf.value, leaf.argument, leaf.name, leaf.path) for leaf in leaves]
        first = [each._current() for each in inputs]
        arguments = rebuild(inputs)
        # Generated code does not warn of infinities and NaNs either: they are in the results.
        names = naming((function, *arguments))
        with ExitStack() as held, entered(trace), np.errstate(all="ignore"):
            trace.hold = functools.cache(lambda: held.enter_context(names))
            trace.seen.begin = names.run
            if not trace.reads:
                trace.hold()
                if names.targets.needs_source and not source.chosen and source.is_there:
                    raise Interpret(begun=False)  # the source shows exceptions that come of traced values
                function = names.targets.form(function)
            result = function(*arguments)
            variables = outputs(trace, result)
            written = [each._current() != variable for each, variable in zip(inputs, first, strict=True)]
        if not trace.reads:
            name_variables(trace.builder)
        if around is None:
            guard_order(trace)
        elif trace.ordered is not None:
            around.rely_on_order()
        tape, seen, captures = trace.builder.finish(variables), trace.seen, trace.captures
        refuse_sharing(
            tape.name, leaves, written, [*captures.inputs.values(), *(array for array, _ in captures.watched)]
        )
        if trace.sizes is not None:
            tape = replace(tape, ops=tuple(map(_plain, tape.ops)))
        values = [copied(trace.values[each]) if trace.is_constant(each) else trace.values[each] for each in variables]
        value = tuple(values) if isinstance(result, (tuple, list)) else values[0]
        if around is not None:
            around.captures.rely_on(captures)
        return Recording(
            tape,
            value,
            trace.outer,
            captures.inputs,
            [(reference(array), content) for array, content in captures.watched],
            written,
            tuple(seen.ran.values()),
            seen.uses,
            seen.calls,
            () if trace.sizes is None else tuple(trace.sizes.taken),
            trace.rolls,
        )
    finally:
        # An interrupt may have come between two steps of a context manager.
        del innermost.stack[depth:]
        trace.finished = True
        # They know the arguments, which know the trace: without a cycle all is freed at once.
        trace.hold, trace.seen.begin = lambda: None, lambda found: None
        if trace.sizes is not None:
            trace.sizes.closed = True


def refuse_sharing(name: str, leaves: Sequence[Leaf], written: Sequence[bool], outside: Sequence[Any] = ()) -> None:
    """Refuse a write into an argument that changes another array: on the tape each array has its own memory."""
    found = sharing(written, [*(leaf.value for leaf in leaves), *outside])
    if found is None:
        return
    place, other = leaves[found[0]].place, "an array from outside"
    if found[1] < len(leaves):
        other = f"its argument {leaves[found[1]].place}"
    raise TracingError(
        f"{name} writes into its argument {place}, which shares memory with {other}. Pass a copy: {place}.copy()"
    )


def _plain(op: Op) -> Op:
    """The op with ints in the place of sizes."""
    static = plain(op.static)
    return op if static is op.static else replace(op, static=static)


def _explained(fault: Exception, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Exception:
    """The error itself, if plain values raise one too; else that something cannot take traced values."""
    try:
        with np.errstate(all="ignore"):
            function(*arguments)
    except Exception:  # noqa: BLE001  (whatever the function raises is its user's)
        return fault
    found = raised_by(fault)
    to = f"{found.name}, which {found.kind()}" if found else "something that takes plain values alone"
    advice = found.advice() if found else "Or put it into a function that has a rule."
    return TracingError(
        f"{where(raised_at(fault))}a traced value is given to {to} ({type(fault).__name__}: {fault}). "
        f"Use NumPy's functions, or do it outside of the function. {advice}"
    )
