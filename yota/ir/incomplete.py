"""Derivatives of incomplete gamma and beta functions by their shape parameters, by quadrature without cancellation.

Each function needs nothing but `np` and the others.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def exponential_nodes(several: Any) -> Any:
    """Numbers of elements, at most 4,096 at a time, with nodes and weights of the double exponential formula.

    For integrands that decay like an exponential: Takahasi and Mori, Double Exponential Formulas for Numerical
    Integration, Publications of RIMS 9 (1974). Elements that are ``several`` get twice the points: their integrands
    change at a small x and again at 1.
    """
    for step, low, high, chosen in ((0.0625, -3.75, 5.0, ~several), (0.03125, -4.5, 7.0, several)):
        tau = np.arange(low, high, step)
        place = np.exp(tau - np.exp(-tau))
        weight = step * place * (1 + np.exp(-tau))
        index = np.flatnonzero(chosen)
        for start in range(0, len(index), 4096):
            yield index[start : start + 4096], place, weight


def gamma_order(a: Any, x: Any, p: Any) -> Any:
    """Minus the derivative of ``gammainc(a, x)`` by ``a``, over ``x**a * exp(-x) / gamma(a)``; ``p`` is ``psi(a)``.

    The derivative is the integral of the density times ``log(t) - psi(a)`` from 0 to x, and minus that from x on. The
    factor has one sign on the side of ``exp(psi(a))`` where x is, so nothing cancels there.
    """
    return gamma_integral(lambda log, p: log - p, a, x, p)


def gamma_curvature(a: Any, x: Any, p: Any, q: Any) -> Any:
    """As `gamma_order` for the second derivative by ``a``; ``q`` is ``zeta(2, a)``."""
    return gamma_integral(lambda log, p, q: (log - p) ** 2 - q, a, x, p, q)


def gamma_integral(factor: Any, a: Any, x: Any, p: Any, *more: Any) -> Any:
    """The integral of the density times ``factor`` from x on, or minus that from 0 to x where x is below ``exp(p)``.

    It is divided as `gamma_order` says. ``factor`` is called with ``log(t)``, ``p`` and ``more``.
    """
    shape = np.broadcast_shapes(*map(np.shape, (a, x, p, *more)))
    given = (a, x, p, *more)
    a, x, p, *others = (np.broadcast_to(np.asarray(each, float), shape).reshape(-1, 1) for each in given)
    total = np.empty(a.shape[0])
    with np.errstate(all="ignore"):
        several = ((np.log(x) >= p) & (x < 0.03))[:, 0]
        for part, place, weight in exponential_nodes(several):
            a_, x_, p_, *others_ = (each[part] for each in (a, x, p, *others))
            below = np.log(x_) < p_
            rate = np.where(below, np.maximum(a_ - x_, 0) + np.sqrt(x_), 1 / np.sqrt(np.maximum(a_, 1)))
            u = place / rate
            ahead = np.where(below, 0, u)
            back = np.where(below, u, 0)
            inner = -np.exp(-a_ * back - x_ * np.expm1(-back)) * factor(np.log(x_) - back, p_, *others_)
            ratio = ahead / x_
            log = np.log(x_) + np.log1p(ratio)
            outer = np.exp((a_ - 1) * np.log1p(ratio) - ahead) / x_ * factor(log, p_, *others_)
            total[part] = np.sum(np.where(below, inner, outer) * weight / rate, axis=1)
    return total.reshape(shape)[()]


def beta_order(a: Any, b: Any, x: Any, y: Any, p: Any) -> Any:
    """Minus the derivative of ``betainc(a, b, x)`` by ``a``, over ``x**a * y**b / beta(a, b)``, where ``y = 1 - x``.

    ``p`` is ``psi(a) - psi(a + b)``. The integrals are those of `gamma_order` with another density, and the logarithm
    of t runs from minus infinity to 0.
    """
    return beta_integral(lambda log, other, p: log - p, a, b, x, y, p)


def beta_curvature(a: Any, b: Any, x: Any, y: Any, p: Any, q: Any) -> Any:
    """As `beta_order` for the second derivative by ``a``; ``q`` is ``zeta(2, a) - zeta(2, a + b)``."""
    return beta_integral(lambda log, other, p, q: (log - p) ** 2 - q, a, b, x, y, p, q)


def beta_mixed(a: Any, b: Any, x: Any, y: Any, p: Any, r: Any, q: Any) -> Any:
    """As `beta_order` for the derivative by both; ``r`` is ``psi(b) - psi(a + b)``, ``q`` is ``zeta(2, a + b)``."""
    return beta_integral(lambda log, other, p, r, q: (log - p) * (other - r) + q, a, b, x, y, p, r, q)


def beta_integral(factor: Any, a: Any, b: Any, x: Any, y: Any, p: Any, *more: Any) -> Any:
    """As `gamma_integral` with the density of the beta distribution.

    ``factor`` is called with the logarithms of t and of ``1 - t``, ``p`` and ``more``.
    """
    shape = np.broadcast_shapes(*map(np.shape, (a, b, x, y, p, *more)))
    given = (a, b, x, y, p, *more)
    a, b, x, y, p, *others = (np.broadcast_to(np.asarray(each, float), shape).reshape(-1, 1) for each in given)
    total = np.empty(a.shape[0])
    with np.errstate(all="ignore"):
        logarithms = np.where(x < 0.5, np.log(x), np.log1p(-y))
        several = (np.where(logarithms < p, y, x) < 0.03)[:, 0]
        for part, place, weight in exponential_nodes(several):
            a_, b_, x_, y_, p_, logarithm, *others_ = (each[part] for each in (a, b, x, y, p, logarithms, *others))
            below = logarithm < p_
            near, far = np.where(below, x_, y_), np.where(below, y_, x_)
            first, second = np.where(below, a_, b_), np.where(below, b_, a_)
            slope = np.maximum(first - (second - 1) * near / far, 0)
            rate = np.where(second > 1, slope + np.sqrt(np.maximum(second - 1, 0) * near) / far, first)
            rate = np.minimum(rate, 3 * first)
            u = place / rate
            ratio = -np.expm1(-u) * near / far
            rest = near * np.exp(-u)
            inner = np.where(near < 0.5, np.log(near), np.log1p(-far)) - u
            outer = np.where(rest < 0.5, np.log1p(-rest), np.log(far) + np.log1p(ratio))
            found = factor(np.where(below, inner, outer), np.where(below, outer, inner), p_, *others_)
            density = np.exp(-first * u + (second - 1) * np.log1p(ratio)) / far
            total[part] = np.sum(np.where(below, -found, found) * density * weight / rate, axis=1)
    return total.reshape(shape)[()]
