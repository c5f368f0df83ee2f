"""Kernels for all sizes, written from a tape whose shapes have extents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from yota.codegen.targets.base import Opening
from yota.generation.constants import Constants
from yota.generation.kernel import Kernel, kernel_of
from yota.generation.sizing import Sized
from yota.ir.tape import Tape


def sized_kernel(sized: Sized, tapes: Sequence[Tape], name: str, constants: Constants) -> Kernel:
    """The kernel that computes ``tapes``, one for each size at which the function was traced.

    Raises CodegenError if the tape calls something that only this process has.
    """
    found = sized.separated(tapes)
    made, values = [each.text for each in found.varying], [each.values for each in found.varying]
    opening = Opening(sized.samples.names, tuple(_checks(sized)), tuple(made), tuple(values))
    return kernel_of(found.tape, name, constants, strict=sized.strict, opening=opening)


def _checks(sized: Sized) -> Iterator[str]:
    """Statements that refuse sizes for which the function has no value."""
    conditions = sized.conditions
    if failed := conditions.failed("or", 2):
        yield f"if {failed}:"
        yield f'    raise ValueError("sizes must be {conditions.described(2)}")'
