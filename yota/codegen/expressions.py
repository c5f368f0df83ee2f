"""Straight-line scalar code: which values get names, which stand inside expressions, and in what order."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from yota.codegen import reads
from yota.codegen.literals import dtype_text, scalar
from yota.codegen.names import Names
from yota.codegen.spelling import ATOM, UNARY, Spelling, spell
from yota.codegen.wrap import wrapped
from yota.errors import CodegenError
from yota.ir.primitive import Primitive
from yota.ir.tape import Guard, Op, Tape
from yota.ir.types import TensorType
from yota.passes.rewrite import protected, use_counts

__all__ = ["Body", "Writing"]

_WIDTH = 92
_LONGEST_INLINE = 72
_LONGEST_ITEM = 28


@dataclass(frozen=True, slots=True)
class Body:
    """Statements of one function."""

    reads: tuple[str, ...]
    lines: tuple[str, ...]
    raises: bool
    warns: bool


@dataclass(slots=True)
class _Text:
    """An expression and how tightly it binds."""

    text: str
    level: int = ATOM

    def within(self, level: int) -> str:
        """The text where something binding at ``level`` is needed."""
        return self.text if self.level >= level else f"({self.text})"


class Writing:
    """Writes the bodies of one tape.

    Attributes
    ----------
    objects
        What the text uses by name without spelling it out.
    """

    def __init__(self, tape: Tape, names: Names, parameters: tuple[str, ...], strict: bool) -> None:
        self.tape = tape
        self.parameters = parameters
        self.exact = protected(tape) if strict else set()
        self.uses = use_counts(tape)
        self.objects: dict[str, Any] = {}
        self.imports: set[str] = set()
        self._names = names
        self._functions: dict[Primitive, str] = {}
        self._given: dict[int, str] = {}

    def import_lines(self) -> tuple[str, ...]:
        """Lines that import what the bodies use."""
        found = sorted(name.removeprefix("math.") for name in self.imports if name.startswith("math."))
        modules = sorted(name for name in self.imports if not name.startswith("math."))
        lines = (*_filled("from math import ", found), "") if found else ()
        return (*lines, "import numpy as np", *(f"import {module}" for module in modules))

    def body(self, *, fast: bool) -> Body:
        """One body: on Python numbers, or on NumPy scalars."""
        return _Writer(self, fast).run()

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

    def _function(self, primitive: Primitive) -> str:
        target = primitive.target or ""
        if target.startswith("numpy.") and target.count(".") == 1:
            return target.replace("numpy.", "np.")
        if target.startswith("scipy.special."):
            return target
        name = self._names.fresh(primitive.name)
        self.objects[name] = primitive.function
        return name


def _filled(head: str, items: Iterable[str], tail: str = "") -> tuple[str, ...]:
    """A statement over a list of names; several names on each of its lines if it is long."""
    items = list(items)
    line = f"{head}{', '.join(items)}{tail}"
    if len(line) <= _WIDTH:
        return (line,)
    inner = textwrap.wrap(", ".join(items) + ",", _WIDTH - 4, break_long_words=False, break_on_hyphens=False)
    return (f"{head}(", *(f"    {piece}" for piece in inner), f"){tail}")


@dataclass(slots=True)
class _Writer:
    """Writes one body."""

    writing: Writing
    fast: bool
    texts: dict[int, _Text] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    raises: bool = False
    warns: bool = False
    done: set[int] = field(default_factory=set)
    inlined: set[int] = field(default_factory=set)

    def run(self) -> Body:
        tape = self.writing.tape
        found = reads.plan(tape, self.writing.parameters, self.writing.element, self.fast)
        self.texts.update({variable: _Text(name) for variable, name in found.names.items()})
        self.done.update(found.names)
        # Inlined values must be evaluated where they stand: a guard comes before what it does not depend on.
        definitions = tape.definitions()
        for number, guard in enumerate(tape.guards):
            self._compute(guard.variable, definitions)
            self._guard(number, guard)
        for op in tape.ops:
            if op.result not in self.done and op.name not in ("stack", "reshape", "scatter"):
                self._define(op)
        results = [self._output(variable, definitions) for variable in tape.outputs]
        self.lines += wrapped([f"return {', '.join(results)}" if results else "return ()"], 8)
        opening = tuple(line for pattern, value in found.statements for line in _binding(pattern, value))
        return Body(opening, tuple(self.lines), self.raises, self.warns)

    def _compute(self, variable: int, definitions: dict[int, Op]) -> None:
        """Define what a guard's variable depends on, in the tape's order."""
        needed: set[int] = set()
        pending = [variable]
        while pending:
            each = pending.pop()
            if each in self.done or each in needed or each not in definitions:
                continue
            needed.add(each)
            pending.extend(definitions[each].operands)
        # Variables are numbered in the order of definition.
        for each in sorted(needed):
            self._define(definitions[each])

    def _guard(self, number: int, guard: Guard) -> None:
        text = self._text(guard.variable)
        value = text.within(ATOM) if text.level < ATOM else text.text
        if guard.kind == "bool" or isinstance(guard.expected, bool | np.bool_):
            failed = f"not {text.within(ATOM)}" if guard.expected else text.text
        else:
            literal = scalar(guard.expected)
            if literal is None:
                raise CodegenError(f"a guard expects {guard.expected!r}, which has no literal")
            cast = f"{guard.kind}({text.text})" if guard.kind in ("int", "float") else value
            failed = f"{text.within(ATOM)} == {text.within(ATOM)}" if guard.expected != guard.expected else f"{cast} != {literal}"
        self.raises = self.raises or guard.kind == "int"
        self.lines += [f"if {failed}:", f"    raise StaleTape({number}, {text.text})"]

    def _define(self, op: Op) -> None:
        """Write an op down: as an expression inside its only user, or as a statement."""
        self.done.add(op.result)
        types = self.writing.tape.types
        exact = op.result in self.writing.exact
        operand_types = tuple(types[operand] for operand in op.operands)
        spelling = spell(
            op,
            types[op.result],
            operand_types,
            fast=self.fast,
            exact=exact,
            function=self.writing.function(op.primitive) if op.name != "astype" else "",
        )
        text = self._filled(op, spelling)
        self.writing.imports.update(spelling.imports)
        self.raises |= spelling.raises
        self.warns |= spelling.warns or not self.fast
        if self._is_inlined(op.result, text):
            self.texts[op.result] = text
            self.inlined.add(op.result)
        else:
            self._assign(op.result, text)

    def _assign(self, variable: int, text: _Text) -> None:
        name = self.writing.name(variable)
        self.lines += wrapped([f"{name} = {text.text}"], 8)
        self.texts[variable] = _Text(name)
        self.inlined.discard(variable)

    def _is_inlined(self, variable: int, text: _Text) -> bool:
        if self.writing.uses.get(variable, 0) == 0:
            return True
        if text.text.isidentifier():
            return True
        return self.writing.uses[variable] == 1 and len(text.text) <= _LONGEST_INLINE

    def _filled(self, op: Op, spelling: Spelling) -> _Text:
        """The spelling with its operands; what would make the line too long becomes a statement first."""
        if spelling.repeated:
            for operand in op.operands:
                if operand in self.inlined and not self.texts[operand].text.isidentifier():
                    self._assign(operand, self.texts[operand])
        like = self._literal_type(op)
        texts = [self._text(operand, like) for operand in op.operands]
        length = sum(len(text.text) for text in texts) + len(spelling.text)
        while length > _WIDTH:
            longest = max(
                (operand for operand in op.operands if operand in self.inlined and len(self.texts[operand].text) > 8),
                key=lambda operand: len(self.texts[operand].text),
                default=None,
            )
            if longest is None:
                break
            self._assign(longest, self.texts[longest])
            texts = [self._text(operand, like) for operand in op.operands]
            length = sum(len(text.text) for text in texts) + len(spelling.text)
        if spelling.text == "{0}":
            return texts[0]
        needs = (*spelling.needs, *([0] * len(texts)))
        pieces = [text.within(need) for text, need in zip(texts, needs, strict=False)]
        if spelling.text[0] == "-" and pieces[0].startswith("-"):
            pieces[0] = f"({pieces[0]})"
        return _Text(spelling.text.format(*pieces), spelling.level)

    def _literal_type(self, op: Op) -> TensorType | None:
        """The type that constants are spelled in: whole numbers among floats are written as floats."""
        types = self.writing.tape.types
        wanted = [types[operand] for operand in op.operands if operand not in self.writing.tape.constants]
        wanted.append(types[op.result])
        return next((type for type in wanted if type.dtype.kind == "f"), None)

    def _text(self, variable: int, like: TensorType | None = None) -> _Text:
        """The text of a variable; a constant as a literal."""
        found = self.texts.get(variable)
        if found is not None:
            return found
        value = self.writing.tape.constants[variable]
        type = self.writing.tape.types[variable]
        if isinstance(value, np.ndarray):
            value = value[()]
        if like is not None and type.dtype.kind in "iu" and float(value) == value:
            value = float(value)
        text = self._number(value)
        if not self.fast and not type.weak and type.dtype not in (np.float64, np.int64, np.bool_):
            text = f"{dtype_text(type.dtype)}({text})"
        return _Text(text, UNARY if text.startswith("-") else ATOM)

    def _number(self, value: Any) -> str:
        text = scalar(value)
        if text is None:
            name = self.writing.fresh("constant")
            self.writing.objects[name] = value
            return name
        if text in ("np.nan", "np.inf", "-np.inf") and self.fast:
            self.writing.imports.add("math." + text.rpartition(".")[2])
            return text.replace("np.", "")
        return text

    def _output(self, variable: int, definitions: dict[int, Op]) -> str:
        type = self.writing.tape.types[variable]
        op = definitions.get(variable)
        if not type.shape or op is None:
            text = self._text(variable, type if type.dtype.kind == "f" else None).text
            if type.weak:
                return text if self.fast else f"{type.dtype.type(0).item().__class__.__name__}({text})"
            return f"{dtype_text(type.dtype)}({text})"
        if op.name == "reshape":
            inner = self._output(op.operands[0], definitions)
            return f"{inner}.reshape({', '.join(map(str, type.shape))})"
        items = [self._item(operand, type) for operand in op.operands]
        if op.name == "stack":
            ending = "" if type.dtype in (np.float64, np.int64, np.bool_) else f", dtype={dtype_text(type.dtype)}"
            return f"np.array([{', '.join(items)}]{ending})"
        name = self.writing.fresh("g")
        shape = str(type.shape[0]) if len(type.shape) == 1 else str(type.shape)
        ending = "" if type.dtype == np.float64 else f", dtype={dtype_text(type.dtype)}"
        self.lines.append(f"{name} = np.zeros({shape}{ending})")
        for index, item in zip(op.keyword("indices"), items, strict=True):
            self.lines += wrapped([f"{name}[{', '.join(map(str, index))}] = {item}"], 8)
        return name

    def _item(self, variable: int, type: TensorType) -> str:
        """An element of a result: long expressions get names, so that the array reads as a list of values."""
        if variable in self.inlined and len(self.texts[variable].text) > _LONGEST_ITEM:
            self._assign(variable, self.texts[variable])
        return self._text(variable, type if type.dtype.kind == "f" else None).text


def _binding(pattern: str, value: str) -> tuple[str, ...]:
    if len(pattern) + len(value) <= _WIDTH:
        return (f"{pattern} = {value}",)
    inner = textwrap.wrap(pattern + ",", _WIDTH - 4, break_long_words=False, break_on_hyphens=False)
    return ("(", *(f"    {piece}" for piece in inner), f") = {value}")
