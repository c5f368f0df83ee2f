"""Derivatives of functions with many results by pullbacks: one gradient for each element of the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from yota.compilation.device import beside, computed, stacked
from yota.compilation.specialise import Target
from yota.derivatives.gradients import gradient, value_and_grad
from yota.derivatives.straight import Wanted
from yota.errors import ArgumentError, DifferentiationError
from yota.structures import is_on_device

__all__ = ["Rows", "jvp", "vjp"]


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
    found = f(*args)
    value = found if is_on_device(found) else np.asarray(found)

    def pullback(cotangent: Any) -> Any:
        seed = beside(value, cotangent)
        if seed.shape != value.shape:
            raise DifferentiationError(f"the cotangent has shape {seed.shape}, the value has shape {value.shape}")
        return weighted(seed, *args)

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
    pulled = gradient(_weighted(f), tuple(position + 1 for position in moved))

    def along(seed: Any, *rest: Any) -> Any:
        adjoints = pulled(seed, *rest[:count])
        return sum(np.sum(np.real(np.conjugate(a) * t)) for a, t in zip(adjoints, rest[count:], strict=True))

    directions = [tangents[position] for position in moved]
    forward = gradient(along, 0, target=target, strict=strict)
    tangent = forward(beside(found, seed), *args, *directions)
    return value, tangent if found.shape else tangent[()]


def _weighted(f: Callable[..., Any]) -> Callable[..., Any]:
    def weighted(seed: Any, *args: Any) -> Any:
        return np.sum(np.real(np.conjugate(seed) * f(*args)))

    return weighted


class Rows:
    """All partial derivatives of ``function`` by the argument at ``position``, one row after the other."""

    def __init__(self, function: Callable[..., Any], position: int, wanted: Wanted, target: Target) -> None:
        if wanted.sparse:
            name = getattr(function, "__name__", type(function).__name__)
            raise ArgumentError(
                f"{name} works on arrays as a whole, or is too long to be written out entry by entry, so that its "
                "pattern of zeros is not known; leave sparse=True out"
            )
        self.position, self.wanted = position, wanted
        options: dict[str, Any] = {"target": target.name, "strict": target.strict}
        self._first = value_and_grad(function, position, **options) if wanted.order == 2 else None
        self._function = gradient(function, position, **options) if wanted.order == 2 else function
        self._pullback = gradient(_weighted(self._function), position + 1, **options)

    def __call__(self, *args: Any) -> Any:
        """The matrix; with values before it, if they are wanted."""
        matrix, value = self._matrix(*args)
        if not self.wanted.with_value:
            return matrix
        return (value, matrix) if self._first is None else (*self._first(*args), matrix)

    def _matrix(self, *args: Any) -> tuple[Any, Any]:
        value = computed(self._function, args)
        by = args[self.position]
        rows = [self._row(position, value, args) for position in np.ndindex(value.shape)]
        shape = (*value.shape, *np.shape(by))
        if not rows:
            return beside(by, np.zeros(shape)) if is_on_device(by) else np.zeros(shape, np.asarray(by).dtype), value
        return stacked(rows).reshape(shape), value

    def _pulled(self, value: Any, seed: np.ndarray, args: tuple[Any, ...]) -> Any:
        if is_on_device(value):
            return self._pullback(beside(value, seed), *args)
        return np.asarray(self._pullback(seed, *args))

    def _row(self, position: tuple[int, ...], value: Any, args: tuple[Any, ...]) -> Any:
        """One row: of a real value its gradient, of a complex one the complex derivative."""
        seed = np.zeros(value.shape, value.dtype if value.dtype.kind in "fc" else float)
        seed[position] = 1.0
        first = self._pulled(value, seed, args)
        if value.dtype.kind != "c":
            return first
        seed[position] = 1j
        second = self._pulled(value, seed, args)
        if first.dtype.kind != "c":
            return first + 1j * second
        # For a pullback conj(J) s + K conj(s) the two agree if K, the derivative by the conjugate, is zero.
        scale = np.max(np.abs(first)) if first.size else 0.0
        if np.any(np.abs(second - 1j * first) > np.sqrt(np.finfo(first.dtype).eps) * scale):
            raise DifferentiationError(
                "the function is not holomorphic: by a complex argument it has no complex derivative. Take the real "
                "and the imaginary part of the argument as two arguments."
            )
        return np.conjugate(first)
