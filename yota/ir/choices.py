"""Branch-free selection between real numbers by a mask, with bit operations.

Each function needs only `np`, and writes into ``out``, whose dtype is that of the numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def choose(mask: Any, chosen: Any, other: Any, *, out: Any) -> None:
    """``chosen`` where the mask holds, else ``other``; ``out`` may be ``chosen``, but not ``other``."""
    bits = f"i{out.itemsize}"
    result, rest = out.view(bits), np.asarray(other, out.dtype).view(bits)
    np.bitwise_xor(np.asarray(chosen, out.dtype).view(bits), rest, out=result)
    # A true element is 1, and -1 has all bits set.
    np.bitwise_and(result, -mask.view("i1"), out=result)
    np.bitwise_xor(result, rest, out=result)


def keep(mask: Any, numbers: Any, *, out: Any) -> None:
    """``numbers`` where the mask holds, else 0; ``out`` may be ``numbers``."""
    bits = f"i{out.itemsize}"
    # A true element is 1, and -1 has all bits set.
    np.bitwise_and(np.asarray(numbers, out.dtype).view(bits), -mask.view("i1"), out=out.view(bits))


def drop(mask: Any, numbers: Any, *, out: Any) -> None:
    """0 where the mask holds, else ``numbers``; ``out`` may be ``numbers``."""
    bits = f"i{out.itemsize}"
    np.bitwise_and(np.asarray(numbers, out.dtype).view(bits), mask.view("i1") - 1, out=out.view(bits))
