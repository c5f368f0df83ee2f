"""How values, dtypes, shapes and indices are spelled in generated NumPy code: as literals, else by name."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from yota.emit.names import Names
from yota.errors import TapeError
from yota.ir.indexing import GATHER, NEWAXIS, Index, Slice
from yota.ir.infer import infer
from yota.ir.tape import Op, Tape
from yota.ir.types import TensorType


def dtype_text(dtype: np.dtype[Any]) -> str:
    """``np.float32`` and the like."""
    if dtype == np.dtype(np.longdouble) and dtype != np.dtype(np.float64):
        return "np.longdouble"
    if dtype == np.dtype(np.clongdouble) and dtype != np.dtype(np.complex128):
        return "np.clongdouble"
    return "np.bool_" if dtype.kind == "b" else f"np.{dtype.name}"


def dtype_argument(dtype: np.dtype[Any]) -> str:
    """The last argument of an array's constructor; nothing for NumPy's default."""
    return "" if dtype == np.dtype(np.float64) else f", {dtype_text(dtype)}"


def scalar(value: Any) -> str | None:
    """A Python literal of exactly this number; None if there is none."""
    if isinstance(value, np.ndarray):
        value = value[()]
    if isinstance(value, np.generic):
        if value.dtype.itemsize > (16 if value.dtype.kind == "c" else 8):
            return None
        value = value.item()
    if isinstance(value, bool | int | str):
        return repr(value)
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, complex):
        return f"complex({_float(value.real)}, {_float(value.imag)})"
    return None


def _float(value: float) -> str:
    if math.isnan(value):
        return "np.nan"
    if math.isinf(value):
        return "np.inf" if value > 0 else "-np.inf"
    return repr(value)


def tuple_text(items: Iterable[object]) -> str:
    """A tuple display; one item keeps its comma."""
    texts = [str(item) for item in items]
    return f"({texts[0]},)" if len(texts) == 1 else f"({', '.join(texts)})"


def shape_text(shape: Sequence[object]) -> str:
    """A shape; one extent stands alone."""
    return str(shape[0]) if len(shape) == 1 else tuple_text(shape)


def static_text(value: Any) -> str | None:
    """A static keyword's value; None if it has no literal."""
    if isinstance(value, str) and value.isidentifier():
        return f'"{value}"'
    if value is None or isinstance(value, str | bool | int | float | complex | np.generic):
        return repr(value) if value is None else scalar(value)
    if isinstance(value, tuple | list):
        items = [static_text(item) for item in value]
        if None in items:
            return None
        return tuple_text(items) if isinstance(value, tuple) else f"[{', '.join(map(str, items))}]"
    if isinstance(value, np.dtype):
        return dtype_text(value)
    return None


def brackets(index: Index, shape: Sequence[int], arrays: Sequence[str] = (), cut: tuple[int, str] | None = None) -> str:
    """``[1:, None, k]``: the index of an array of ``shape``, with ``arrays`` at the gather marks.

    ``cut`` is an axis of the array and the text that stands for the entry there.

    >>> brackets((Slice(1, 4), NEWAXIS, Slice(0, 3)), (4, 3))
    '[1:, None]'
    """
    gathered, extents = iter(arrays), iter(enumerate(shape))
    texts = []
    for entry in index:
        if entry is NEWAXIS:
            texts.append("None")
            continue
        axis, extent = next(extents)
        if cut is not None and axis == cut[0]:
            texts.append(cut[1])
        elif isinstance(entry, Slice):
            if entry.step < 0:
                stop = "" if entry.stop is None else str(entry.stop)
                start = "" if entry.start == extent - 1 else str(entry.start)
            else:
                start = "" if entry.start == 0 else str(entry.start)
                stop = "" if entry.stop == extent else str(entry.stop)
            texts.append(f"{start}:{stop}" + (f":{entry.step}" if entry.step != 1 else ""))
        else:
            texts.append(next(gathered) if entry is GATHER else str(entry))
    while texts and texts[-1] == ":":
        texts.pop()
    return f"[{', '.join(texts)}]" if texts else "[()]" if not shape else "[:]"


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
        text = f"np.ones({count}{dtype_argument(dtype)})"
        if text not in self._ones:
            self._ones[text] = self._names.fresh("ones")
            self.lines.append(f"{self._ones[text]} = {text}")
        return self._ones[text]

    def text(self, variable: int, op: Op | None = None, number: int = 0) -> str:
        """Text of a constant, as operand ``number`` of ``op`` or by itself."""
        value, type = self._tape.constants[variable], self._tape.types[variable]
        if not type.shape:
            floats = op is not None and type.dtype.kind in "iu" and self._takes_floats(op) and float(value) == value
            literal = scalar(float(value) if floats else value)
            if literal is not None:
                if type.weak or (op is not None and self._may_be_weak(op, number)):
                    return literal
                return f"{dtype_text(type.dtype)}({literal})"
        if variable not in self._texts:
            self._texts[variable] = self._spelled(variable, value) or self.name(
                self._tape.names.get(variable, UNNAMED), value
            )
        return self._texts[variable]

    def _takes_floats(self, op: Op) -> bool:
        """Whether NumPy converts all operands of an op on arrays to a float type; from an int that takes longer.

        Some functions of SciPy have an algorithm for whole orders, and powers have one for whole exponents.
        """
        if (op.primitive.target or "").startswith("scipy.") or op.primitive.function is np.power:
            return False
        type = self._tape.types[op.result]
        others = (self._tape.types[each].dtype for each in op.operands if each not in self._tape.constants)
        uniform = "d" * len(op.operands) + "->d" in getattr(op.primitive.function, "types", ())
        wide = type.dtype.kind in "fc" and type.dtype.itemsize > 2
        return uniform and wide and bool(type.shape) and all(each.kind in "fc" for each in others)

    def _spelled(self, variable: int, value: Any) -> str | None:
        array = np.asarray(value)
        if array.size > _PRINTED_ELEMENTS or any(scalar(element) is None for element in array.flat):
            return None
        if array.size == 0:
            text = f"np.zeros({shape_text(array.shape)}, {dtype_text(array.dtype)})"
        else:
            array, turned = by_rows(array)
            text = f"np.array({_rows(array)}, {dtype_text(array.dtype)}){turned}"
        name = self._names.fresh(self._tape.names.get(variable, UNNAMED))
        self.lines.append(f"{name} = {text}")
        return name

    def _may_be_weak(self, op: Op, number: int) -> bool:
        """Whether a plain literal for this operand, and for constants before it, gives a result of the same type."""
        types = [
            _as_literal(type) if place <= number and operand in self._tape.constants and not type.shape else type
            for place, operand in enumerate(op.operands)
            for type in [self._tape.types[operand]]
        ]
        try:
            return infer(op.primitive, tuple(types), op.static) == self._tape.types[op.result]
        except (TapeError, TypeError, ValueError):
            return False


def _as_literal(type: TensorType) -> TensorType:
    """The type of a number as Python's."""
    base = {"b": bool, "i": int, "u": int, "f": float, "c": complex}[type.dtype.kind]
    return TensorType(np.dtype(base), (), True)


def by_rows(array: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], str]:
    """An array, transposed if columns are contiguous, and text that transposes it back: BLAS rounds by the layout."""
    columns_first = array.flags.f_contiguous and not array.flags.c_contiguous
    return (array.T, ".T") if columns_first else (array, "")


def _rows(array: np.ndarray[Any, Any]) -> str:
    if array.ndim == 0:
        return str(scalar(array))
    return f"[{', '.join(_rows(row) for row in array)}]"
