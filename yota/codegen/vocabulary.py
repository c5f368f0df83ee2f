"""Names, imports and functions that the bodies of one generated scalar module share."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import Any

from yota.codegen.literals import static_text
from yota.codegen.names import Names
from yota.codegen.wrap import wrapped
from yota.ir.primitive import Primitive
from yota.ir.tape import Op, Tape
from yota.ir.types import TensorType
from yota.passes.rewrite import protected, use_counts

__all__ = ["WIDTH", "Vocabulary", "import_lines", "listed", "packed"]

WIDTH = 92
"""Longest line of a generated body, before its indentation."""


def import_lines(names: Iterable[str]) -> tuple[str, ...]:
    """Lines that import functions of ``math``, by their names with the module, and modules."""
    found = sorted(name.removeprefix("math.") for name in names if name.startswith("math."))
    modules = sorted({name for name in names if not name.startswith("math.")})
    lines = (*listed("from math import ", ", ".join(found)), "") if found else ()
    return (*lines, "import numpy as np", *(f"import {module}" for module in modules))


def listed(head: str, items: str, tail: str = "") -> tuple[str, ...]:
    """A statement over a list of names; several names on each of its lines if it is long."""
    if len(head) + len(items) + len(tail) <= WIDTH:
        return (f"{head}{items}{tail}",)
    if "," not in items:  # one name, which brackets would make a list of one
        return wrapped([f"{head}{items}{tail}"], 0)
    inner = textwrap.wrap(f"{items.rstrip(',')},", WIDTH - 4, break_long_words=False, break_on_hyphens=False)
    return (f"{head}(", *(f"    {piece}" for piece in inner), f"){tail}")


def packed(items: list[str], width: int) -> list[str]:
    """Items of a display, as many on each line as fit, indented by eight."""
    lines: list[str] = []
    for item in items:
        if lines and len(lines[-1]) + len(item) + 2 <= width + 8:
            lines[-1] += f" {item},"
        else:
            lines.append(f"        {item},")
    return lines


def _computed(tape: Tape) -> list[TensorType]:
    """Types of inputs and results that are not booleans."""
    variables = [entry.variable for entry in tape.inputs] + [op.result for op in tape.ops]
    return [tape.types[variable] for variable in variables if tape.types[variable].dtype.kind != "b"]


class Vocabulary:
    """What is named, and how.

    Attributes
    ----------
    mixed
        Whether single precision or complex numbers occur, which a Python number gives way to.
    objects
        What the text uses by name without spelling it out.
    """

    def __init__(self, tape: Tape, names: Names, parameters: tuple[str, ...], strict: bool) -> None:
        self.tape = tape
        self.parameters = parameters
        self.exact = protected(tape) if strict else set()
        self.uses = use_counts(tape)
        self.mixed = any(type.dtype.kind == "c" or type.dtype.itemsize < 8 for type in _computed(tape))
        self.objects: dict[str, Any] = {}
        self.imports: set[str] = set()
        self._names = names
        self._functions: dict[Primitive, str] = {}
        self._given: dict[int, str] = {}

    def name(self, variable: int, prefix: str = "t") -> str:
        """The name of a variable, the same in all bodies."""
        found = self._given.get(variable)
        if found is None:
            hint = self.tape.names.get(variable)
            found = self._given[variable] = self._names.fresh(hint) if hint else self._names.numbered(prefix)
        return found

    def fresh(self, hint: str) -> str:
        """A new name."""
        return self._names.fresh(hint)

    def element(self, variable: int, hint: str) -> str:
        """The name of an element of an argument."""
        found = self._given.get(variable)
        if found is None:
            found = self._given[variable] = self._names.fresh(hint)
        return found

    def function(self, primitive: Primitive) -> str:
        """Text of the function itself."""
        found = self._functions.get(primitive)
        if found is None:
            found = self._functions[primitive] = self._function(primitive)
        return found

    def keywords(self, op: Op) -> tuple[str, ...]:
        """Texts of a call's static arguments; one without a literal is an object that is used by its name."""
        texts = []
        for name, value in op.static:
            text = static_text(value)
            if text is None:
                text = self._names.fresh(name)
                self.objects[text] = value
            texts.append(f"{name}={text}")
        return tuple(texts)

    def _function(self, primitive: Primitive) -> str:
        target = primitive.target or ""
        if target.startswith("numpy.") and target.count(".") == 1:
            return target.replace("numpy.", "np.")
        if target.startswith("scipy.special."):
            return target
        name = self._names.fresh(primitive.name)
        self.objects[name] = primitive.function
        return name
