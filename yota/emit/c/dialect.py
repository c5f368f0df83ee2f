"""C as a language of loops: types, the dtypes that ops are computed in, their cost, and what CUDA says otherwise."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from yota._resources import folder
from yota.emit.language import ALIASES, Language, tabled
from yota.emit.tree import Spelling
from yota.ir.extents import UNARY, Spelled
from yota.ir.primitive import COMPARISONS
from yota.ir.tape import Op, Tape
from yota.ir.types import TensorType

NAMES = {
    "float32": ("float", "Float"),
    "float64": ("double", "Double"),
    "complex64": ("complex64", "CFloat"),
    "complex128": ("complex128", "CDouble"),
    "bool": ("uint8_t", "Bool"),
    "int32": ("int32_t", "Int32"),
    "int64": ("int64_t", "Int64"),
    "uint8": ("uint8_t", "UInt8"),
}
STORED = ("float16", "bfloat16")
"""What CUDA code loads and stores under these names, and computes in single precision."""
_FUNCTION_COST, _DIVISION_COST = 12, 4
_FUNCTIONS = frozenset(
    "sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh exp exp2 expm1 log log2 log10 log1p cbrt"
    " erf erfc power arctan2 hypot expit log_expit logit".split()
)
_TESTS = frozenset("isnan isinf isfinite signbit".split())
_LOGIC = frozenset("logical_and logical_or logical_not".split())
EXACT = frozenset(
    "add subtract multiply divide negative positive square sqrt absolute abs fabs floor ceil trunc rint where maximum"
    " minimum fmax fmin sign copysign reciprocal real imag conjugate astype isnan isinf isfinite signbit".split()
) | frozenset(COMPARISONS) | _LOGIC  # fmt: skip
"""Where C's result has the bits of NumPy's."""
EXACT_OF_REAL = frozenset("absolute abs multiply square divide reciprocal".split())
"""Those of them for which that is so of real numbers alone: for others NumPy's vector code rounds differently."""


def is_known(dtype: np.dtype[Any]) -> bool:
    """Whether generated C works on this dtype."""
    return dtype.name in NAMES


def c_type(dtype: np.dtype[Any]) -> str:
    """The C type of an element."""
    return dtype.name if dtype.name in STORED else NAMES[dtype.name][0]


def npy_type(dtype: np.dtype[Any]) -> str:
    """The type number in NumPy's C interface."""
    return f"NPY_{NAMES[dtype.name][1].upper()}"


def scalar_type(dtype: np.dtype[Any]) -> str:
    """The scalar's name in NumPy's C interface."""
    return NAMES[dtype.name][1]


def real_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of a complex number's parts."""
    return np.dtype({"complex64": "float32", "complex128": "float64"}.get(dtype.name, dtype.name))


def suffix(dtype: np.dtype[Any]) -> str:
    """What C appends to the names of functions in single precision."""
    return "f" if real_type(dtype) == np.float32 else ""


def computed_in(name: str, types: Sequence[TensorType], result: TensorType) -> np.dtype[Any]:
    """The dtype that an op's operands are taken in."""
    if name in COMPARISONS or name in _TESTS:
        samples = [type.dtype.type(0).item() if type.weak else type.dtype for type in types]
        return np.dtype(np.result_type(*samples))
    if name in _LOGIC:
        return np.dtype(bool)
    if name in ("real", "imag", "absolute", "abs") and types[0].is_complex:
        return types[0].dtype
    return result.dtype


def cost(name: str, dtype: np.dtype[Any]) -> int:
    """About how many additions an op takes as long as."""
    name = ALIASES.get(name, name)
    factor = 4 if dtype.kind == "c" else 1
    if name in ("divide", "sqrt", "reciprocal", "fmod", "remainder", "floor_divide"):
        return _DIVISION_COST * factor
    called = name in _FUNCTIONS or (dtype.kind == "c" and name == "conjugate")
    return (_FUNCTION_COST if called else 1) * factor


class _C(Language):
    def spell(self, name: str, dtype: np.dtype[Any], result: np.dtype[Any]) -> Spelling | None:
        return self._spell(name, dtype)

    @functools.cache  # noqa: B019  (there is one)
    def _spell(self, name: str, dtype: np.dtype[Any]) -> Spelling | None:
        entry = self.entry(dtype.kind, name)
        if not entry:
            return None
        found, end = self.spelling(entry), suffix(dtype)
        function = found.text.partition("{f}")[0]
        text = found.text.replace("{f}", end).replace("{cast}", "(float)" if end else "")
        simd = function + end if function in self["vector"].split() else ""
        return replace(found, text=text.replace("{type}", c_type(dtype)) if found.part else text, simd=simd)

    @functools.cache  # noqa: B019
    def parts(self) -> dict[str, str]:
        ending = ".c.jinja"
        texts = (folder("templates") / self.folder / "parts").iterdir()
        return {each.name.removesuffix(ending): "" for each in texts if each.name.endswith(ending)}

    def cast(self, source: np.dtype[Any], dtype: np.dtype[Any], text: Spelled) -> Spelled:
        if source.kind == "c" and dtype.kind != "c":
            return Spelled(f"({c_type(dtype)})creal{suffix(source)}({text})", UNARY)
        if dtype.kind == "c" and source.kind != "c":
            return Spelled(f"{'CMPLXF' if dtype == np.complex64 else 'CMPLX'}({text}, 0.0)")
        if dtype.kind == "b":
            return Spelled(f"({text.within(UNARY)} != 0)")
        return Spelled(f"({c_type(dtype)}){text.within(UNARY)}", UNARY)

    def is_known(self, dtype: np.dtype[Any]) -> bool:
        return is_known(dtype)

    def type(self, dtype: np.dtype[Any], *, value: bool = False) -> str:
        return "int" if value and dtype.kind == "b" else c_type(dtype)

    def shown(self, type: TensorType) -> str:
        return {"complex64": "float _Complex", "complex128": "double _Complex"}.get(type.dtype.name) or c_type(
            type.dtype
        )

    def result(self, name: str) -> str:
        return f"*{name}"

    def part(self, name: str, dtype: np.dtype[Any]) -> str:
        return f"{name}_{c_type(dtype)}"


class _Cuda(_C):
    def stores(self, dtype: np.dtype[Any]) -> bool:
        return is_known(dtype) or dtype.name in STORED


class _Thread(_Cuda):
    def result(self, name: str) -> str:
        return name


C, CUDA, THREAD = _C("c"), _Cuda("c", "cuda"), _Thread("c", "cuda")
"""C99, what kernels of CUDA are written in, and those in which one thread does all."""
CLanguage = _C
FOREIGN = C["foreign"].split()
"""Keywords of C++, which reads headers too, and of later C."""
_NATIVE: dict[str, Language] = {"c": C, "cuda": CUDA}


def language_of(target: str) -> Language:
    """The language of a target whose files stand alone."""
    return _NATIVE.get(target) or tabled(target)


def is_known_op(tape: Tape, op: Op, language: Language = C) -> bool:
    """Whether a language can compute an elementwise op."""
    types = [tape.types[operand].dtype for operand in op.operands]
    result = tape.types[op.result].dtype
    if op.semantics.casts:
        return language.stores(types[0]) and language.stores(result) and _can_cast(language, types[0], result)
    known = all(language.is_known(each) for each in (*types, result))
    if not known or op.static or not (op.primitive.target or "").startswith(("numpy.", "scipy.special.")):
        return False
    dtype = computed_in(op.name, [tape.types[operand] for operand in op.operands], tape.types[op.result])
    given = types[1:] if op.semantics.chooses else types
    casts = all(_can_cast(language, each, dtype) for each in given)
    return casts and language.spell(op.name, dtype, result) is not None


def _can_cast(language: Language, source: np.dtype[Any], dtype: np.dtype[Any]) -> bool:
    return source == dtype or language.cast(source, dtype, Spelled("x")) is not None
