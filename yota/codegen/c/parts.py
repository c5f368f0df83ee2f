"""The inline functions that generated loops call, each after what it calls itself."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from yota.codegen.c.lines import Needs
from yota.codegen.c.plan import KernelPlan, Part
from yota.codegen.c.types import c_type, suffix

__all__ = ["parts", "preludes"]

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


_CALLED = {
    "take_float": "take_double",
    "take_cfloat": "take_cdouble",
    "take_int32": "take_int64",
    "take_uint8": "take_int64",
    "take_array": "wrong_array",
}


def preludes(kernels: Iterable[KernelPlan]) -> list[str]:
    """Names of what takes arguments and makes results, each after what it calls."""
    wanted: set[str] = set()
    for kernel in kernels:
        wanted.update(argument.number or "take_array" for argument in kernel.arguments)
        wanted.update(result.make for result in kernel.results if result.make)
        wanted.update(["checked_places"] if kernel.places else [])
    wanted.update(_CALLED[name] for name in list(wanted) if name in _CALLED)
    return sorted(wanted, key=lambda name: (name in _CALLED, name))
