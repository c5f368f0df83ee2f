"""The check that a C file can run on itself: its gradient against differences of its value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from yota.emit.c.c_types import c_type
from yota.emit.c.lines import block
from yota.package.c.interface import Function, Parameter
from yota.package.examples import Integers, row_length


@dataclass(frozen=True, slots=True)
class SelfTest:
    """Texts for the template.

    name: the function.
    sizes: numbers of sizes that it takes, by the names of sizes.
    declarations: definitions of a point, a direction, and the results.
    points: statements that draw a point and a direction.
    moves: statements that call the function at a ``distance`` along the direction.
    slopes: statements that add up the derivative along the direction, and the size of its terms.
    """

    name: str
    distance: str
    tolerance: str
    declarations: tuple[str, ...]
    points: tuple[str, ...]
    moves: tuple[str, ...]
    slopes: tuple[str, ...]
    sizes: tuple[tuple[str, int], ...] = ()


def self_test_of(both: Function, wanted: Sequence[int]) -> SelfTest:
    """The check of ``both``, which gives value and gradient by its inputs at positions ``wanted``."""
    single = any(each.type.dtype.name in ("float32", "complex64") for each in both.parameters)
    value, *slopes = both.results
    declarations, points, moves, sums = [f"{_kind(value)} value;"], [], [], []
    integers = Integers.beside((each.type.dtype, each.type.shape) for each in both.inputs)
    for number, each in enumerate(both.inputs):
        size, kind = each.type.size, _kind(each)
        moving = number in wanted
        declarations.append(f"static {kind} x{number}[{size!s}], moved{number}[{size!s}];")
        points += _loop(size, f"x{number}[at] = {_drawn(each, integers)};")
        if moving:
            declarations.append(f"static {kind} v{number}[{size!s}], g{number}[{size!s}];")
            points += _loop(size, f"v{number}[at] = {_drawn(each, integers)};")
            slope = f"g{number}[at] * v{number}[at]"
            if each.type.is_complex:
                slope = f"creal(conj((complex128)g{number}[at]) * (complex128)v{number}[at])"
            sums += _loop(size, f"slope += (double)({slope});", f"size += fabs((double)({slope}));")
        step = f" + ({_kind_real(each)})distance * v{number}[at]" if moving else ""
        moves += _loop(size, f"moved{number}[at] = x{number}[at]{step};")
    given = [f"moved{number}" if each.pointer else f"moved{number}[0]" for number, each in enumerate(both.inputs)]
    results = ["&value", *(f"g{number}" for number in sorted(wanted))]
    moves.append(f"status = {both.name}({', '.join([*both.sizes, *given, *results])});")
    assert len(slopes) == len(wanted)
    return SelfTest(
        both.name,
        "0.01" if single else "1e-3",
        "1e-3" if single else "1e-8",
        tuple(declarations),
        tuple(points),
        tuple(moves),
        tuple(sums),
    )


def _kind(parameter: Parameter) -> str:
    return c_type(parameter.type.dtype)


def _kind_real(parameter: Parameter) -> str:
    return "float" if parameter.type.dtype.name in ("float32", "complex64") else "double"


def _drawn(parameter: Parameter, integers: Integers) -> str:
    """A value that suits most functions."""
    kind = parameter.type.dtype.kind
    if kind == "c":
        return f"({_kind(parameter)})CMPLX(drawn(), drawn())"
    if kind in "fb":
        return f"({_kind(parameter)})drawn()" if kind == "f" else "1"
    start = integers.start()
    last = row_length(parameter.type.shape)
    column = f" + at % {last}" if last > 1 else ""
    return f"({_kind(parameter)})((at / {2 * last}{column} + {start}) % {integers.bound})"


def _loop(size: int, *statements: str) -> list[str]:
    head = f"for (ptrdiff_t at = 0; at < {size!s}; at++)"
    return [head, f"    {statements[0]}"] if len(statements) == 1 else block(head, statements)
