"""How a tape's constants are spelled: as literals where that is exact and short, else by name."""

from __future__ import annotations

from typing import Any

import numpy as np

from yota.codegen.literals import dtype_text, scalar, shape_text
from yota.codegen.names import Names
from yota.errors import TapeError
from yota.ir.infer import infer
from yota.ir.tape import Op, Tape
from yota.ir.types import TensorType

__all__ = ["UNNAMED", "Constants"]

UNNAMED = "constant"
"""What an array is called that the function gives no name."""
_PRINTED_ELEMENTS = 16


class Constants:
    """Texts of constants.

    Afterwards `lines` holds assignments at module level, and `objects` what the generated code finds by name.
    """

    def __init__(self, tape: Tape, names: Names) -> None:
        self._tape, self._names = tape, names
        self.lines: list[str] = []
        self.objects: dict[str, Any] = {}
        self._texts: dict[int, str] = {}
        self._named_objects: dict[int, str] = {}
        self._ones: dict[str, str] = {}

    def name(self, hint: str, value: Any) -> str:
        """Name under which the generated code finds an object that has no literal."""
        known = self._named_objects.get(id(value))
        if known is None:
            known = self._named_objects[id(value)] = self._names.fresh(hint)
            self.objects[known] = value
        return known

    def ones(self, count: int, dtype: np.dtype[Any]) -> str:
        """Name of a vector of ones."""
        kind = "" if dtype == np.dtype(np.float64) else f", {dtype_text(dtype)}"
        text = f"np.ones({count}{kind})"
        if text not in self._ones:
            self._ones[text] = self._names.fresh("ones")
            self.lines.append(f"{self._ones[text]} = {text}")
        return self._ones[text]

    def text(self, variable: int, op: Op | None = None, number: int = 0) -> str:
        """Text of a constant, as operand ``number`` of ``op`` or by itself."""
        value, type = self._tape.constants[variable], self._tape.types[variable]
        if not type.shape:
            literal = scalar(value)
            if literal is not None:
                if type.weak or (op is not None and self._may_be_weak(op, number)):
                    return literal
                return f"{dtype_text(type.dtype)}({literal})"
        if variable not in self._texts:
            self._texts[variable] = self._spelled(variable, value) or self.name(
                self._tape.names.get(variable, UNNAMED), value
            )
        return self._texts[variable]

    def _spelled(self, variable: int, value: Any) -> str | None:
        array = np.asarray(value)
        if array.size > _PRINTED_ELEMENTS or any(scalar(element) is None for element in array.flat):
            return None
        if array.size == 0:
            text = f"np.zeros({shape_text(array.shape)}, {dtype_text(array.dtype)})"
        else:
            rows = _nested(array)
            text = f"np.array({rows}, {dtype_text(array.dtype)})"
        name = self._names.fresh(self._tape.names.get(variable, UNNAMED))
        self.lines.append(f"{name} = {text}")
        return name

    def _may_be_weak(self, op: Op, number: int) -> bool:
        """Whether a plain literal for this operand gives a result of the same type."""
        types = [self._tape.types[operand] for operand in op.operands]
        types[number] = TensorType(types[number].dtype, (), True)
        if types[number].dtype not in (np.dtype(kind) for kind in (bool, int, float, complex)):
            base = {"b": bool, "i": int, "u": int, "f": float, "c": complex}[types[number].dtype.kind]
            types[number] = TensorType(np.dtype(base), (), True)
        try:
            return infer(op.primitive, tuple(types), op.static) == self._tape.types[op.result]
        except (TapeError, TypeError, ValueError):
            return False


def _nested(array: np.ndarray[Any, Any]) -> str:
    if array.ndim == 0:
        return str(scalar(array))
    return f"[{', '.join(_nested(row) for row in array)}]"
