"""Filters of scipy.ndimage that multiply Fourier transforms."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

from yota.tracing.implementations import records
from yota.tracing.trace import Trace
from yota.tracing.untyped import np


def _frequencies(shape: tuple[int, ...], n: int, axis: int) -> list[Any]:
    """Of each axis the frequencies, in cycles a pixel; along ``axis`` those of a real signal of ``n`` numbers."""
    found = []
    for number, extent in enumerate(shape):
        half = n >= 0 and number == axis % len(shape)
        values = np.arange(extent) / n if half else np.fft.fftfreq(extent)
        found.append(np.reshape(values, (-1,) + (1,) * (len(shape) - 1 - number)))
    return found


def _ellipsoid(terms: list[Any]) -> Any:
    radius = math.pi * np.sqrt(sum(term * term for term in terms))
    safe = np.where(radius == 0, 1.0, radius)
    if len(terms) == 1:
        found = np.sin(safe) / safe
    elif len(terms) == 2:
        found = 2 * sys.modules["scipy.special"].j1(safe) / safe
    else:
        found = 3 * (np.sin(safe) - safe * np.cos(safe)) / safe**3
    return np.where(radius == 0, 1.0, found)


def _multiplied(trace: Trace, x: Any, by: Any, n: int, axis: int, factor: Callable[[list[Any]], Any]) -> Any:
    """The transform times a factor, given the products of frequencies and of the parameters of the axes."""
    x = trace.traced(x)
    widths = [by] * x.ndim if np.ndim(by) == 0 else by
    return x * factor([w * each for w, each in zip(widths, _frequencies(x.shape, int(n), axis), strict=True)])


@records("scipy.ndimage", "fourier_gaussian")
def _gaussian(trace: Trace, input: Any, sigma: Any, n: int, axis: int) -> Any:
    return _multiplied(
        trace, input, sigma, n, axis, lambda terms: np.exp(-2 * math.pi**2 * sum(term * term for term in terms))
    )


@records("scipy.ndimage", "fourier_uniform")
def _uniform(trace: Trace, input: Any, size: Any, n: int, axis: int) -> Any:
    return _multiplied(trace, input, size, n, axis, lambda terms: math.prod(map(np.sinc, terms)))


@records("scipy.ndimage", "fourier_shift")
def _shift(trace: Trace, input: Any, shift: Any, n: int, axis: int) -> Any:
    return _multiplied(trace, input, shift, n, axis, lambda terms: np.exp(-2j * math.pi * sum(terms)))


@records("scipy.ndimage", "fourier_ellipsoid")
def _of_ellipsoid(trace: Trace, input: Any, size: Any, n: int, axis: int) -> Any:
    return _multiplied(trace, input, size, n, axis, _ellipsoid)
