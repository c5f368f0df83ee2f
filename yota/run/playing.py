"""`yota.play` and `yota.compile`: tapes as functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from yota.errors import ArgumentError
from yota.ir.callables import Derived
from yota.ir.catalog import item_of
from yota.ir.inputs import Input, Static, spelled
from yota.ir.regions import LOOP, Region
from yota.ir.tape import Tape, TapeBuilder
from yota.ir.types import TensorType, type_of
from yota.marks import mark_of
from yota.run.device import to_cpu
from yota.run.machine.background import Later
from yota.run.machine.signals import StaleTape
from yota.run.specialise import Target, compile_tape, needed, simplified
from yota.structures import flatten, is_on_device
from yota.tracing.replay import evaluate, stale


def play(tape: Tape, *args: Any) -> Any:
    """Evaluate a tape op by op with NumPy, on arguments of the types it was recorded with.

    Parameters
    ----------
    tape
        From `trace`.
    *args
        Arguments of the traced function.

    Returns
    -------
    object
        The value, or a tuple of values.

    Raises
    ------
    ArgumentError
        If the argument types, structure or static values differ from those of the tape.
    StaleTapeError
        If a branch on traced data takes another direction.

    Examples
    --------
    >>> import yota
    >>> value, tape = yota.trace(lambda x: x * x, 3.0)
    >>> play(tape, 5.0)
    25.0
    """
    values = to_cpu(inputs(_tape(tape), args))
    results = evaluate(tape, dict(zip((entry.variable for entry in tape.inputs), values, strict=True)))
    return results[0] if len(results) == 1 else tuple(results)


def compile(
    tape: Tape, target: str | None = None, *, strict: bool = False, effort: str = "quick"
) -> Callable[..., Any]:
    """Compile a tape to a function.

    Parameters
    ----------
    tape
        From `trace`.
    target, strict, effort
        See `grad`.

    Returns
    -------
    Callable
        Takes the arguments of the traced function; its attribute ``source`` is the generated code.

    Examples
    --------
    >>> import yota
    >>> value, tape = yota.trace(lambda x: x * x, 3.0)
    >>> compile(tape)(5.0)
    25.0
    """
    wanted = Target.wanted(target, strict, effort)

    def code(target: Target) -> tuple[Callable[..., Any], str]:
        short = simplified(_tape(tape), target)
        if effort == "high":
            from yota.optimize.polynomials.symbolic import search

            _, short = search([short], strict=strict)
        return compile_tape(short, target)

    def better() -> Callable[..., Any]:
        needed()
        call, found.source = code(replace(wanted, name="c"))  # type: ignore[attr-defined]
        return call

    call, source = code(wanted.first)
    if wanted.name == "auto":
        call = Later(call, better)
    plain = [entry.argument for entry in tape.inputs] == list(range(len(tape.inputs)))
    direct = plain and not tape.guards and not tape.statics
    kinds = [_kind(tape.types[entry.variable]) for entry in tape.inputs]
    array = np.ndarray

    def compiled(*args: Any) -> Any:
        if direct and [(a.dtype, a.shape) if type(a) is array else type(a) for a in args] == kinds:
            return call(*args)
        try:
            return call(*inputs(tape, args))
        except StaleTape as signal:
            raise stale(tape.guards[signal.index], signal.value, signal.index) from None

    found = Derived((compile, (tape, target), {"strict": strict}), None, call=compiled)
    found.__name__ = found.__qualname__ = tape.name
    found.source = source  # type: ignore[attr-defined]
    return found


def compile_loop(region: Region) -> Callable[..., tuple[Any, ...]]:
    """The generated NumPy code of a loop: takes its operands, gives its results."""
    builder = TapeBuilder("loop")
    given = [region.body.types[each.variable] for each in region.body.inputs[1:]]
    stacked = range(region.carries, region.carries + region.slices)
    types = [
        TensorType(type.dtype, (region.trips or 0, *type.shape)) if number in stacked else type
        for number, type in enumerate(given)
    ]
    if region.counted:
        types.insert(0, type_of(region.seen))
    operands = [builder.input(type, number, f"x{number}") for number, type in enumerate(types)]
    loop = builder.emit(LOOP, operands, {"region": region})
    results = [item_of(builder, loop, number) for number in range(len(region.body.outputs))]
    target = Target()
    call, _ = compile_tape(simplified(builder.finish(results), target), target, values=len(results))
    return (lambda *values: (call(*values),)) if len(results) == 1 else call


def _tape(given: Any) -> Tape:
    if isinstance(given, Tape):
        return given
    raise ArgumentError(f"{given!r:.60} is a {type(given).__name__}, and no tape: value, tape = yota.trace(f, *args)")


def _kind(type_: TensorType) -> Any:
    """The type of a value: the Python type of a number, or dtype and shape."""
    if type_.weak:
        return complex if type_.is_complex else float
    return type_.dtype, type_.shape


def inputs(tape: Tape, args: tuple[Any, ...]) -> list[Any]:
    """Values of the tape's inputs for a call: the leaves of the arguments, and the current captured arrays."""
    outside = [_fitting(tape, entry, tape.captured[entry.variable]) for entry in tape.inputs if entry.argument < 0]
    return [*leaves(tape, args), *outside]


def leaves(tape: Tape, args: tuple[Any, ...]) -> list[Any]:
    """The leaves of the arguments in the order of the tape's inputs, with checked types."""
    parts = {(number, path): part for number, argument in enumerate(args) for path, part in flatten(argument)}
    found = [_fitting(tape, entry, _taken(tape, entry, parts, args)) for entry in tape.inputs if entry.argument >= 0]
    for static in tape.statics:
        _check(tape, static, _taken(tape, static, parts, args))
    for number, path in parts:
        raise ArgumentError(
            f"{tape.name} was recorded without argument {number + 1}{spelled('', path)}; leave it out, or trace anew"
        )
    return found


def _taken(tape: Tape, wanted: Input | Static, parts: dict[tuple[int, Any], Any], args: tuple[Any, ...]) -> Any:
    try:
        return parts.pop((wanted.argument, wanted.path))
    except KeyError:
        if wanted.argument >= len(args):
            missing = f"{tape.name} misses argument {wanted.argument + 1}, {wanted.name}"
        else:
            missing = f"argument {wanted.name} of {tape.name} has no {wanted.place}, with which the tape was recorded"
        raise ArgumentError(missing) from None


def _check(tape: Tape, static: Static, value: Any) -> None:
    if value is not static.value and mark_of(value) != mark_of(static.value):
        known = "what cannot be pickled" if static.value is ... else f"{static.value!r:.60}"
        raise ArgumentError(
            f"argument {static.place} of {tape.name} is {value!r:.60}, but the tape was recorded with {known}, which "
            "is part of it; trace the function anew"
        )


def _fitting(tape: Tape, entry: Input, value: Any) -> Any:
    type_ = tape.types[entry.variable]
    if type_.weak and type(value) in (float, int):
        return type_.dtype.type(value).item()
    array = value if is_on_device(value) else np.asarray(value)
    if array.shape != type_.shape or array.dtype != type_.dtype:
        given = f"{array.dtype.name}[{','.join(map(str, array.shape))}]"
        raise ArgumentError(f"argument {entry.place} of {tape.name} is {given}, but the tape was recorded with {type_}")
    return value
