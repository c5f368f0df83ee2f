"""What a module is generated from: a function, arguments that stand for all of their kind, and its recording."""

from __future__ import annotations

import functools
import hashlib
import inspect
import os
import sys
import textwrap
import tokenize
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from yota.errors import ArgumentError
from yota.ir.callables import name_of
from yota.ir.specs import REST, Array, Fixed, Record, Spec, Table, dimensions, parse, ranked
from yota.ir.specs import Sequence as Items
from yota.ir.tape import Tape
from yota.package.examples import Integers, Sample, arrays_of, example, sampled, spec_of
from yota.rules.registry import registry
from yota.run.arguments import Arguments, function_of, names_of, positional, sort_arguments
from yota.run.bitwise import with_value
from yota.run.derivatives.differentiated import with_receiver
from yota.run.derivatives.inside import record
from yota.run.gradient_layout import Layout, Wrt, layout_of
from yota.run.specialise import Target, rolled
from yota.schedule.target_forms import unsigned
from yota.tracing.traced_sizes import Decision
from yota.transform.reverse.backward import Adjoints, gradient_tape
from yota.transform.rolling import roll
from yota.transform.rolling.periods import Worth

_SEARCH = Target(effort="high")
_SPECS = (Array, Fixed, Record, Table, Items)


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """A function and the specs of its arguments.

    values: values where they were given, else None.
    keeps: whether what is computed from arrays that the function makes stays on the tape.
    sample: gives arguments by name for sizes by name, in place of those that are made up.
    search: how long to look for few operations.
    rolls: whether many ops that repeat become loops, at known sizes.
    loops: whether all ops that repeat become loops, at sizes with names.
    compiled: whether the code is a file in a compiled language.
    recorded: what `subject_of` recorded of this call and of those that were made from it.
    literals: whole numbers that the functions hold which ran when it was recorded.
    """

    function: Callable[..., Any]
    hidden: tuple[Any, ...]
    names: tuple[str, ...]
    specs: tuple[Spec | None, ...]
    values: tuple[Any, ...]
    keeps: bool = False
    sample: Sample | None = None
    search: Target = _SEARCH
    rolls: bool = True
    loops: bool = False
    compiled: bool = False
    recorded: dict[Any, Subject] = field(default_factory=dict)
    literals: set[int] = field(default_factory=set)

    @property
    def worth(self) -> Worth:
        """Lengths from which ops that repeat become a loop."""
        return roll.SHORT if self.loops else roll.WRITTEN if self.compiled else roll.LONG

    def dimensions(self) -> tuple[str, ...]:
        """Names of extents, in order of appearance."""
        return tuple(dict.fromkeys(name for name in self._extents() if name != REST))

    @property
    def open(self) -> bool:
        """Whether arguments may have any number of further axes."""
        return REST in self._extents()

    def _extents(self) -> list[str]:
        return [name for spec in self.specs if spec is not None for name in dimensions(spec)]

    def with_axes(self, names: tuple[str, ...]) -> Call:
        """The call with as many further axes as there are ``names``."""
        return replace(self, specs=tuple(spec and ranked(spec, names) for spec in self.specs))

    def at_some_size(self) -> tuple[Call, dict[str, int]]:
        """The call with one further axis where there may be any, and small sizes for those that have names."""
        call = self.with_axes(("axis",))
        return call, {name: 4 + place for place, name in enumerate(call.dimensions())}

    def arguments(self, sizes: Mapping[str, int] | None = None) -> tuple[Callable[..., Any], Arguments]:
        """The function with its arguments by position, and those of the given sizes."""
        function, args = self.given(sizes)
        return function, sort_arguments(function, args)

    def given(self, sizes: Mapping[str, int] | None = None) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """The same, without a search for leaves."""
        known = [spec for spec in self.specs if spec is not None]
        integers = Integers.beside(array for spec in known for array in arrays_of(spec, sizes))
        values = {
            name: example(spec, sizes, integers) if spec is not None and value is None else value
            for name, spec, value in zip(self.names, self.specs, self.values, strict=True)
        }
        if self.sample is not None:
            values |= sampled(self.sample, dict(zip(self.names, self.specs, strict=True)), sizes or {})
        count = len(self.hidden)
        names = names_of(self.function, count + len(values))[count:]
        if list(values) == names:
            return positional(self.function, (*self.hidden, *values.values()), {})
        return positional(self.function, self.hidden, dict(values))


def call_of(f: Callable[..., Any], args: Any, sample: Sample | None = None) -> Call:
    """The call that ``args`` describe: specs or values, in order or by name; ``sample`` is that of `Call`."""
    function, hidden = with_receiver(function_of(f))
    if isinstance(args, (str, *_SPECS)) or not isinstance(args, (Mapping, Sequence)):
        raise ArgumentError("args must be a sequence or a dict of specs or values, such as {'x': 'float64[4,3]'}")
    if isinstance(args, Mapping):
        given = dict(args)
    else:
        names = names_of(function, len(hidden) + len(args))[len(hidden) :]
        given = dict(zip(names, args, strict=True))
    # What is wrong in a spec is said first: there is a place to point at.
    read = {name: _read(function, name, value) for name, value in given.items()}
    given = _ordered(function, len(hidden), given)
    specs = tuple(read[name] for name in given)
    values = tuple(None if isinstance(value, (str, *_SPECS)) else value for value in given.values())
    return Call(function, hidden, tuple(given), specs, values, sample=sample)


def _ordered(function: Callable[..., Any], hidden: int, given: dict[str, Any]) -> dict[str, Any]:
    """The arguments in the order of the signature, which must have them all."""
    try:
        parameters = list(inspect.signature(function).parameters.values())[hidden:]
    except (TypeError, ValueError):
        return given
    if any(each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD) for each in parameters):
        return given
    known = {each.name: each for each in parameters}
    unknown = [name for name in given if name not in known]
    title = name_of(function)
    if unknown:
        raise ArgumentError(f"{title} has no argument {unknown[0]!r}; it has {', '.join(known) or 'none'}")
    missing = [name for name, each in known.items() if name not in given and each.default is each.empty]
    if missing:
        raise ArgumentError(f"{title} misses a spec of its argument {missing[0]!r}, such as {missing[0]}=float64[3]")
    return {name: given[name] for name in known if name in given}


def _read(function: Callable[..., Any], name: str, value: Any) -> Spec | None:
    if isinstance(value, _SPECS):
        return value
    if not isinstance(value, str):
        try:
            return spec_of(value)
        except ArgumentError:
            return None
    try:
        return parse(value, lambda wanted: _found(function, wanted))
    except ArgumentError as fault:
        raise ArgumentError(f"argument {name}: {fault}") from None


def _found(function: Callable[..., Any], dotted: str) -> Any:
    """What a dotted name means in the function's module; modules that are not imported yet stay so."""
    first, *rest = dotted.split(".")
    value = getattr(function, "__globals__", {}).get(first, sys.modules.get(first))
    for part in rest:
        value = getattr(value, part, None)
    return value


@dataclass(frozen=True, eq=False)
class Subject:
    """A recorded function.

    function: the function that takes all arguments by position.
    decisions: those that the function took on sizes, where sizes are given.
    rolls: whether ops that repeat became loops.
    """

    call: Call
    arguments: Arguments
    layout: Layout
    tape: Tape
    function: Callable[..., Any]
    decisions: Sequence[Decision] = ()
    rolls: bool = False

    @functools.cached_property
    def adjoints(self) -> Adjoints:
        """The recording with the adjoints of what it is differentiated by."""
        return gradient_tape(self.tape, [self.tape.inputs[leaf].variable for leaf in self.layout.wanted], registry())

    def valued(self, tape: Tape, strict: bool) -> Tape:
        """``tape``, whose first output is the function's value, with that value as strict evaluation computes it."""
        if not strict:
            return tape
        leaves, rebuild = self.arguments.leaves, self.arguments.rebuild
        how: dict[str, Any] = {"exact": True, "keeps": self.call.keeps, "rolls": self.rolls}
        exact = rolled(record(self.function, leaves, rebuild, registry=registry(), **how), self.call.worth)
        return with_value(tape, (), replace(exact, tape=unsigned(exact.tape)))[0]


def subject_of(call: Call, wrt: Wrt, sizes: Mapping[str, int] | None = None) -> Subject:
    """Trace the call, once at each size."""
    kind = tuple(map(str, call.specs)), call.keeps, call.rolls, call.loops, repr(wrt)
    key = (*kind, tuple(sorted((sizes or {}).items())))
    if key not in call.recorded:
        call.recorded[key] = _traced(call, wrt, sizes)
    return call.recorded[key]


def _traced(call: Call, wrt: Wrt, sizes: Mapping[str, int] | None) -> Subject:
    function, arguments = call.arguments(sizes)
    layout = layout_of(function, wrt, len(call.hidden), arguments)
    how: dict[str, Any] = {"keeps": call.keeps, "sized": bool(sizes), "rolls": call.loops if sizes else call.rolls}
    found = rolled(record(function, arguments.leaves, arguments.rebuild, registry=registry(), **how), call.worth)
    return Subject(call, arguments, layout, unsigned(found.tape), function, found.decisions, found.rolls)


def reference(f: Callable[..., Any]) -> str | None:
    """``module:name`` of a function that can be imported by it; None for others."""
    module, name = getattr(f, "__module__", None), getattr(f, "__qualname__", "")
    if not module or module in ("__main__", "builtins") or "<" in name:
        return None
    return f"{module}:{name}"


def source_of(f: Callable[..., Any]) -> str:
    """The function's source, without its indentation; empty if there is none."""
    try:
        text = inspect.getsource(f)
    except (OSError, TypeError, SyntaxError, tokenize.TokenError):
        return ""
    return textwrap.dedent(text.replace("\r\n", "\n")).rstrip()


def digest(text: str) -> str:
    """A short digest of a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def relative(path: str | os.PathLike[str]) -> str:
    """A path as it may stand in a file that others read: with slashes, and from here if it can be."""
    found = Path(path)
    if found.is_absolute():
        try:
            found = found.relative_to(Path.cwd())
        except ValueError:
            return found.name
    return found.as_posix()
