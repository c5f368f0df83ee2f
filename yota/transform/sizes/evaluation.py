"""Values of expressions that generated Python code is made of: of sizes, and of constant arrays."""

from __future__ import annotations

import ast
import functools
import math
from collections.abc import Mapping
from types import CodeType
from typing import Any

import numpy as np

_NAMES = {"np": np, "math": math, "float": float, "complex": complex, "__builtins__": {}}


def evaluated(text: str, size: Mapping[str, Any]) -> Any:
    """What an expression of yota's own gives at one size.

    >>> evaluated("np.full((N, 2), N * (N - 1) // 2)", {"N": 3})
    array([[3, 3],
           [3, 3],
           [3, 3]])
    """
    return eval(_compiled(text), _NAMES, size)


@functools.lru_cache(4096)
def _compiled(text: str) -> CodeType:
    return compile(text, "<sizes>", "eval")


@functools.lru_cache(4096)
def parsed(text: str) -> ast.expr:
    """The syntax tree of an expression."""
    return ast.parse(text, mode="eval").body
