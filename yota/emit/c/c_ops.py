"""What C can say: the dtypes that ops are computed in, which have the bits of NumPy's, and about what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from yota.emit.c.c_types import REALS, real_type
from yota.emit.language import ALIASES
from yota.ir.types import TensorType

_FUNCTION_COST, _DIVISION_COST = 12, 4
_FUNCTIONS = frozenset(
    "sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh exp exp2 expm1 log log2 log10 log1p cbrt"
    " erf erfc power arctan2 hypot expit log_expit logit".split()
)
_TESTS = frozenset("isnan isinf isfinite signbit".split())
_DECISIONS = frozenset("less less_equal greater greater_equal equal not_equal".split())
_LOGIC = frozenset("logical_and logical_or logical_not".split())
EXACT = frozenset(
    "add subtract multiply divide negative positive square sqrt absolute abs fabs floor ceil trunc rint where maximum"
    " minimum fmax fmin sign copysign reciprocal real imag conjugate astype isnan isinf isfinite signbit".split()
) | _DECISIONS | _LOGIC  # fmt: skip
"""Where C's result has the bits of NumPy's."""
EXACT_OF_REAL = frozenset("absolute abs multiply square divide reciprocal".split())
"""Those of them for which that is so of real numbers alone: for others NumPy's vector code rounds differently."""


def computed_in(name: str, types: Sequence[TensorType], result: TensorType) -> np.dtype[Any]:
    """The dtype that an op's operands are taken in."""
    if name in _DECISIONS or name in _TESTS:
        samples = [type.dtype.type(0).item() if type.weak else type.dtype for type in types]
        return np.dtype(np.result_type(*samples))
    if name in _LOGIC:
        return np.dtype(bool)
    if name in ("real", "imag", "absolute", "abs") and types[0].is_complex:
        return types[0].dtype
    return result.dtype


def cost(name: str, dtype: np.dtype[Any]) -> int:
    """About how many additions an op takes as long as."""
    name = ALIASES.get(name, name)
    factor = 4 if dtype.kind == "c" else 1
    if name in ("divide", "sqrt", "reciprocal", "fmod", "remainder", "floor_divide"):
        return _DIVISION_COST * factor
    called = name in _FUNCTIONS or (dtype.kind == "c" and name == "conjugate")
    return (_FUNCTION_COST if called else 1) * factor


def is_real(dtype: np.dtype[Any]) -> bool:
    """Whether ``dtype`` is ``float`` or ``double`` in C."""
    return dtype.name in REALS and real_type(dtype) == dtype
