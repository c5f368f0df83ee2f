"""C as a language of loops, and what CUDA says otherwise."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from yota.emit.c.c_names import FileNames, LocalNames
from yota.emit.c.c_ops import SCIPY, computed_in
from yota.emit.c.c_types import c_type, is_known, literal, suffix
from yota.emit.language import Language, tabled
from yota.emit.render import templates
from yota.emit.spelling import Spelling
from yota.ir.extents import ATOM, UNARY, Spelled
from yota.ir.tape import Op, Tape
from yota.ir.types import TensorType


class _C(Language):
    reads_apart = True
    inlines = False
    needs = " that needs libm only"

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

    def literal(self, value: Any, dtype: np.dtype[Any]) -> Spelled:
        text = literal(value, dtype)
        return Spelled(text, UNARY if text.startswith("-") else ATOM)

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

    def file_names(self) -> FileNames:
        return FileNames()

    def names(self, function: str, known: Iterable[str] = ()) -> LocalNames:
        return LocalNames(function, known)


class _Cuda(_C):
    reads_apart = False


C, CUDA = _C("c"), _Cuda("c")
"""C99, and what kernels of CUDA are written in."""
_NATIVE: dict[str, Language] = {"c": C, "cuda": CUDA}


def language_of(target: str) -> Language:
    """The language of a target whose files stand alone."""
    return _NATIVE.get(target) or tabled(target)


def is_known_op(tape: Tape, op: Op, language: Language = C) -> bool:
    """Whether a language can compute an elementwise op."""
    types = [tape.types[operand].dtype for operand in op.operands]
    result = tape.types[op.result].dtype
    if not all(language.is_known(each) for each in (*types, result)):
        return False
    if op.semantics.casts:
        return language.cast(types[0], result, Spelled("x")) is not None
    target = op.primitive.target or ""
    if op.static or not (target.startswith("numpy.") or target in SCIPY):
        return False
    dtype = computed_in(op.name, [tape.types[operand] for operand in op.operands], tape.types[op.result])
    given = types[1:] if op.semantics.chooses else types
    casts = all(each == dtype or language.cast(each, dtype, Spelled("x")) is not None for each in given)
    return casts and language.spell(op.name, dtype, result) is not None
