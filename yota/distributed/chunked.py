"""Public functions for data in chunks: value and gradient, Hessian-vector products, Jacobians."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from yota.api import gradients
from yota.api.batch import batch
from yota.api.jacobians import jacobian as matrix
from yota.api.products import sign_with_direction
from yota.distributed.chunks import aligned, described, taken
from yota.distributed.mapped import mapped_over
from yota.distributed.summed import Over, Summed, refuse
from yota.errors import ArgumentError
from yota.ir.callables import Derived, name_of
from yota.run.arguments import function_of, parameters_of, positional
from yota.run.gradient_layout import Wrt
from yota.run.options import TargetName
from yota.structures import flatten, is_leaf

__all__ = ["hvp", "jacobian", "value_and_grad"]


def value_and_grad(
    loss: Callable[..., Any],
    wrt: Wrt = 0,
    *,
    over: Over,
    reduction: Literal["sum", "mean"] = "sum",
    target: TargetName = "numpy",
    strict: bool = False,
    check: bool = True,
) -> Summed:
    """Return a function of the value and gradient of ``loss`` over all chunks of data.

    The chunks are those of Dask arrays, along the first axis, of bags of arrays, or of lists of delayed blocks. yota
    generates code once, for all chunk sizes, and sends it to the workers. It adds the results of chunks in a fixed
    order, so the result has the same bits for any distribution of work.

    Parameters
    ----------
    loss
        A plain NumPy function that is a sum over samples, or a mean.
    wrt
        Arguments to differentiate by; see `yota.value_and_grad`.
    over
        Positions or names of the arguments that hold samples. NumPy arrays among them are split like the others.
    reduction
        ``"sum"``, or ``"mean"`` for a mean over samples, in which the number of samples is the weight of a chunk.
    target, strict
        See `yota.grad`. ``"c"`` needs a compilation for each chunk size. CuPy chunks select ``"cuda"``.
    check
        Whether each call checks, on some samples of one chunk, that the loss is a sum or mean over samples.

    Returns
    -------
    Summed
        Takes the arguments of ``loss`` and returns value and gradient as NumPy arrays. Its method ``delayed``
        returns a `dask.delayed.Delayed` of them.

    Raises
    ------
    ArgumentError
        When called, if arguments have different samples.
    ChunkError
        When called, if the computation of a chunk fails; the message names the chunk.

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
    target: TargetName = "numpy",
    check: bool = True,
) -> Summed:
    """Return a function of the arguments of ``loss`` and a direction: the Hessian over all chunks times the direction.

    Parameters
    ----------
    loss, over, reduction, target, check
        See `value_and_grad`.
    wrt
        Position or name of the argument to differentiate by, an array or a number.

    Returns
    -------
    Summed
        Like the result of `value_and_grad`, for positional arguments only.

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
    # A negative position counts the loss's own arguments, without the direction.
    by = place - 1 if place < 0 else place
    recipe = hvp, (loss, wrt), options
    found = Summed(recipe, along, by, "Hessian times a vector", strict=False, with_value=False, **options)
    sign_with_direction(found, loss)
    return found


def jacobian(
    f: Callable[..., Any],
    wrt: int | str | tuple[int | str, ...] = 0,
    *,
    over: Over,
    target: TargetName = "numpy",
    strict: bool = False,
) -> Derived:
    """Return a function of the Jacobian, as a Dask array, of a function ``f`` that computes each sample separately.

    Parameters
    ----------
    f
        A plain NumPy function whose result has a row for each sample.
    wrt
        Shared arguments to differentiate by; see `yota.jacobian`.
    over, target, strict
        See `value_and_grad`.

    Returns
    -------
    Derived
        Takes the arguments of ``f`` and returns a Dask array with the chunks of the data along its first axis, or a
        tuple of them if ``wrt`` is one.

    Raises
    ------
    ArgumentError
        When called, if rows of the result depend on other samples.

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

    def call(*args: Any, **kwargs: Any) -> Any:
        function, args = positional(f, args, kwargs)
        data, shared = taken(function, over, args, {})
        chunks = aligned([(name, value) for name, _, value in data])
        places = [place for _, place, _ in data]
        refuse(function, wrt, places, len(args))

        def row(*one: Any) -> Any:
            given = [np.expand_dims(each, 0) if place in places else each for place, each in enumerate(one)]
            return np.atleast_1d(function(*given))[0]

        row.__name__ = name_of(f)
        several = wrt if isinstance(wrt, tuple) else (wrt,)
        by = tuple(each if isinstance(each, int) else _position(f, each) for each in several)
        rows = batch(
            matrix(row, by if isinstance(wrt, tuple) else by[0]), over=tuple(places), target=target, strict=strict
        )
        generator = np.random.default_rng(0)
        few = [generator.uniform(0.5, 1.5, (3, *shape)).astype(dtype) for dtype, shape, _ in map(described, chunks)]

        def of(compute: Callable[..., Any], part: slice) -> Any:
            given, _ = shared.filled(places, [each[part] for each in few])
            return compute(*given)

        whole, *parts = (of(function, part) for part in (slice(None), slice(1), slice(1, None)))
        joint = np.concatenate([np.atleast_1d(each) for each in parts])
        if np.shape(whole) != joint.shape or not np.allclose(whole, joint, equal_nan=True):
            raise ArgumentError(
                f"{name_of(f)} does not compute a row for each sample by itself; a Jacobian in chunks does"
            )
        like = of(rows, slice(1))
        axes = [0] * sum(is_leaf(each) for _, each in flatten(like))
        return mapped_over(f"jacobian of {name_of(f)}", rows, shared, data, chunks, like, axes)

    return Derived((jacobian, (f, wrt), {"over": over, "target": target, "strict": strict}), f, "Jacobian", call)


def _position(function: Callable[..., Any], name: str) -> int:
    names = list(parameters_of(function))
    if name not in names:
        raise ArgumentError(f"{name!r} is no argument of {name_of(function)}; it has {', '.join(names)}")
    return names.index(name)
