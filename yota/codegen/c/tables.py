"""Constant arrays as tables of a C file: each written once, exactly."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np

from yota.codegen.c.names import FileNames
from yota.codegen.c.types import c_type, is_known, literal, real_type
from yota.errors import CodegenError

__all__ = ["Tables"]

_MOST = 1 << 16
"""Elements of one table that a file may carry."""
_COLUMNS = 96


class Tables:
    """The tables of one file; equal ones share a name.

    Attributes
    ----------
    lines
        Their definitions, in order.
    """

    def __init__(self, names: FileNames) -> None:
        self.lines: list[str] = []
        self._names = names
        self._known: dict[tuple[str, bytes], str] = {}

    def name(self, hint: str, value: np.ndarray[Any, Any]) -> str:
        """The expression by which code reads a table in C order.

        Raises
        ------
        CodegenError
            If it is too large, or of a dtype that C does not have.
        """
        if not is_known(value.dtype):
            raise CodegenError(f"the constant {hint} has dtype {value.dtype}, which generated C cannot spell")
        if value.size > _MOST:
            raise CodegenError(
                f"the function uses an array of {value.size} elements of its surroundings, more than the {_MOST} that "
                "a file may carry; pass it as an argument"
            )
        key = value.dtype.name, np.ascontiguousarray(value).tobytes()
        if key not in self._known:
            self._known[key] = self._define(hint, value)
        return self._known[key]

    def _define(self, hint: str, value: np.ndarray[Any, Any]) -> str:
        flat = np.ascontiguousarray(value).ravel()
        name = self._names.fresh(f"{hint}_table")
        if flat.dtype.kind != "c":
            head = f"static const {c_type(flat.dtype)} {name}[{flat.size}] = {{"
            self.lines += [head, *_rows(flat), "};"]
            return name
        # C99 has no constant expression for a complex number with an infinite part: its parts are listed.
        part = real_type(flat.dtype)
        kind = c_type(flat.dtype)
        head = (
            f"static const union {{ {c_type(part)} parts[{2 * flat.size}]; {kind} values[{flat.size}]; }} {name} = {{{{"
        )
        self.lines += [head, *_rows(flat.view(part)), "}};"]
        return f"{name}.values"


def _rows(flat: np.ndarray[Any, Any]) -> list[str]:
    words = " ".join(f"{literal(item, flat.dtype)}," for item in flat)
    return textwrap.wrap(words, _COLUMNS, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)
