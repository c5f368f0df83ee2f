"""Gives lower layers what they offer and do not know: tapes evaluation, pages and pickles, rules a memory of proofs."""

from __future__ import annotations

import copyreg
from typing import Any

import yota
from yota.compilation.playing import compile, play
from yota.compilation.primitives import find, reference
from yota.errors import YotaError
from yota.ir.primitive import Primitive
from yota.ir.tape import Tape
from yota.rules.packages import Packages
from yota.runtime.proofs import Proofs
from yota.tracing.intercept import opaque


def _repr_html_(tape: Tape) -> str:
    """What a notebook shows of a tape."""
    from yota.report.notebook import tape_html

    return tape_html(tape)


def to_sympy(tape: Tape) -> Any:
    """The results of a tape as expressions of sympy's.

    A number among the inputs is a symbol of its name, an array an `sympy.IndexedBase`. A result that is an array is a
    matrix or array of expressions where it is small; a larger one is a `sympy.Lambda` of its indices. The formulas are
    for reading, and for sympy: it may put terms together that the function computes one by one.

    Returns
    -------
    sympy.Basic
        The result; a tuple of them if there are several, as of a tape with adjoints: the value and its derivatives.

    Raises
    ------
    ArgumentError
        If an op has no formula, such as a factorisation of a matrix; the message names it.

    Examples
    --------
    >>> import numpy as np
    >>> import yota
    >>> value, g = yota.grad(lambda x, w: np.sum(w * x**2), np.ones(100), 2.0)
    >>> g.tape.to_sympy()
    (Sum(w*x[i]**2, (i, 0, 99)), Lambda(i, 2*w*x[i]), Sum(x[i]**2, (i, 0, 99)))
    """
    from yota.interop import tapes

    return tapes.to_sympy(tape)


def latex(tape: Tape) -> str:
    r"""The results of a tape as formulas in LaTeX, one to a line: the value, then derivatives.

    Raises
    ------
    ArgumentError
        If an op has no formula, or the formulas are too long to be read.

    Examples
    --------
    >>> import yota
    >>> value, g = yota.grad(lambda x, y: x * y**2, 1.0, 2.0)
    >>> print(g.tape.latex())
    \begin{aligned}
    f &= x y^{2} \\
    \frac{d}{d x} f &= y^{2} \\
    \frac{d}{d y} f &= 2 x y
    \end{aligned}
    """
    from yota.interop import tapes

    return tapes.latex(tape)


def _repr_latex_(tape: Tape) -> str | None:
    """What a notebook shows where it shows no HTML."""
    try:
        return f"$\\displaystyle {latex(tape)}$"
    except YotaError:
        return None


# The intermediate representation knows neither evaluation nor code generation nor pages; its tapes offer all the same.
for _method in (play, compile, to_sympy, latex, _repr_html_, _repr_latex_):
    setattr(Tape, _method.__name__, _method)


def _by_name(known: Primitive) -> tuple[Any, tuple[Any, ...]]:
    """How a primitive is pickled: by its name; where it has no rule, by its function."""
    name = reference(known)
    return (find, (name,)) if name is not None else (opaque, (known.function,))


copyreg.pickle(Primitive, _by_name)


def proofs() -> Proofs:
    """What remembers, from one process to the next, which rule texts were proved."""
    return Proofs(yota.__version__)


Packages.proofs = staticmethod(proofs)
