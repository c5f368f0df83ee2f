"""Python functions around kernels whose arrays end in any number of axes, in the place of one."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["FURTHER", "OpenAxes"]

FURTHER = "further_axes"
"""What their extents are called, and no argument."""


@dataclass(frozen=True, slots=True)
class OpenAxes:
    """The last axes of arrays, which kernels take for one of ``size`` elements."""

    size: str

    def found(self, name: str, axis: int) -> tuple[str, str]:
        """Statements that find the size from the argument ``name``, in which those axes begin with ``axis``."""
        return f"{FURTHER} = _further({name}, {axis})", f"{self.size} = math.prod({FURTHER})"

    def shaped(self, line: str) -> str:
        """A statement that checks an argument or makes a result, with all axes that those have.

        Examples
        --------
        >>> OpenAxes("rest").shaped("gradient = cp.empty((rest, 3), cp.float64)")
        'gradient = cp.empty((*further_axes, 3), cp.float64)'
        """
        if re.search(r"_checked\(|cp\.(empty|zeros)\(\(", line):
            line = re.sub(rf"(?<=[(]){self.size}(?=[,)])|(?<=, ){self.size}(?=[,)])", f"*{FURTHER}", line)
            return line.replace(f"(*{FURTHER},)", FURTHER)
        # Buffers are counted in bytes, and stay as they are.
        return re.sub(rf"(?<=cp\.empty\(|cp\.zeros\(){self.size}(?=, (?!cp\.uint8))", FURTHER, line)
