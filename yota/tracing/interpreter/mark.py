"""Functions that run from their source are marked as such, with what they can read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import CellType, CodeType
from typing import Any

_MARK = "yota_interpreted"


@dataclass(frozen=True, slots=True, eq=False)
class Scope:
    """What a function inside of an interpreted one can read.

    code, globals, cells: code, global variables and closure of the outermost function.
    variables: its default values, and the variables of the interpreted functions around it.
    """

    code: CodeType | None
    globals: dict[str, Any]
    cells: Mapping[str, CellType]
    variables: tuple[dict[str, Any], ...]


def marked(function: Any, scope: Scope | None = None) -> Any:
    """``function``, marked as one that runs from its source."""
    setattr(function, _MARK, scope)
    return function


def is_marked(function: Any) -> bool:
    """Whether a function runs from its source."""
    return _MARK in getattr(function, "__dict__", ()) or _MARK in vars(type(function))


def scope_of(function: Any) -> Scope | None:
    """What a function reads that the interpreter has made; None for others."""
    found: Scope | None = vars(function).get(_MARK)
    return found
