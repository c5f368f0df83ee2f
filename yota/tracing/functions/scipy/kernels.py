"""Filters of scipy.ndimage that are linear: kernels along axes, derivatives of Gaussians, edges."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

from yota.tracing.functions.scipy.windows import axes_of, is_sequence, no_more, weighted
from yota.tracing.implementations import records
from yota.tracing.trace import Trace
from yota.tracing.untyped import np


def _along(trace: Trace, x: Any, weights: Any, axis: int, mode: str, cval: Any, origin: int, *, flipped: bool) -> Any:
    """Sums of neighbours along one axis."""
    axis = range(x.ndim)[axis]
    shape = tuple(-1 if each == axis else 1 for each in range(x.ndim))
    origins = [origin if each == axis else 0 for each in range(x.ndim)]
    return weighted(trace, x, np.reshape(trace.traced(weights), shape), mode, cval, origins, flipped)


def _one_dimension(name: str, *, flipped: bool) -> Callable[..., Any]:
    def form(
        trace: Trace,
        input: Any,
        weights: Any,
        axis: int = -1,
        output: Any = None,
        mode: str = "reflect",
        cval: Any = 0.0,
        origin: int = 0,
    ) -> Any:
        no_more(trace, name, output, {})
        weights = np.asarray(weights)
        if weights.ndim != 1 or not weights.size:
            raise RuntimeError("no filter weights given")
        return _along(trace, trace.traced(input), weights, axis, mode, cval, origin, flipped=flipped)

    return form


def _uniform_along(
    trace: Trace,
    input: Any,
    size: int,
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: int = 0,
) -> Any:
    no_more(trace, "uniform_filter1d", output, {})
    weights = np.full(int(size), 1 / int(size))
    return _along(trace, trace.traced(input), weights, axis, mode, cval, origin, flipped=False)


def _uniform(
    trace: Trace,
    input: Any,
    size: Any = 3,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    no_more(trace, "uniform_filter", output, {})
    x = trace.traced(input)
    for axis, own, how, place in axes_of(x.ndim, axes, size, mode, origin):
        x = _uniform_along(trace, x, own, axis, None, how, cval, place) if own > 1 else x
    return x


def _gaussian_along(
    trace: Trace,
    input: Any,
    sigma: Any,
    axis: int = -1,
    order: int = 0,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    truncate: float = 4.0,
    *,
    radius: int | None = None,
) -> Any:
    no_more(trace, "gaussian_filter1d", output, {})
    reach = int(float(truncate) * sigma + 0.5) if radius is None else int(radius)
    kernel = _bell(sigma, int(order), reach)
    return _along(trace, trace.traced(input), kernel[::-1], axis, mode, cval, 0, flipped=False)


def _bell(sigma: Any, order: int, reach: int) -> Any:
    """A derivative of a Gaussian: the polynomial before it goes from q to q' - q x / sigma^2 with each order."""
    x = np.arange(-reach, reach + 1).astype(float)
    bell = np.exp(-0.5 * np.square(x / sigma))
    bell = bell / np.sum(bell)
    factors: list[Any] = [1.0]
    for _ in range(order):
        slope = [power * factor for power, factor in enumerate(factors)][1:]
        shifted = [0.0, *(-factor / (sigma * sigma) for factor in factors)]
        factors = [one + other for one, other in itertools.zip_longest(slope, shifted, fillvalue=0.0)]
    return bell if not order else bell * functools.reduce(lambda total, factor: total * x + factor, factors[::-1])


def _gaussian(
    trace: Trace,
    input: Any,
    sigma: Any,
    order: Any = 0,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    truncate: float = 4.0,
    *,
    radius: Any = None,
    axes: Any = None,
) -> Any:
    no_more(trace, "gaussian_filter", output, {})
    x = trace.traced(input)
    for axis, width, own, how, reach in axes_of(x.ndim, axes, sigma, order, mode, radius):
        if width > 1e-15:
            x = _gaussian_along(trace, x, width, axis, own, None, how, cval, truncate, radius=reach)
    return x


def _edges(name: str, across: Sequence[float]) -> Callable[..., Any]:
    """The form of a filter that takes differences along one axis and means along the others."""

    def form(
        trace: Trace, input: Any, axis: int = -1, output: Any = None, mode: Any = "reflect", cval: Any = 0.0
    ) -> Any:
        no_more(trace, name, output, {})
        x = trace.traced(input)
        axis = range(x.ndim)[axis]
        modes = list(mode) if is_sequence(mode) else [mode] * x.ndim
        x = _along(trace, x, [-1.0, 0.0, 1.0], axis, modes[axis], cval, 0, flipped=False)
        for each in range(x.ndim):
            x = x if each == axis else _along(trace, x, across, each, modes[each], cval, 0, flipped=False)
        return x

    return form


def _laplace(
    trace: Trace, input: Any, output: Any = None, mode: Any = "reflect", cval: Any = 0.0, *, axes: Any = None
) -> Any:
    no_more(trace, "laplace", output, {})
    x = trace.traced(input)
    parts = [
        _along(trace, x, [1.0, -2.0, 1.0], axis, how, cval, 0, flipped=False)
        for axis, how in axes_of(x.ndim, axes, mode)
    ]
    return functools.reduce(lambda one, other: one + other, parts)


def _of_gaussians(name: str, order: int, combine: Callable[[list[Any]], Any]) -> Callable[..., Any]:
    """The form of a filter that joins the derivatives of a smoothed array along all axes."""

    def form(
        trace: Trace,
        input: Any,
        sigma: Any,
        output: Any = None,
        mode: Any = "reflect",
        cval: Any = 0.0,
        *,
        axes: Any = None,
        **rest: Any,
    ) -> Any:
        no_more(trace, name, output, {"axes": axes})
        x = trace.traced(input)
        orders = [[order if each == axis else 0 for each in range(x.ndim)] for axis in range(x.ndim)]
        return combine([_gaussian(trace, x, sigma, each, None, mode, cval, **rest) for each in orders])

    return form


_FORMS: dict[str, Callable[..., Any]] = {
    "correlate1d": _one_dimension("correlate1d", flipped=False),
    "convolve1d": _one_dimension("convolve1d", flipped=True),
    "uniform_filter1d": _uniform_along,
    "uniform_filter": _uniform,
    "gaussian_filter1d": _gaussian_along,
    "gaussian_filter": _gaussian,
    "sobel": _edges("sobel", (1.0, 2.0, 1.0)),
    "prewitt": _edges("prewitt", (1.0, 1.0, 1.0)),
    "laplace": _laplace,
    "gaussian_laplace": _of_gaussians("gaussian_laplace", 2, sum),
    "gaussian_gradient_magnitude": _of_gaussians(
        "gaussian_gradient_magnitude", 1, lambda parts: np.sqrt(sum(part * part for part in parts))
    ),
}

for _name, _form in _FORMS.items():
    records("scipy.ndimage", _name)(_form)
