"""Derivatives of functions with many results, and second derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from yota.api import gradient, value_and_grad
from yota.errors import DifferentiationError

__all__ = ["hessian", "hvp", "jacobian", "vjp"]


def vjp(
    f: Callable[..., Any], *args: Any, target: str = "numpy", strict: bool = False
) -> tuple[Any, Callable[[Any], Any]]:
    """Value of ``f(*args)`` and its pullback.

    Parameters
    ----------
    f
        A function of arrays that returns an array.
    *args
        The point.
    target, strict
        See `yota.grad`.

    Returns
    -------
    value
        ``f(*args)``.
    pullback
        Takes a cotangent of the value's shape; gives a tuple with the adjoint of each argument.

    Examples
    --------
    >>> import numpy as np
    >>> value, pullback = vjp(lambda x: x**2, np.array([1.0, 2.0]))
    >>> pullback(np.array([1.0, 0.0]))
    (array([2., 0.]),)
    """
    weighted = gradient(_weighted(f), tuple(range(1, len(args) + 1)), target=target, strict=strict)
    value = np.asarray(f(*args))

    def pullback(cotangent: Any) -> Any:
        seed = np.asarray(cotangent, dtype=value.dtype)
        if seed.shape != value.shape:
            raise DifferentiationError(f"the cotangent has shape {seed.shape}, the value has shape {value.shape}")
        return weighted(seed, *args)

    return f(*args), pullback


def _weighted(f: Callable[..., Any]) -> Callable[..., Any]:
    def weighted(seed: Any, *args: Any) -> Any:
        return np.sum(np.real(np.conjugate(seed) * f(*args)))

    return weighted


def jacobian(f: Callable[..., Any], wrt: int = 0, *, target: str = "numpy", strict: bool = False) -> Callable[..., Any]:
    """A function that gives all partial derivatives of ``f`` by one argument.

    Returns
    -------
    Callable
        Gives an array of shape ``f(*args).shape + args[wrt].shape``.

    Examples
    --------
    >>> import numpy as np
    >>> jacobian(lambda x: np.stack([x[0] * x[1], x[0]]))(np.array([2.0, 3.0]))
    array([[3., 2.],
           [1., 0.]])
    """
    weighted = gradient(_weighted(f), wrt + 1 if wrt >= 0 else wrt, target=target, strict=strict)

    def jacobian_of(*args: Any) -> Any:
        value = np.asarray(f(*args))
        seed = np.zeros(value.shape, value.dtype if value.dtype.kind in "fc" else float)
        rows = []
        for position in np.ndindex(value.shape):
            seed[position] = 1.0
            rows.append(np.asarray(weighted(seed, *args)))
            seed[position] = 0.0
        return np.reshape(np.stack(rows), value.shape + rows[0].shape)

    return jacobian_of


def hessian(f: Callable[..., Any], wrt: int = 0, *, target: str = "numpy", strict: bool = False) -> Callable[..., Any]:
    """A function that gives the second derivatives of a scalar function by one argument.

    Examples
    --------
    >>> import numpy as np
    >>> hessian(lambda x: x[0] ** 2 * x[1])(np.array([1.0, 3.0]))
    array([[6., 2.],
           [2., 0.]])
    """
    return jacobian(gradient(f, wrt), wrt, target=target, strict=strict)


def hvp(f: Callable[..., Any], *, target: str = "numpy", strict: bool = False) -> Callable[[Any, Any], Any]:
    """A function of ``(x, v)`` that gives the Hessian of ``f`` at ``x`` times ``v``.

    Examples
    --------
    >>> import numpy as np
    >>> hvp(lambda x: np.sum(x**3))(np.array([1.0, 2.0]), np.array([1.0, 1.0]))
    array([ 6., 12.])
    """
    first = value_and_grad(f)

    def slope(x: Any, v: Any) -> Any:
        return np.sum(first(x)[1] * v)

    return gradient(slope, 0, target=target, strict=strict)
