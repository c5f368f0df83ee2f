"""How NumPy's dtypes and numbers are spelled in C."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

NAMES = {
    "float32": ("float", "NPY_FLOAT", "Float"),
    "float64": ("double", "NPY_DOUBLE", "Double"),
    "complex64": ("complex64", "NPY_CFLOAT", "CFloat"),
    "complex128": ("complex128", "NPY_CDOUBLE", "CDouble"),
    "bool": ("uint8_t", "NPY_BOOL", "Bool"),
    "int32": ("int32_t", "NPY_INT32", "Int32"),
    "int64": ("int64_t", "NPY_INT64", "Int64"),
    "uint8": ("uint8_t", "NPY_UINT8", "UInt8"),
}
STORED = ("float16", "bfloat16")
"""What CUDA code loads and stores under these names, and computes in single precision."""
REALS = ("float32", "float64")


def is_known(dtype: np.dtype[Any]) -> bool:
    """Whether generated C works on this dtype."""
    return dtype.name in NAMES


def c_type(dtype: np.dtype[Any]) -> str:
    """The C type of an element."""
    return dtype.name if dtype.name in STORED else NAMES[dtype.name][0]


def npy_type(dtype: np.dtype[Any]) -> str:
    """The type number in NumPy's C interface."""
    return NAMES[dtype.name][1]


def scalar_type(dtype: np.dtype[Any]) -> str:
    """The scalar's name in NumPy's C interface."""
    return NAMES[dtype.name][2]


def real_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of a complex number's parts."""
    return np.dtype({"complex64": "float32", "complex128": "float64"}.get(dtype.name, dtype.name))


def suffix(dtype: np.dtype[Any]) -> str:
    """What C appends to the names of functions in single precision."""
    return "f" if real_type(dtype) == np.float32 else ""


def literal(value: Any, dtype: np.dtype[Any]) -> str:
    """A C expression of exactly this number."""
    if dtype.kind == "b":
        return "1" if value else "0"
    if dtype.kind in "iu":
        number = int(value)
        if number == -(2**63):
            return "INT64_MIN"
        return f"{number}LL" if abs(number) >= 2**31 else str(number)
    if dtype.kind == "c":
        number_ = dtype.type(value)
        part = real_type(dtype)
        macro = "CMPLXF" if part == np.float32 else "CMPLX"
        return f"{macro}({literal(number_.real, part)}, {literal(number_.imag, part)})"
    single = dtype == np.float32
    number__ = float(dtype.type(value))
    if math.isnan(number__):
        return "(-NAN)" if math.copysign(1.0, number__) < 0 else "NAN"
    if math.isinf(number__):
        return "INFINITY" if number__ > 0 else "-INFINITY"
    text = str(dtype.type(value)) if single else repr(number__)
    if not any(mark in text for mark in ".e"):
        text += ".0"
    return text + ("f" if single else "")
