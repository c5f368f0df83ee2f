"""A language that loops are generated in: spellings from a table, statements from templates."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from yota.emit.names import Names
from yota.emit.render import macros, template_text
from yota.emit.tree import Define, Loop, Memory, Remark, Room, Scope, Spelling, Statement, Variable, View
from yota.ir import extents
from yota.ir.extents import AND, ATOM, CHOICE, COMPARE, NOT, OR, PRODUCT, SAME, UNARY, Extent, Spelled
from yota.ir.types import TensorType

_WIDTH = 88
_ARGUMENT = re.compile(r"[(,] ?\{\d\}[,)]")
_MARKS = (" + ", " - ", " * ", ", ", " / ", " || ")


_KINDS = {"f": "real", "i": "whole", "u": "unsigned", "b": "truth", "c": "complex"}
ALIASES = {
    "mod": "remainder", "true_divide": "divide", "pow": "power", "abs": "absolute", "fabs": "absolute",
    "conj": "conjugate", "radians": "deg2rad", "degrees": "rad2deg",
}  # fmt: skip


class Language:
    """A language: its table, ``language.ini`` in its folder of templates, says everything that no method here does.

    The table of a ``dialect``, another folder, adds to that of the language and comes before it.
    """

    def __init__(self, folder: str, dialect: str = "") -> None:
        self.folder, self.dialect = folder, dialect

    @functools.cached_property
    def table(self) -> dict[str, dict[str, str]]:
        """Sections of the table."""
        found: dict[str, dict[str, str]] = {}
        key = ""
        for folder in filter(None, (self.folder, self.dialect)):
            for line in template_text(f"{folder}/language.ini").splitlines():
                if line.startswith("["):
                    section = found.setdefault(line[1:-1], {})
                elif line.startswith(" "):
                    section[key] += line[3:]
                elif line and line[0] != "#":
                    key, _, text = line.partition(" =")
                    section[key] = text[1:]
        return found

    def __getitem__(self, key: str) -> str:
        return self.table["language"].get(key, "")

    @property
    def inlines(self) -> bool:
        """Whether all loops stand in the function, rather than in functions that it calls."""
        return not self["functions"]

    @property
    def name(self) -> str:
        """What users call it."""
        return self["name"]

    def spell(self, name: str, dtype: np.dtype[Any], result: np.dtype[Any]) -> Spelling | None:
        """How a primitive is written, from the section for the kind of its operands."""
        entry = self.entry(dtype.kind, name)
        return self.spelling(entry) if entry else None

    def entry(self, kind: str, name: str) -> str:
        """The entry of a primitive for a kind of operands; empty if there is none."""
        name = ALIASES.get(name, name)
        sections = (_KINDS.get(kind, ""), "any" if kind in "fiu" else "")
        return next((self.table[each][name] for each in sections if name in self.table.get(each, ())), "")

    def spelling(self, entry: str) -> Spelling:
        """An entry with how tightly it binds, and its operands must; a mark tells that it may raise."""
        word, text = entry.split(" ", 1)
        level: int = getattr(extents, word.rstrip("!"))
        holes = re.findall(r"\{\d\}", text)
        repeated = len(set(holes)) < len(holes)
        needs = {CHOICE: (OR, OR, CHOICE), UNARY: (UNARY,)}.get(level, (level, level + 1))
        if level == ATOM or len(_ARGUMENT.findall(text)) == len(holes):
            needs = (CHOICE,) * 3
        elif repeated or (level == UNARY and "{1}" in text):
            needs = (ATOM, ATOM)
        elif level in (SAME, COMPARE):
            needs = (level + 1, level + 1)
        elif level in range(AND, PRODUCT + 1) and "{1}" not in text:
            needs = (level if level == NOT or text.startswith("{0}") else level + 1,)
        function = text.partition("(")[0].replace("{f}", "").replace("_{type}", "")
        part = function if function in self.parts() else ""
        return Spelling(text, level, needs, repeated, raises=word.endswith("!"), part=part)

    def cast(self, source: np.dtype[Any], dtype: np.dtype[Any], text: Spelled) -> Spelled | None:
        """A value in another dtype."""
        if source == dtype:
            return text
        kinds = [_KINDS[each.kind].replace("unsigned", "whole") for each in (source, dtype)]
        casts = self.table["casts"]
        entry = casts.get(f"{source.name} to {dtype.name}", casts.get(" to ".join(kinds)))
        if entry is None or not self.is_known(dtype) or not self.is_known(source):
            return None
        if entry == "{0}":
            return text
        spelling = self.spelling(entry)
        return Spelled(spelling.text.format(text.within(spelling.needs[0])), spelling.level)

    def literal(self, value: Any, dtype: np.dtype[Any]) -> Spelled:
        """An expression of exactly this number."""
        literals, single = self.table["literals"], dtype.itemsize == (8 if dtype.kind == "c" else 4)
        if dtype.kind == "b":
            return Spelled(literals["true" if value else "false"])
        if dtype.kind in "iu":
            size = abs(int(value))
            if size == 2**63 and "smallest" in literals:
                return Spelled(literals["smallest"])
            kind = "long" if size >= 2**31 else "short" if dtype.itemsize == 4 else "whole"
            text = literals.get(kind, literals["whole"]).format(size)
            return _signed(text, int(value) < 0)
        if dtype.kind == "c":
            part = np.dtype(np.float32 if single else np.float64)
            parts = [self.literal(each, part) for each in (value.real, value.imag)]
            return Spelled(literals["single complex" if single else "complex"].format(*parts))
        number = dtype.type(value)
        negative = math.copysign(1.0, number) < 0
        if math.isnan(number):
            return Spelled(literals.get("negative nan", literals["nan"]) if negative else literals["nan"])
        size = abs(number)
        digits = str(size) if single else repr(float(size))
        digits += "" if "." in digits or "e" in digits else ".0"
        real = literals.get("single", literals["real"]) if single else literals["real"]
        return _signed(literals["inf"] if math.isinf(size) else real.format(digits), negative)

    def whole(self, number: int) -> str:
        """A whole number of 64 bits, or the expression of an extent."""
        return str(number) if isinstance(number, Extent) else self.literal(number, np.dtype(np.int64))

    def is_known(self, dtype: np.dtype[Any]) -> bool:
        """Whether the table has this dtype."""
        return dtype.name in self.table["types"]

    def stores(self, dtype: np.dtype[Any]) -> bool:
        """Whether this dtype is loaded and stored, if perhaps not computed in."""
        return self.is_known(dtype)

    def type(self, dtype: np.dtype[Any], *, value: bool = False) -> str:
        """The type of an element of an array, or of a value."""
        types = self.table["types"]
        return types.get(f"{dtype.name} value", types[dtype.name]) if value else types[dtype.name]

    def size(self) -> str:
        """The type of a counter."""
        return self.table["types"]["size"]

    def shown(self, type: TensorType) -> str:
        """The type of a parameter for a reader."""
        return self.type(type.dtype, value=not type.shape)

    def result(self, name: str) -> str:
        """A number that the function returns, where it is read or written."""
        return name

    def element(self, array: str, place: str) -> str:
        """An element of an array."""
        return self["element"].format(array=array, place=place)

    def slice(self, array: str, row: str, size: int) -> str:
        """A row of an array of rows of ``size`` elements."""
        return self["slice"].format(array=array, start=f"{row} * {size}", stop=f"({row} + 1) * {size}")

    def smaller(self, one: str, other: str) -> str:
        """The smaller of two sizes."""
        return self["smaller"].format(one, other)

    def larger(self, one: str, other: str) -> str:
        """The larger of two sizes."""
        return self["larger"].format(one, other)

    def names(self, function: str, known: Iterable[str] = ()) -> Names:
        """Names for a function.

        >>> from yota.emit.c.dialect import C
        >>> names = C.names("f")
        >>> [names.fresh(text) for text in ("x", "x", "double", "RAND_MAX", "x_shape", "NPY_INT")]
        ['x', 'x_1', 'double_1', 'rand_max', 'x_shape_value', 'v_NPY_INT']
        """
        own = [*self["local"].split(), *self._with("kernel", "f"), function]
        return _OwnNames(self, [*self._reserved(), *own, *known])

    def file_names(self) -> Names:
        """Names of functions and tables of one file, which other files of a program may see.

        >>> from yota.emit.c.dialect import C
        >>> names = C.file_names()
        >>> [names.fresh(text) for text in ("energy", "read", "sin", "class", "strain")]
        ['energy', 'read_1', 'sin_1', 'class_', 'f_strain']
        """
        own = [*self._with("system", "fl"), *self["foreign"].split(), *self["global"].split()]
        return _OwnNames(self, [*self._reserved(), *own], beginnings=tuple(self["library beginnings"].split()))

    def _reserved(self) -> list[str]:
        """Words that are no names anywhere."""
        return [*self["reserved"].split(), *self._with("library", "f"), *self.parts()]

    def _with(self, key: str, endings: str) -> list[str]:
        """Words of an entry, as they are and with a letter after them."""
        return [f"{word}{end}" for word in self[key].split() for end in ("", *endings)]

    def part(self, name: str, dtype: np.dtype[Any]) -> str | None:
        """The inline function ``name``, which is one for all dtypes."""
        return name if name in self.parts() else None

    @functools.cache  # noqa: B019  (languages live as long as the process)
    def parts(self) -> dict[str, str]:
        """Texts of the inline functions that the language's spellings call, by name."""
        text = template_text(f"{self.folder}/parts.txt")
        return {block.split("\n", 1)[0]: block.split("\n", 1)[1].rstrip() for block in text.split("\n@ ")[1:]}

    def called(self, text: str) -> list[str]:
        """Texts of the inline functions that a text calls outside of remarks, and that these call."""
        found: dict[str, str] = {}
        (mark,) = self.printed([Remark("")])
        waiting = ["\n".join(line for line in text.split("\n") if not line.lstrip().startswith(mark.strip()))]
        while waiting:
            words = set(re.findall(r"\w+", waiting.pop()))
            for name in sorted(words & (self.parts().keys() - found.keys())):
                found[name] = self.parts()[name]
                waiting.append(found[name])
        return [found[name] for name in sorted(found)]

    def applied(self, name: str, dtype: np.dtype[Any], *texts: str) -> Spelled:
        """A primitive of expressions of ``dtype``, which bind tightly."""
        spelling = self.spell(name, dtype, np.dtype(bool))
        assert spelling is not None
        return Spelled(spelling.text.format(*texts), spelling.level)

    def printed(self, statements: Iterable[Statement]) -> list[str]:
        """Statements as lines."""
        found: list[str] = []
        more = f" {self['more']}" if self["more"] else ""
        for each in statements:
            if isinstance(each, str):
                found.append(each)
                continue
            body = [self.scoped(each.body)] if isinstance(each, (Loop, Scope)) else []
            text = macros(f"{self.folder}/statements.jinja", type(each).__name__)(each, *body)
            lines = text.split("\n")[:-1]
            found += lines if len(lines) != 1 or isinstance(each, Remark) else filled(lines[0], more)
        return found

    def scoped(self, statements: Sequence[Statement]) -> list[str]:
        """The lines of a scope, with declarations ahead where the language has them there."""
        lines = self.printed(statements)
        named = [each for each in statements if isinstance(each, (Define, Loop, Memory, Room, Variable, View))]
        if not self["ahead"] or not named:
            return lines
        template = f"{self.folder}/statements.jinja"
        declared = dict.fromkeys(macros(template, "Declared")(each).strip() for each in named)
        return macros(template, "Block")(list(declared), lines).split("\n")[:-1]


def filled(statement: str, more: str = "", width: int = _WIDTH) -> list[str]:
    """A statement in lines that are not too long; ``more`` ends those that the next one continues."""
    lines: list[str] = []
    rest = statement
    indent = ""
    while len(indent) + len(rest) > width:
        cut = max(rest.rfind(mark, 0, width - len(indent)) for mark in _MARKS)
        if cut <= 0:
            break
        cut += 1
        lines.append(indent + rest[:cut].rstrip() + more)
        rest, indent = rest[cut:].lstrip(), "    "
    return [*lines, indent + rest]


class _OwnNames(Names):
    """Names that are no words of a language; ``beginnings`` are those of names in libraries."""

    def __init__(self, language: Language, reserved: Iterable[str], beginnings: tuple[str, ...] = ()) -> None:
        super().__init__(reserved)
        self._lower, self._library = language["lower"], beginnings
        self._beginnings, self._endings = (tuple(language[each].split()) for each in ("beginnings", "endings"))

    def fresh(self, hint: str) -> str:
        """A name like ``hint`` that was not given before."""
        if hint.startswith(self._library):
            hint = f"f_{hint}"
        if hint.startswith(self._beginnings):
            hint = f"v_{hint}"
        elif self._lower == "all" or (self._lower == "macros" and hint.isupper() and len(hint) > 2):
            hint = hint.lower()
        return super().fresh(f"{hint}_value" if hint.endswith(self._endings) else hint)


def _signed(text: str, negative: bool) -> Spelled:
    return Spelled(f"-{text}", UNARY) if negative else Spelled(text)


@functools.cache
def tabled(folder: str) -> Language:
    """The language of a folder of templates."""
    return Language(folder)
