"""What functions of a file are written from; matrices of derivatives in one piece where they are small, else by row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from yota.errors import ArgumentError
from yota.ir.extents import Extent
from yota.ir.inputs import Leaf
from yota.ir.tape import Tape
from yota.ir.types import TensorType
from yota.package.subject import Subject
from yota.rules.registry import registry
from yota.run.derivatives.directions import along, product_of, pulled, stacked
from yota.run.derivatives.straight_line import sloped, straight_line
from yota.run.gradient_layout import Wanted
from yota.settings import settings
from yota.transform.reverse.backward import Adjoints
from yota.transform.reverse.checkpoints import checkpointed

_UNROLLED = 16
"""Rows up to which a matrix is one piece of code, rather than a loop over rows."""


@dataclass(frozen=True, slots=True, eq=False)
class Derivative:
    """A tape of derivatives.

    extra: a further argument of the tape: what it multiplies the matrix by. None if it gives the whole matrix.
    """

    tape: Tape
    extra: Leaf | None = None

    @property
    def row(self) -> TensorType:
        """The type of what the tape gives."""
        return self.tape.types[self.tape.outputs[0]]

    @property
    def like(self) -> TensorType:
        """The type of the whole matrix, of which products with unit vectors are rows."""
        rows = () if self.extra is None else self.tape.types[self.tape.inputs[self.extra.argument].variable].shape
        return TensorType(self.row.dtype, rows + self.row.shape)


Recording: TypeAlias = "Subject | Adjoints | Derivative"
"""What a function is written from."""


def recorded(subject: Subject, word: str, general: Subject | None = None) -> Recording:
    """What the function that ``word`` names is written from.

    general: the subject for all sizes, where sizes have names: a matrix is in one piece if it is so at all of them.
        Scalar code is other code for each size.
    """
    if word in ("value", "gradient"):
        return subject if word == "value" else subject.adjoints
    leaf, by = _wanted(subject, word)
    if word == "jacobian" and len(subject.tape.outputs) != 1:
        raise ArgumentError(f"{subject.tape.name} returns several values; a Jacobian needs one array")
    tape, search = subject.tape, None if general else subject.call.search
    rows = _rows(general or subject, word, leaf)
    is_whole = word != "hvp" and not isinstance(rows, Extent) and rows <= _UNROLLED
    slope = sloped(tape, leaf, registry()) if is_whole and word == "hessian" else tape
    if (
        is_whole
        and search
        and (found := straight_line(tape, leaf, Wanted(1 if slope is tape else 2), registry(), search))
    ):
        return Derivative(found.tape)
    if tape.types[tape.outputs[0]].is_complex:
        raise ArgumentError(
            f"{tape.name} returns complex numbers, and with_={word!r} needs real ones; take .real and .imag"
        )
    if is_whole:
        return Derivative(stacked(slope, leaf, Wanted(), registry()).tape)
    if word == "jacobian":
        tape = checkpointed(tape, [tape.inputs[leaf].variable], settings.memory)
        tape, seed = _with_argument(subject, tape, tape.types[tape.outputs[0]], "seed")
        return Derivative(pulled(tape, leaf, registry()), seed)
    tape, direction = _with_argument(subject, tape, by, "v")
    made = product_of(tape, leaf, registry(), search) if search else along(tape, leaf, registry())
    return Derivative(made, direction)


def _rows(subject: Subject, word: str, leaf: int) -> int:
    """How many rows a matrix has."""
    tape = subject.tape
    return tape.types[tape.outputs[0] if word == "jacobian" else tape.inputs[leaf].variable].size


def _wanted(subject: Subject, what: str) -> tuple[int, TensorType]:
    leaves = subject.layout.wanted
    named = [subject.arguments.leaves[leaf] for leaf in leaves]
    if len(leaves) != 1:
        names = ", ".join(leaf.place for leaf in named)
        raise ArgumentError(f"with_={what!r} differentiates by one array, not by {names}; choose an argument with wrt=")
    found = subject.tape.types[subject.tape.inputs[leaves[0]].variable]
    if found.is_complex:
        raise ArgumentError(f"with_={what!r} needs a real argument; {named[0].place} is complex")
    return leaves[0], found


def _with_argument(subject: Subject, tape: Tape, type: TensorType, name: str) -> tuple[Tape, Leaf]:
    """``tape`` with one more argument, of ``type``, behind those of the function."""
    place, builder = len(subject.arguments.leaves), tape.builder()
    builder.input(type, max(entry.argument for entry in builder.inputs) + 1, name)
    builder.inputs.insert(place, builder.inputs.pop())
    value = np.ones(type.shape, type.dtype)[()]
    return builder.finish(tape.outputs), Leaf(value.item() if type.weak else value, place, name)
