"""Functions of yota's own that generated code calls: a standalone module has them written out."""

from __future__ import annotations

import inspect

from yota.ir import choices, factors, incomplete

PREFIX = "_own__"
"""Ahead of the names of such functions; names made from a user's never have two underscores in a row."""
MODULES = (choices, factors, incomplete)
"""Where they are: functions that need nothing but `np`."""


def renamed(text: str) -> str:
    """Generated code that calls them by the names that they have in a module.

    >>> renamed("w, v = yota.ir.factors.eig(a)")
    'w, v = _own__eig(a)'
    """
    for module in MODULES:
        text = text.replace(f"import {module.__name__}\n", "").replace(f"{module.__name__}.", PREFIX)
    return text


def is_own(function: object) -> bool:
    """Whether ``function`` is one of them."""
    return getattr(function, "__module__", "") in [module.__name__ for module in MODULES]


def borrowed(text: str) -> list[str]:
    """The definitions of those that ``text`` calls."""
    return [
        inspect.getsource(getattr(module, name)).strip().replace(f"def {name}(", f"def {PREFIX}{name}(", 1)
        for module in MODULES
        for name in module.__all__
        if f"{PREFIX}{name}(" in text
    ]
