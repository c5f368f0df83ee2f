"""Writes the values of one point as C statements: what is used once stands in its user, the rest gets a name."""

from __future__ import annotations

import linecache
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from yota.emit.c.dialect import C, suffix
from yota.emit.language import Language
from yota.emit.names import Names
from yota.emit.tree import Define, Remark, Spelling, Statement
from yota.ir.extents import AND, CHOICE, OR, SUM, Extent, Spelled, extents_in, factor
from yota.schedule.nests.linear_index import Linear, Value, Values

_LONGEST = 84


@dataclass(slots=True)
class Needs:
    """What the lines of a file rely on.

    device: on the GPU, what joins threads and what numbers of 16 bits and places rely on.
    """

    functions: set[str] = field(default_factory=set)
    parts: set[tuple[str, str]] = field(default_factory=set)
    device: set[str] = field(default_factory=set)
    complex: bool = False
    language: Language = C


def offset_text(
    offset: Linear,
    counters: Sequence[str],
    numbers: Mapping[int, str] | None = None,
    rows: Mapping[tuple[int, int], str] | None = None,
) -> str:
    """``8 * i + 3``, with ``numbers`` for what is taken from index arrays, and ``rows`` for coefficients by axis."""
    parts = []
    for axis, coefficient in offset.terms:
        name = counters[axis] if axis >= 0 else (numbers or {})[axis]
        sign = "-" if coefficient < 0 else "+"
        length = (rows or {}).get((axis, coefficient)) or factor(abs(coefficient))
        text = name if abs(coefficient) == 1 else f"{length} * {name}"
        parts.append((sign, text))
    if offset.constant != 0 or not parts:
        sign, number = ("-", -offset.constant) if int(offset.constant) < 0 else ("+", offset.constant)
        parts.append((sign, factor(number) if sign == "-" else str(number)))
    sign, text = parts[0]
    found = f"-{text}" if sign == "-" else text
    return found + "".join(f" {sign} {text}" for sign, text in parts[1:])


def block(head: str, lines: Iterable[str]) -> list[str]:
    """Statements in braces after ``head``, if that is not empty."""
    return [f"{head} {{" if head else "{", *(f"    {line}" for line in lines), "}"]


def comment(text: str) -> str:
    """``text`` as a C comment that nothing in it can end."""
    printable = "".join(character if character.isprintable() and character.isascii() else " " for character in text)
    # Stars next to slashes, trigraphs and continued lines have no meaning for a reader and some for a compiler.
    for bad, good in (("*/", "* /"), ("/*", "/ *"), ("??", "? ?")):
        printable = printable.replace(bad, good).replace(bad, good)
    return f"/* {printable.rstrip().rstrip(chr(92))} */"


def harmless(text: str) -> str:
    """``text`` for the inside of a comment, which nothing in it ends."""
    return comment(text)[3:-3] if text else ""


class Writer:
    """Writes the values of one region, loop by loop.

    wanted: those that are needed in the end, as often as they are.
    depth: in how many loops each value must stand.
    read: text of an element of a variable in memory, with the texts of what its place takes from index arrays; for
        None that of the place itself.
    """

    def __init__(
        self,
        values: Values,
        wanted: Iterable[int],
        depth: Callable[[Linear], int],
        read: Callable[[int | None, Linear, Mapping[int, str]], str],
        names: Names,
        needs: Needs,
    ) -> None:
        self.values, self.read, self.names, self.needs = values, read, names, needs
        self.language = needs.language
        self.uses = self._counted(wanted)
        found: list[int] = []
        for value in self.values.items:
            if value.offset is not None:
                found.append(max([depth(value.offset), *(found[operand] for operand in value.operands)]))
            else:
                found.append(max((found[operand] for operand in value.operands), default=0))
        self.depths = found
        pairs = zip(values.items, found, strict=True)
        sines = (depth for value, depth in pairs if (value.kind, value.data) == ("apply", "sin"))
        self._has_sine = bool(needs.language["joined"]) and any(sines)
        """Whether there is a sine in a loop, where GCC is not to join it with a cosine."""
        self._deepest = self._all_deepest()
        self._texts: dict[int, Spelled] = {}
        self._apart: set[int] = set()
        """What must be computed whatever a choice around it is."""
        self._last: tuple[str, int] | None = None

    def spelled(self, name: str, dtype: np.dtype[Any], result: np.dtype[Any]) -> Spelling | None:
        """How an op is written."""
        found = self.language.spell(name, dtype, result)
        if found is not None and found.simd in ("cos", "cosf") and self._has_sine:
            return Spelling(f"cosine{suffix(dtype)}({{0}})", simd=found.simd, part="cosine")
        return found

    def _counted(self, wanted: Iterable[int]) -> Counter[int]:
        """How often each value that is needed is used."""
        uses = Counter(wanted)
        for number in range(len(self.values) - 1, -1, -1):
            if number in uses:
                uses.update(self.values[number].operands)
        return uses

    def lines(self, depth: int) -> list[Statement]:
        """Statements for all values that stand in just ``depth`` loops."""
        lines: list[Statement] = []
        for number, value in enumerate(self.values.items):
            if self.depths[number] == depth and number in self.uses:
                text = self._expression(number, value, lines)
                alone = self.uses[number] == 1 and self._deepest.get(number, self.depths[number]) == self.depths[number]
                simple = value.kind == "literal" or (value.kind == "load" and alone) or text.isidentifier()
                if simple or (alone and len(text) <= _LONGEST and value.kind != "load"):
                    self._texts[number] = text
                else:
                    self._name(number, text, lines)
        return lines

    def text(self, number: int, lines: list[Statement]) -> str:
        """A value as an expression; a statement first if it is long."""
        found = self._texts[number]
        if len(found) > _LONGEST:
            self._name(number, found, lines)
        return self._texts[number]

    def numbers(self, offset: Linear) -> dict[int, str]:
        """Texts of what an offset takes from index arrays, by axis."""
        return {axis: self._texts[-1 - axis] for axis, _ in offset.terms if axis < 0}

    def read_again(self, offset: Linear) -> dict[int, str]:
        """The same where they were read for no value."""
        found = {}
        for axis, _ in offset.terms:
            if axis < 0:
                value = self.values[-1 - axis]
                assert value.offset is not None
                found[axis] = self.read(value.data, value.offset, self.read_again(value.offset))
        return found

    def _all_deepest(self) -> dict[int, int]:
        """In how many loops the innermost user of each value stands."""
        found: dict[int, int] = {}
        for number, value in enumerate(self.values.items):
            if number in self.uses:
                for operand in value.operands:
                    found[operand] = max(found.get(operand, 0), self.depths[number])
        return found

    def _name(self, number: int, text: Spelled, lines: list[Statement]) -> None:
        value = self.values[number]
        place = self.values.places.get(number)
        if place is not None and (place.filename, place.line) != self._last:
            self._last = place.filename, place.line
            line = linecache.getline(place.filename, place.line).strip()
            if line:
                lines.append(Remark(harmless(line[:80])))
        hint = self.values.hints.get(number)
        if hint is None and value.kind == "load":
            assert value.offset is not None
            mark = self.language.element("", "at")[0]
            hint = text.partition(mark)[0].removeprefix("float(") + _ending(value.offset, text.partition(mark)[2])
        name = self.names.fresh(hint) if hint else self.names.numbered("t")
        lines.append(Define(self.language.type(value.dtype, value=True), name, text))
        self._texts[number] = Spelled(name)
        self._apart.discard(number)

    def _expression(self, number: int, value: Value, lines: list[Statement]) -> Spelled:
        if value.dtype.kind == "c":
            self.needs.complex = True
        if value.kind == "literal":
            return self.language.literal(value.data, value.dtype)
        if value.offset is not None:
            text = self.read(value.data, value.offset, self.numbers(value.offset))
            if value.kind == "position":
                return Spelled(text, SUM)
            if self.language["reads apart"] and "[" in text:
                self._apart.add(number)
            return Spelled(text)
        operands = value.operands
        if value.kind == "cast":
            if operands[0] in self._apart:
                self._apart.add(number)
            return self._cast(value, self.values[operands[0]], self._texts[operands[0]])
        spelling = self.spelled(value.data, self.values[operands[-1]].dtype, value.dtype)
        assert spelling is not None
        if spelling.level in (CHOICE, OR, AND) and spelling.text != "{0}":
            # What is called only on one side of a choice cannot run on vectors.
            for operand in operands[1:]:
                if operand in self._apart:
                    self._name(operand, self._texts[operand], lines)
        found = self._apply(value, spelling, lines)
        if not self._apart.isdisjoint(operands) or spelling.simd:
            self._apart.add(number)
        return found

    def _apply(self, value: Value, spelling: Spelling, lines: list[Statement]) -> Spelled:
        operands = value.operands
        if spelling.simd:
            self.needs.functions.add(spelling.simd)
        if spelling.part:
            self.needs.parts.add((spelling.part, self.values[operands[-1]].dtype.name))
        length = sum(len(self._texts[operand]) for operand in operands) + len(spelling.text)
        for operand in sorted(operands, key=lambda each: -len(self._texts[each])):
            if length <= _LONGEST:
                break
            found = self._texts[operand]
            if len(found) > 12 and self.values[operand].kind != "literal":
                length -= len(found)
                self._name(operand, found, lines)
        return spelling.applied([self._texts[operand] for operand in operands], apart=True)

    def _cast(self, value: Value, source: Value, text: Spelled) -> Spelled:
        if self.is_rounded(value, source):
            part = "complex_widened" if value.dtype.kind == "c" else "widened"
            self.needs.parts.add((part, source.dtype.name))
            return Spelled(f"{part}({text})")
        found = self.language.cast(source.dtype, value.dtype, text)
        assert found is not None
        return found

    def is_rounded(self, value: Value, source: Value) -> bool:
        """Whether a number is brought to single precision and back, which compilers may take for nothing."""
        if not self.language["rounding"] or source.kind != "cast" or source.dtype.name not in ("float32", "complex64"):
            return False
        precise = (np.float64, np.complex128)
        return value.dtype in precise and self.values[source.operands[0]].dtype in precise


def _ending(offset: Linear, place: str) -> str:
    """What tells an element from the others in its name; ``place`` is empty for a number."""
    constant = offset.constant.word if isinstance(offset.constant, Extent) else offset.constant
    if not offset.terms:
        return f"_{constant}" if place else ""
    numbers = (offset.constant, *(coefficient for _, coefficient in offset.terms))
    sizes = {name for number in extents_in(numbers) for name in number.word.split("_")}
    words = place.rstrip("])").replace("(", "").split()
    counters = "".join(word for word in words if word.isalpha() and word not in sizes)
    return f"_{counters}{constant}" if int(offset.constant) > 0 else f"_{counters}"
