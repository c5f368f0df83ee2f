"""Filters of scipy.ndimage that are linear: kernels along axes, derivatives of Gaussians, edges."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

from yota.tracing.functions.scipy.windows import axes_of, is_sequence, weighted
from yota.tracing.implementations import records
from yota.tracing.trace import Trace
from yota.tracing.untyped import np


def _along(trace: Trace, x: Any, weights: Any, axis: int, mode: str, cval: Any, origin: int, *, flipped: bool) -> Any:
    """Sums of neighbours along one axis."""
    axis = range(x.ndim)[axis]
    shape = tuple(-1 if each == axis else 1 for each in range(x.ndim))
    origins = [origin if each == axis else 0 for each in range(x.ndim)]
    return weighted(trace, x, np.reshape(trace.traced(weights), shape), mode, cval, origins, flipped)


def _one_dimension(*, flipped: bool) -> Callable[..., Any]:
    def form(trace: Trace, input: Any, weights: Any, axis: int, mode: str, cval: Any, origin: int) -> Any:
        weights = np.asarray(weights)
        if weights.ndim != 1 or not weights.size:
            raise RuntimeError("no filter weights given")
        return _along(trace, trace.traced(input), weights, axis, mode, cval, origin, flipped=flipped)

    return form


records("scipy.ndimage", "correlate1d")(_one_dimension(flipped=False))
records("scipy.ndimage", "convolve1d")(_one_dimension(flipped=True))


@records("scipy.ndimage", "uniform_filter1d")
def _uniform_along(trace: Trace, input: Any, size: int, axis: int, mode: str, cval: Any, origin: int) -> Any:
    weights = np.full(int(size), 1 / int(size))
    return _along(trace, trace.traced(input), weights, axis, mode, cval, origin, flipped=False)


@records("scipy.ndimage", "uniform_filter")
def _uniform(trace: Trace, input: Any, size: Any, mode: Any, cval: Any, origin: Any, axes: Any = None) -> Any:
    x = trace.traced(input)
    for axis, own, how, place in axes_of(x.ndim, axes, size, mode, origin):
        x = _uniform_along(trace, x, own, axis, how, cval, place) if own > 1 else x
    return x


@records("scipy.ndimage", "gaussian_filter1d")
def _gaussian_along(
    trace: Trace, input: Any, sigma: Any, axis: int, order: int, mode: str, cval: Any, truncate: float, radius: Any
) -> Any:
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


@records("scipy.ndimage", "gaussian_filter")
def _gaussian(
    trace: Trace,
    input: Any,
    sigma: Any,
    order: Any,
    mode: Any,
    cval: Any,
    truncate: float = 4.0,
    radius: Any = None,
    axes: Any = None,
) -> Any:
    x = trace.traced(input)
    for axis, width, own, how, reach in axes_of(x.ndim, axes, sigma, order, mode, radius):
        if width > 1e-15:
            x = _gaussian_along(trace, x, width, axis, own, how, cval, truncate, reach)
    return x


def _edges(across: Sequence[float]) -> Callable[..., Any]:
    """The form of a filter that takes differences along one axis and means along the others."""

    def form(trace: Trace, input: Any, axis: int, mode: Any, cval: Any) -> Any:
        x = trace.traced(input)
        axis = range(x.ndim)[axis]
        modes = list(mode) if is_sequence(mode) else [mode] * x.ndim
        x = _along(trace, x, [-1.0, 0.0, 1.0], axis, modes[axis], cval, 0, flipped=False)
        for each in range(x.ndim):
            x = x if each == axis else _along(trace, x, across, each, modes[each], cval, 0, flipped=False)
        return x

    return form


records("scipy.ndimage", "sobel")(_edges((1.0, 2.0, 1.0)))
records("scipy.ndimage", "prewitt")(_edges((1.0, 1.0, 1.0)))


@records("scipy.ndimage", "laplace")
def _laplace(trace: Trace, input: Any, mode: Any, cval: Any, axes: Any = None) -> Any:
    x = trace.traced(input)
    parts = [
        _along(trace, x, [1.0, -2.0, 1.0], axis, how, cval, 0, flipped=False)
        for axis, how in axes_of(x.ndim, axes, mode)
    ]
    return functools.reduce(lambda one, other: one + other, parts)


def _of_gaussians(order: int, combine: Callable[[list[Any]], Any]) -> Callable[..., Any]:
    """The form of a filter that joins the derivatives of a smoothed array along all axes."""

    def form(
        trace: Trace, input: Any, sigma: Any, mode: Any, cval: Any, truncate: float = 4.0, radius: Any = None
    ) -> Any:
        x = trace.traced(input)
        orders = [[order if each == axis else 0 for each in range(x.ndim)] for axis in range(x.ndim)]
        return combine([_gaussian(trace, x, sigma, each, mode, cval, truncate, radius) for each in orders])

    return form


records("scipy.ndimage", "gaussian_laplace")(_of_gaussians(2, sum))
records("scipy.ndimage", "gaussian_gradient_magnitude")(
    _of_gaussians(1, lambda parts: np.sqrt(sum(part * part for part in parts)))
)
