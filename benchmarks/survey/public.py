"""The public functions of the packages that are surveyed, and their names."""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
import types
from typing import Any

import numpy as np

__all__ = ["MODULES", "name_of", "public", "resolved", "title_of"]

_SCIPY = """cluster.hierarchy cluster.vq differentiate fft fftpack integrate interpolate linalg ndimage
optimize optimize.elementwise signal signal.windows sparse sparse.csgraph sparse.linalg spatial spatial.distance
spatial.transform special stats stats.contingency stats.mstats stats.qmc stats.sampling"""
_SKLEARN = """metrics metrics.cluster metrics.pairwise gaussian_process gaussian_process.kernels linear_model mixture
neural_network linear_model._linear_loss _loss"""
_NUMPY = """linalg fft lib.scimath lib.stride_tricks ma polynomial polynomial.chebyshev polynomial.hermite
polynomial.hermite_e polynomial.laguerre polynomial.legendre polynomial.polynomial"""

MODULES = (
    "numpy",
    *(f"numpy.{each}" for each in _NUMPY.split()),
    *(f"scipy.{each}" for each in _SCIPY.split()),
    *(f"sklearn.{each}" for each in _SKLEARN.split()),
)
"""The modules whose public functions are surveyed."""


def public(module: str) -> dict[str, Any]:
    """The functions, classes and callable objects of a module by their whole names."""
    space = importlib.import_module(module)
    names = getattr(space, "__all__", None) or [name for name in dir(space) if _is_own(space, name)]
    found = {}
    for name in sorted(set(names)):
        value = getattr(space, name, None)
        if callable(value) and not _apart(value):
            found[f"{module}.{name}"] = value
    return found


def _is_own(space: Any, name: str) -> bool:
    return not name.startswith("_") and getattr(getattr(space, name), "__module__", None) == space.__name__


def _apart(value: Any) -> bool:
    """Whether something callable computes nothing: errors, dtypes, classes of text."""
    return isinstance(value, type) and issubclass(value, (BaseException, np.generic, np.dtype, np.ndarray))


def _table() -> dict[int, str]:
    """Names by identity, of the modules that are loaded; the first that has a function names it."""
    return _table_of(tuple(module for module in MODULES if module in sys.modules))


@functools.cache
def _table_of(modules: tuple[str, ...]) -> dict[int, str]:
    found: dict[int, str] = {}
    for module in modules:
        for name, value in public(module).items():
            found.setdefault(id(value), name)
    return found


def title_of(value: Any) -> str | None:
    """The public name of a function, a class or a distribution."""
    return _table().get(id(value))


def name_of(function: Any) -> str | None:
    """The public name of what is called, methods included; None for what is not public."""
    found = _table().get(id(function))
    if found is not None:
        return found
    owner = getattr(function, "__self__", None)
    method = getattr(function, "__name__", "")
    if owner is None:
        if isinstance(function, (types.FunctionType, types.BuiltinFunctionType, type)):
            return None
        owner, method = function, "__call__"
    if isinstance(owner, types.ModuleType) or (method.startswith("_") and method != "__call__"):
        return None
    base = _owner(owner)
    return base and f"{base}.{method}"


def _owner(owner: Any) -> str | None:
    """The public name of the object or class that a method belongs to."""
    table = _table()
    if id(owner) in table:
        return table[id(owner)]
    if hasattr(owner, "dist") and hasattr(owner.dist, "name"):
        return f"scipy.stats.{owner.dist.name}"
    kind = owner if isinstance(owner, type) else type(owner)
    if kind.__module__.startswith("scipy.stats") and kind.__name__.endswith("_frozen"):
        return f"scipy.stats.{kind.__name__.removesuffix('_frozen')}"
    for base in kind.__mro__:
        if id(base) in table:
            return table[id(base)]
    return None


def resolved(name: str) -> Any:
    """The object that a whole name stands for."""
    module = name
    while module:
        try:
            value: Any = importlib.import_module(module)
            break
        except ImportError:
            module = module.rpartition(".")[0]
    for part in name[len(module) + 1 :].split("."):
        value = getattr(value, part)
    return value


def documents(name: str) -> list[tuple[str, str]]:
    """The documentation of a function, or of a class and its methods: pairs of a title and a text."""
    value = resolved(name)
    found = [(name, inspect.getdoc(value) or "")]
    if isinstance(value, type):
        for method, inner in sorted(vars(value).items()):
            text = inspect.getdoc(getattr(value, method, None)) if not method.startswith("_") else None
            if text and callable(getattr(inner, "__func__", inner)):
                found.append((f"{name}.{method}", text))
    elif not isinstance(value, (types.FunctionType, types.BuiltinFunctionType, np.ufunc)):
        for method in sorted(dir(value)):
            text = inspect.getdoc(getattr(value, method, None)) if not method.startswith("_") else None
            if text and ">>>" in text and method in vars(type(value)):
                found.append((f"{name}.{method}", text))
    return found
