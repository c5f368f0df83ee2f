"""What filters of scipy.ndimage have in common: axes, arrays continued beyond their ends, sums of neighbours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from yota.tracing.trace import Trace
from yota.tracing.untyped import np

__all__ = ["axes_of", "is_sequence", "padded", "weighted"]

_PADDING: dict[str, Any] = {
    "reflect": "symmetric",
    "grid-mirror": "symmetric",
    "mirror": "reflect",
    "nearest": "edge",
    "wrap": "wrap",
    "grid-wrap": "wrap",
    "constant": "edge",
    "grid-constant": "edge",
}
"""NumPy's names for SciPy's modes; the outside of a constant mode is written over."""


def padded(trace: Trace, x: Any, before: Sequence[int], after: Sequence[int], mode: str, cval: Any) -> Any:
    """``x`` continued beyond its ends."""
    if mode not in _PADDING:
        raise RuntimeError("boundary mode not supported")
    for axis, (low, high) in enumerate(zip(before, after, strict=True)):
        extent = x.shape[axis]
        if not low and not high:
            continue
        places = np.pad(np.arange(extent), (low, high), _PADDING[mode])
        x = x[(slice(None),) * axis + (places,)]
        if "constant" in mode:
            where = np.arange(-low, extent + high)
            shape = (-1,) + (1,) * (x.ndim - axis - 1)
            x = np.where(((where >= 0) & (where < extent)).reshape(shape), x, cval)
    return x


def weighted(trace: Trace, x: Any, weights: Any, mode: str, cval: Any, origin: Any, flipped: bool) -> Any:
    """Sums of the neighbours of each element of ``x``, times ``weights``."""
    x, weights = trace.traced(x), trace.traced(weights)
    if x.ndim != weights.ndim or not isinstance(mode, str):
        raise trace.refuse("scipy.ndimage filters are recorded for one mode and weights with as many axes.", "")
    origins = [origin] * x.ndim if isinstance(origin, int) else list(origin)
    if flipped:
        weights = weights[(slice(None, None, -1),) * x.ndim]
        origins = [-each - (extent % 2 == 0) for each, extent in zip(origins, weights.shape, strict=True)]
    before = [extent // 2 + each for extent, each in zip(weights.shape, origins, strict=True)]
    after = [extent - 1 - each for extent, each in zip(weights.shape, before, strict=True)]
    known = trace.registry.primitive("signal_correlate")
    whole = padded(trace, x, before, after, mode, cval)
    found = trace.apply(known, (whole, np.conjugate(weights)), {"mode": "valid", "method": "direct"})
    # SciPy computes in double precision, and gives what it was given.
    same = x.dtype.kind == found.dtype.kind
    return found.astype(x.dtype, copy=False) if same else found


def axes_of(ndim: int, axes: Any, *choices: Any) -> Iterator[tuple[Any, ...]]:
    """The axes that a filter runs along, each with its own of every choice."""
    found = range(ndim) if axes is None else [range(ndim)[each] for each in (axes if np.ndim(axes) else [axes])]
    for place, axis in enumerate(found):
        yield axis, *(each[place] if is_sequence(each) else each for each in choices)


def is_sequence(choice: Any) -> bool:
    """Whether there is a choice for each axis."""
    return not isinstance(choice, str) and np.ndim(choice) > 0
