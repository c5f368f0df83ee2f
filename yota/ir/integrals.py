"""Carlson's elliptic integrals and Hurwitz's zeta function with all their derivatives, without cancellation.

Each function needs nothing but `np`.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def carlson(x: Any, z: Any, w: Any, p: Any, i: Any, j: Any, k: Any, n: Any) -> Any:
    """The integral over t > 0 of (t+x)**-(i+1/2) * (t+z)**-(j+1/2) * (t+w)**-(k+1/2) * (t+p)**-n.

    By the trapezoidal rule over log(t), which converges like exp(-2 * pi * d / h) where the integrand is analytic in a
    strip of half the width d: Trefethen and Weideman, The Exponentially Convergent Trapezoidal Rule, SIAM Review 56
    (2014). Complex t run along the mean phase of the arguments.
    """
    is_complex = any(np.iscomplexobj(each) for each in (x, z, w, p))
    shape = np.broadcast_shapes(*map(np.shape, (x, z, w, p, i, j, k, n)))
    places = [np.broadcast_to(np.asarray(each, complex), shape).ravel() for each in (x, z, w, p)]
    powers = [np.broadcast_to(np.asarray(each, float), shape).ravel() for each in (i, j, k, n)]
    place = np.stack(places)
    power = np.stack([*(each + 0.5 for each in powers[:3]), powers[3]])
    total = np.full(place.shape[1], complex(np.nan, np.nan))
    with np.errstate(all="ignore"):
        size, phase = np.abs(place), np.angle(place)
        counts = (power != 0) & (size != 0)
        inner = 1 - np.sum(np.where(size == 0, power, 0), axis=0)
        outer = np.sum(power, axis=0) - 1
        least = np.min(np.where(counts, size, np.inf), axis=0)
        most = np.max(np.where(counts, size, 0), axis=0)
        low = np.min(np.where(counts, phase, np.inf), axis=0)
        high = np.max(np.where(counts, phase, -np.inf), axis=0)
        total[inner <= 0] = np.inf
        spread = np.maximum(np.pi - 0.5 * (high - low), 0)
        allowed = (inner > 0) & np.isfinite(most) & (most > 0) & (high < np.pi) & (low > -np.pi) & (spread > 0.1)
        index = np.flatnonzero(allowed)
        index = index[np.argsort(np.log(most[index] / least[index]) / spread[index])]
        for first in range(0, len(index), 64):
            part = index[first : first + 64]
            start = np.log(least[part] / most[part]) - 42 / inner[part]
            end = 42 / outer[part]
            count = int(np.max((end - start) / (0.13 * spread[part]))) + 1
            step = (end - start) / count
            turn = 0.5 * (low[part] + high[part])
            path = start + step * np.arange(count + 1.0)[:, None] + 1j * turn
            height, t = path, np.exp(path)
            for each, weight in zip(place[:, part] / most[part], power[:, part], strict=True):
                height = height - np.where(weight == 0, 0, weight * np.log(t + each))
            total[part] = step * np.sum(np.exp(height), axis=0) * most[part] ** -outer[part]
    total = total.reshape(shape)[()]
    return total if is_complex else total.real


def hurwitz(s: Any, z: Any) -> Any:
    """The sum over k >= 0 of (z + k)**-s for whole s > 1: Euler's and Maclaurin's formula beyond 20.

    NIST Handbook of Mathematical Functions, 25.11.28.
    """
    is_complex = np.iscomplexobj(z)
    shape = np.broadcast_shapes(np.shape(s), np.shape(z))
    s = np.broadcast_to(np.asarray(s, float), shape).ravel()
    z = np.broadcast_to(np.asarray(z, complex), shape).ravel()
    with np.errstate(all="ignore"):
        total = np.zeros(z.shape, complex)
        left = np.maximum(np.ceil(20 - z.real), 0)
        count = int(np.max(np.where(left < 1e5, left, 0), initial=0))
        for number in range(count):
            total += np.where(number < left, (z + number) ** -s, 0)
        far = z + left
        total += far ** (1 - s) / (s - 1) + 0.5 * far**-s
        term = 0.5 * s * far ** (-s - 1)
        for order, bernoulli in enumerate((1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)):
            total += bernoulli * term
            twice = 2 * order + 2
            term = term * (s + twice - 1) * (s + twice) / ((twice + 1) * (twice + 2) * far**2)
        total = np.where(left < 1e5, total, complex(np.nan, np.nan)).reshape(shape)[()]
    return total if is_complex else total.real
