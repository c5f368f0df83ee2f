"""One op with the texts of its operands, ready to be spelled as NumPy code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from yota.ir.primitive import BINARY, COMPARISONS
from yota.ir.tape import Op
from yota.ir.types import TensorType

OPERATORS = {name: each.sign for name, each in BINARY.items() if name not in ("remainder", "floor_divide")}
"""Operators of Python that arrays and numbers know, by the primitive that each stands for."""
_COMPARISONS = frozenset(OPERATORS[name] for name in COMPARISONS)
_BINDING = {**dict.fromkeys(_COMPARISONS, 0), "+": 1, "-": 1, "*": 2, "/": 2, "@": 2, "**": 4}
_NEGATION, _PRIMARY = 3, 5


@dataclass(frozen=True, slots=True)
class Call:
    """One op ready to be spelled.

    name_object: gives the name under which an object that has no literal is known to the generated code.
    rows: in a loop over blocks: the blocked axis of the result and the text of its extent.
    distinct: positions of the operands that hold no index twice.
    exact: whether the result must have the bits that the user's own operator gives.
    ones: gives the name of a constant of so many ones, for sums by BLAS; None where NumPy's order of summation must be
        kept.
    dense: whether operands lie in memory without gaps.
    cuts: whether a choice by a mask works on bits, rather than with a branch for each element.
    unsigned: positions of the operands that hold no index below 0.
    """

    op: Op
    operands: tuple[str, ...]
    types: tuple[TensorType, ...]
    type: TensorType
    name_object: Callable[[str, Any], str]
    import_module: Callable[[str], None]
    rows: tuple[int, str] | None = None
    distinct: frozenset[int] = frozenset()
    exact: bool = False
    ones: Callable[[int, np.dtype[Any]], str] | None = None
    dense: bool = False
    cuts: bool = False
    unsigned: frozenset[int] = frozenset()

    @property
    def shape(self) -> tuple[object, ...]:
        """Shape of the result, with the blocked extent as text."""
        shape: list[object] = list(self.type.shape)
        if self.rows is not None:
            shape[self.rows[0]] = self.rows[1]
        return tuple(shape)


def infix(operator: str, left: str, right: str) -> str:
    """``left operator right``, with parentheses where Python would read it otherwise."""
    binding = _BINDING[operator]
    chains = operator not in {"**", *_COMPARISONS}
    if _binding(left) < binding + (not chains):
        left = f"({left})"
    if _binding(right) <= binding:
        right = f"({right})"
    return f"{left} {operator} {right}"


def negated(text: str) -> str:
    """``-text``, with parentheses where Python would read it otherwise."""
    return f"-({text})" if _binding(text) <= _NEGATION else f"-{text}"


def owner(text: str) -> str:
    """``text`` with parentheses where a dot or bracket cannot follow it as it is."""
    return f"({text})" if text[0] in ".0123456789" or _binding(text) < _PRIMARY else text


def _binding(text: str) -> int:
    """How tightly the loosest operator outside of brackets binds; operators are written between blanks."""
    depth, word, loosest = 0, "", _NEGATION if text.startswith("-") else _PRIMARY
    for character in f"{text} ":
        depth += (character in "([{") - (character in ")]}")
        if depth:
            continue
        if character == " ":
            loosest = min(loosest, _BINDING.get(word, _PRIMARY))
            word = ""
        else:
            word += character
    return loosest
