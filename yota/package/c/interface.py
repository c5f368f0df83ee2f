"""The functions of a C file as their callers see them: parameters, documentation, and what they return."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from yota.emit.c.c_plan import KernelPlan, Piece
from yota.emit.c.dialect import FOREIGN, C
from yota.emit.c.lines import harmless
from yota.emit.language import Language
from yota.emit.names import Names, identifier
from yota.errors import CodegenError
from yota.ir.inputs import Leaf
from yota.ir.types import TensorType, type_of
from yota.package.subject import Subject

_COLUMNS = 92
Known: TypeAlias = Callable[["np.dtype[Any]"], bool]
"""Whether a target has a dtype."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter.

    name: its name in C.
    source: what it is in the function; for a result, what it holds.
    written: whether it is a result.
    """

    name: str
    source: str
    type: TensorType
    written: bool = False

    @property
    def pointer(self) -> bool:
        """Whether it is a pointer rather than a number."""
        return self.written or bool(self.type.shape)

    @property
    def kind(self) -> str:
        """Its type in C, up to the name or ``restrict``."""
        kind = C.shown(self.type)
        if not self.pointer:
            return f"{kind} "
        return f"{kind} *" if self.written else f"const {kind} *"

    @property
    def shape(self) -> str:
        """Its shape for a reader."""
        extents = ", ".join(map(str, self.type.shape))
        return f" [{extents}]" if self.type.shape else ""


@dataclass(frozen=True, slots=True)
class Function:
    """One function, ready for a template: texts only.

    lines: its body.
    kernels: loops that stand in functions of their own, ahead of it.
    pieces: functions that run parts of its body.
    public: whether the header has it.
    allocates: whether it can run out of memory.
    looks: whether it looks at indices.
    sizes: names of the sizes that it takes, ahead of its parameters.
    memory: numbers of elements of the arrays on the heap.
    delegate: the function that does all that it does, if there is one.
    """

    name: str
    parameters: tuple[Parameter, ...]
    lines: tuple[str, ...]
    kernels: tuple[KernelPlan, ...] = ()
    pieces: tuple[Piece, ...] = ()
    documentation: tuple[str, ...] = ()
    public: bool = True
    allocates: bool = False
    looks: bool = False
    sizes: tuple[str, ...] = ()
    memory: tuple[int, ...] = ()
    delegate: str = ""

    @property
    def inputs(self) -> list[Parameter]:
        """What it takes."""
        return [each for each in self.parameters if not each.written]

    @property
    def results(self) -> list[Parameter]:
        """What it writes."""
        return [each for each in self.parameters if each.written]


def arguments_of(
    leaves: Sequence[Leaf], names: Names, known: Known | None = None, language: Language = C
) -> tuple[Parameter, ...]:
    """The parameters for the leaves of a call, of dtypes that are ``known``, or that the language has.

    Raises CodegenError if one has a dtype that generated code does not have.
    """
    found = []
    for leaf in leaves:
        type, source = type_of(leaf.value), leaf.place
        if not (known or language.is_known)(type.dtype):
            wider = "float32 or wider" if language.is_known(np.dtype(np.float32)) else "float64"
            raise CodegenError(
                f"{source} has dtype {type.dtype}, which generated {language.name} does not have; use {wider}"
            )
        wish = ".".join((leaf.name, *map(str, leaf.path)))
        found.append(Parameter(names.fresh(f"x{wish}" if identifier(wish).startswith("_") else wish), source, type))
    return tuple(found)


def inputs_of(
    subject: Subject, names: Names, known: Known | None = None, language: Language = C
) -> tuple[Parameter, ...]:
    """The parameters for the arguments of a function, of the shapes that they have at all sizes."""
    found = arguments_of(subject.arguments.leaves, names, known, language)
    types = (subject.tape.types[entry.variable] for entry in subject.tape.inputs)
    return tuple(replace(each, type=type) for each, type in zip(found, types, strict=False))


def result(
    name: str, what: str, type: TensorType, names: Names, known: Known | None = None, language: Language = C
) -> Parameter:
    """A parameter that is written to."""
    if not (known or language.is_known)(type.dtype):
        raise CodegenError(f"the {what} has dtype {type.dtype}, which generated {language.name} does not have")
    return Parameter(names.fresh(name), what, type, True)


def parameter_names(function: str, sizes: Sequence[str] = (), language: Language = C) -> Names:
    """Names for the parameters of a function, in C and in C++."""
    return language.names(function, [*FOREIGN, *sizes])


def documented(
    summary: str,
    parameters: Sequence[Parameter],
    operations: str,
    sizes: Sequence[str] = (),
    language: Language = C,
) -> tuple[str, ...]:
    """What the header says about a function."""
    width = max((len(each) for each in (*sizes, *(each.name for each in parameters))), default=0)
    lines = [*textwrap.wrap(harmless(summary), _COLUMNS), ""]
    lines += [f"    {each.ljust(width)}  in  {language.size()}" for each in sizes]
    for each in parameters:
        kind = language.shown(each.type)
        note = "" if each.source == each.name else f"; {harmless(each.source)}"
        lines.append(f"    {each.name.ljust(width)}  {'out' if each.written else 'in'}  {kind}{each.shape}{note}")
    if operations:
        lines += ["", *textwrap.wrap(f"Operations: {operations}.", _COLUMNS)]
    return tuple(lines)
