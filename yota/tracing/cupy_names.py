"""CuPy's functions and arrays met by a trace: they record as the NumPy and SciPy functions of the same names."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from yota.structures import is_on_device
from yota.tracing.creation import CREATION
from yota.tracing.current import current
from yota.tracing.methods import is_traced, transformed
from yota.tracing.source_lines import is_library

if TYPE_CHECKING:
    from yota.tracing.trace import Trace

_TWINS = {
    "cupy": "numpy",
    "cupy.linalg": "numpy.linalg",
    "cupy.fft": "numpy.fft",
    **{f"cupyx.scipy.{name}": f"scipy.{name}" for name in "special linalg fft signal ndimage".split()},
}
_MAKERS = frozenset("zeros ones full empty eye identity linspace zeros_like ones_like full_like empty_like".split())
"""What they give may have traced values written to it."""


def cupy_replacements() -> list[tuple[Any, str, Any]]:
    """``(module, name, recording function)`` for the modules of CuPy's that are loaded."""
    found: list[tuple[Any, str, Any]] = []
    for name, twin in _TWINS.items():
        module, model = sys.modules.get(name), sys.modules.get(twin)
        if module is not None and model is not None:
            found += [(module, each, form) for each, form in _forms(module, model).items()]
    return found


@functools.cache
def _forms(module: Any, model: Any) -> dict[str, Any]:
    return {
        name: _Recording(value, model, name)
        for name, value in vars(module).items()
        if not name.startswith("_") and callable(value) and not isinstance(value, type) and hasattr(model, name)
    }


class _Recording:
    """A function of CuPy's, or a method of a ufunc, that records as the function ``name`` of ``model`` does."""

    def __init__(self, original: Callable[..., Any], model: Any, name: str) -> None:
        functools.update_wrapper(self, original, updated=())
        self._original, self._model, self._name = original, model, name

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        trace = current()
        if trace is None:
            return self._original(*args, **keywords)
        # Looked up now: while a trace runs, NumPy's names may stand for functions that record.
        twin = getattr(self._model, self._name)
        traced = is_traced([*args, *keywords.values()])
        made = not traced and self._name in _MAKERS and not is_library(sys._getframe(1))
        if not (traced or made):
            return self._original(*args, **keywords)
        args, keywords = lifted(trace, (args, keywords))
        return CREATION[self._name](trace, *args, **keywords) if made else twin(*args, **keywords)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._original, name)
        twin = getattr(self._model, self._name)
        return _Recording(found, twin, name) if callable(found) and hasattr(twin, name) else found


def lifted(trace: Trace, value: Any) -> Any:
    """``value`` with traced values in the place of arrays on the GPU, which would take over from NumPy's functions."""
    return transformed(value, lambda each: trace.traced(each) if is_on_device(each) else each)
