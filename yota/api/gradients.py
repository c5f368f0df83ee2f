"""`yota.grad`, `yota.value_and_grad` and `yota.gradient`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeGuard

from yota.errors import ArgumentError
from yota.run.options import evaluates, worded
from yota.run.progress import uncollected

if TYPE_CHECKING:
    from yota.api.batch import Batched
    from yota.run.gradient_layout import Wrt
    from yota.run.options import Dynamic
    from yota.run.result import GradResult


def is_batched(f: Callable[..., Any]) -> TypeGuard[Batched]:
    """Whether a function is the result of `yota.batch`, without an import of what batching needs."""
    batching = sys.modules.get("yota.api.batch")
    return batching is not None and isinstance(f, batching.Batched)


# Tracing and compilation are imported at the first use, so that importing `grad` is fast.
def grad(
    f: Callable[..., Any],
    *args: Any,
    dynamic: Dynamic = False,
    seed: Any = None,
    target: str | None = None,
    strict: bool = False,
    effort: str = "quick",
    has_aux: bool = False,
    **kwargs: Any,
) -> tuple[Any, GradResult]:
    """Return the value of ``f(*args)`` and its gradient by every argument.

    The first call for each combination of dtypes, shapes, structure and static values traces, differentiates and
    compiles ``f``. Later calls run the generated code.

    Parameters
    ----------
    f
        A plain NumPy function that returns a scalar.
    *args
        Arrays, numbers, or structures of them. Python ints, bools, strings, None and callables are static.
    dynamic
        Whether to trace again when a branch on traced data takes another direction. True keeps up to 1024 tapes for
        one combination of argument types, and beyond that drops them. ``"auto"`` keeps up to 64 tapes, and beyond
        that raises an error that names the branch. False raises `StaleTapeError`.
    seed
        The derivative of the final result by the value of ``f``, of the value's shape; the default is one. With a
        seed, ``f`` may return an array.
    target
        Target of the generated code: ``"numpy"``; ``"c"``, which needs a C compiler; ``"auto"``, which starts with
        NumPy code and compiles C in the background; or ``"cuda"``, which CuPy arrays select. The default is that of
        `configure`, initially ``"numpy"``.
    strict
        Whether the value must equal NumPy's ``f(*args)`` bit for bit.
    effort
        Effort of the search for fewer operations in scalar code. ``"quick"`` takes less time than the rest of the
        compilation. ``"high"`` takes up to seconds, and pays off for polynomials that are evaluated very often.
    has_aux
        Whether ``f`` returns ``(value, aux)``; yota differentiates the value. See `value_and_grad`.
    **kwargs
        Keyword arguments of ``f``.

    Returns
    -------
    value
        The result of ``f(*args)``, of the same type: a NumPy scalar from NumPy functions, a Python float from
        arithmetic on Python floats.
    g
        `GradResult`: ``g[0]`` is the gradient by the first argument, with its shape and dtype. For a structure it is
        a dict from field path to array; for an argument without a derivative, None. The gradient by a complex ``z``
        is ``dL/dRe(z) + i dL/dIm(z)``.

    Raises
    ------
    ArgumentError, TracingError, MissingRuleError, DifferentiationError, StaleTapeError
        See `yota.errors`. Exceptions of ``f`` propagate unchanged.

    Examples
    --------
    >>> import numpy as np
    >>> val, g = grad(lambda x: np.sum(x**2), np.array([1.0, 2.0, 3.0]))
    >>> float(val), g[0]
    (14.0, array([2., 4., 6.]))
    """
    from yota.api.evaluated import evaluated, seeded
    from yota.run.specialise import Target
    from yota.tracing.source_lines import users_frames

    if not args and not kwargs:
        evaluates("grad", f, "For a function that gives the gradient: yota.gradient(f)")
    with users_frames:
        if seed is not None:
            return seeded(f, seed, args, kwargs, Target.wanted(target, strict, effort), dynamic, has_aux)
        return evaluated(f, args, kwargs, Target.wanted(target, strict, effort), dynamic, has_aux)


@worded
def value_and_grad(
    f: Callable[..., Any],
    wrt: Wrt = 0,
    *,
    target: str | None = None,
    strict: bool = False,
    effort: str = "quick",
    dynamic: Dynamic = "auto",
    has_aux: bool = False,
    args: Any = None,
) -> Callable[..., tuple[Any, Any]]:
    """Return a function of value and gradient of ``f``, as ``scipy.optimize.minimize(..., jac=True)`` expects.

    Parameters
    ----------
    f
        A plain NumPy function that returns a scalar.
    wrt
        Arguments to differentiate by: a position, a name, or a tuple of them.
    target, strict, effort, dynamic
        See `grad`.
    has_aux
        Whether ``f`` returns ``(value, aux)``: a scalar to differentiate, and a number, an array or a structure of
        them that is returned with the value.
    args
        Specs of the arguments with named sizes, such as ``{"x": "float64[N,3]"}`` (see `yota.generate`). yota then
        compiles the function at once, for all sizes, and never traces it again when a size changes.

    Returns
    -------
    Callable
        Takes the arguments of ``f`` and returns ``(value, gradient)``; the gradient is a tuple if ``wrt`` is one.
        With ``has_aux`` it returns ``((value, aux), gradient)``.

    Raises
    ------
    ArgumentError
        With ``args``: if the steps of the function depend on a size, as in a loop over it or a branch on it. The
        message names the line.

    Examples
    --------
    >>> import numpy as np
    >>> fg = value_and_grad(lambda x: np.sum(np.sin(x)))
    >>> value, gradient = fg(np.zeros(2))
    >>> gradient
    array([1., 1.])
    >>> fg = value_and_grad(lambda x: np.mean(x**2), args={"x": "float64[N]"})
    >>> fg(np.ones(2))[1], fg(np.ones(4))[1]
    (array([1., 1.]), array([0.5, 0.5, 0.5, 0.5]))
    """
    options = {"target": target, "strict": strict, "effort": effort, "dynamic": dynamic, "has_aux": has_aux}
    return _differentiated(value_and_grad, "value and gradient", f, wrt, args, options)


@worded
def gradient(
    f: Callable[..., Any],
    wrt: Wrt = 0,
    *,
    target: str | None = None,
    strict: bool = False,
    effort: str = "quick",
    dynamic: Dynamic = "auto",
    has_aux: bool = False,
    args: Any = None,
) -> Callable[..., Any]:
    """Return a function of the gradient of ``f``.

    Parameters
    ----------
    f, wrt, target, strict, effort, dynamic, has_aux, args
        See `value_and_grad`.

    Returns
    -------
    Callable
        Takes the arguments of ``f`` and returns the gradient, a tuple if ``wrt`` is one. With ``has_aux`` it returns
        ``(gradient, aux)``.

    Examples
    --------
    >>> import numpy as np
    >>> gradient(lambda x: np.sum(x**3))(np.array([1.0, 2.0]))
    array([ 3., 12.])
    >>> gradient(lambda x: (np.sum(x**3), {"norm": np.sqrt(x @ x)}), has_aux=True)(np.array([3.0, 4.0]))
    (array([27., 48.]), {'norm': ...5.0...})
    """
    options = {"target": target, "strict": strict, "effort": effort, "dynamic": dynamic, "has_aux": has_aux}
    return _differentiated(gradient, "gradient", f, wrt, args, options)


def _differentiated(
    make: Callable[..., Any], what: str, f: Callable[..., Any], wrt: Wrt, args: Any, options: dict[str, Any]
) -> Callable[..., Any]:
    """What ``make``, `value_and_grad` or `gradient`, returns."""
    with uncollected():
        from yota.run.derivatives.calling import Derivative, Slope, SlopeWithAux, caller, form_of
        from yota.run.derivatives.differentiated import Differentiated
        from yota.run.specialise import Target

    target, dynamic, has_aux = options["target"], options["dynamic"], options["has_aux"]
    wanted = Target.wanted(target, options["strict"], options["effort"])
    if is_batched(f):
        if args is not None:
            raise ArgumentError(
                f"args= compiles {f.__name__} for all sizes, but batch compiles for one number of points; leave it out"
            )

        def of_one(one: Callable[..., Any]) -> Callable[..., Any]:
            return make(one, wrt, strict=wanted.strict, dynamic=dynamic, has_aux=has_aux)  # type: ignore[no-any-return]

        return f.mapped(of_one, wanted, dynamic=dynamic)
    recipe = make, (f, wrt), {**options, "args": args}
    kind = Derivative if make is value_and_grad else SlopeWithAux if has_aux else Slope
    if args is not None:
        from yota.api.all_sizes import AllSizes, check_options

        check_options(target, dynamic, has_aux)
        form: Differentiated = AllSizes(
            f, args, wrt, replace(wanted, name="auto" if wanted.name == "auto" else "numpy")
        )
    else:
        form = form_of(Differentiated, f, wrt, wanted, dynamic=dynamic, has_aux=has_aux)
    return caller(form, recipe, what, kind)
