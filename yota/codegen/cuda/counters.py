"""Counters of a kernel's loops: their names and type, and single ones out of one that runs over several axes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Counters"]


@dataclass(frozen=True, slots=True)
class Counters:
    """The counters of one kernel.

    Parameters
    ----------
    names
        One for each axis.
    extents
        Extents of the loops that are left, each with those that were merged into it.
    type
        Wide enough for all offsets.
    """

    names: Sequence[str]
    extents: Mapping[int, int]
    type: str

    def over(self, axes: Sequence[int], several: str) -> str:
        """The counter over all points along ``axes``, called ``several`` if it is not that of a single axis.

        Examples
        --------
        >>> Counters(("i", "j"), {0: 4, 1: 5}, "int").over((1,), "point")
        'j'
        """
        return self.names[axes[0]] if len(axes) == 1 else several

    def decomposed(self, axes: Sequence[int], counter: str) -> list[str]:
        """Statements for the counters of single axes out of one over all; none where that is the only one.

        Examples
        --------
        >>> Counters(("i", "j"), {0: 4, 1: 5}, "int").decomposed((0, 1), "point")
        ['const int i = point / 5;', 'const int j = point % 5;']
        """
        lines = []
        step = math.prod(self.extents[axis] for axis in axes)
        for position, axis in enumerate(axes if len(axes) > 1 else ()):
            step //= self.extents[axis]
            text = counter if step == 1 else f"{counter} / {step}"
            if position:
                text = f"{text} % {self.extents[axis]}"
            lines.append(f"const {self.type} {self.names[axis]} = {text};")
        return lines
