"""CuPy's functions met by traced values: they record as the NumPy and SciPy functions of the same names."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from yota.tracing.methods import is_traced

__all__ = ["cupy_replacements"]

_TWINS = {
    "cupy": "numpy",
    "cupy.linalg": "numpy.linalg",
    "cupy.fft": "numpy.fft",
    "cupyx.scipy.special": "scipy.special",
    "cupyx.scipy.linalg": "scipy.linalg",
    "cupyx.scipy.fft": "scipy.fft",
    "cupyx.scipy.signal": "scipy.signal",
    "cupyx.scipy.ndimage": "scipy.ndimage",
}


def cupy_replacements() -> list[tuple[Any, str, Any]]:
    """``(module, name, recording function)`` for the modules of CuPy's that are loaded."""
    found: list[tuple[Any, str, Any]] = []
    for name, twin in _TWINS.items():
        module, model = sys.modules.get(name), sys.modules.get(twin)
        if module is not None and model is not None:
            found += [(module, each, wrapper) for each, wrapper in _wrappers(module, model).items()]
    return found


@functools.cache
def _wrappers(module: Any, model: Any) -> dict[str, Any]:
    return {
        name: _recording(value, model, name)
        for name, value in vars(module).items()
        if not name.startswith("_") and callable(value) and not isinstance(value, type) and hasattr(model, name)
    }


def _recording(original: Callable[..., Any], model: Any, name: str) -> Any:
    @functools.wraps(original, updated=())
    def call(*args: Any, **keywords: Any) -> Any:
        if any(map(is_traced, args)) or any(map(is_traced, keywords.values())):
            # Looked up now: while a trace runs, NumPy's names may stand for functions that record.
            return getattr(model, name)(*args, **keywords)
        return original(*args, **keywords)

    return call
