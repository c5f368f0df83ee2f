"""Writing the real or the imaginary part of a complex array."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from yota.tracing.untyped import np

if TYPE_CHECKING:
    from yota.tracing.tracer import Tracer


def with_part(base: Tracer, name: str, written: Any) -> Any:
    """``base`` after ``written`` took the place of the part that ``name`` says."""
    real, imaginary = (written, np.imag(base)) if name == "real" else (np.real(base), written)
    return real + turned(imaginary, base.dtype)


def turned(part: Any, dtype: Any) -> Any:
    """``part`` as the imaginary part of numbers without a real one: ``1j * inf`` would have NaN for that."""
    result = 1j * np.where(np.isfinite(part), part, 0)
    for special in (math.inf, -math.inf):
        result = np.where(np.equal(part, special), np.asarray(complex(0, special), dtype), result)
    return np.where(np.isnan(part), np.asarray(complex(0, math.nan), dtype), result)
