"""Compiles a function for one combination of argument types, and selects among tapes by guards."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from yota.errors import ArgumentError, CodegenError
from yota.run.machine.signals import EarlierIndexError, StaleTape
from yota.run.progress import stage
from yota.settings import TARGETS, settings
from yota.structures import is_on_device
from yota.tracing.captured.checks import Contents
from yota.tracing.captured.mentions import Observed
from yota.tracing.memory import sharing

# Code that is read from the private cache runs without tracing and passes, so it does not load them.
if TYPE_CHECKING:
    from yota.ir.tape import Tape
    from yota.run.selects import Merged
    from yota.tracing.observation import Running
    from yota.tracing.record import Recording
    from yota.tracing.results import ResultForm
    from yota.transform.rolling.periods import Worth
    from yota.transform.sparse.csr import CompressedRows


@dataclass(frozen=True, slots=True)
class Target:
    """Options of code generation.

    strict: whether the value must equal NumPy's bit for bit.
    effort: effort of the search for fewer operations: "quick" or "high".
    """

    name: str = "numpy"
    strict: bool = False
    effort: str = "quick"

    @classmethod
    def wanted(cls, name: str | None = None, strict: bool = False, effort: str = "quick") -> Target:
        """The target of a user's options; the default name is that of the process."""
        return cls(settings.target if name is None else name, strict, effort)

    @property
    def first(self) -> Target:
        """The target whose code is called first."""
        return replace(self, name="numpy") if self.name == "auto" else self

    def __post_init__(self) -> None:
        if self.name not in TARGETS:
            raise ArgumentError(f"target={self.name!r} is not known; the targets are: {', '.join(map(repr, TARGETS))}")
        if self.effort not in ("quick", "high"):
            raise ArgumentError(f"effort={self.effort!r} is not known; it is 'quick' or 'high'")
        if self.strict and self.name == "cuda":
            raise ArgumentError(
                'strict=True is not available for target="cuda": a GPU does not round as NumPy does. '
                'Use target="c" or "numpy".'
            )


def simplified(tape: Tape, target: Target) -> Tape:
    """``tape`` after the passes of its target."""
    from yota.optimize.pipeline import run

    stage("simplifying")
    return run(tape, strict=target.strict, compiled=target.name == "c", once=target.effort == "quick")


def has_code(tape: Tape, target: Target) -> bool:
    """Whether the loops of a tape, if it has any, have a form in CUDA."""
    from yota.emit.targets import cuda

    if any(op.regions for op in tape.ops):
        try:
            cuda.generate(simplified(tape, target))
        except CodegenError:
            return False
    return True


def compile_tape(tape: Tape, target: Target, *, values: int = 1) -> tuple[Callable[..., Any], str]:
    """The generated function of a simplified tape, and its source.

    The function takes one positional argument for each input and returns the outputs, of which the first ``values``
    are values and not derivatives. If C cannot be compiled, it warns and uses NumPy code.
    """
    if target.name == "cuda":
        from yota.emit.targets import cuda
        from yota.run.machine.cuda_program import Expected, Program

        # A tape that the target does not support must fail before the GPU is used.
        atomic = settings.atomic
        written = cuda.generate(tape, atomic=atomic, values=values)
        expected = [
            Expected(".".join((item.name, *map(str, item.path))), type.dtype, type.shape, item.argument < 0)
            for item in tape.inputs
            for type in [tape.types[item.variable]]
        ]
        return Program(lambda forms: cuda.generate(tape, forms, atomic=atomic, values=values), expected), written.text
    source = source_of(tape, target, values)
    return loaded(source), source.text


def source_of(tape: Tape, target: Target, values: int) -> Any:
    """The generated NumPy or C source; see `compile_tape`."""
    from yota.ir.solved import on_target

    generate: Callable[..., Any]
    stage("generating code")
    if is_in_c(target):
        from yota.emit.targets.c import generate
    else:
        from yota.emit.targets.numpy import generate
    return generate(on_target(tape, target), strict=target.strict, values=values)


def parts_of(source: Any) -> dict[str, Any]:
    """The parts of generated source by name, of which another process loads it."""
    return {each.name: getattr(source, each.name) for each in fields(source)} if is_dataclass(source) else vars(source)


def is_in_c(target: Target) -> bool:
    """Whether the target is C and C can be compiled here."""
    if target.name != "c":
        return False
    from yota.run.machine import native

    return native.is_available()


def needed() -> None:
    """Check that C can be compiled here."""
    from yota.run.machine import native

    native.find()


def loaded(source: Any) -> Callable[..., Any]:
    """The function that generated source defines."""
    if hasattr(source, "kernels"):
        from yota.run.machine import native

        stage("compiling C")
        return native.load(source)
    from yota.run.machine.python import load

    return load(source)


@dataclass(frozen=True, slots=True)
class Gradient:
    """A tape with adjoints.

    tape: its outputs are the value and the adjoints.
    contents: captured arrays whose content the tape relies on.
    observed: observed uses of captured arrays.
    aux: the form of the auxiliary result, if there is one; its parts are outputs after the value. For matrices it is
        the form of the whole result if its parts were joined.
    rows: positions of the entries of a sparse matrix, the last output.
    relied: values of inputs, by number, for which alone this code is valid.
    written: of each leaf, whether the function writes into it; the code is valid if no other array shares its memory.
    sources: of each result, whether it is an output of the tape, an argument or an object, and which one; empty if all
        are outputs.
    recorded: the differentiated recording, if others may be merged with it.
    """

    tape: Tape
    leaves: tuple[int, ...]
    captured: tuple[Any, ...] = ()
    contents: Contents = field(default_factory=Contents)
    ran: tuple[Running, ...] = ()
    observed: Observed = field(default_factory=Observed)
    aux: ResultForm | None = None
    rows: CompressedRows | None = None
    relied: Mapping[int, Any] = field(default_factory=dict)
    written: Sequence[bool] = ()
    sources: tuple[tuple[str, Any], ...] = ()
    recorded: Recording | None = None

    @property
    def values(self) -> int:
        """Number of outputs that are not adjoints."""
        return len(self.tape.outputs) - len(self.leaves)

    def completed(self, outputs: Sequence[Any], leaves: Sequence[Any]) -> Sequence[Any]:
        """All results, of the tape's outputs and the leaves of the arguments."""
        if not self.sources:
            return outputs
        places = {"output": outputs, "argument": leaves}
        return [places[kind][what] if kind in places else what for kind, what in self.sources]

    def without_given(self, leaves: int) -> Gradient:
        """The same code, with no output that is one of the first ``leaves`` inputs or a number."""
        tape, sources, outputs = self.tape, list[tuple[str, Any]](), list[int]()
        given = {entry.variable: number for number, entry in enumerate(tape.inputs[:leaves])}
        for variable in tape.outputs:
            type, constant = tape.types[variable], tape.constants.get(variable)
            if variable in given:
                sources.append(("argument", given[variable]))
            elif constant is not None and not type.shape:
                number = type.dtype.type(constant)
                sources.append(("object", number.item() if type.weak else number))
            else:
                sources.append(("output", len(outputs)))
                outputs.append(variable)
        return replace(self, tape=replace(tape, outputs=tuple(outputs)), sources=tuple(sources))

    @property
    def is_particular(self) -> bool:
        """Whether `fits` may be false for inputs of the same types."""
        arrays = [each for each in self.tape.inputs if not self.tape.types[each.variable].weak]
        return bool(self.relied) or (any(self.written) and len(arrays) + len(self.contents.pairs) > 1)

    def fits(self, leaves: Sequence[Any]) -> bool:
        """Whether inputs have the values, and the memory, that the code requires."""
        given = (*leaves, *self.captured) if self.relied else ()
        if any(self.written):
            watched = (array() for array, _ in self.contents.pairs)
            if sharing(self.written, (*leaves[: len(self.written)], *self.captured, *watched)):
                return False
        return all(np.array_equal(given[number], known) for number, known in self.relied.items())

    @classmethod
    def of(cls, recorded: Recording, tape: Tape, leaves: Sequence[int], forms: Sequence[ResultForm] = ()) -> Gradient:
        """The gradient of a recording; the last of ``forms`` is that of its result."""
        return cls(
            tape,
            tuple(leaves),
            tuple(recorded.captured.values()),
            Contents(tuple(recorded.watched)),
            tuple(recorded.ran),
            Observed(recorded.uses, recorded.calls, {id(each.code): each.names for each in recorded.ran}),
            forms[-1] if forms else None,
            written=recorded.written,
        )

    def valued(self, exact: Recording) -> Gradient:
        """The same gradient with the value as ``exact``, a recording of the same function, computes it."""
        from yota.run.bitwise import with_value

        tape, captured = with_value(self.tape, self.captured, exact)
        contents = Contents((*self.contents.pairs, *exact.watched))
        return replace(self, tape=tape, captured=captured, contents=contents)


class Instead(Exception):
    """There is no code of the requested kind; another function computes the result.

    what: describes that function, as plain data.
    """

    def __init__(self, what: Any, ran: Sequence[Running] = ()) -> None:
        super().__init__(what)
        self.what, self.ran = what, ran


def rolled(recorded: Recording, worth: Worth | None = None) -> Recording:
    """A recording with loops in the place of ops that repeat, if it may have them."""
    from yota.transform.rolling import roll

    return replace(recorded, tape=roll.run(recorded.tape, worth or roll.LONG)) if recorded.rolls else recorded


@dataclass(slots=True, eq=False)
class Specialisation:
    """Compiled code for one combination of argument types.

    ``branches`` maps a failed guard and its value to the specialisation of that case. ``merged`` describes the
    merged recordings of the tape, if it can be merged.
    """

    gradient: Gradient
    call: Callable[..., Any]
    source: str
    branches: dict[tuple[int, Any], Specialisation] = field(default_factory=dict)
    merged: Merged | None = None

    def run(self, leaves: Sequence[Any]) -> tuple[Specialisation, Any]:
        """Call the tape whose guards hold; return its specialisation and outputs."""
        chosen = self
        while True:
            tape = chosen.gradient.tape
            inputs = (*leaves, *chosen.gradient.captured)
            try:
                return chosen, chosen.call(*inputs)
            except StaleTape as signal:
                failed = signal.index, signal.value
            except EarlierIndexError:
                raise
            except (ValueError, IndexError):
                from yota.tracing.replay import failing

                # A mask with another number of true elements breaks shapes before its guard is checked.
                named = zip((entry.variable for entry in tape.inputs), map(in_main_memory, inputs), strict=True)
                found = failing(tape, dict(named)) if tape.guards else None
                if found is None:
                    raise
                failed = found
            following = chosen.branches.get(_decision(tape, failed))
            if following is None:
                from yota.tracing.replay import stale

                fault = stale(tape.guards[failed[0]], failed[1], failed[0])
                fault.missed = chosen
                raise fault
            chosen = following

    def insert(self, other: Specialisation, failed: tuple[int, Any]) -> None:
        """Add a specialisation for the guard that ``failed`` here."""
        self.branches.setdefault(_decision(self.gradient.tape, failed), other)


def in_main_memory(value: Any) -> Any:
    """An argument as an array of NumPy."""
    from yota.run.machine import cupy as cuda

    return cuda.to_host(value) if is_on_device(value) else value


def _decision(tape: Tape, failed: tuple[int, Any]) -> tuple[int, Any]:
    """The key of a failed guard: a bool for a branch, otherwise its value."""
    from yota.run.selects import Alone, Combination
    from yota.tracing.replay import CONVERSIONS

    index, value = failed
    if isinstance(value, (Alone, Combination)):
        return index, value
    converted = CONVERSIONS[tape.guards[index].kind](value)
    return index, _known_as(converted.item() if isinstance(converted, np.generic) else converted)


def _known_as(value: Any) -> Any:
    """A value as a key of branches; all NaNs have the same key."""
    return value if value == value else math.nan
