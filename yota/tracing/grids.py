"""NumPy's functions that make arrays from sizes alone: windows, frequencies, the indices of triangles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from yota.tracing.creation import fresh, plain_sizes
from yota.tracing.methods import transformed
from yota.tracing.trace import Trace

__all__ = ["GRIDS"]


def _grid(original: Callable[..., Any]) -> Callable[..., Any]:
    def create(trace: Trace, *args: Any, **keywords: Any) -> Any:
        args, keywords = plain_sizes((args, keywords))
        found = original(*args, **keywords)
        if not trace.keeps:
            return found
        return transformed(found, lambda each: fresh(trace, each))

    return create


GRIDS: tuple[tuple[Any, str, Callable[..., Any]], ...] = tuple(
    (owner, name, _grid(getattr(owner, name)))
    for owner, names in (
        (np, ("hanning", "hamming", "blackman", "bartlett", "triu_indices", "tril_indices")),
        (np.fft, ("fftfreq", "rfftfreq")),
    )
    for name in names
)
"""``(module, name, recorded form)`` of such functions; what they give is plain unless a trace keeps it."""
