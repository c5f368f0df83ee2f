"""C as a language of loops, and what CUDA says otherwise."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import numpy as np

from yota.emit.c.c_types import STORED, c_type, computed_in, is_known, suffix
from yota.emit.language import Language, tabled
from yota.emit.render import templates
from yota.emit.tree import Spelling
from yota.ir.extents import UNARY, Spelled
from yota.ir.tape import Op, Tape
from yota.ir.types import TensorType


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
        folder = templates() / self.folder / "parts"
        return {each.name.removesuffix(ending): "" for each in folder.iterdir() if each.name.endswith(ending)}

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


C, CUDA = _C("c"), _Cuda("c", "cuda")
"""C99, and what kernels of CUDA are written in."""
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
