"""Attaches methods of higher layers to lower ones: evaluation, pages and pickles to tapes, stored proofs to rules."""

from __future__ import annotations

import copyreg
from collections.abc import Callable
from importlib import import_module
from typing import Any

import yota
from yota.errors import YotaError
from yota.ir import regions
from yota.ir.primitive import Primitive
from yota.ir.regions import Region
from yota.ir.tape import Tape
from yota.rules.packages import Packages
from yota.run.machine.store import Proofs
from yota.run.persistent import find, reference


def _repr_html_(tape: Tape) -> str:
    """HTML of a tape for notebooks."""
    from yota.tools.report.notebook import tape_html

    return tape_html(tape)


def to_sympy(tape: Tape) -> Any:
    """The results of a tape as sympy expressions.

    A number among the inputs becomes a symbol, an array an `sympy.IndexedBase`. A small array result is a matrix or
    array of expressions; a larger one is a `sympy.Lambda` of its indices. The formulas are for reading and for
    sympy, which may combine terms that the function computes one by one.

    Returns
    -------
    sympy.Basic
        The result, or a tuple of several results. For a tape with adjoints these are the value and its derivatives.

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
    from yota.interop import sympy_export as tapes

    return tapes.to_sympy(tape)


def latex(tape: Tape) -> str:
    r"""The results of a tape as LaTeX formulas, one per line: the value, then the derivatives.

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
    from yota.interop import sympy_export as tapes

    return tapes.latex(tape)


def _repr_latex_(tape: Tape) -> str | None:
    """LaTeX for notebooks that do not show HTML."""
    try:
        return f"$\\displaystyle {latex(tape)}$"
    except YotaError:
        return None


# The module of tapes must not import evaluation, code generation or pages.
for _method in (to_sympy, latex, _repr_html_, _repr_latex_):
    setattr(Tape, _method.__name__, _method)


class _Imported:
    """A method whose module is imported when it is first used."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, tape: Tape | None, owner: Any = None) -> Any:
        found = getattr(import_module("yota.run.playing"), self.name)
        setattr(Tape, self.name, found)
        return found if tape is None else found.__get__(tape)


for _name in ("play", "compile"):
    setattr(Tape, _name, _Imported(_name))


def _compiled(region: Region) -> Callable[..., tuple[Any, ...]]:
    """See `yota.run.playing.compile_loop`."""
    found: Callable[..., tuple[Any, ...]] = import_module("yota.run.playing").compile_loop(region)
    return found


regions.compiles(_compiled)


def _by_name(known: Primitive) -> tuple[Any, tuple[Any, ...]]:
    """Pickle a primitive by its name, or by its function if it has no rule."""
    name = reference(known)
    if name is not None:
        return find, (name,)
    from yota.tracing.intercept import opaque

    return opaque, (known.function,)


copyreg.pickle(Primitive, _by_name)


def proofs() -> Proofs:
    """The persistent record of verified rule texts."""
    return Proofs(yota.__version__)


Packages.proofs = staticmethod(proofs)
