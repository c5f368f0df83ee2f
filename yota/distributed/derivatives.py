"""The public functions for data in chunks: value and gradient, products with Hessians, Jacobians."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from yota.compilation.arguments import function_of, parameters_of
from yota.compilation.layout import Wrt
from yota.derivatives import gradients
from yota.derivatives.jacobians import jacobian as matrix
from yota.distributed.chunks import aligned, described, taken
from yota.distributed.mapped import mapped_over
from yota.distributed.summed import Over, Summed, refuse
from yota.errors import ArgumentError
from yota.ir.callables import Derived, name_of
from yota.structures import flatten, is_leaf

__all__ = ["hvp", "jacobian", "value_and_grad"]


def value_and_grad(
    loss: Callable[..., Any],
    wrt: Wrt = 0,
    *,
    over: Over,
    reduction: Literal["sum", "mean"] = "sum",
    target: str = "numpy",
    strict: bool = False,
    check: bool = True,
) -> Summed:
    """A function that gives the value of ``loss`` over all chunks of data, and its gradient.

    The chunks are those of Dask arrays, along the first axis; bags of arrays and lists of delayed blocks are taken too.
    Code is generated once, for all sizes of chunks, and goes to the workers. What chunks give is added in a fixed
    order: the result has the same bits whichever worker does what.

    Parameters
    ----------
    loss
        A plain NumPy function that is a sum over samples, or a mean.
    wrt
        What to differentiate by; see `yota.value_and_grad`.
    over
        Positions or names of the arguments that hold samples. Those that are NumPy arrays are cut as the others are.
    reduction
        ``"sum"``, or ``"mean"`` for a loss that is a mean over samples: chunks count by their numbers of samples.
    target, strict
        See `yota.grad`. For ``"c"`` there is code for each size of chunks. Chunks of CuPy's choose ``"cuda"``.
    check
        Whether to hold, at each call, what some samples of one chunk give against the sum over two parts of them.

    Returns
    -------
    Summed
        Takes the arguments of ``loss``; gives value and gradient, in NumPy arrays. Its method ``delayed`` takes the
        same and gives a `dask.delayed.Delayed` of them.

    Raises
    ------
    ArgumentError
        When called, if arguments do not hold the same samples.
    ChunkError
        When called, if anything goes wrong for a chunk; the message names it.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> fg = value_and_grad(lambda w, X, y: np.sum((X @ w - y) ** 2), over=("X", "y"))
    >>> X, y = da.ones((10, 2), chunks=(4, 2)), da.zeros(10, chunks=4)
    >>> value, gradient = fg(np.array([1.0, 2.0]), X, y)
    >>> float(value), gradient
    (90.0, array([60., 60.]))
    """
    options: dict[str, Any] = {"over": over, "reduction": reduction, "target": target, "strict": strict, "check": check}
    recipe = value_and_grad, (loss, wrt), options
    return Summed(recipe, function_of(loss), wrt, "value and gradient", **options)


def hvp(
    loss: Callable[..., Any],
    wrt: int | str = 0,
    *,
    over: Over,
    reduction: Literal["sum", "mean"] = "sum",
    target: str = "numpy",
    check: bool = True,
) -> Summed:
    """A function of the arguments of ``loss`` and a direction: the Hessian over all chunks of data times the direction.

    Parameters
    ----------
    loss, over, reduction, target, check
        See `value_and_grad`.
    wrt
        Position or name of the argument to differentiate by, an array or a number.

    Returns
    -------
    Summed
        As `value_and_grad` gives, for arguments by position alone.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> product = hvp(lambda w, X: np.sum((X @ w) ** 2), over="X")
    >>> product(np.zeros(2), da.ones((10, 2), chunks=(4, 2)), np.array([1.0, 0.0]))
    array([20., 20.])
    """
    place = wrt if isinstance(wrt, int) else _position(loss, wrt)

    def along(*args: Any) -> Any:
        *rest, direction = args
        slope = gradients.gradient(loss, place)(*rest)
        if np.shape(slope) != np.shape(direction):
            raise ArgumentError(f"the direction has shape {np.shape(direction)}, and argument {wrt} {np.shape(slope)}")
        return np.sum(direction * slope)

    options: dict[str, Any] = {"over": over, "reduction": reduction, "target": target, "check": check}
    # Counted from the end, the direction comes after the arguments of the loss.
    by = place - 1 if place < 0 else place
    recipe = hvp, (loss, wrt), options
    return Summed(recipe, along, by, "Hessian times a vector", strict=False, with_value=False, **options)


def jacobian(
    f: Callable[..., Any],
    wrt: int | str | tuple[int | str, ...] = 0,
    *,
    over: Over,
    target: str = "numpy",
    strict: bool = False,
) -> Derived:
    """A function that gives the Jacobian of ``f``, which computes each sample by itself, as a Dask array.

    Parameters
    ----------
    f
        A plain NumPy function whose result has a row for each sample.
    wrt
        What to differentiate by, among the arguments that all samples share; see `yota.jacobian`.
    over, target, strict
        See `value_and_grad`. There is code for each size of chunks.

    Returns
    -------
    Derived
        Takes the arguments of ``f``; gives a Dask array with the chunks of the data along its first axis, or a tuple of
        them if ``wrt`` is one.

    Raises
    ------
    ArgumentError
        When called, if rows of the result depend on other samples than their own.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> rows = jacobian(lambda w, X: np.tanh(X @ w), over="X")(np.zeros(2), da.ones((10, 2), chunks=(4, 2)))
    >>> rows
    dask.array<..., shape=(10, 2), dtype=float64, chunksize=(4, 2), chunktype=numpy.ndarray>
    >>> rows[9].compute()
    array([1., 1.])
    """
    function = matrix(f, wrt, target=target, strict=strict)

    def call(*args: Any, **kwargs: Any) -> Any:
        data, shared = taken(f, over, args, kwargs)
        chunks = aligned([(name, value) for name, _, value in data])
        places = [place for _, place, _ in data]
        refuse(f, wrt, places, len(args))
        generator = np.random.default_rng(0)
        few = [generator.uniform(0.5, 1.5, (3, *shape)).astype(dtype) for dtype, shape, _ in map(described, chunks)]

        def of(compute: Callable[..., Any], part: slice) -> Any:
            given, named = shared.filled(places, [each[part] for each in few])
            return compute(*given, **named)

        whole, *parts = (of(f, part) for part in (slice(None), slice(1), slice(1, None)))
        joint = np.concatenate([np.atleast_1d(each) for each in parts])
        if np.shape(whole) != joint.shape or not np.allclose(whole, joint, equal_nan=True):
            raise ArgumentError(
                f"{name_of(f)} does not compute a row for each sample by itself; a Jacobian in chunks does"
            )
        like = of(function, slice(1))
        axes = [0] * sum(is_leaf(each) for _, each in flatten(like))
        return mapped_over(f"jacobian of {name_of(f)}", function, shared, data, chunks, like, axes)

    return Derived((jacobian, (f, wrt), {"over": over, "target": target, "strict": strict}), f, "Jacobian", call)


def _position(function: Callable[..., Any], name: str) -> int:
    names = list(parameters_of(function))
    if name not in names:
        raise ArgumentError(f"{name!r} is no argument of {name_of(function)}; it has {', '.join(names)}")
    return names.index(name)
