"""Pass `inline`: primitives that are defined by their rule's primal alone are replaced by their bodies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from yota.errors import TapeError
from yota.ir.primitive import Primitive
from yota.ir.semantics import AccessMap
from yota.ir.tape import Tape
from yota.ir.types import TensorType
from yota.passes.rewrite import Rewriting

__all__ = ["run"]

_DEEPEST = 100


def run(tape: Tape) -> Tape:
    """Expand every op whose primitive has a body."""
    if all(op.primitive.expand is None for op in tape.ops):
        return tape
    rewriting = Rewriting(tape)
    emitter = _Inliner(rewriting)
    several: dict[int, tuple[int, ...]] = {}
    for op in tape.ops:
        if op.access == AccessMap.ITEM and op.operands[0] in several:
            found = several[op.operands[0]][op.keyword("index")]
            rewriting.bind(op.result, _of_type(rewriting, found, tape.types[op.result]))
            continue
        if op.primitive.expand is None:
            rewriting.copy(op)
            continue
        rewriting.builder.location = op.location
        body = emitter.emit(op.primitive, rewriting.operands(op), op.static)
        if isinstance(body, tuple):
            several[op.result] = body
        else:
            rewriting.bind(op.result, _of_type(rewriting, body, tape.types[op.result]))
    return rewriting.finish()


class _Inliner:
    """An emitter that expands what has a body, to any depth."""

    def __init__(self, rewriting: Rewriting) -> None:
        self._rewriting = rewriting
        self._depth = 0

    def emit(
        self,
        primitive: Primitive,
        operands: Iterable[int],
        static: Mapping[str, Any] | tuple[tuple[str, Any], ...] = (),
    ) -> Any:
        if primitive.expand is None:
            return self._rewriting.emit(primitive, operands, static)
        if self._depth == _DEEPEST:
            raise TapeError(f"{primitive.name}: its definition refers to itself")
        self._depth += 1
        try:
            found = primitive.expand(self, tuple(operands), static)
        finally:
            self._depth -= 1
        return found

    def constant(self, value: Any) -> int:
        return self._rewriting.builder.constant(value)

    def type(self, handle: int) -> TensorType:
        return self._rewriting.type(handle)


def _of_type(rewriting: Rewriting, variable: int, type: TensorType) -> int:
    found = rewriting.type(variable)
    if found.shape != type.shape:
        variable = rewriting.emit("broadcast_to", (variable,), {"shape": type.shape})
    if found.dtype != type.dtype or found.weak != type.weak:
        variable = rewriting.emit("astype", (variable,), {"dtype": type.dtype}, type)
    return variable
