"""A module for all sizes: traced at several, generalised, and proved at others."""

from __future__ import annotations

import sys
import types
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from yota.autodiff.reverse import gradient_tape
from yota.errors import ArgumentError, YotaError
from yota.generation.generalise import General, generalised
from yota.generation.sizes import Samples, samples_of
from yota.generation.subject import Call, Subject, subject_of
from yota.ir.tape import Tape, TapeBuilder
from yota.layout import Wrt
from yota.passes.pipeline import passes
from yota.rules.registry import registry
from yota.tracing.replay import evaluate

__all__ = ["Sized", "proved", "sized"]

_LARGE = 67
_TOLERANCE = 1e-9
_RESERVED = ("np", "npt", "math", "Any", "float")


class Sized:
    """A function at several sizes.

    Parameters
    ----------
    samples
        The sizes.
    subjects
        The function, traced at each.
    """

    def __init__(self, samples: Samples, subjects: Sequence[Subject]) -> None:
        self.samples, self.subjects = samples, subjects

    def value(self) -> General:
        """The function itself for all sizes."""
        return generalised([_canonical(_simplified(subject.tape)) for subject in self.subjects], self.samples)

    def gradient(self) -> tuple[General, tuple[bool, ...]]:
        """Value and gradient, and for which leaves there is one."""
        found = []
        for subject in self.subjects:
            variables = [subject.tape.inputs[leaf].variable for leaf in subject.layout.wanted]
            found.append(gradient_tape(subject.tape, variables, registry()))
        present = tuple(variable is not None for variable in found[0].variables)
        return generalised([_canonical(_simplified(each.tape)) for each in found], self.samples), present

    def shapes(self) -> list[tuple[int | str, ...]]:
        """Shape of each leaf, by the names of sizes."""
        found: list[tuple[int | str, ...]] = []
        for leaves in zip(*(subject.arguments.leaves for subject in self.subjects), strict=True):
            extents = zip(*(np.shape(leaf.value) for leaf in leaves), strict=True)
            found.append(tuple(self._extent(values) for values in extents))
        return found

    def _extent(self, values: Sequence[int]) -> int | str:
        text = self.samples.whole(values)
        return values[0] if text is None or text.isdigit() else text


def sized(call: Call, wrt: Wrt) -> Sized:
    """Trace the call at several sizes.

    Raises
    ------
    ArgumentError
        If a size has a name that the module needs itself.
    """
    names = call.dimensions()
    for name in names:
        if name in _RESERVED or not name.isascii() or name.startswith("_"):
            raise ArgumentError(f"{name!r} cannot name a size; use a plain name such as N")
    samples = samples_of(names)
    found = Sized(samples, [subject_of(call, wrt, size) for size in samples.sizes])
    # The recordings themselves are compared first: there the lines are still those of the function.
    generalised([_canonical(subject.tape) for subject in found.subjects], samples)
    return found


def _simplified(tape: Tape) -> Tape:
    """The tape after the passes that do not depend on sizes."""
    for name, rewrite in passes():
        if name != "scalarize":
            tape = _folded(tape) if name == "fold" else rewrite(tape)
    return tape


def _folded(tape: Tape) -> Tape:
    """The tape with scalars that depend on no input computed; arrays are left, since their form could not be told."""
    builder = tape.builder()
    builder.ops = []
    for op in tape.ops:
        type = tape.types[op.result]
        if type.shape or not all(operand in builder.constants for operand in op.operands):
            builder.ops.append(op)
            continue
        with np.errstate(all="ignore"):
            value = op.primitive.function(*(builder.constants[operand] for operand in op.operands), **dict(op.static))
        builder.constants[op.result] = type.dtype.type(value).item() if type.weak else type.dtype.type(value)
    return builder.finish(tape.outputs)


def _canonical(tape: Tape) -> Tape:
    """The tape with a constant of its own for each use, so that equal numbers of different origin are kept apart."""
    builder = TapeBuilder(tape.name)
    known = {
        entry.variable: builder.input(tape.types[entry.variable], entry.argument, entry.name, entry.path)
        for entry in tape.inputs
    }

    def use(variable: int) -> int:
        if variable in known:
            return known[variable]
        value = tape.constants[variable]
        made = builder.variable(tape.types[variable])
        builder.constants[made] = value
        return made

    for op in tape.ops:
        builder.location = op.location
        operands = [use(operand) for operand in op.operands]
        known[op.result] = builder.emit(op.primitive, operands, op.static, tape.types[op.result])
        if op.result in tape.names:
            builder.names[known[op.result]] = tape.names[op.result]
    for guard in tape.guards:
        builder.location = guard.location
        builder.guard(use(guard.variable), guard.expected, guard.kind)
    return builder.finish([use(output) for output in tape.outputs])


def proved(text: str, name: str, sized: Sized, wrt: Wrt, wanted: Sequence[str]) -> None:
    """Hold a module against yota at sizes that it was not made from: 1, 2, mixed ones and a large one.

    Raises
    ------
    ArgumentError
        If it computes something else there.
    """
    module = types.ModuleType("yota.proved")
    sys.modules[module.__name__] = module
    exec(compile(text, "<module under proof>", "exec"), module.__dict__)
    call = sized.subjects[0].call
    for size in _trials(sized.samples.names):
        function, arguments = call.arguments(size)
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                expected = function(*arguments.values)
        except Exception:  # noqa: BLE001
            # Where the function has no value, neither has the module.
            continue
        leaves = [leaf.value for leaf in arguments.leaves]
        shown = ", ".join(f"{each} = {extent}" for each, extent in size.items())
        try:
            if "value" in wanted:
                _compare(getattr(module, name)(*leaves), expected, f"the value at {shown}")
            if "gradient" in wanted:
                found = getattr(module, f"{name}_value_and_gradient")(*leaves)
                _compare_gradients(found, expected, _gradients(call, wrt, size, leaves), shown)
        except (ArithmeticError, IndexError, ValueError) as fault:
            if isinstance(fault, YotaError):
                raise
            raise ArgumentError(f"at {shown} the code for all sizes raises {type(fault).__name__}: {fault}") from None
    del sys.modules[module.__name__]


def _compare_gradients(found: Any, value: Any, gradients: Sequence[Any], shown: str) -> None:
    _compare(found[0], value, f"the value at {shown}")
    parts = found[1] if isinstance(found[1], tuple) else (found[1],)
    for part, gradient in zip(parts, gradients, strict=True):
        _compare(part, np.zeros(np.shape(part)) if gradient is None else gradient, f"the gradient at {shown}")


def _gradients(call: Call, wrt: Wrt, size: Mapping[str, int], leaves: Sequence[Any]) -> list[Any]:
    """Gradients by a tape of just this size, op by op."""
    subject = subject_of(call, wrt, size)
    found = gradient_tape(
        subject.tape, [subject.tape.inputs[leaf].variable for leaf in subject.layout.wanted], registry()
    )
    inputs = {entry.variable: leaf for entry, leaf in zip(found.tape.inputs, leaves, strict=True)}
    rest = iter(evaluate(found.tape, inputs)[1:])
    return [None if variable is None else next(rest) for variable in found.variables]


def _trials(names: Sequence[str]) -> list[Mapping[str, int]]:
    same = [dict.fromkeys(names, size) for size in (1, 2, 3)]
    mixed = [{name: 1 + (position + shift) % 3 for position, name in enumerate(names)} for shift in (0, 1)]
    return [*same, *mixed, {name: _LARGE - 4 * position for position, name in enumerate(names)}]


def _compare(found: Any, expected: Any, what: str) -> None:
    if isinstance(expected, tuple):
        for one, other in zip(found, expected, strict=True):
            _compare(one, other, what)
        return
    same = np.shape(found) == np.shape(expected) and np.allclose(
        found, expected, rtol=_TOLERANCE, atol=_TOLERANCE, equal_nan=True
    )
    if not same:
        raise ArgumentError(
            f"{what} is not what the code for all sizes gives: the function does something else there, as with a "
            "branch on the size. Fix the size, or write the function without it"
        )
