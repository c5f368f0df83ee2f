"""What the array API's helpers ask about arrays by their class, which a traced value only claims."""

from __future__ import annotations

from typing import Any

from yota.tracing.implementations import records
from yota.tracing.methods import is_tracer
from yota.tracing.trace import Trace
from yota.tracing.untyped import np


def _is_writeable(trace: Trace, x: Any) -> bool:
    """Whether elements can be assigned to."""
    value = x._value() if is_tracer(x) else x
    return isinstance(value, np.ndarray) and bool(x.flags.writeable)


for _package in ("scipy._lib", "sklearn.externals"):
    records(f"{_package}.array_api_compat.common._helpers", "is_writeable_array")(_is_writeable)
