"""How arguments and results of kernels lie in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from yota.ir.types import TensorType

__all__ = ["Layout"]


@dataclass(frozen=True, slots=True)
class Layout:
    """How arguments and results lie in memory.

    Parameters
    ----------
    pointers
        Variables without axes that are in the device's memory, rather than an argument's value.
    strides
        Strides of arrays that are not in C order, in elements.
    tables
        Names of constant arrays that the file itself holds.
    stored
        The dtype in memory of variables of which it is not that in which they are computed.
    inside
        Index arrays that are known to have places on their axes only.
    """

    pointers: frozenset[int]
    strides: Mapping[int, Sequence[int]] = field(default_factory=dict)
    tables: Mapping[int, str] = field(default_factory=dict)
    stored: Mapping[int, np.dtype[Any]] = field(default_factory=dict)
    inside: frozenset[int] = frozenset()

    def type(self, variable: int, types: Mapping[int, TensorType]) -> TensorType:
        """The type of a variable in memory."""
        found = types[variable]
        return replace(found, dtype=self.stored[variable]) if variable in self.stored else found
