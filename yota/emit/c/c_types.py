"""What C can say: types for NumPy's dtypes, the dtypes that ops are computed in, and about what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from yota.emit.language import ALIASES
from yota.ir.types import TensorType

NAMES = {
    "float32": ("float", "Float"),
    "float64": ("double", "Double"),
    "complex64": ("complex64", "CFloat"),
    "complex128": ("complex128", "CDouble"),
    "bool": ("uint8_t", "Bool"),
    "int32": ("int32_t", "Int32"),
    "int64": ("int64_t", "Int64"),
    "uint8": ("uint8_t", "UInt8"),
}
STORED = ("float16", "bfloat16")
"""What CUDA code loads and stores under these names, and computes in single precision."""
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


def is_known(dtype: np.dtype[Any]) -> bool:
    """Whether generated C works on this dtype."""
    return dtype.name in NAMES


def c_type(dtype: np.dtype[Any]) -> str:
    """The C type of an element."""
    return dtype.name if dtype.name in STORED else NAMES[dtype.name][0]


def npy_type(dtype: np.dtype[Any]) -> str:
    """The type number in NumPy's C interface."""
    return f"NPY_{NAMES[dtype.name][1].upper()}"


def scalar_type(dtype: np.dtype[Any]) -> str:
    """The scalar's name in NumPy's C interface."""
    return NAMES[dtype.name][1]


def real_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of a complex number's parts."""
    return np.dtype({"complex64": "float32", "complex128": "float64"}.get(dtype.name, dtype.name))


def suffix(dtype: np.dtype[Any]) -> str:
    """What C appends to the names of functions in single precision."""
    return "f" if real_type(dtype) == np.float32 else ""


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
