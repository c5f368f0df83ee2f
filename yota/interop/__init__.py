"""Interoperation with JAX, PyTorch and sympy; each library is imported on first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from yota.interop import jax, torch

__all__ = ["jax", "torch"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'yota.interop' has no attribute {name!r}")
    try:
        return import_module(f"yota.interop.{name}")
    except ModuleNotFoundError as fault:
        if fault.name != name:
            raise
        raise ModuleNotFoundError(
            f"yota.interop.{name} needs {name}: pip install 'yota-ad[{name}]'", name=name
        ) from None
