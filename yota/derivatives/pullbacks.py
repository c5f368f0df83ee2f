"""The derivative of a function along a direction, and its transpose: pushforward and pullback."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from yota.compilation.arguments import function_of
from yota.compilation.compiled import Compiled, Journal
from yota.compilation.device import beside
from yota.compilation.words import evaluates, worded
from yota.derivatives.gradients import gradient
from yota.errors import ArgumentError, DifferentiationError
from yota.ir.callables import name_of
from yota.structures import flatten, is_leaf, is_on_device, mapped
from yota.tracing.captures import copied

__all__ = ["jvp", "vjp", "weighted"]


@worded
def vjp(
    f: Callable[..., Any],
    *args: Any,
    target: str = "numpy",
    strict: bool = False,
    effort: str = "quick",
    dynamic: bool = False,
) -> tuple[Any, Callable[[Any], Any]]:
    """Value of ``f(*args)`` and its pullback.

    Parameters
    ----------
    f
        A function of arrays that returns an array.
    *args
        The point.
    target, strict, effort, dynamic
        See `yota.grad`.

    Returns
    -------
    value
        ``f(*args)``.
    pullback
        Takes a cotangent of the value's shape; gives a tuple with the adjoint of each argument at that point, whatever
        is written into the arguments meanwhile: None for one that has no derivative.

    Examples
    --------
    >>> import numpy as np
    >>> value, pullback = vjp(lambda x: x**2, np.array([1.0, 2.0]))
    >>> pullback(np.array([1.0, 0.0]))
    (array([2., 0.]),)
    """
    if not args:
        evaluates("vjp", function_of(f), "For a function that gives the gradient: yota.gradient(f)")
    moved = [position for position, value in enumerate(args) if _is_moving(value)] or range(len(args))
    by = tuple(1 + position for position in moved)
    pulled = gradient(weighted(function_of(f)), by, target=target, strict=strict, effort=effort, dynamic=dynamic)
    point = tuple(mapped(value, copied) for value in args)
    found = f(*args)
    value = found if is_on_device(found) else np.asarray(found)

    def call(cotangent: Any) -> Any:
        seed = beside(value, cotangent)
        if seed.shape != value.shape:
            raise DifferentiationError(f"the cotangent has shape {seed.shape}, the value has shape {value.shape}")
        adjoints = dict(zip(moved, pulled(seed, *point), strict=True))
        return tuple(adjoints.get(position) for position in range(len(point)))

    options = {"target": target, "strict": strict, "effort": effort, "dynamic": dynamic}
    recipe = pullback, (f, *point), options
    return found, Compiled(recipe, None, "pullback", call, journal=Journal("", target), parts=(pulled,))


def pullback(f: Callable[..., Any], *point: Any, **options: Any) -> Callable[[Any], Any]:
    """The pullback alone, where it is made again."""
    return vjp(f, *point, **options)[1]


def _is_moving(value: Any) -> bool:
    """Whether there is a derivative by an argument."""
    parts = (part for _, part in flatten(value) if is_leaf(part))
    return any(not hasattr(part, "dtype") or part.dtype.kind not in "biu" for part in parts)


@worded
def jvp(
    f: Callable[..., Any],
    args: Sequence[Any],
    tangents: Sequence[Any],
    *,
    target: str = "numpy",
    strict: bool = False,
    effort: str = "quick",
    dynamic: bool = False,
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
    target, strict, effort, dynamic
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
    for given, what in ((args, "the arguments"), (tangents, "the tangents")):
        if not isinstance(given, (tuple, list)):
            raise ArgumentError(f"{what} of jvp are a {type(given).__name__}; give a tuple: jvp(f, (x,), (v,))")
    args, count = tuple(args), len(args)
    if len(tangents) != count:
        raise ArgumentError(f"there are {count} arguments and {len(tangents)} tangents; give None for a fixed argument")
    moved = tuple(position for position, tangent in enumerate(tangents) if tangent is not None)
    for position in moved:
        if not is_leaf(args[position]):
            raise ArgumentError(
                f"argument {position + 1} is a {type(args[position]).__name__}; a direction is one of an array or a "
                "floating-point number, None for every other argument"
            )
        given, wanted = np.shape(tangents[position]), np.shape(args[position])
        if given != wanted:
            raise DifferentiationError(f"tangent {position + 1} has shape {given}, its argument has shape {wanted}")
    value = function_of(f)(*args)
    found = value if is_on_device(value) else np.asarray(value)
    seed = np.zeros(found.shape, found.dtype if found.dtype.kind in "fc" else float)
    if not moved:
        return value, seed[()]
    pulled = gradient(weighted(f), tuple(position + 1 for position in moved), dynamic=dynamic)

    def along(seed: Any, *rest: Any) -> Any:
        adjoints = pulled(seed, *rest[:count])
        return sum(np.sum(np.real(np.conjugate(a) * t)) for a, t in zip(adjoints, rest[count:], strict=True))

    directions = [tangents[position] for position in moved]
    forward = gradient(along, 0, target=target, strict=strict, effort=effort, dynamic=dynamic)
    tangent = forward(beside(found, seed), *args, *directions)
    return value, tangent if found.shape else tangent[()]


def weighted(f: Callable[..., Any]) -> Callable[..., Any]:
    """The sum of the results of ``f``, times weights that are its first argument: its gradient is the pullback."""

    def total(seed: Any, *args: Any) -> Any:
        return np.sum(np.real(np.conjugate(seed) * f(*args)))

    total.__name__ = name_of(f)
    return total
