"""Functions of yota's own that generated code calls: a standalone module has them written out."""

from __future__ import annotations

import inspect
import re

from yota.ir import factors

__all__ = ["PREFIX", "borrowed", "renamed"]

PREFIX = "_linalg__"
"""Ahead of the names of such functions; names made from a user's never have two underscores in a row."""
_CALL = re.compile(rf"\byota\.ir\.factors\.({'|'.join(factors.__all__)})\(")
_IMPORT = re.compile(r"^import yota\.ir\.factors\n", re.MULTILINE)


def renamed(text: str) -> str:
    """Generated code that calls them by the names that they have in a module.

    Examples
    --------
    >>> renamed("w, v = yota.ir.factors.eig(a)")
    'w, v = _linalg__eig(a)'
    """
    return _CALL.sub(rf"{PREFIX}\1(", _IMPORT.sub("", text))


def borrowed(text: str) -> list[str]:
    """The definitions of those that ``text`` calls."""
    return [
        inspect.getsource(getattr(factors, name)).strip().replace(f"def {name}(", f"def {PREFIX}{name}(", 1)
        for name in factors.__all__
        if f"{PREFIX}{name}(" in text
    ]
