"""How elementwise primitives are spelled in CUDA, and names that neither the language nor its library uses."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from yota.emit.c.c_names import LocalNames
from yota.emit.c.c_types import is_known, suffix
from yota.emit.c.dialect import is_known_op
from yota.emit.c.lines import Writer
from yota.emit.cuda.halves import is_half
from yota.emit.spelling import Spelling
from yota.ir.tape import Op, Tape
from yota.schedule.nests.point_values import Value

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

    def is_rounded(self, value: Value, source: Value) -> bool:
        """Never: NVIDIA's compiler rounds what it is told to round."""
        return False

    def spelled(self, name: str, dtype: np.dtype[Any], result: np.dtype[Any]) -> Spelling | None:
        """How an op is written."""
        known = self.language.spell(name, dtype, result)
        if known is None and name in _SPECIAL and dtype.kind == "f":
            return Spelling(f"{_SPECIAL[name]}{suffix(dtype)}({{0}})")
        return known


_TAKEN = (
    "parts rows base across lane point place shared Sum Product Largest Smallest Complex joined joined_in_warp plus"
    " threadIdx blockIdx blockDim gridDim warpSize Pack taken given is_aligned brought taken_out step first count"
    " float16 bfloat16 within unless outside fault places"
).split()
_WORDS = (
    "alignas alignof and and_eq asm bitand bitor bool catch char16_t char32_t class compl constexpr const_cast decltype"
    " delete dynamic_cast explicit export false friend mutable namespace new noexcept not not_eq nullptr operator or"
    " or_eq private protected public reinterpret_cast static_assert static_cast template this thread_local throw true"
    " try typeid typename using virtual wchar_t xor xor_eq half dim3 int2 int3 int4 float2 float3 float4 double2 min"
    " max rsqrt norm3d norm4d rhypot sinpi cospi j0 j1 jn y0 y1 yn lgamma tgamma erfinv erfcinv erfcx normcdf"
    " normcdfinv sincos sincospi fdim fma frexp ilogb ldexp llrint logb modf nan nearbyint nextafter remainder remquo"
    " round scalbn exp10 rcbrt clock assert printf atomicAdd"
).split()
_ENDINGS = ("_finish", "_sum", "_so_far")


class CudaNames(LocalNames):
    """Names in one kernel.

    >>> names = CudaNames("f_kernel0")
    >>> [names.fresh(text) for text in ("x", "class", "parts", "y1", "__shared")]
    ['x', 'class_', 'parts_1', 'y1_1', 'shared_1']
    """

    def __init__(self, kernel: str, known: Iterable[str] = ()) -> None:
        super().__init__(kernel, known)
        for word in (*_TAKEN, *_WORDS):
            self._taken.add(word)
            self._taken.add(f"{word}f")
