"""The derivative of a function along a direction, and its transpose: pushforward and pullback."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from yota.compilation.device import beside
from yota.derivatives.gradients import gradient
from yota.errors import ArgumentError, DifferentiationError
from yota.structures import is_on_device

__all__ = ["jvp", "vjp", "weighted"]


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
    pulled = gradient(weighted(f), tuple(range(1, len(args) + 1)), target=target, strict=strict)
    found = f(*args)
    value = found if is_on_device(found) else np.asarray(found)

    def pullback(cotangent: Any) -> Any:
        seed = beside(value, cotangent)
        if seed.shape != value.shape:
            raise DifferentiationError(f"the cotangent has shape {seed.shape}, the value has shape {value.shape}")
        return pulled(seed, *args)

    return found, pullback


def jvp(
    f: Callable[..., Any],
    args: Sequence[Any],
    tangents: Sequence[Any],
    *,
    target: str = "numpy",
    strict: bool = False,
) -> tuple[Any, Any]:
    """Value of ``f(*args)`` and its derivative in one direction.

    The pullback is linear in its cotangent, and the pullback of that is the pushforward; so every rule serves both
    (J. Townsend, A new trick for calculating Jacobian vector products, 2017).

    Parameters
    ----------
    f
        A function of arrays that returns an array.
    args
        The point.
    tangents
        The direction: for each argument an array of its shape, or None where it stays as it is.
    target, strict
        See `yota.grad`.

    Returns
    -------
    value
        ``f(*args)``.
    tangent
        The derivative of the value along ``tangents``, in its shape.

    Raises
    ------
    DifferentiationError
        If a tangent has another shape than its argument.

    Examples
    --------
    >>> import numpy as np
    >>> value, tangent = jvp(lambda x, y: x * y, (np.array([1.0, 2.0]), 3.0), (np.array([1.0, 0.0]), None))
    >>> tangent
    array([3., 0.])
    """
    args, count = tuple(args), len(args)
    if len(tangents) != count:
        raise ArgumentError(f"there are {count} arguments and {len(tangents)} tangents; give None for a fixed argument")
    moved = tuple(position for position, tangent in enumerate(tangents) if tangent is not None)
    for position in moved:
        given, wanted = np.shape(tangents[position]), np.shape(args[position])
        if given != wanted:
            raise DifferentiationError(f"tangent {position + 1} has shape {given}, its argument has shape {wanted}")
    value = f(*args)
    found = value if is_on_device(value) else np.asarray(value)
    seed = np.zeros(found.shape, found.dtype if found.dtype.kind in "fc" else float)
    if not moved:
        return value, seed[()]
    pulled = gradient(weighted(f), tuple(position + 1 for position in moved))

    def along(seed: Any, *rest: Any) -> Any:
        adjoints = pulled(seed, *rest[:count])
        return sum(np.sum(np.real(np.conjugate(a) * t)) for a, t in zip(adjoints, rest[count:], strict=True))

    directions = [tangents[position] for position in moved]
    forward = gradient(along, 0, target=target, strict=strict)
    tangent = forward(beside(found, seed), *args, *directions)
    return value, tangent if found.shape else tangent[()]


def weighted(f: Callable[..., Any]) -> Callable[..., Any]:
    """The sum of the results of ``f``, times weights that are its first argument: its gradient is the pullback."""

    def total(seed: Any, *args: Any) -> Any:
        return np.sum(np.real(np.conjugate(seed) * f(*args)))

    return total
