"""`yota.from_sympy` and `yota.lambdify`: functions from sympy expressions."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from itertools import zip_longest
from typing import Any

from yota.errors import ArgumentError
from yota.interop.programs import Formula, formula
from yota.run.derivatives.value_only import Value
from yota.run.specialise import Target

__all__ = ["from_sympy", "lambdify"]


def from_sympy(
    expressions: Any, symbols: Any, *, name: str = "f", functions: Mapping[str, Callable[..., Any]] | None = None
) -> Callable[..., Any]:
    """Create a function from sympy expressions.

    Parameters
    ----------
    expressions
        An expression, its text, or a list, tuple, matrix or array of them. A text is parsed, not executed.
    symbols
        The arguments: symbols, `sympy.IndexedBase`, `sympy.MatrixSymbol`, and lists, tuples and matrices of symbols.
    name
        Name in generated code.
    functions
        NumPy implementations of sympy functions, by name. Functions of sympy's ``implemented_function``, and
        functions with a rule, need none.

    Returns
    -------
    Callable
        Takes numbers, or arrays for element-by-element evaluation, like the result of sympy's ``lambdify``. It
        computes with NumPy; `yota.gradient`, `yota.jacobian`, `yota.batch`, `yota.generate` and all other
        transformations accept and compile it. Symbols in bounds and indices take an int.

    Raises
    ------
    ArgumentError
        If NumPy and SciPy have no function for a part of the expressions.

    Examples
    --------
    >>> import sympy
    >>> import yota
    >>> x, y = sympy.symbols("x y")
    >>> f = yota.from_sympy(x**2 * sympy.sin(y), (x, y))
    >>> value, g = yota.grad(f, 2.0, 0.0)
    >>> g[0], g[1]
    (0.0, 4.0)
    """
    from yota.interop.sympy_import import program

    found = formula(*program(expressions, symbols, name, functions or {}))
    found.__module__ = str(sys._getframe(1).f_globals.get("__name__", ""))
    return found


def lambdify(
    args: Any,
    expr: Any,
    modules: Any = None,
    printer: Any = None,
    use_imps: bool = True,
    dummify: bool = False,
    cse: Any = False,
    docstring_limit: int | None = 1000,
    *,
    target: str | None = None,
    strict: bool = False,
    effort: str = "quick",
) -> Callable[..., Any]:
    """Create a compiled function from sympy expressions, with the arguments of ``sympy.lambdify``.

    Parameters
    ----------
    args
        The argument ``symbols`` of `from_sympy`.
    expr
        The argument ``expressions`` of `from_sympy`.
    modules
        ``"numpy"``, ``"scipy"`` or ``"math"``, a dict of functions and constants by name, or a list of these, of
        which the first takes precedence. yota always uses NumPy and SciPy.
    printer
        Not supported.
    use_imps
        Whether implementations that functions have take precedence over ``modules``. False requires that
        ``modules`` has those functions.
    dummify, cse, docstring_limit
        No effect on values: names never conflict, common subexpressions are always shared, and the docstring has no
        code.
    target, strict, effort
        See `yota.grad`. The default is C if there is a compiler, otherwise NumPy. C takes part of a second at the
        first call with new argument types.

    Returns
    -------
    Callable
        Takes numbers or arrays. ``yota.gradient(f)`` and all other derivatives accept it.

    Raises
    ------
    ArgumentError
        If an expression or another argument is not supported.

    Examples
    --------
    >>> import numpy as np
    >>> import sympy
    >>> import yota
    >>> x, y = sympy.symbols("x y")
    >>> f = yota.lambdify([x, (y,)], sympy.Matrix([x + y, sympy.sqrt(x)]), target="numpy")
    >>> f(4, [1])
    array([[5.],
           [2.]])
    >>> yota.gradient(yota.lambdify(x, x**3))(2.0)
    12.0
    """
    if printer is not None:
        raise ArgumentError("printer is for code that is printed, and none is; leave it out")
    from yota.interop.sympy_modules import program_with

    found = formula(*program_with(modules, expr, args, use_imps=use_imps))
    found.__module__ = str(sys._getframe(1).f_globals.get("__name__", ""))
    front: Callable[..., Any] = _lambdified(found, target, strict, effort).front
    return front


def _lambdified(found: Formula, *options: Any) -> Lambdified:
    return Lambdified(found, *options)


class Lambdified(Value):
    """The compiled value of an expression."""

    def __init__(self, found: Formula, target: str | None, strict: bool, effort: str) -> None:
        from yota.run.machine import native

        wanted = Target(target or ("c" if native.is_available() else "numpy"), strict, effort)
        super().__init__(found, wanted, (_lambdified, (found, target, strict, effort), {}))
        self._counts = tuple(any(leaf.kind == "integer" for leaf in each.leaves()) for each in found.program.arguments)

    def make(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the compiled code for these argument types, compiled if necessary; integers become floats."""
        from yota.run.machine.c_dispatch import offer_whole

        taken = tuple([each if counts else _floating(each) for each, counts in self._paired(args)])
        own, floating = (tuple(self._kinds(each)) for each in (args, taken))
        if floating != own:
            found = self(*taken, **kwargs)
            if self.front is not self and not kwargs:
                offer_whole(self.front, own, floating)
            return found
        return super().make(taken, kwargs)

    def _paired(self, args: tuple[Any, ...]) -> Iterator[tuple[Any, bool]]:
        """Each argument, and whether its integers are static."""
        return zip_longest(args, self._counts[: len(args)], fillvalue=True)

    def _kinds(self, args: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
        from yota.run.derivatives.call_entry import kinds_of

        for each, counts in self._paired(args):
            yield from kinds_of((each,), static=counts)


def _floating(value: Any) -> Any:
    if type(value) in (list, tuple):
        return type(value)(map(_floating, value))
    return float(value) if type(value) is int else value
