"""The gradient of each shipped rule's function as a tape, with arguments from the rule's own domain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import scipy.fft
import scipy.linalg
import scipy.ndimage
import scipy.signal
import scipy.special

from yota.errors import YotaError
from yota.ir.inputs import Leaf
from yota.ir.tape import Tape
from yota.optimize.pipeline import run
from yota.rules.laws.sampling import sample
from yota.rules.proof.compiled_rule import operands
from yota.rules.registry import registry
from yota.tracing.intercept import recorded
from yota.tracing.record import record
from yota.transform.reverse.backward import gradient_tape

LIBRARIES = (scipy.fft, scipy.linalg, scipy.ndimage, scipy.signal, scipy.special)
"""Rules for functions of modules that nobody imported are not there."""
POINTS = 70


@dataclass(frozen=True)
class Specimen:
    """A rule's name, its tape, and arguments for it."""

    name: str
    tape: Tape
    values: tuple[Any, ...]


@cache
def specimens() -> tuple[Specimen, ...]:
    """One for each rule whose function takes plain operands, after all of `LIBRARIES` were imported."""
    return tuple(_all())


def _all() -> Iterator[Specimen]:
    known = registry()
    for name in known.names():
        rule = known.rules(name)[0]
        if rule.kind == "nodiff":
            continue
        try:
            values = _values(rule)
            yield Specimen(name, _tape(known, name, values), values)
        except (YotaError, TypeError, ValueError, ArithmeticError, np.linalg.LinAlgError):
            continue  # its operands cannot be made up from the pattern


def _values(rule: Any) -> tuple[Any, ...]:
    if any(parameter.domain.kind == "array" or parameter.variadic for parameter in rule.operands):
        return tuple(operands(rule))
    return tuple(
        np.array([sample(parameter.domain, number, stream) for number in range(POINTS)])
        for stream, parameter in enumerate(rule.operands)
    )


def _tape(known: Any, name: str, values: tuple[Any, ...]) -> Tape:
    leaves = [Leaf(value, position, f"x{position}", ()) for position, value in enumerate(values)]
    primitive = known.primitive(name)

    def call(*arguments: Any) -> Any:
        return np.sum(np.real(recorded(primitive)(*arguments)))

    tape = record(call, leaves, tuple, registry=known).tape
    by = [entry.variable for entry in tape.inputs if tape.types[entry.variable].differentiable]
    try:
        gradient = gradient_tape(tape, by, known).tape
    except YotaError:
        gradient = gradient_tape(tape, [each for each in by if _has_derivative(tape, each, known)], known).tape
    return replace(run(gradient), name=f"rule{known.names().index(name)}_{name}")


def _has_derivative(tape: Tape, variable: int, known: Any) -> bool:
    try:
        gradient_tape(tape, [variable], known)
    except YotaError:
        return False
    return True
