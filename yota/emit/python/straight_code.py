"""Straight-line scalar code: which values get names, which stand inside expressions, and in what order."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from yota.emit.numpy_literals import dtype_text, scalar
from yota.emit.python.formatting import wrapped
from yota.emit.python.function_plan import marked
from yota.emit.python.module_vocabulary import WIDTH, Vocabulary, listed, packed, plan_reads, spell
from yota.emit.tree import Spelling
from yota.errors import CodegenError
from yota.ir.extents import ATOM, UNARY, Spelled
from yota.ir.semantics import AccessMap
from yota.ir.tape import Guard, Op
from yota.ir.types import TensorType

ASSEMBLED = (AccessMap.STACK, AccessMap.RESHAPE, AccessMap.SCATTER)
"""How results are put together from scalars."""
_LONGEST_INLINE = 72
_LONGEST_ITEM = 28
_LITERALS = (np.float64, np.int64, np.bool_)
"""Types of Python's numbers."""


@dataclass(frozen=True, slots=True)
class Body:
    """Statements of one function."""

    reads: tuple[str, ...]
    lines: tuple[str, ...]
    raises: bool
    warns: bool


def write(words: Vocabulary, *, fast: bool) -> tuple[Body, ...]:
    """The body on Python numbers and, where it can raise, one on NumPy scalars after it; or the latter alone."""
    first = _Writer(words, fast)
    body = first.run()
    return (body, _Writer(words, fast=False).run(first)) if fast and body.raises else (body,)


@dataclass(slots=True)
class _Writer:
    words: Vocabulary
    fast: bool
    texts: dict[int, Spelled] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    raises: bool = False
    warns: bool = False
    done: set[int] = field(default_factory=set)
    inlined: set[int] = field(default_factory=set)
    spellings: dict[tuple[Any, ...], Spelling] = field(default_factory=dict)
    spelled: list[tuple[Op, Spelling]] = field(default_factory=list)
    """Each spelling once, with an op that has it."""
    literal: bool = True
    """Whether every constant is written as both bodies write it."""
    before: tuple[dict[int, Spelled], list[str], set[int]] = field(default_factory=lambda: ({}, [], set()))
    """Texts, lines, and what is inlined, before the results are put together."""

    def run(self, other: _Writer | None = None) -> Body:
        """The body; statements that are the same in the ``other`` one are taken from there."""
        tape = self.words.tape
        found = plan_reads(tape, self.words.parameters, self.words.element, fast=self.fast, mixed=self.words.mixed)
        self.texts.update({variable: Spelled(name) for variable, name in found.names.items()})
        self.done.update(found.names)
        definitions = tape.definitions()
        if other is not None and self._agrees(other):
            self.texts, self.lines, self.inlined = other.before
            self.warns = bool(other.spelled)
        else:
            self._statements(definitions)
        if self.fast:
            self.before = dict(self.texts), list(self.lines), set(self.inlined)
        results = [self._output(variable, definitions) for variable in tape.outputs]
        self.lines += marked(_returned(results), *tape.outputs)
        bound = {name: variable for variable, name in found.names.items()}
        opening = tuple(
            line
            for pattern, value in found.statements
            for line in marked(
                listed("", pattern, f" = {value}"),
                *(bound[name] for name in re.findall(r"\w+", pattern) if name in bound),
            )
        )
        return Body(opening, tuple(self.lines), self.raises, self.warns)

    def _statements(self, definitions: dict[int, Op]) -> None:
        # Inlined values must be evaluated where they stand: a guard comes before what it does not depend on.
        for number, guard in enumerate(self.words.tape.guards):
            self._compute(guard.variable, definitions)
            self._guard(number, guard)
        for op in self.words.tape.ops:
            if op.result not in self.done and op.access not in ASSEMBLED:
                self._define(op)

    def _agrees(self, other: _Writer) -> bool:
        """Whether this body has the statements of the ``other`` one: all ops and constants are spelled alike."""
        return (
            other.literal
            and not self.words.mixed
            and not any(op.static for op, _ in other.spelled)
            and all(self._spelling(op).handles == spelling.handles for op, spelling in other.spelled)
        )

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
        value = text.within(ATOM)
        if guard.kind == "bool" or isinstance(guard.expected, bool | np.bool_):
            failed = f"not {text.within(ATOM)}" if guard.expected else text
        else:
            literal = scalar(guard.expected)
            if literal is None:
                raise CodegenError(f"a guard expects {guard.expected!r}, which has no literal")
            cast = f"{guard.kind}({text})" if guard.kind in ("int", "float") else value
            failed = (
                f"{text.within(ATOM)} == {text.within(ATOM)}"
                if guard.expected != guard.expected
                else f"{cast} != {literal}"
            )
        self.raises = self.raises or guard.kind == "int"
        self.lines += marked([f"if {failed}:", f"    raise StaleTape({number}, {text})"], guard.variable)

    def _define(self, op: Op) -> None:
        """Write an op down: as an expression inside its only user, or as a statement."""
        self.done.add(op.result)
        text = self._filled(op, self._spelling(op))
        if self._is_inlined(op.result, text):
            self.texts[op.result] = text
            self.inlined.add(op.result)
        else:
            self._assign(op.result, text)

    def _spelling(self, op: Op) -> Spelling:
        """How an op is written; ops without keywords that agree in primitive and types share one spelling."""
        types = self.words.tape.types
        exact = op.result in self.words.exact
        key = op.primitive, exact, types[op.result], *[types[operand] for operand in op.operands]
        found = None if op.static else self.spellings.get(key)
        if found is None:
            found = spell(
                op,
                self._strong(types[op.result]),
                tuple(self._strong(types[operand]) for operand in op.operands),
                fast=self.fast,
                exact=exact,
                function="" if op.semantics.casts else self.words.function(op.primitive),
                keywords=() if op.semantics.casts else self.words.keywords(op),
            )
            self.words.imports.update(found.imports)
            self.raises |= found.raises
            self.warns |= (found.warns or not self.fast) and not op.semantics.quiet
            self.spelled.append((op, found))
            if not op.static:
                self.spellings[key] = found
        return found

    def _strong(self, type: TensorType) -> TensorType:
        """In double precision the second body turns Python numbers into NumPy's at once: nothing promotes them."""
        return TensorType(type.dtype, type.shape) if type.weak and not self.words.mixed else type

    def _assign(self, variable: int, text: Spelled) -> None:
        name = self.words.name(variable)
        self.lines += wrapped(marked([f"{name} = {text}"], variable), 8)
        self.texts[variable] = Spelled(name)
        self.inlined.discard(variable)

    def _is_inlined(self, variable: int, text: Spelled) -> bool:
        uses = self.words.uses.get(variable, 0)
        if not uses or (uses == 1 and len(text) <= _LONGEST_INLINE):
            return True
        return text.isidentifier()

    def _filled(self, op: Op, spelling: Spelling) -> Spelled:
        """The spelling with its operands; what would make the line too long becomes a statement first."""
        if spelling.repeated:
            for operand in op.operands:
                if operand in self.inlined and not self.texts[operand].isidentifier():
                    self._assign(operand, self.texts[operand])
        known = self.texts
        like = None if known.keys() >= set(op.operands) else self._literal_type(op)
        texts = [known.get(operand) or self._text(operand, like) for operand in op.operands]
        length = sum([len(text) for text in texts]) + len(spelling.text)
        while length > WIDTH:
            longest = max(
                (operand for operand in op.operands if operand in self.inlined and len(self.texts[operand]) > 8),
                key=lambda operand: len(self.texts[operand]),
                default=None,
            )
            if longest is None:
                break
            self._assign(longest, self.texts[longest])
            texts = [self._text(operand, like) for operand in op.operands]
            length = sum([len(text) for text in texts]) + len(spelling.text)
        return spelling.applied(texts)

    def _literal_type(self, op: Op) -> TensorType | None:
        """The type that constants are spelled in: whole numbers among floats are written as floats.

        Not so for SciPy, some of whose functions have an algorithm for whole orders, and some no other.
        """
        if (op.primitive.target or "").startswith("scipy."):
            return None
        types = self.words.tape.types
        wanted = [types[operand] for operand in op.operands if operand not in self.words.tape.constants]
        wanted.append(types[op.result])
        return next((type for type in wanted if type.dtype.kind == "f"), None)

    def _text(self, variable: int, like: TensorType | None = None) -> Spelled:
        """The text of a variable; a constant as a literal."""
        found = self.texts.get(variable)
        if found is not None:
            return found
        value = self.words.tape.constants[variable]
        type = self.words.tape.types[variable]
        if isinstance(value, np.ndarray):
            value = value[()]
        if like is not None and type.dtype.kind in "iu" and float(value) == value:
            value = float(value)
        text = self._number(value)
        if not self.fast and not type.weak and (self.words.mixed or type.dtype not in _LITERALS):
            text = f"{dtype_text(type.dtype)}({text})"
        self.literal = self.literal and (type.weak or type.dtype in _LITERALS)
        return Spelled(text, UNARY if text.startswith("-") else ATOM)

    def _number(self, value: Any) -> str:
        text = scalar(value)
        if text is None:
            name = self.words.fresh("constant")
            self.words.objects[name] = value
            self.literal = False
            return name
        if text in ("np.nan", "np.inf", "-np.inf") and self.fast:
            self.literal = False
            self.words.imports.add("math." + text.rpartition(".")[2])
            return text.replace("np.", "")
        return text

    def _output(self, variable: int, definitions: dict[int, Op]) -> str:
        type = self.words.tape.types[variable]
        op = definitions.get(variable)
        if not type.shape or op is None:
            text = self._text(variable, type if type.dtype.kind == "f" else None)
            if type.weak:
                return text if self.fast else f"{type.dtype.type(0).item().__class__.__name__}({text})"
            return f"{dtype_text(type.dtype)}({text})"
        if op.access == AccessMap.RESHAPE:
            inner = self._output(op.operands[0], definitions)
            return f"{inner}.reshape({', '.join(map(str, type.shape))})"
        items = [self._item(operand, type) for operand in op.operands]
        if op.access == AccessMap.STACK:
            ending = "" if type.dtype in _LITERALS else f", dtype={dtype_text(type.dtype)}"
            array = f"np.array([{', '.join(items)}]{ending})"
            if len(array) <= WIDTH - 16:
                return array
            name = self.words.fresh("g")
            made = [f"{name} = np.array(", "    [", *packed(items, WIDTH - 16), f"    ]{ending}", ")"]
            self.lines += marked(made, variable)
            return name
        name = self.words.fresh("g")
        shape = str(type.shape[0]) if len(type.shape) == 1 else str(type.shape)
        ending = "" if type.dtype == np.float64 else f", dtype={dtype_text(type.dtype)}"
        self.lines += marked([f"{name} = np.zeros({shape}{ending})"], variable)
        for index, item in zip(op.keyword("indices"), items, strict=True):
            self.lines += wrapped(marked([f"{name}[{', '.join(map(str, index))}] = {item}"], variable), 8)
        return name

    def _item(self, variable: int, type: TensorType) -> str:
        """An element of a result: long expressions get names, so that the array reads as a list of values."""
        if variable in self.inlined and len(self.texts[variable]) > _LONGEST_ITEM:
            self._assign(variable, self.texts[variable])
        return self._text(variable, type if type.dtype.kind == "f" else None)


def _returned(results: list[str]) -> tuple[str, ...]:
    """The ``return`` statement; each result on lines of its own where one line is too short for all."""
    line = f"return {', '.join(results)}" if results else "return ()"
    if len(line) > WIDTH and len(results) > 1:
        line = f"return ({', '.join(results)})"
    return wrapped([line], 8)
