"""The functions of a C file as their callers see them: parameters, documentation, results, and their own check."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from yota.emit.c.c_plan import KernelPlan, Piece
from yota.emit.c.dialect import C, c_type, real_type
from yota.emit.c.lines import harmless
from yota.emit.language import Language
from yota.emit.names import Names
from yota.errors import CodegenError
from yota.ir.inputs import Leaf
from yota.ir.types import TensorType
from yota.package.examples import Integers, row_length
from yota.package.signature import wish_of

_COLUMNS = 92


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter.

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

    kernels: loops that stand in functions of their own, ahead of it.
    pieces: functions that run parts of its body.
    allocates: whether it can run out of memory.
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


@dataclass(frozen=True, slots=True)
class SizedCall:
    """How Python calls functions that take sizes.

    found: which axes of which arguments tell them.
    open: the size that stands for any number of axes; empty if there is none.
    taken, made: C texts of the shapes of arguments ahead of those axes, and of results, where they are below zero.
    """

    sizes: tuple[str, ...]
    found: Mapping[str, tuple[tuple[str, int], ...]]
    open: str = ""
    taken: Mapping[str, str] = field(default_factory=dict)
    made: Mapping[str, str] = field(default_factory=dict)


def argument(leaf: Leaf, type: TensorType, names: Names, language: Language) -> Parameter:
    """The parameter for a leaf of a call, of the ``type`` that it has at all sizes."""
    if not language.stores(type.dtype):
        wider = "float32 or wider" if language.is_known(np.dtype(np.float32)) else "float64"
        raise CodegenError(
            f"{leaf.place} has dtype {type.dtype}, which generated {language.name} does not have; use {wider}"
        )
    return Parameter(names.fresh(wish_of(leaf)), leaf.place, type)


def result(name: str, what: str, type: TensorType, names: Names, language: Language) -> Parameter:
    """A parameter that is written to."""
    if not language.stores(type.dtype):
        raise CodegenError(f"the {what} has dtype {type.dtype}, which generated {language.name} does not have")
    return Parameter(names.fresh(name), what, type, True)


def documented(
    summary: str, parameters: Sequence[Parameter], operations: str, sizes: Sequence[str], language: Language
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


@dataclass(frozen=True, slots=True)
class Input:
    """What the function takes: types of an element and of its real part, a value that suits most functions."""

    size: int
    kind: str
    real: str
    drawn: str
    moving: bool
    complex: bool


@dataclass(frozen=True, slots=True)
class SelfTest:
    """Input of the template."""

    name: str
    arguments: str
    kind: str
    inputs: tuple[Input, ...]
    distance: str
    tolerance: str
    sizes: tuple[tuple[str, int], ...] = ()


def self_test_of(both: Function, wanted: Sequence[int]) -> SelfTest:
    """The check of ``both``, which gives value and gradient by its inputs at positions ``wanted``."""
    single = any(each.type.dtype.name in ("float32", "complex64") for each in both.parameters)
    integers = Integers.beside((each.type.dtype, each.type.shape) for each in both.inputs)
    given = [f"moved{number}" if each.pointer else f"moved{number}[0]" for number, each in enumerate(both.inputs)]
    arguments = [*both.sizes, *given, "&value", *(f"g{number}" for number in sorted(wanted))]
    inputs = [
        Input(each.type.size, c_type(each.type.dtype), c_type(real_type(each.type.dtype)), _drawn(each, integers),
              number in wanted, each.type.is_complex)
        for number, each in enumerate(both.inputs)
    ]  # fmt: skip
    assert len(both.results) == 1 + len(wanted)
    limits = ("0.01", "1e-3") if single else ("1e-3", "1e-8")
    return SelfTest(both.name, ", ".join(arguments), c_type(both.results[0].type.dtype), tuple(inputs), *limits)


def _drawn(parameter: Parameter, integers: Integers) -> str:
    kind, cast = parameter.type.dtype.kind, f"({c_type(parameter.type.dtype)})"
    if kind == "c":
        return f"{cast}CMPLX(drawn(), drawn())"
    if kind in "fb":
        return f"{cast}drawn()" if kind == "f" else "1"
    start, last = integers.start(), row_length(parameter.type.shape)
    column = f" + at % {last}" if last > 1 else ""
    return f"{cast}((at / {2 * last}{column} + {start}) % {integers.bound})"
