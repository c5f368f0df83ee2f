"""Derivatives of functions with many results, and second derivatives."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from yota.batching.batch import Batched
from yota.compilation.branches import Dynamic
from yota.compilation.compiled import Compiled, Journal
from yota.compilation.specialise import Target
from yota.compilation.words import worded
from yota.derivatives.blocks import hessians, jacobians
from yota.derivatives.calling import caller
from yota.derivatives.forms import shared
from yota.derivatives.matrices import Matrices
from yota.derivatives.straight import Wanted

__all__ = ["hessian", "jacobian"]


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
    """A function that gives all partial derivatives of ``f`` by one argument, or by each of several.

    Of scalar code, all entries are computed by one straight-line function: those that are zero whatever the argument
    are left out, and work that entries have in common is done once. Of functions of large arrays, rows or columns that
    have no entry in the same place are computed together, so that a few products give all entries, where that is
    possible (and SciPy is installed); else there is a pullback for each element of the result, of many of them at once.

    Parameters
    ----------
    f
        A plain NumPy function that returns an array, a list or tuple of numbers, which is a vector, or any other
        structure.
    wrt
        Position or name of the argument to differentiate by: an array, a number or a structure; or a tuple of them.
    with_value
        Whether to give ``(f(*args), jacobian)``.
    sparse
        Whether to give a ``scipy.sparse.csr_array`` of shape ``(f(*args).size, args[wrt].size)``, whose pattern is
        known when the function is traced; it may hold entries that happen to be zero.
    target, strict, effort, dynamic
        See `yota.grad`.
    has_aux
        Whether ``f`` returns ``(result, aux)``, of which the result is differentiated. Of the two, ``f`` itself gives
        ``aux`` at each call.

    Returns
    -------
    Callable
        Takes the arguments of ``f``; gives an array of shape ``f(*args).shape + args[wrt].shape``, or a tuple of them
        if ``wrt`` is one. By a structure it is a dict from field path to such arrays; of a function that returns a
        structure it is one like it, with all of that in the place of each array.
        Of a complex function it is the complex derivative; a real function of a complex argument has its gradient in
        each row. With ``has_aux`` it gives ``(jacobian, aux)``, or ``((value, aux), jacobian)``.

    Raises
    ------
    DifferentiationError
        When called, if ``f`` is a complex function of a complex argument and not holomorphic, or if ``sparse`` is asked
        for where nearly all elements depend on one another.

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
    """A function that gives the second derivatives of a scalar function by one argument, or by several.

    Of scalar code it is one straight-line function, in which each pair of equal entries is computed once.

    Parameters
    ----------
    f
        A plain NumPy function that returns a real number.
    wrt, sparse, target, strict, effort, dynamic
        See `jacobian`.
    with_value
        Whether to give ``(f(*args), gradient, hessian)``.

    Returns
    -------
    Callable
        Takes the arguments of ``f``; gives an array of shape ``args[wrt].shape * 2``. If ``wrt`` is a tuple, it gives a
        tuple of rows of blocks: that in row i and column j has shape ``args[wrt[i]].shape + args[wrt[j]].shape``. By a
        structure there is a block for each pair of field paths: ``h[path][other]``.

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
    """The Jacobian of the first that ``f`` returns, and the second."""
    wanted = Target.wanted(options["target"], options["strict"])
    if isinstance(f, Batched):
        own = {**options, "target": "numpy", "has_aux": True}
        return f.mapped(lambda one: jacobian(one, wrt, **own), wanted, dynamic=options["dynamic"])

    @functools.wraps(f, updated=())
    def first(*args: Any, **kwargs: Any) -> Any:
        return f(*args, **kwargs)[0]

    made = jacobian(first, wrt, **options)

    def call(*args: Any, **kwargs: Any) -> Any:
        found, (_, aux) = made(*args, **kwargs), f(*args, **kwargs)
        return ((found[0], aux), found[1]) if options["with_value"] else (found, aux)

    recipe = jacobian, (f, wrt), {**options, "has_aux": True}
    journal = Journal("", wanted.name)
    return Compiled(recipe, f, "Jacobian", call, journal=journal, parts=(made,))


def _matrix(
    f: Callable[..., Any],
    wrt: int | str | tuple[int | str, ...],
    wanted: Wanted,
    target: Target,
    dynamic: Dynamic,
    what: str,
) -> Callable[..., Any]:
    if isinstance(f, Batched):
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
