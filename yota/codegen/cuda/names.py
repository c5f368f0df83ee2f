"""Names of local variables in generated CUDA: none that the language, its library or the file uses itself."""

from __future__ import annotations

from collections.abc import Iterable

from yota.codegen.c.names import LocalNames

__all__ = ["CudaNames"]

_OWN = (
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

    Examples
    --------
    >>> names = CudaNames("f_kernel0")
    >>> [names.fresh(text) for text in ("x", "class", "parts", "y1", "__shared")]
    ['x', 'class_', 'parts_1', 'y1_1', 'shared_1']
    """

    def __init__(self, kernel: str, known: Iterable[str] = ()) -> None:
        super().__init__(kernel, known)
        for word in (*_OWN, *_WORDS):
            self._taken.add(word)
            self._taken.add(f"{word}f")
