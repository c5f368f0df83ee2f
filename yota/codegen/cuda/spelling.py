"""How elementwise primitives are spelled in CUDA: as in C, and functions that CUDA's math library has besides."""

from __future__ import annotations

from typing import Any

import numpy as np

from yota.codegen.c.lines import Writer
from yota.codegen.c.spelling import Spelling, is_known_op, spell
from yota.codegen.c.types import is_known, suffix
from yota.codegen.c.values import Value
from yota.codegen.cuda.halves import is_half
from yota.ir.tape import Op, Tape

__all__ = ["CudaWriter", "is_known_to_cuda"]

_SPECIAL = {
    "erfinv": "erfinv", "erfcinv": "erfcinv", "erfcx": "erfcx", "gamma": "tgamma", "gammaln": "lgamma",
    "ndtr": "normcdf", "ndtri": "normcdfinv", "j0": "j0", "j1": "j1", "y0": "y0", "y1": "y1", "i0": "cyl_bessel_i0",
    "i1": "cyl_bessel_i1", "special_cbrt": "cbrt", "special_exp2": "exp2", "special_expm1": "expm1",
    "special_log1p": "log1p", "exp10": "exp10",
}  # fmt: skip
"""CUDA's functions of one real number, by the primitives that stand for SciPy's."""


def is_known_to_cuda(tape: Tape, op: Op) -> bool:
    """Whether a kernel can compute an elementwise op."""
    if is_known_op(tape, op):
        return True
    types = [tape.types[operand] for operand in op.operands]
    result = tape.types[op.result]
    if op.semantics.casts:
        return all(is_known(each.dtype) or is_half(each.dtype) for each in (*types, result))
    target = op.primitive.target or ""
    if op.static or not _SPECIAL.get(op.name) or not target.startswith("scipy.special."):
        return False
    return all(each.dtype.kind == "f" and is_known(each.dtype) for each in (*types, result))


class CudaWriter(Writer):
    """Writes values as statements of CUDA."""

    reads_apart = False

    def is_rounded(self, value: Value, source: Value) -> bool:
        """Never: NVIDIA's compiler rounds what it is told to round."""
        return False

    def spelled(self, name: str, dtype: np.dtype[Any], result: np.dtype[Any]) -> Spelling | None:
        """How an op is written."""
        known = spell(name, dtype, result)
        if known is None and name in _SPECIAL and dtype.kind == "f":
            return Spelling(f"{_SPECIAL[name]}{suffix(dtype)}({{0}})")
        return known
