"""Names and signatures of what is made from a function of the user."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from yota.ir.callables import name_of

_Function = TypeVar("_Function", bound=Callable[..., Any])


def named(wrapper: _Function, f: Callable[..., Any], what: str) -> _Function:
    """``wrapper`` with the name and the signature of ``f``."""
    name = name_of(f)
    wrapper.__name__ = wrapper.__qualname__ = name
    wrapper.__doc__ = f"The {what} of {name}."
    # So that its signature is that of `f`.
    wrapper.__wrapped__ = f  # type: ignore[attr-defined]
    return wrapper
