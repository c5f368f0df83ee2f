"""The check that a C file can run on itself: its gradient against differences of its value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from yota.emit.c.c_types import c_type, real_type
from yota.package.c.interface import Function, Parameter
from yota.package.examples import Integers, row_length


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
    """Input of the template.

    name, arguments: the function, and what it is called with.
    kind: type of its value.
    sizes: numbers of sizes that it takes, by the names of sizes.
    """

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
