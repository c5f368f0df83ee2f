"""Reductions of Bottleneck, which pandas, xarray and others call in the place of NumPy's of the same names."""

from __future__ import annotations

from typing import Any

from yota.tracing.forms import Trace, np, records


@records("bottleneck", *"nansum nanmean nanmin nanmax median nanmedian nanargmin nanargmax".split(), named=True)
def _reduction(name: str, trace: Trace, a: Any, axis: Any = None) -> Any:
    return getattr(np, name)(trace.traced(a), axis=axis)


@records("bottleneck", "nanvar", "nanstd", named=True)
def _spread(name: str, trace: Trace, a: Any, axis: Any = None, ddof: int = 0) -> Any:
    return getattr(np, name)(trace.traced(a), axis=axis, ddof=ddof)


@records("bottleneck", "ss")
def _sum_of_squares(trace: Trace, a: Any, axis: Any = None) -> Any:
    return np.sum(trace.traced(a) ** 2, axis=axis)


@records("bottleneck", "anynan", "allnan", named=True)
def _missing(name: str, trace: Trace, a: Any, axis: Any = None) -> Any:
    return getattr(np, name.removesuffix("nan"))(np.isnan(trace.traced(a)), axis=axis)
