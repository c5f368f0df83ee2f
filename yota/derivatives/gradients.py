"""Values and gradients of functions: `yota.grad`, `yota.value_and_grad`, `yota.gradient`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from yota.compilation.words import evaluates, worded
from yota.errors import ArgumentError

if TYPE_CHECKING:
    from yota.compilation.branches import Dynamic
    from yota.compilation.layout import Wrt
    from yota.result import GradResult

# What traces and compiles is imported when it is first needed, so that to import `grad` costs next to nothing.
__all__ = ["grad", "gradient", "value_and_grad"]


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
    """Value of ``f(*args)`` and its gradient by every argument.

    The function is traced, differentiated and compiled at the first call for each combination of dtypes, shapes,
    structure and static values; later calls run the generated code.

    Parameters
    ----------
    f
        A plain NumPy function that returns a scalar.
    *args
        Arrays, numbers, or structures of them. Python ints, bools, strings, None and callables are static.
    dynamic
        Whether to trace again when a branch on traced data goes another way than recorded. Up to 1024 tapes are
        kept for one kind of arguments, and chosen among without tracing; past that they are forgotten. ``"auto"``
        follows branches too, to 64 tapes: past that there is an error that names the branch.
    seed
        The derivative of the final result by the value of ``f``, of the value's shape; one by default. With a
        seed ``f`` may return an array.
    target
        What to generate code for: ``"numpy"``; ``"c"``, which needs a C compiler; ``"auto"``, which starts on NumPy
        code and goes on in C once that is compiled in the background; or ``"cuda"``, which arrays of CuPy's choose by
        themselves. By default it is what `configure` says, ``"numpy"`` unless that was called.
    strict
        Whether the value must be bitwise what NumPy gives for ``f(*args)``.
    effort
        How long to look for few operations of scalar code: ``"quick"``, in less time than the rest of compiling, or
        ``"high"``, for seconds, which pays for polynomials that are evaluated very often.
    has_aux
        Whether ``f`` returns ``(value, aux)``, of which the value is differentiated; see `value_and_grad`.
    **kwargs
        Keyword arguments of ``f``.

    Returns
    -------
    value
        What ``f(*args)`` gives, of the same type: a NumPy scalar from NumPy's functions, a Python float from
        arithmetic on Python floats.
    g
        `GradResult`: ``g[0]`` is the gradient by the first argument, in its shape and dtype; a dict from field path
        to array for a structure; None for an argument without derivative. By a complex ``z`` it is
        ``dL/dRe(z) + i dL/dIm(z)``.

    Raises
    ------
    ArgumentError, TracingError, MissingRuleError, DifferentiationError, StaleTapeError
        See `yota.errors`; exceptions of ``f`` itself come through unchanged.

    Examples
    --------
    >>> import numpy as np
    >>> val, g = grad(lambda x: np.sum(x**2), np.array([1.0, 2.0, 3.0]))
    >>> float(val), g[0]
    (14.0, array([2., 4., 6.]))
    """
    from yota.compilation.specialise import Target
    from yota.derivatives.evaluated import evaluated, seeded
    from yota.tracing.tracebacks import users_frames

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
    """A function that gives the value of ``f`` and its gradient, fit for ``scipy.optimize.minimize(..., jac=True)``.

    Parameters
    ----------
    f
        A plain NumPy function that returns a scalar.
    wrt
        What to differentiate by: an argument's position or name, or a tuple of them.
    target, strict, effort, dynamic
        See `grad`.
    has_aux
        Whether ``f`` returns ``(value, aux)``: a scalar to differentiate, and beside it a number, an array, or a
        structure of them, which comes with the value.
    args
        Specs of the arguments in which sizes have names, such as ``{"x": "float64[N,3]"}`` (see `yota.generate`). The
        function is then compiled here and now for all sizes, and never traced again when one changes.

    Returns
    -------
    Callable
        Takes the arguments of ``f``; gives ``(value, gradient)``, the gradient a tuple if ``wrt`` is one; with
        ``has_aux`` it gives ``((value, aux), gradient)``.

    Raises
    ------
    ArgumentError
        With ``args``: if the function takes other steps when a size changes, as a loop over it or a branch on it
        does; the message names the line.

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
    from yota.compilation.specialise import Target
    from yota.derivatives.calling import caller
    from yota.derivatives.differentiated import Differentiated
    from yota.derivatives.forms import form_of

    # A batched function exists only once its module is loaded, which brings much of the code generation with it.
    batching = sys.modules.get("yota.batching.batch")
    if batching is not None and isinstance(f, batching.Batched):
        if args is not None:
            raise ArgumentError(
                f"args= compiles {f.__name__} for all sizes, which batch does for one number of points at a time; "
                "leave args= out"
            )

        def of_one(one: Callable[..., Any]) -> Callable[..., Any]:
            return value_and_grad(one, wrt, strict=strict, dynamic=dynamic, has_aux=has_aux)

        many: Callable[..., tuple[Any, Any]] = f.mapped(of_one, Target.wanted(target, strict), dynamic=dynamic)
        return many
    options = {"target": target, "strict": strict, "effort": effort, "dynamic": dynamic, "has_aux": has_aux}
    recipe = value_and_grad, (f, wrt), {**options, "args": args}
    if args is not None:
        from yota.derivatives.allsizes import AllSizes, check_options

        check_options(target, dynamic, has_aux)
        form = AllSizes(f, args, wrt, strict=strict)
        if Target.wanted(target).name == "auto":
            form.journal.target = "numpy (args= compiles for all sizes, which C cannot)"
        return caller(form, recipe, "value and gradient")
    made = form_of(Differentiated, f, wrt, Target.wanted(target, strict, effort), dynamic=dynamic, has_aux=has_aux)
    return caller(made, recipe, "value and gradient")


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
    """A function that gives the gradient of ``f`` alone.

    Parameters
    ----------
    f, wrt, target, strict, effort, dynamic, has_aux, args
        See `value_and_grad`.

    Returns
    -------
    Callable
        Takes the arguments of ``f``; gives the gradient, a tuple if ``wrt`` is one; with ``has_aux`` it gives
        ``(gradient, aux)``.

    Examples
    --------
    >>> import numpy as np
    >>> gradient(lambda x: np.sum(x**3))(np.array([1.0, 2.0]))
    array([ 3., 12.])
    >>> gradient(lambda x: (np.sum(x**3), {"norm": np.sqrt(x @ x)}), has_aux=True)(np.array([3.0, 4.0]))
    (array([27., 48.]), {'norm': ...5.0...})
    """
    from yota.derivatives.calling import Slope, SlopeBeside

    options: dict[str, Any] = {"target": target, "strict": strict, "effort": effort, "dynamic": dynamic}
    options |= {"has_aux": has_aux, "args": args}
    kind = SlopeBeside if has_aux else Slope
    return kind((gradient, (f, wrt), options), value_and_grad(f, wrt, **options))
