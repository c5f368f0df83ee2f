"""Derivatives of Bessel functions by their order, by quadrature without cancellation.

Each function needs nothing but `np`.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def bessel_order(v: Any, x: Any, n: Any, is_modified: Any) -> Any:
    """The n-th derivative by ``v`` of J, or of I times exp(-x), for real ``x > 0``.

    Schlaefli's integrals, with the straight part of the path moved to the saddle point, where no term cancels: NIST
    Handbook of Mathematical Functions, 10.9.6 and 10.32.4.
    """
    if any(np.iscomplexobj(each) for each in (v, x)):
        raise TypeError("the derivative of a Bessel function by its order is for real arguments")
    shape = np.broadcast_shapes(*map(np.shape, (v, x, n, is_modified)))
    v, x, n, modified = (
        np.broadcast_to(np.asarray(each, float), shape).reshape(-1, 1) for each in (v, x, n, is_modified)
    )
    total = np.full(v.shape[0], np.nan)
    points, weights = np.polynomial.legendre.leggauss(20)

    def panels(low: Any, high: Any, count: Any) -> Any:
        count = int(count)
        places = (np.arange(count)[:, None] + 0.5 * (points + 1)).ravel() / count
        return low + (high - low) * places, (high - low) * np.tile(0.5 * weights / count, count)

    with np.errstate(all="ignore"):
        index = np.flatnonzero((x > 0) & np.isfinite(x) & np.isfinite(v))
        # Places of like size share their points.
        index = index[np.argsort((np.abs(v) + np.where(modified, 0, x))[index, 0])]
        for first in range(0, len(index), 64):
            part = index[first : first + 64]
            v_, x_, n_, plain = v[part], x[part], n[part], modified[part] == 0
            start = np.where(plain, np.arccosh(np.maximum(v_ / x_, 1)), np.arcsinh(np.maximum(v_, 0) / x_))
            steep = x_ * np.where(plain, np.sinh(start), np.cosh(start))
            end = 2 * np.arcsin(np.minimum(1, np.sqrt(20 / np.maximum(steep, 1e-300))))
            place, weight = panels(0, end, 4 + np.max((np.abs(v_) + np.where(plain, x_, 0)) * end) / 5)
            height = np.where(plain, 0, -x_) + steep - v_ * start
            turn = x_ * np.where(plain, np.cosh(start), np.sinh(start)) * np.sin(place) - v_ * place
            wave = np.exp(height - 2 * steep * np.square(np.sin(0.5 * place)) + 1j * turn)
            circle = np.sum(weight * np.real((-start - 1j * place) ** n_ * wave), axis=1)
            end = start
            for _ in range(12):
                reach = (45 + np.maximum(-v_, 0) * end) / x_
                end = np.where(plain, np.arcsinh(np.sinh(start) + reach), np.arccosh(np.cosh(start) + reach))
            place, weight = panels(start, end, 8 + np.max((2 + np.abs(v_) / 10) * (end - start)))
            decay = np.where(plain, -x_ * np.sinh(place), -x_ * (np.cosh(place) + 1)) - v_ * place
            ahead = np.imag((1j * np.pi - place) ** n_ * np.exp(1j * np.pi * v_))
            total[part] = (circle - np.sum(weight * ahead * np.exp(decay), axis=1)) / np.pi
    return total.reshape(shape)[()]


def hankel_order(v: Any, x: Any, n: Any, side: Any) -> Any:
    """The n-th derivative by ``v`` of H1 times exp(-i x) (side 1), H2 times exp(i x) (-1) or K times exp(x) (0).

    The integral of 10.32.9 of the NIST Handbook of Mathematical Functions, on a path along which it decays at any phase
    of ``x``; Hankel's functions by 10.27.8.
    """
    shape = np.broadcast_shapes(*map(np.shape, (v, x, n, side)))
    v, n, side = (np.broadcast_to(np.asarray(each, float), shape).reshape(-1, 1) for each in (v, n, side))
    x = np.broadcast_to(np.asarray(x, complex), shape).reshape(-1, 1)
    total = np.full(v.shape[0], complex(np.nan, np.nan))
    points, weights = np.polynomial.legendre.leggauss(20)
    with np.errstate(all="ignore"):
        size, phase = np.abs(x), np.angle(x) - 0.5 * np.pi * side
        # Farther beyond the branch cut of K the integrand is much larger than the integral.
        allowed = np.isfinite(size * v) & (size > 0) & (size * np.maximum(np.abs(phase) - np.pi, 0) < 30)
        index = np.flatnonzero(allowed)
        index = index[np.argsort(np.abs(v[index, 0]))]
        for first in range(0, len(index), 64):
            part = index[first : first + 64]
            v_, n_, side_, size_, phase_ = v[part], n[part], side[part], size[part], phase[part]
            end = 0 * size_
            for _ in range(12):
                end = 2 * np.arcsinh(np.sqrt(0.5 * (45 + np.abs(v_) * end) / size_))
            count = int(16 + np.max((2 + np.abs(v_) / 5) * end))
            share = (np.arange(count)[:, None] + 0.5 * (points + 1)).ravel() / count
            weight = end * np.tile(0.5 * weights / count, count)
            place = end * share
            path = place - 1j * phase_ * np.tanh(place)
            slope = 1 - 1j * phase_ / np.square(np.cosh(place))
            decay = -2 * size_ * np.exp(1j * phase_) * np.square(np.sinh(0.5 * path))
            turned = 0.5j * np.pi * side_
            both = (path - turned) ** n_ * np.exp(decay + v_ * (path - turned))
            both += (-path - turned) ** n_ * np.exp(decay - v_ * (path + turned))
            # Without a turn the two differ by little where the order is nearly 0.
            grown = np.where(
                n_ % 2 == 1, -np.sign(v_) * np.expm1(-2 * np.abs(v_) * path), 1 + np.exp(-2 * np.abs(v_) * path)
            )
            both = np.where(side_ == 0, path**n_ * np.exp(decay + np.abs(v_) * path) * grown, both)
            factor = np.where(side_ == 0, 0.5, side_ / (1j * np.pi))
            total[part] = np.sum(factor * weight * slope * both, axis=1)
    return total.reshape(shape)[()]
