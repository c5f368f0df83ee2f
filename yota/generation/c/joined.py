"""Value and gradient for all sizes as one extension module, for this process."""

from __future__ import annotations

from dataclasses import dataclass, replace

from yota.codegen.c.parts import vector_forms
from yota.codegen.c.products import multiplies_matrices
from yota.codegen.render import render
from yota.errors import CodegenError
from yota.generation.c.contents import texts
from yota.generation.request import Request

_STEM, _NAME = "yota_native", "sized"
FUNCTION = f"{_NAME}_value_and_gradient"
"""Name of the function: it takes the leaves and returns the value and a gradient for each wanted one."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """Functions that have vector forms, and texts to put one after the other."""

    functions: tuple[tuple[str, str, str], ...]
    texts: tuple[str, ...]


def joined(request: Request) -> str:
    """The C text of a module with one function.

    Raises ArgumentError, CodegenError if C cannot compute it, or NumPy computes it faster.
    """
    if request.strict:
        raise CodegenError("strict=True keeps the order in which NumPy adds")
    wanted = replace(request, target="c", name=_NAME, wanted=("gradient",), extension=True, stem=_STEM)
    files, _, found, _ = texts(wanted)
    if any(map(multiplies_matrices, found.tapes)):
        raise CodegenError("NumPy multiplies matrices faster")
    order = (files[f"{_STEM}{ending}"].replace(f'#include "{_STEM}.h"\n', "") for ending in (".h", ".c", "module.c"))
    return render("c/pair/joined.c.jinja", plan=_Plan(vector_forms(found.needs), tuple(order)))
