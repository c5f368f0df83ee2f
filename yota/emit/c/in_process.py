"""C for one process, which calls SciPy's functions of numbers by the loops that NumPy has for them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from yota.emit.c.dialect import C, CLanguage, is_known_op
from yota.emit.tree import Spelling
from yota.ir.primitive import Primitive
from yota.ir.semantics import AccessMap
from yota.ir.tape import Op, Tape
from yota.optimize.rewrite import with_ops

_SPECIAL = "scipy.special."
_BEHIND = {"zeta": "_zeta"}
"""Functions of Python, and the ufuncs in SciPy's modules that they call."""


@dataclass(frozen=True, slots=True)
class NumberLoop:
    """A function of SciPy's on numbers in double precision.

    home, attribute: where the ufunc is.
    item: which result the function gives.
    """

    name: str
    home: str
    attribute: str
    inputs: int
    outputs: int
    item: int


class InProcess(CLanguage):
    """C of one file; ``loops`` are the functions of SciPy's that it calls, by primitive."""

    def __init__(self) -> None:
        super().__init__("c")
        self.table = C.table
        self.loops: dict[str, NumberLoop] = {}

    def spell(self, name: str, dtype: np.dtype[Any], result: np.dtype[Any]) -> Spelling | None:
        """How a primitive is written."""
        found = self.loops.get(name)
        if found is None:
            return C.spell(name, dtype, result)
        return Spelling(f"{found.name}({', '.join(f'{{{number}}}' for number in range(found.inputs))})")

    def is_known_op(self, tape: Tape, op: Op) -> bool:
        """Whether kernels can compute an elementwise op."""
        return is_known_op(tape, op) or self._has_loop(tape, op)

    def _has_loop(self, tape: Tape, op: Op) -> bool:
        target, (number, item) = op.primitive.target or "", _item_of(op.primitive)
        if op.static or tape.types[op.result].shape or not target.startswith(_SPECIAL):
            return False
        home, _, attribute = target.rpartition(".")
        function: Any = number.function
        if attribute in _BEHIND:
            from importlib import import_module

            home, attribute = "scipy.special._ufuncs", _BEHIND[attribute]
            function = getattr(import_module(home), attribute, None)
        types = [tape.types[each] for each in op.operands]
        if not isinstance(function, np.ufunc) or function.nin != len(types) or function.signature:
            return False
        given = [type(each.dtype.type(0).item()) if each.weak else each.dtype for each in types]
        try:
            # An integer order may select another loop.
            chosen = function.resolve_dtypes((*given, *[None] * function.nout))
        except TypeError:
            return False
        if set(chosen) != {np.dtype(np.float64)}:
            return False
        name = f"scipy_{op.name.lower()}"
        self.loops[op.name] = NumberLoop(name, home, attribute, function.nin, function.nout, item)
        return True


def with_single_items(tape: Tape) -> Tape:
    """``tape`` with an op for each single result of the SciPy functions that have several."""
    gone = {
        op.result: op
        for op in tape.ops
        if op.primitive.several == "elementwise" and (op.primitive.target or "").startswith(_SPECIAL)
    }
    if not gone:
        return tape
    ops = []
    for op in tape.ops:
        source = gone.get(op.operands[0]) if op.access == AccessMap.ITEM else None
        if source is not None:
            single = _single(source.primitive, op.keyword("index"))
            op = replace(op, primitive=single, operands=source.operands, static=source.static)
        ops.append(op)
    types = {variable: type for variable, type in tape.types.items() if variable not in gone}
    return with_ops(tape, [op for op in ops if op.result not in gone], types=types)


@functools.cache
def _single(several: Primitive, index: int) -> Primitive:
    """The function that gives one result of ``several``."""

    def function(*operands: Any) -> Any:
        return several.function(*operands)[index]

    function.several, function.index = several, index  # type: ignore[attr-defined]
    return Primitive(f"{several.name}_{index}", several.target, True, function)


def _item_of(primitive: Primitive) -> tuple[Primitive, int]:
    """The primitive with the ufunc, and which of its results is meant."""
    function: Callable[..., Any] = primitive.function
    return getattr(function, "several", primitive), getattr(function, "index", 0)
