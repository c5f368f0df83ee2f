"""How scalar ops are spelled in Python: on Python floats for speed, and on NumPy scalars for infinities and NaNs."""

from __future__ import annotations

import functools
import re
from dataclasses import replace
from typing import Any

import numpy as np

from yota.emit.language import tabled
from yota.emit.numpy_literals import dtype_text
from yota.emit.tree import Spelling
from yota.ir.extents import CHOICE
from yota.ir.tape import Op
from yota.ir.types import TensorType

_DECISIONS = frozenset({"less", "less_equal", "greater", "greater_equal", "equal", "not_equal"})
_TABLE = tabled("python").table
_OF_MATH = re.compile(r"\b(?!abs|bool|round)([a-z0-9]+)\(")
MATH_NAMES = frozenset(_OF_MATH.findall(" ".join(_TABLE["floats"].values()))) | {"inf", "nan"}
"""Names that a body may import from ``math``."""

_SAME_BITS = frozenset(
    "where divide reciprocal floor_divide remainder fmod absolute abs fabs maximum minimum fmax fmin sign floor ceil"
    " trunc rint isnan isinf isfinite signbit copysign logical_and logical_or logical_not real conjugate conj sqrt"
    " power".split()
)
"""Where Python's result has the bits of NumPy's; for powers, of NumPy's ``**`` on scalars."""

_ALIASES = {"mod": "remainder", "true_divide": "divide", "pow": "power"}
_CASTS = {"f": "float", "i": "int", "u": "int", "b": "bool"}


def spell(
    op: Op,
    type: TensorType,
    operands: tuple[TensorType, ...],
    *,
    fast: bool,
    exact: bool,
    function: str,
    keywords: tuple[str, ...] = (),
) -> Spelling:
    """How ``op`` is written.

    type, operands: types of its result and of its operands.
    fast: on Python numbers; else on NumPy scalars.
    exact: the result must have NumPy's bits.
    function: text of the function itself, for ops that have no spelling of their own.
    keywords: texts of its static arguments, ``name=value`` each.
    """
    name = _ALIASES.get(op.name, op.name)
    module = (function.rpartition(".")[0],) if function.count(".") > 1 else ()
    if name == "astype":
        return _cast(op.keyword("dtype"), operands[0], fast)
    if name in _TABLE["operators"] and (name in _DECISIONS or type.dtype.kind != "b"):
        return _spelling("operators", name)
    fixed = (text.replace("{", "{{").replace("}", "}}") for text in keywords)
    holes = ", ".join([*(f"{{{number}}}" for number in range(len(op.operands))), *fixed])
    call = Spelling(f"{function}({holes})", imports=module, warns=True)
    if not fast:
        return call if name not in _TABLE["scalars"] or type.weak else _spelling("scalars", name)
    floats = all(operand.dtype.kind == "f" for operand in operands) or name.startswith("logical")
    floats = floats or name in ("absolute", "abs", "where") or (name == "power" and type.dtype.kind == "f")
    if name == "divide" or (name in _TABLE["floats"] and floats and (not exact or name in _SAME_BITS)):
        return _spelling("floats", name)
    cast = _CASTS[type.dtype.kind]
    return Spelling(f"{cast}({function}({holes}))", imports=module, raises=cast == "int", warns=True)


@functools.cache
def _spelling(section: str, name: str) -> Spelling:
    """An entry of the table, with what it imports."""
    found = tabled("python").spelling(_TABLE[section][name])
    names = _OF_MATH.findall(found.text) if section == "floats" else ()
    return replace(found, imports=tuple([f"math.{name}" for name in names]))


def _cast(dtype: np.dtype[Any], operand: TensorType, fast: bool) -> Spelling:
    if fast:
        if dtype.kind == operand.dtype.kind:
            return Spelling("{0}", CHOICE, (CHOICE,))
        return Spelling(f"{_CASTS[dtype.kind]}({{0}})", raises=dtype.kind == "i")
    if operand.dtype == dtype and not operand.weak:
        return Spelling("{0}", CHOICE, (CHOICE,))
    if operand.dtype.kind == "c" and dtype.kind != "c":
        return Spelling(f"{dtype_text(dtype)}(np.real({{0}}))", warns=True)
    return Spelling(f"{dtype_text(dtype)}({{0}})", warns=True)
