"""How NumPy's dtypes and numbers are spelled in C."""

from __future__ import annotations

from typing import Any

import numpy as np

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
REALS = ("float32", "float64")


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
