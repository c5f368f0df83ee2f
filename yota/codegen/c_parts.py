"""The inline functions that generated loops call, each after what it calls itself."""

from __future__ import annotations

import numpy as np

from yota.codegen.c_lines import Needs
from yota.codegen.c_plan import Part
from yota.codegen.c_types import c_type, suffix

__all__ = ["parts"]

_CALLS = {
    "log_add_exp": ("larger",),
    "complex_square": ("complex_multiply",),
    "complex_add_to": ("add_to",),
    "complex_total": ("total",),
}


def parts(needs: Needs, qualifier: str = "static inline", *, vectors: bool = True) -> tuple[Part, ...]:
    """What ``needs`` asks for.

    Parameters
    ----------
    qualifier
        How such a function is declared.
    vectors
        Whether compilers must be told how it reduces vectors.
    """
    found = set(needs.parts)
    for name, dtype in needs.parts:
        inner = "float64" if name in ("complex_add_to", "complex_total") else dtype
        found |= {(called, inner) for called in _CALLS.get(name, ())}
    order = sorted(found, key=lambda part: (part[0] in _CALLS, part))
    return tuple(
        Part(f"c/parts/{name}.c.jinja", c_type(np.dtype(dtype)), suffix(np.dtype(dtype)), qualifier, vectors)
        for name, dtype in order
    )
