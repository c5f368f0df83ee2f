"""The argument ``modules`` of `yota.lambdify`: functions and constants by the names that code of sympy's has."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import sympy
from sympy.core.function import AppliedUndef
from sympy.printing.numpy import SciPyPrinter
from sympy.utilities.lambdify import _get_namespace

from yota.errors import ArgumentError
from yota.interop.programs import Program
from yota.interop.sympy_import import program
from yota.rules.language.model import Literal

_MODULES = ("numpy", "scipy", "math")
_CONSTANTS = [getattr(sympy, name) for name in "pi E EulerGamma GoldenRatio Catalan TribonacciConstant oo nan".split()]


def program_with(
    modules: Any, expressions: Any, symbols: Any, *, use_imps: bool
) -> tuple[Program, tuple[tuple[str, Callable[..., Any]], ...]]:
    """The program of expressions, with the functions and constants of ``modules``."""
    own = _own(modules)
    implemented = _implemented(expressions)
    if not use_imps and not implemented <= {*own}:
        raise ArgumentError("use_imps=False leaves a function without its implementation; give it one in modules")
    own = {name: each for name, each in own.items() if not (use_imps and name in implemented)}
    if not own:
        return program(expressions, symbols, "formula", {})
    printer = SciPyPrinter(
        {
            "fully_qualified_modules": False,
            "inline": True,
            "allow_unknown_functions": True,
            "user_functions": {name: name for name in own},
        }
    )
    used = {*re.findall(r"[A-Za-z_]\w*", _printed(printer, expressions))} - _symbols(symbols)
    functions = {name: each for name, each in own.items() if name in used and callable(each)}
    numbers = {
        name: Literal(each)
        for name, each in own.items()
        if name in used and isinstance(each, (bool, int, float, complex))
    }
    constants: dict[Any, Literal] = dict(numbers)
    constants |= {each: numbers[name] for each in _CONSTANTS if (name := printer.doprint(each)) in numbers}
    found, implementations = program(expressions, symbols, "formula", functions, constants)
    places = {name.removesuffix("()") for name, _ in implementations} | {printer.doprint(each) for each in constants}
    for name in own:
        if name in used and name not in places:
            raise ArgumentError(f"modules has {name!r}, which yota cannot replace in {str(expressions)[:60]}")
    return found, implementations


def _own(modules: Any) -> dict[str, Any]:
    """The values of the dicts that no earlier module has."""
    found: dict[str, Any] = {}
    for each in reversed(modules if isinstance(modules, (list, tuple)) else [] if modules is None else [modules]):
        if isinstance(each, Mapping):
            found.update(each)
            continue
        name = each if isinstance(each, str) else getattr(each, "__name__", None)
        if name not in _MODULES:
            raise ArgumentError(f"modules={each!r:.40} is not among {_MODULES}, nor a dict by name")
        taken = _get_namespace(name)
        found = {name: value for name, value in found.items() if name not in taken}
    return found


def _implemented(expressions: Any) -> set[str]:
    """Names of functions with an implementation of their own."""
    if isinstance(expressions, (list, tuple)):
        return {name for each in expressions for name in _implemented(each)}
    found = expressions.atoms(AppliedUndef, sympy.Function) if hasattr(expressions, "atoms") else ()
    return {each.func.__name__ for each in found if hasattr(each.func, "_imp_")}


def _printed(printer: Any, expressions: Any) -> str:
    """The code of expressions, in which the names of their functions and constants are."""
    if isinstance(expressions, (list, tuple)):
        return " ".join(_printed(printer, each) for each in expressions)
    if isinstance(expressions, str):
        return expressions
    try:
        return str(printer.doprint(expressions))
    except (NotImplementedError, TypeError, ValueError):
        return str(expressions)


def _symbols(symbols: Any) -> set[str]:
    """Names of arguments, which hide those of modules."""
    if isinstance(symbols, str):
        return {each.strip() for each in symbols.split(",")}
    if isinstance(symbols, (list, tuple, sympy.Tuple, sympy.MatrixBase)):
        return {name for each in symbols for name in _symbols(each)}
    return {str(symbols)}
