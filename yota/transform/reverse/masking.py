"""Adjoints that are zero in some places, whatever a partial is there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from yota.ir.semantics import AccessMap
from yota.ir.tape import Op, TapeBuilder

__all__ = ["choice"]


@dataclass(frozen=True, slots=True)
class Choice:
    """An adjoint that is zero in some places: where a condition holds, where it does not, or where an array is written.

    Parameters
    ----------
    op
        The ``where`` or ``setitem`` that makes it.
    inner
        What it is elsewhere.
    position
        Which operand of ``op`` that is.
    """

    op: Op
    inner: int
    position: int

    def of(self, builder: TapeBuilder, inner: int) -> int:
        """The same choice of another value."""
        operands = list(self.op.operands)
        operands[self.position] = inner
        return builder.emit(self.op.primitive, tuple(operands), self.op.static)

    def is_like(self, other: Choice) -> bool:
        """Whether both are zero in the same places."""
        return self._places() == other._places()

    def _places(self) -> tuple[Any, ...]:
        others = self.op.operands[:1] if self.op.semantics.chooses else self.op.operands[2:]
        return self.op.name, self.position, others, self.op.static


def choice(builder: TapeBuilder, variable: int) -> Choice | None:
    """What ``variable`` chooses, if it is a choice between a value and zero."""
    op = builder.definition(variable)
    if op is None:
        return None
    if op.semantics.casts or op.semantics.component == "real":
        chosen = choice(builder, op.operands[0])
        if chosen is None:
            return None
        type_ = replace(builder.types[variable], shape=builder.types[chosen.inner].shape)
        return replace(chosen, inner=builder.emit(op.primitive, (chosen.inner,), op.static, type=type_))
    pairs = ((1, 2), (2, 1)) if op.semantics.chooses else ((0, 1),) if op.semantics.access is AccessMap.WRITE else ()
    for position, other in pairs:
        zero = builder.constants.get(op.operands[other])
        if isinstance(zero, (bool, int, float)) and zero == 0:
            return Choice(op, op.operands[position], position)
    return None
