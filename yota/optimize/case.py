"""One op under simplification: its operands, what is known of them, and how to build what replaces it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from yota.errors import TapeError
from yota.ir.catalog import primitive
from yota.ir.infer import infer
from yota.ir.primitive import Primitive
from yota.ir.tape import Keywords, Op, TapeBuilder
from yota.ir.types import TensorType

if TYPE_CHECKING:
    from yota.optimize.simplify import Simplifier


@dataclass(slots=True)
class Case:
    """An op that is about to be put on the tape."""

    simplifier: Simplifier
    primitive: Primitive
    operands: tuple[int, ...]
    static: tuple[tuple[str, Any], ...]
    type: TensorType

    @property
    def builder(self) -> TapeBuilder:
        """The tape under construction."""
        return self.simplifier.rewriting.builder

    def keyword(self, name: str) -> Any:
        """Value of a static keyword."""
        return dict(self.static)[name]

    def type_of(self, variable: int) -> TensorType:
        """Type of an operand."""
        return self.builder.types[variable]

    def definition(self, variable: int, name: str = "") -> Op | None:
        """The op behind ``variable``, if it is one called ``name``."""
        op = self.builder.definition(variable)
        return op if op is not None and (not name or op.primitive.name == name) else None

    def single(self, variable: int) -> bool:
        """Whether nothing but this op reads ``variable``."""
        return self.simplifier.uses.get(variable, 0) <= 1

    def value(self, variable: int) -> Any:
        """The number that every element of a constant is; None for anything else."""
        constants = self.builder.constants
        if variable not in constants:
            return None
        value = constants[variable]
        if not isinstance(value, np.ndarray):
            return value
        if not value.size or value.flat[0] != value.flat[-1]:
            return None
        first = value.flat[0]
        # Bytes, not ==, because a mixture of 0.0 and -0.0 is not uniform.
        uniform = value.tobytes() == first.tobytes() * value.size
        return first if uniform else None

    def make(
        self, name: str | Primitive, operands: Iterable[int], static: Keywords = (), type: TensorType | None = None
    ) -> int:
        """Put another op in place, simplified in its turn."""
        built = primitive(name) if isinstance(name, str) else name
        operands = tuple(operands)
        pairs = tuple(sorted(static.items())) if isinstance(static, Mapping) else static
        if type is None:
            type = infer(built, tuple(self.type_of(operand) for operand in operands), pairs)
        return self.simplifier.apply(Case(self.simplifier, built, operands, pairs, type))

    def fits(self, name: str | Primitive, operands: Iterable[int]) -> bool:
        """Whether the elementwise op ``name`` on ``operands`` gives exactly this op's dtype and shape."""
        built = primitive(name) if isinstance(name, str) else name
        try:
            found = infer(built, tuple(self.type_of(operand) for operand in operands), ())
        except TapeError:
            return False
        return (found.dtype, found.shape) == (self.type.dtype, self.type.shape)

    def instead(self, name: str | Primitive, *operands: int) -> int | None:
        """An elementwise op in this one's place, provided that it has the same type."""
        return self.make(name, operands, (), self.type) if self.fits(name, operands) else None

    def constant(self, value: Any) -> int:
        """Variable of a constant."""
        return self.builder.constant(value)

    def same(self, variable: int) -> int | None:
        """``variable`` in this op's place: broadcast if need be; None if its dtype is another."""
        found = self.type_of(variable)
        if found.dtype != self.type.dtype:
            return None
        if found == self.type:
            return variable
        if found.shape != self.type.shape:
            return self.make("broadcast_to", (variable,), {"shape": self.type.shape}, self.type)
        value = self.value(variable)
        if value is not None:
            strong = self.type.dtype.type(value)
            return self.constant(strong.item() if self.type.weak else strong)
        return self.make("astype", (variable,), {"dtype": self.type.dtype}, self.type)


Rule: TypeAlias = Callable[[Case], "int | None"]
"""Gives what replaces the op, or None where the rule does not fit."""
