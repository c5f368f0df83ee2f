"""Cumulative products along a named size: a loop, whose derivative has as many ops at each size."""

from __future__ import annotations

from typing import Any

import numpy as np

from yota.rules.language.statics import axes_of
from yota.tracing.implementations import IMPLEMENTATIONS, implements
from yota.tracing.loops import scan
from yota.tracing.trace import Trace

_at_known_sizes = IMPLEMENTATIONS[np.cumprod]


@implements(np.cumprod)
def _cumprod(trace: Trace, a: Any, axis: Any = None, dtype: Any = None) -> Any:
    if trace.sizes is None or trace.exact:
        return _at_known_sizes(trace, a, axis, dtype)
    a = trace.traced(a)
    a = a if dtype is None else a.astype(dtype)
    a, axis = (a.reshape(-1), 0) if axis is None or not a.ndim else (a, axes_of(axis, a.ndim)[0])
    rows = np.moveaxis(a, axis, 0)
    _, products = scan(lambda product, row: (product * row,) * 2, np.ones(rows.shape[1:], a.dtype)[()], rows)
    return np.moveaxis(products, 0, axis)
