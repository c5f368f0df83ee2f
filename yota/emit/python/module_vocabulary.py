"""How scalar ops are spelled in Python, and what the bodies of a scalar module share: names, imports, reads."""

from __future__ import annotations

import functools
import re
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from yota.emit.language import tabled
from yota.emit.names import Names
from yota.emit.numpy_literals import dtype_text, static_text
from yota.emit.python.formatting import wrapped
from yota.emit.tree import Spelling
from yota.ir.extents import CHOICE
from yota.ir.primitive import COMPARISONS, Primitive
from yota.ir.semantics import AccessMap
from yota.ir.tape import Op, Tape
from yota.ir.types import TensorType
from yota.optimize.rewrite import protected, use_counts

_TABLE = tabled("python").table
_OF_MATH = re.compile(r"\b(?!abs|bool|round)([a-z0-9]+)\(")
MATH_NAMES = frozenset(_OF_MATH.findall(" ".join(_TABLE["floats"].values()))) | {"inf", "nan"}
"""Names that a body may import from ``math``."""

_SAME_BITS = frozenset(
    "where divide reciprocal floor_divide remainder fmod absolute abs fabs maximum minimum fmax fmin sign floor ceil"
    " trunc rint isnan isinf isfinite signbit copysign logical_and logical_or logical_not real conjugate conj sqrt"
    " power".split()
)
"""Where Python's result has the bits of NumPy's; for powers, of NumPy's ``**`` on scalars."""

_ALIASES = {"mod": "remainder", "true_divide": "divide", "pow": "power"}
_CASTS = {"f": "float", "i": "int", "u": "int", "b": "bool"}


def spell(
    op: Op,
    type: TensorType,
    operands: tuple[TensorType, ...],
    *,
    fast: bool,
    exact: bool,
    function: str,
    keywords: tuple[str, ...] = (),
) -> Spelling:
    """How ``op`` is written: ``fast`` on Python numbers, else on NumPy scalars; ``exact`` with NumPy's bits."""
    name = _ALIASES.get(op.name, op.name)
    module = (function.rpartition(".")[0],) if function.count(".") > 1 else ()
    if name == "astype":
        return _cast(op.keyword("dtype"), operands[0], fast)
    if name in _TABLE["operators"] and (name in COMPARISONS or type.dtype.kind != "b"):
        return _spelling("operators", name)
    fixed = (text.replace("{", "{{").replace("}", "}}") for text in keywords)
    holes = ", ".join([*(f"{{{number}}}" for number in range(len(op.operands))), *fixed])
    call = Spelling(f"{function}({holes})", imports=module, warns=True)
    if not fast:
        return call if name not in _TABLE["scalars"] or type.weak else _spelling("scalars", name)
    floats = all(operand.dtype.kind == "f" for operand in operands) or name.startswith("logical")
    floats = floats or name in ("absolute", "abs", "where") or (name == "power" and type.dtype.kind == "f")
    if name == "divide" or (name in _TABLE["floats"] and floats and (not exact or name in _SAME_BITS)):
        return _spelling("floats", name)
    cast = _CASTS[type.dtype.kind]
    return Spelling(f"{cast}({function}({holes}))", imports=module, raises=cast == "int", warns=True)


@functools.cache
def _spelling(section: str, name: str) -> Spelling:
    found = tabled("python").spelling(_TABLE[section][name])
    names = _OF_MATH.findall(found.text) if section == "floats" else ()
    return replace(found, imports=tuple([f"math.{name}" for name in names]))


def _cast(dtype: np.dtype[Any], operand: TensorType, fast: bool) -> Spelling:
    if fast:
        if dtype.kind == operand.dtype.kind:
            return Spelling("{0}", CHOICE, (CHOICE,))
        return Spelling(f"{_CASTS[dtype.kind]}({{0}})", raises=dtype.kind == "i")
    if operand.dtype == dtype and not operand.weak:
        return Spelling("{0}", CHOICE, (CHOICE,))
    if operand.dtype.kind == "c" and dtype.kind != "c":
        return Spelling(f"{dtype_text(dtype)}(np.real({{0}}))", warns=True)
    return Spelling(f"{dtype_text(dtype)}({{0}})", warns=True)


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

    mixed: whether single precision or complex numbers occur, which a Python number gives way to.
    objects: what the text uses by name without spelling it out.
    """

    def __init__(self, tape: Tape, names: Names, parameters: tuple[str, ...], values: int) -> None:
        self.tape = tape
        self.parameters = parameters
        self.exact = protected(tape, values) if values else set()
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


# Measured, in nanoseconds: one `item` call; a `tolist` call, and each element that it converts.
_ITEM, _LIST, _LIST_ELEMENT = 55, 60, 8


@dataclass(frozen=True, slots=True)
class Reads:
    """Names of input elements, and the statements ``pattern = value`` that bind them."""

    names: dict[int, str]
    statements: tuple[tuple[str, str], ...]


def plan_reads(
    tape: Tape, parameters: Sequence[str], name: Callable[[int, str], str], *, fast: bool, mixed: bool
) -> Reads:
    """Reads of all arguments of ``tape``; if ``mixed``, a Python number must stay one even among NumPy scalars."""
    elements: dict[int, dict[tuple[int, ...], int]] = {}
    again: dict[int, int] = {}
    used = set(tape.outputs) | {guard.variable for guard in tape.guards}
    for op in tape.ops:
        used.update(op.operands)
        if op.access == AccessMap.READ:
            known = elements.setdefault(op.operands[0], {}).setdefault(op.keyword("index"), op.result)
            again[op.result] = known
    names: dict[int, str] = {}
    statements: list[tuple[str, str]] = []
    for parameter, entry in zip(parameters, tape.inputs, strict=True):
        type = tape.types[entry.variable]
        if type.shape:
            found = elements.get(entry.variable, {})
            for index, variable in found.items():
                names[variable] = name(variable, parameter + "_".join(map(str, index)))
            statements.extend(_array(parameter, type.shape, found, names, fast))
        elif entry.variable in used:
            names[entry.variable] = parameter
            convert = _conversion(type.dtype, type.weak, fast, mixed)
            if convert:
                statements.append((parameter, f"{convert}({parameter})"))
    names.update({variable: names[first] for variable, first in again.items()})
    return Reads(names, tuple(statements))


def _conversion(dtype: np.dtype[Any], weak: bool, fast: bool, mixed: bool) -> str:
    if fast:
        return "" if weak else {"f": "float", "b": "bool"}.get(dtype.kind, "int")
    # Among single precision, a Python number must stay one, so as not to promote what it meets.
    return "" if weak and mixed else dtype_text(dtype)


def _array(
    parameter: str, shape: tuple[int, ...], found: dict[tuple[int, ...], int], names: dict[int, str], fast: bool
) -> list[tuple[str, str]]:
    if not found:
        return []
    size = int(np.prod(shape))
    if len(found) * _ITEM < _LIST + size * _LIST_ELEMENT:
        return [(names[variable], _item(parameter, index, fast)) for index, variable in sorted(found.items())]
    texts = {index: names[variable] for index, variable in found.items()}
    if len(shape) == 1:
        pattern = ", ".join(texts.get((i,), "_") for i in range(size))
        return [(f"{pattern}," if size == 1 else pattern, f"{parameter}.tolist()" if fast else parameter)]
    pattern = ", ".join(texts.get(index, "_") for index in np.ndindex(shape))
    return [(f"{pattern}," if size == 1 else pattern, f"{parameter}.ravel(){'.tolist()' if fast else ''}")]


def _item(parameter: str, index: tuple[int, ...], fast: bool) -> str:
    text = ", ".join(map(str, index))
    return f"{parameter}.item({text})" if fast else f"{parameter}[{text}]"
