"""`yota.jacobian` and `yota.hessian`."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from yota.api.gradients import gradient, is_batched, value_and_grad
from yota.api.matrix_derivatives import Matrices
from yota.errors import ArgumentError
from yota.run.compiled import Compiled, Journal
from yota.run.derivatives.calling import caller, shared
from yota.run.gradient_layout import Wanted
from yota.run.options import Dynamic, worded
from yota.run.specialise import Target
from yota.structures import mapped
from yota.tracing.captures import copied


@worded
def jacobian(
    f: Callable[..., Any],
    wrt: int | str | tuple[int | str, ...] = 0,
    *,
    with_value: bool = False,
    sparse: bool = False,
    target: str | None = None,
    strict: bool = False,
    effort: str = "quick",
    dynamic: Dynamic = "auto",
    has_aux: bool = False,
) -> Callable[..., Any]:
    """Return a function of the Jacobian of ``f`` by one argument, or by each of several.

    For scalar code and small arrays, one straight-line function computes all entries. It omits structural zeros and
    shares common subexpressions. For other functions of arrays, rows or columns without a common nonzero position are
    computed together, if SciPy is installed. A few products then give all entries. Elements that are read by indices
    count each for itself. Otherwise array code computes all rows, or all columns if these are fewer, at once; large
    arrays take one pullback for each element of the result, many at once.

    Parameters
    ----------
    f
        A plain NumPy function. It returns an array, a list or tuple of numbers (treated as a vector), or another
        structure.
    wrt
        Position or name of the argument to differentiate by (an array, a number or a structure), or a tuple of them.
    with_value
        Whether to return ``(f(*args), jacobian)``.
    sparse
        Whether to return a ``scipy.sparse.csr_array`` of shape ``(f(*args).size, args[wrt].size)``. yota finds its
        pattern when it traces the function; stored entries may be zero.
    target, strict, effort, dynamic
        See `yota.grad`.
    has_aux
        Whether ``f`` returns ``(result, aux)``; yota differentiates the result. Each call also runs ``f`` itself to
        compute ``aux``.

    Returns
    -------
    Callable
        Takes the arguments of ``f`` and returns an array of shape ``f(*args).shape + args[wrt].shape``, or a tuple
        of arrays if ``wrt`` is one. By a structure, it returns a dict from field path to array. For a function that
        returns a structure, it returns a structure with a Jacobian for each array.
        For a complex function it is the complex derivative. For a real function of a complex argument each row is a
        gradient. With ``has_aux`` it returns ``(jacobian, aux)``, or ``((value, aux), jacobian)``.

    Raises
    ------
    DifferentiationError
        When called, if ``f`` is a complex function of a complex argument and not holomorphic. Also with ``sparse``,
        if nearly all elements depend on one another.

    Examples
    --------
    >>> import numpy as np
    >>> jacobian(lambda x: np.stack([x[0] * x[1], x[0]]))(np.array([2.0, 3.0]))
    array([[3., 2.],
           [1., 0.]])
    >>> found = jacobian(lambda p: {"y": p["a"] * p["b"]})({"a": np.array([1.0, 2.0]), "b": 3.0})
    >>> found["y"][("b",)]
    array([1., 2.])
    """
    if has_aux:
        options: dict[str, Any] = {"with_value": with_value, "sparse": sparse, "target": target, "strict": strict}
        return _beside(f, wrt, {**options, "effort": effort, "dynamic": dynamic})
    wanted = Wanted(1, with_value, sparse)
    return _matrix(f, wrt, wanted, Target.wanted(target, strict, effort), dynamic, "Jacobian")


@worded
def hessian(
    f: Callable[..., Any],
    wrt: int | str | tuple[int | str, ...] = 0,
    *,
    with_value: bool = False,
    sparse: bool = False,
    target: str | None = None,
    strict: bool = False,
    effort: str = "quick",
    dynamic: Dynamic = False,
) -> Callable[..., Any]:
    """Return a function of the Hessian of a scalar function by one argument, or by several.

    For scalar code and small arrays, one straight-line function computes each pair of equal entries once. For other
    functions of arrays, array code computes products with all unit vectors, or with few if the Hessian is sparse.

    Parameters
    ----------
    f
        A plain NumPy function that returns a real number.
    wrt, sparse, target, strict, effort, dynamic
        See `jacobian`.
    with_value
        Whether to return ``(f(*args), gradient, hessian)``.

    Returns
    -------
    Callable
        Takes the arguments of ``f`` and returns an array of shape ``args[wrt].shape * 2``. If ``wrt`` is a tuple, it
        returns a tuple of rows of blocks. The block in row i and column j has shape ``args[wrt[i]].shape +
        args[wrt[j]].shape``. By a structure, there is a block for each pair of field paths: ``h[path][other]``.

    Examples
    --------
    >>> import numpy as np
    >>> hessian(lambda x: x[0] ** 2 * x[1])(np.array([1.0, 3.0]))
    array([[6., 2.],
           [2., 0.]])
    >>> (_, block), _ = hessian(lambda x, a: a * np.sum(x**2), (0, 1))(np.array([1.0, 3.0]), 5.0)
    >>> block
    array([2., 6.])
    >>> float(hessian(lambda p: p["a"] ** 2 * p["b"])({"a": 3.0, "b": 5.0})[("a",)][("b",)])
    6.0
    """
    wanted = Wanted(2, with_value, sparse)
    return _matrix(f, wrt, wanted, Target.wanted(target, strict, effort), dynamic, "Hessian")


def _beside(f: Callable[..., Any], wrt: Any, options: Mapping[str, Any]) -> Callable[..., Any]:
    """The Jacobian of the first result of ``f``, with the second result."""
    wanted = Target.wanted(options["target"], options["strict"])
    if is_batched(f):
        own = {**options, "target": "numpy", "has_aux": True}
        return f.mapped(lambda one: jacobian(one, wrt, **own), wanted, dynamic=options["dynamic"])

    @functools.wraps(f, updated=())
    def first(*args: Any, **kwargs: Any) -> Any:
        return f(*args, **kwargs)[0]

    made = jacobian(first, wrt, **options)

    def call(*args: Any, **kwargs: Any) -> Any:
        found = made(*args, **kwargs)
        _, aux = f(*mapped(args, copied), **mapped(kwargs, copied))
        return ((found[0], aux), found[1]) if options["with_value"] else (found, aux)

    recipe = jacobian, (f, wrt), {**options, "has_aux": True}
    journal = Journal("", wanted.name)
    return Compiled(recipe, f, "Jacobian", call, journal=journal, parts=(made,))


def _matrix(
    f: Callable[..., Any], wrt: int | str | Places, wanted: Wanted, target: Target, dynamic: Dynamic, what: str
) -> Callable[..., Any]:
    if is_batched(f):
        plain = Target(strict=target.strict)
        return f.mapped(lambda one: _matrix(one, wrt, wanted, plain, dynamic, what), target, dynamic=dynamic)
    options = {"target": target.name, "strict": target.strict, "effort": target.effort, "dynamic": dynamic}
    make = jacobian if wanted.order == 1 else hessian
    recipe = make, (f, wrt), {"with_value": wanted.with_value, "sparse": wanted.sparse, **options}

    def matrix(function: Callable[..., Any], by: Any, one: Wanted) -> Callable[..., Any]:
        return _matrix(function, by, one, target, dynamic, what)

    if not isinstance(wrt, tuple):

        def matrices() -> Matrices:
            return Matrices(f, wrt, wanted, matrix, target, dynamic=dynamic)

        return caller(shared(f, matrices, Matrices, wrt, wanted, target, dynamic).bound(f), recipe, what)
    call, parts = jacobians(f, wrt, wanted, matrix) if wanted.order == 1 else hessians(f, wrt, wanted, matrix, options)
    return Compiled(recipe, f, what, call, journal=Journal("", target.name), parts=parts)


Places = tuple[int | str, ...]


Composed = tuple[Callable[..., Any], Sequence[Any]]
"""A function, and the functions that it calls."""
Matrix = Callable[[Callable[..., Any], "int | str", Wanted], Callable[..., Any]]
"""Creates the function of the derivative matrix by one argument."""


def jacobians(f: Callable[..., Any], wrt: Places, wanted: Wanted, matrix: Matrix) -> Composed:
    """A function of the tuple of Jacobians, one by each argument, with the value before it if requested."""
    _check(wrt)
    first, *rest = wrt
    valued = matrix(f, first, wanted)
    plain = replace(wanted, with_value=False)
    others = [matrix(f, each, plain) for each in rest]

    def call(*args: Any, **kwargs: Any) -> Any:
        found = valued(*args, **kwargs)
        matrices = [other(*args, **kwargs) for other in others]
        return (found[0], (found[1], *matrices)) if wanted.with_value else (found, *matrices)

    return call, (valued, *others)


def hessians(
    f: Callable[..., Any], wrt: Places, wanted: Wanted, matrix: Matrix, options: Mapping[str, Any]
) -> Composed:
    """A function of the rows of Hessian blocks, with value and gradients before them if requested.

    The block by two arguments is the Jacobian, by the second, of the gradient by the first. Blocks below the
    diagonal are transposes of those above.
    """
    _check(wrt)
    both = value_and_grad(f, wrt, **options) if wanted.with_value else None
    blocks: dict[tuple[int, int], Callable[..., Any]] = {}
    for row, column in itertools.combinations_with_replacement(range(len(wrt)), 2):
        one = replace(wanted, with_value=False, order=2 if row == column else 1)
        function = f if row == column else gradient(f, wrt[row], **options)
        blocks[row, column] = matrix(function, wrt[column], one)

    def call(*args: Any, **kwargs: Any) -> Any:
        found = {place: block(*args, **kwargs) for place, block in blocks.items()}
        count = range(len(wrt))
        for row, column in itertools.combinations(count, 2):
            found[row, column] = _completed(found[row, column], found[row, row], found[column, column])
            found[column, row] = _mirrored(found[row, column], found[row, row], found[column, column])
        rows = tuple(tuple(found[row, column] for column in count) for row in count)
        return rows if both is None else (*both(*args, **kwargs), rows)

    return call, (*blocks.values(), *([] if both is None else [both]))


def _completed(block: Any, row: Any, column: Any) -> Any:
    """A block with zeros for the parts of its row structure that the function does not depend on."""
    if not isinstance(row, dict):
        return block
    by = {path: column[path][path] for path in column} if isinstance(column, dict) else column
    return {path: block[path] if path in block else _zeros(row[path][path], by) for path in row}


def _zeros(row: Any, column: Any) -> Any:
    """Zeros of the shape of a block; ``row`` and ``column`` are the diagonal blocks of its row and column."""
    if isinstance(column, dict):
        return {path: _zeros(row, each) for path, each in column.items()}
    if hasattr(row, "tocsr"):
        return (row[:, :1] * 0) @ column[:1] if min(row.shape[0], column.shape[0]) else row[:, :0] @ column[:0]
    shapes = [np.shape(each)[: np.ndim(each) // 2] for each in (row, column)]
    return np.zeros(shapes[0] + shapes[1], np.result_type(row, column))


def _mirrored(block: Any, row: Any, column: Any) -> Any:
    """The block below the diagonal, from the block above it and two diagonal blocks."""
    if not isinstance(row, dict):
        axes = np.ndim(row) // 2
        if isinstance(column, dict):
            return {path: _transposed(each, axes) for path, each in block.items()}
        return _transposed(block, axes)
    ndims = {path: np.ndim(row[path][path]) // 2 for path in row}
    if not isinstance(column, dict):
        return {path: _transposed(each, ndims[path]) for path, each in block.items()}
    return {by: {path: _transposed(block[path][by], ndims[path]) for path in row} for by in column}


def _transposed(block: Any, count: int) -> Any:
    """A block with its first ``count`` axes moved to the end; a sparse block stays in CSR format."""
    if hasattr(block, "tocsr"):
        return block.T.tocsr()
    return np.transpose(block, (*range(count, np.ndim(block)), *range(count)))


def _check(wrt: Places) -> None:
    if not wrt:
        raise ArgumentError("wrt=() names no argument to differentiate by; give positions or names, as in wrt=(0, 1)")
