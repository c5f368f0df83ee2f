"""Constants that depend on sizes, taken out of the tapes of several sizes: there they are further arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from yota.errors import ArgumentError
from yota.ir.extents import Extent, with_extents
from yota.ir.tape import Tape
from yota.ir.types import TensorType
from yota.optimize.rewrite import Rewriting
from yota.package.constants import name_of_form
from yota.transform.sizes.generalise import canonical, generalised
from yota.transform.sizes.size_expressions import Samples


@dataclass(frozen=True, slots=True)
class Varying:
    """A constant that depends on sizes.

    hint: what it may be called.
    text: Python text that makes it.
    type: its type; the shape is that of the first sample.
    shape: its extents.
    values: the constant at each of the sizes at which the function was traced.
    """

    hint: str
    text: str
    type: TensorType
    shape: tuple[int, ...]
    values: tuple[Any, ...] = ()

    @property
    def counts(self) -> bool:
        """Whether it is the array of all places of an axis."""
        if self.type.ndim != 1 or self.type.dtype != np.dtype(np.int64):
            return False
        return bool(self.values) and all(np.array_equal(each, np.arange(len(each))) for each in self.values)


def separated(
    tapes: Sequence[Tape], samples: Samples, change: Callable[[Extent], int], *, negative: bool = False
) -> tuple[Tape, tuple[Varying, ...]]:
    """The tape that ``tapes``, one for each sample, are cases of, and the constants that are its last inputs.

    ``change`` is applied to the extents of the tape for all sizes. ``negative`` says whether arrays of positions may
    count from the end.

    Raises ArgumentError if the tapes are not cases of one, or an array of positions has some that count from the end.
    """
    own = [canonical(tape) for tape in tapes]
    general = generalised(own, samples)
    numbers = {variable: place for place, variable in enumerate(general.tape.constants)}
    found: dict[tuple[str, TensorType], list[int]] = {}
    for variable, text in general.constants.items():
        found.setdefault((text, own[0].types[variable]), []).append(numbers[variable])
    varying = [
        Varying(
            general.tape.names.get(list(numbers)[first]) or (name_of_form(text) if type.shape else "scale"),
            text,
            type,
            with_extents(general.tape.types[list(numbers)[first]].shape, change),
            tuple(list(tape.constants.values())[first] for tape in own),
        )
        for (text, type), (first, *_) in found.items()
    ]
    if not negative:
        for tape in own:
            _refuse_negative(tape, [list(tape.constants)[first] for first, *_ in found.values()])
    uses = list(found.values())
    return _with_inputs(general.changed(change), varying, uses), tuple(varying)


def _refuse_negative(tape: Tape, variables: Sequence[int]) -> None:
    used = {operand for op in tape.ops if op.name in ("getitem", "scatter") for operand in op.operands[1:]}
    for variable in variables:
        value = np.asarray(tape.constants[variable])
        if variable in used and value.dtype.kind == "i" and value.size and value.min() < 0:
            raise ArgumentError(
                "an array of positions that depends on sizes counts from the end, which code in C and CUDA for all "
                "sizes does not have; write positions from the beginning, or generate for NumPy"
            )


def _with_inputs(tape: Tape, varying: Sequence[Varying], places: Sequence[Sequence[int]]) -> Tape:
    """The tape with further inputs in place of constants."""
    variables = list(tape.constants)
    rewriting = Rewriting(tape)
    for number, (each, own) in enumerate(zip(varying, places, strict=True)):
        made = rewriting.builder.input(tape.types[variables[own[0]]], len(tape.inputs) + number, each.hint)
        rewriting.mapping |= {variables[place]: made for place in own}
    for op in tape.ops:
        rewriting.copy(op)
    return rewriting.finish()
