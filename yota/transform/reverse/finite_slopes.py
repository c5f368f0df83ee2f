"""Adjoints of solvers that are errors where they are infinite or no number."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from yota.errors import DifferentiationError
from yota.ir.catalog import item_of, primitive
from yota.ir.serialised import Carried
from yota.ir.types import TensorType
from yota.transform.reverse.tape_parts import Reversal, match


@dataclass(frozen=True, eq=False)
class Finite(Carried):
    """A check, as the host of a `solved` op of adjoints of operands, and then of adjoints of results.

    name: of the solver.
    types: of the adjoints of operands, which are the results.
    """

    name: str
    types: tuple[TensorType, ...]

    @property
    def __name__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<finite adjoints of {self.name}>"

    def on(self, target: Any) -> Finite:
        """The same, as it is in code for a target."""
        return self

    def __call__(self, *operands: Any) -> tuple[Any, ...]:
        """The adjoints of operands.

        Raises DifferentiationError if one is infinite or no number, and those of the results are finite.
        """
        slopes, seeds = operands[: len(self.types)], operands[len(self.types) :]
        if not _is_finite(slopes) and _is_finite(seeds):
            raise DifferentiationError(
                f"the result of {self.name} has no derivative here: it is infinite or no number, as that of np.sqrt "
                "at zero is; the solver's function meets such a place, or the derivative outgrows the numbers"
            )
        return slopes

    def adjoints(self, at: Reversal) -> list[tuple[int, int]]:
        """See `Host.adjoints`: the check changes nothing."""
        types = at.builder.types
        return [
            (operand, match(at.builder, at.adjoints[number], types[operand]))
            for number, operand in enumerate(at.op.operands)
            if number in at.adjoints and operand in at.active
        ]


def checked(name: str, at: Reversal, found: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Operands with their adjoints, which are an error where those of the results are finite and they are not."""
    if not found:
        return []
    builder = at.builder
    slopes = [slope for _, slope in found]
    host = Finite(name, tuple(builder.types[each] for each in slopes))
    result = builder.emit(primitive("solved"), (*slopes, *at.adjoints.values()), {"host": host})
    return [(operand, item_of(builder, result, number)) for number, (operand, _) in enumerate(found)]


def _is_finite(arrays: Iterable[Any]) -> bool:
    return all(math.isfinite(each) if isinstance(each, float) else np.isfinite(each).all() for each in arrays)
