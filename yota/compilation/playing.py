"""Tapes as functions: played op by op, or compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from yota.compilation.device import to_cpu
from yota.compilation.specialise import Target, compile_tape
from yota.errors import ArgumentError
from yota.ir.tape import Input, Tape
from yota.runtime.signals import StaleTape
from yota.structures import is_on_device
from yota.tracing.replay import evaluate, stale

__all__ = ["compile", "leaves", "play"]


def play(tape: Tape, *args: Any) -> Any:
    """Evaluate a tape op by op with NumPy, on arguments of the types it was recorded with.

    Returns
    -------
    object
        The value, or a tuple if the function returned one.

    Raises
    ------
    ArgumentError
        If the arguments are of other types.
    StaleTapeError
        If a branch on traced data goes another way.

    Examples
    --------
    >>> import yota
    >>> value, tape = yota.trace(lambda x: x * x, 3.0)
    >>> play(tape, 5.0)
    25.0
    """
    values = to_cpu(inputs(tape, args))
    results = evaluate(tape, dict(zip((entry.variable for entry in tape.inputs), values, strict=True)))
    return results[0] if len(results) == 1 else tuple(results)


def compile(tape: Tape, target: str = "numpy", *, strict: bool = False) -> Callable[..., Any]:
    """A fast function that computes what the tape does.

    Parameters
    ----------
    tape
        From `trace`.
    target, strict
        See `grad`.

    Returns
    -------
    Callable
        Takes the arguments of the traced function; its ``source`` attribute is the generated code.

    Examples
    --------
    >>> import yota
    >>> value, tape = yota.trace(lambda x: x * x, 3.0)
    >>> compile(tape)(5.0)
    25.0
    """
    call, source = compile_tape(tape, Target(target, strict))
    direct = [entry.argument for entry in tape.inputs] == list(range(len(tape.inputs))) and not tape.guards
    kinds = [
        float if type_.weak else (type_.dtype, type_.shape)
        for type_ in (tape.types[entry.variable] for entry in tape.inputs)
    ]
    array = np.ndarray

    def compiled(*args: Any) -> Any:
        if direct and [(a.dtype, a.shape) if type(a) is array else type(a) for a in args] == kinds:
            return call(*args)
        try:
            return call(*inputs(tape, args))
        except StaleTape as signal:
            raise stale(tape.guards[signal.index], signal.value, signal.index) from None

    compiled.source = source  # type: ignore[attr-defined]
    compiled.__name__ = compiled.__qualname__ = tape.name
    return compiled


def inputs(tape: Tape, args: tuple[Any, ...]) -> list[Any]:
    """What a call gives the tape's inputs: the leaves of the arguments, and what arrays from outside hold now."""
    outside = [_fitting(tape, each.variable, each.name, tape.captured[each.variable]) for each in _outside(tape)]
    return [*leaves(tape, args), *outside]


def _outside(tape: Tape) -> list[Input]:
    return [entry for entry in tape.inputs if entry.argument < 0]


def leaves(tape: Tape, args: tuple[Any, ...]) -> list[Any]:
    """The leaves of the arguments in the order of the tape's inputs, of the types that the tape has."""
    found: list[Any] = []
    for entry in tape.inputs:
        if entry.argument < 0:
            continue
        if entry.argument >= len(args):
            raise ArgumentError(f"{tape.name} misses argument {entry.argument + 1}, {entry.name}")
        value = args[entry.argument]
        for key in entry.path:
            value = getattr(value, key) if isinstance(key, str) and hasattr(value, key) else value[key]
        found.append(_fitting(tape, entry.variable, entry.name, value))
    return found


def _fitting(tape: Tape, variable: int, name: str, value: Any) -> Any:
    type_ = tape.types[variable]
    if type_.weak and type(value) in (float, int):
        return type_.dtype.type(value).item()
    array = value if is_on_device(value) else np.asarray(value)
    if array.shape != type_.shape or array.dtype != type_.dtype:
        given = f"{array.dtype.name}[{','.join(map(str, array.shape))}]"
        raise ArgumentError(f"argument {name} of {tape.name} is {given}, but the tape was recorded with {type_}")
    return value
