"""Derivatives of incomplete gamma and beta functions by their shape parameters, by quadrature without cancellation.

Each function needs nothing but `np`.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def gamma_order(a: Any, x: Any, p: Any) -> Any:
    """Minus the derivative of ``gammainc(a, x)`` by ``a``, over ``x**a * exp(-x) / gamma(a)``; ``p`` is ``psi(a)``.

    The derivative is the integral of the density times ``log(t) - psi(a)`` from 0 to x, and minus that from x on. The
    factor has one sign on the side of ``exp(psi(a))`` where x is, so nothing cancels there. The double exponential
    formula for integrands that decay like an exponential: Takahasi and Mori, Double Exponential Formulas for Numerical
    Integration, Publications of RIMS 9 (1974).
    """
    shape = np.broadcast_shapes(np.shape(a), np.shape(x), np.shape(p))
    a, x, p = (np.broadcast_to(np.asarray(each, float), shape).reshape(-1, 1) for each in (a, x, p))
    total = np.empty(a.shape[0])
    with np.errstate(all="ignore"):
        several = ((np.log(x) >= p) & (x < 0.03))[:, 0]
        # Above a small x, the integrand changes at x and again at 1, which needs twice the points.
        for step, low, high, chosen in ((0.0625, -3.75, 5.0, ~several), (0.03125, -4.5, 7.0, several)):
            tau = np.arange(low, high, step)
            place = np.exp(tau - np.exp(-tau))
            weight = step * place * (1 + np.exp(-tau))
            index = np.flatnonzero(chosen)
            for start in range(0, len(index), 4096):
                part = index[start : start + 4096]
                a_, x_, p_ = (each[part] for each in (a, x, p))
                below = np.log(x_) < p_
                rate = np.where(below, np.maximum(a_ - x_, 0) + np.sqrt(x_), 1 / np.sqrt(np.maximum(a_, 1)))
                u = place / rate
                ahead = np.where(below, 0, u)
                back = np.where(below, u, 0)
                inner = np.exp(-a_ * back - x_ * np.expm1(-back)) * (p_ - np.log(x_) + back)
                ratio = ahead / x_
                outer = np.exp((a_ - 1) * np.log1p(ratio) - ahead) / x_ * (np.log(x_) + np.log1p(ratio) - p_)
                total[part] = np.sum(np.where(below, inner, outer) * weight / rate, axis=1)
    return total.reshape(shape)[()]


def beta_order(a: Any, b: Any, x: Any, y: Any, p: Any) -> Any:
    """Minus the derivative of ``betainc(a, b, x)`` by ``a``, over ``x**a * y**b / beta(a, b)``, where ``y = 1 - x``.

    ``p`` is ``psi(a) - psi(a + b)``. The integrals are those of `gamma_order` with another density, and the logarithm
    of t runs from minus infinity to 0.
    """
    shape = np.broadcast_shapes(*map(np.shape, (a, b, x, y, p)))
    a, b, x, y, p = (np.broadcast_to(np.asarray(each, float), shape).reshape(-1, 1) for each in (a, b, x, y, p))
    total = np.empty(a.shape[0])
    with np.errstate(all="ignore"):
        logarithms = np.where(x < 0.5, np.log(x), np.log1p(-y))
        several = (np.where(logarithms < p, y, x) < 0.03)[:, 0]
        for step, low, high, chosen in ((0.0625, -3.75, 5.0, ~several), (0.03125, -4.5, 7.0, several)):
            tau = np.arange(low, high, step)
            place = np.exp(tau - np.exp(-tau))
            weight = step * place * (1 + np.exp(-tau))
            index = np.flatnonzero(chosen)
            for start in range(0, len(index), 4096):
                part = index[start : start + 4096]
                a_, b_, x_, y_, p_, logarithm = (each[part] for each in (a, b, x, y, p, logarithms))
                below = logarithm < p_
                near, far = np.where(below, x_, y_), np.where(below, y_, x_)
                first, second = np.where(below, a_, b_), np.where(below, b_, a_)
                slope = np.maximum(first - (second - 1) * near / far, 0)
                rate = np.where(second > 1, slope + np.sqrt(np.maximum(second - 1, 0) * near) / far, first)
                rate = np.minimum(rate, 3 * first)
                u = place / rate
                ratio = -np.expm1(-u) * near / far
                other = near * np.exp(-u)
                outer = np.where(other < 0.5, np.log1p(-other), np.log(far) + np.log1p(ratio))
                log = np.where(below, p_ - logarithm + u, outer - p_)
                value = np.exp(-first * u + (second - 1) * np.log1p(ratio)) * log / far
                total[part] = np.sum(value * weight / rate, axis=1)
    return total.reshape(shape)[()]
