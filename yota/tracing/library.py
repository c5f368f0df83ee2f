"""What libraries' functions are recorded as, gathered; and the places of those that do not dispatch."""

from __future__ import annotations

import functools
import sys
from typing import Any

from yota.tracing.functions import (  # noqa: F401  (they register what they implement or record)
    algebra,
    decompositions,
    folds,
    fourier,
    insertion,
    mathematics,
    norms,
    omission,
    padding,
    places,
    reductions,
    selection,
    shapes,
    signals,
    statistics,
    ufuncs,
    uniqueness,
)
from yota.tracing.functions.scipy import (  # noqa: F401  (they too)
    distributions,
    elimination,
    equations,
    factors,
    filters,
    kernels,
    matrices,
    matrix_functions,
    neighbours,
    recursive,
    smoothing,
    special,
    transforms,
)
from yota.tracing.implementations import FORMS
from yota.tracing.intercept import on_traced

__all__ = ["replacements"]

_OF_ITERABLES = ("fsum", "prod", "sumprod", "dist")


def replacements() -> list[tuple[Any, str, Any]]:
    """``(owner, name, recording function)`` for those of the functions whose modules are loaded."""
    return distributions.replacements() + [
        (sys.modules[module], name, _recording(module, name))
        for module, name in FORMS
        if module in sys.modules and hasattr(sys.modules[module], name)
    ]


@functools.cache
def _recording(module: str, name: str) -> Any:
    original = getattr(sys.modules[module], name)
    collects = module == "statistics" or (module == "math" and name in _OF_ITERABLES)
    call = on_traced(original, FORMS[module, name], f"{module}.{name}", collects=collects)
    call.recorded_from = original
    return call
