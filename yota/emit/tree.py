"""Expressions and statements of generated code, as records that a language prints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from yota.ir.extents import ATOM, CHOICE, SUM, UNARY, Spelled


@dataclass(frozen=True, slots=True)
class Spelling:
    """An expression with holes.

    text: format string over the operands' texts.
    level: how tightly it binds.
    needs: for each operand, how tightly it must bind to stand there without parentheses.
    repeated: whether operands occur several times, so that they must be names.
    imports: names from ``math`` that it uses, or a module to import as it is.
    raises: whether it can raise where NumPy gives an infinity or NaN.
    warns: whether NumPy may warn in it.
    simd: function of libm to be declared as one that has a vector form.
    part: template of an inline function that it calls.
    """

    text: str
    level: int = ATOM
    needs: tuple[int, ...] = (CHOICE, CHOICE, CHOICE)
    repeated: bool = False
    imports: tuple[str, ...] = ()
    raises: bool = False
    warns: bool = False
    simd: str = ""
    part: str = ""

    @property
    def handles(self) -> tuple[str, int, tuple[int, ...], bool]:
        """What of it shows in the text that is written."""
        return self.text, self.level, self.needs, self.repeated

    def applied(self, texts: Sequence[Spelled], *, apart: bool = False) -> Spelled:
        """The expression of operands; ``apart`` puts in parentheses what compilers of C warn of."""
        if self.text == "{0}":
            return texts[0]
        needs = self.needs if len(self.needs) >= len(texts) else (*self.needs, *self.needs[-1:] * len(texts))
        if apart and CHOICE < self.level < SUM:
            needs = tuple([ATOM if text.level < UNARY else need for text, need in zip(texts, needs, strict=False)])
        pieces = [text if text.level >= need else f"({text})" for text, need in zip(texts, needs, strict=False)]
        signed = len(pieces) if apart and SUM <= self.level < ATOM else 1
        for place in range(0 if self.text[0] == "-" else 1, signed):
            pieces[place] = f"({pieces[place]})" if pieces[place].startswith("-") else pieces[place]
        return Spelled(self.text.format(*pieces), self.level)


@dataclass(frozen=True, slots=True)
class Node:
    """A statement: the macro of its class's name in a language's ``statements.jinja`` prints it."""


Statement: TypeAlias = "Node | str"
"""A record, or a line that is printed already."""


@dataclass(frozen=True, slots=True)
class Remark(Node):
    """A comment."""

    text: str


@dataclass(frozen=True, slots=True)
class Define(Node):
    """The definition of a value that does not change."""

    type: str
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Variable(Node):
    """The declaration of a number that changes: with ``rest``, of a sum and of what it has no digits for."""

    type: str
    name: str
    value: str = ""
    rest: str = ""


@dataclass(frozen=True, slots=True)
class Room(Node):
    """The declaration of a local array of ``count`` elements."""

    type: str
    name: str
    count: int


@dataclass(frozen=True, slots=True)
class View(Node):
    """A name for ``count`` elements of an array, which may be ``written`` in languages with pointers."""

    type: str
    name: str
    source: str
    count: int
    written: bool = False


@dataclass(frozen=True, slots=True)
class Alias(Node):
    """A name for an array that is read, which may become that of another one."""

    type: str
    name: str
    array: str


@dataclass(frozen=True, slots=True)
class Memory(Node):
    """An array of ``count`` elements that may be large.

    room: whether ``count`` may be 0.
    cleared: whether its elements are 0 at first.
    """

    type: str
    name: str
    count: int
    room: bool = False
    cleared: bool = False


@dataclass(frozen=True, slots=True)
class Unused(Node):
    """A parameter that nothing reads."""

    name: str


@dataclass(frozen=True, slots=True)
class Table(Node):
    """A constant array: lines of its elements, or of their parts, which are of type ``part``."""

    type: str
    name: str
    count: int
    rows: tuple[str, ...]
    part: str = ""


@dataclass(frozen=True, slots=True)
class Assign(Node):
    """``target = value``, or what another ``sign`` says."""

    target: str
    value: str
    sign: str = "="


@dataclass(frozen=True, slots=True)
class AddTo(Node):
    """Adds ``term`` to ``sum``, and what is lost of it to ``rest``, by the inline function of a name."""

    function: str
    sum: str
    rest: str
    term: str


@dataclass(frozen=True, slots=True)
class Fill(Node):
    """Sets ``count`` elements of an array to ``value``; ``clears`` says whether that is zero."""

    name: str
    count: int
    value: str
    clears: bool


@dataclass(frozen=True, slots=True)
class Copy(Node):
    """Copies ``count`` elements."""

    target: str
    source: str
    count: int


@dataclass(frozen=True, slots=True)
class Loop(Node):
    """A loop of a counter from ``start`` to before ``stop``.

    vector: clauses under which rounds may be run together; None if they may not.
    """

    counter: str
    start: str
    stop: str
    body: tuple[Statement, ...]
    step: str = ""
    vector: str | None = None


@dataclass(frozen=True, slots=True)
class Scope(Node):
    """Statements with names of their own, under a ``condition`` if that is not empty."""

    body: tuple[Statement, ...]
    condition: str = ""


@dataclass(frozen=True, slots=True)
class Rows(Node):
    """Fills a matrix by a function that gives a row for each unit vector.

    count, width: how many rows there are, and elements of a row.
    large: whether the unit vector is too large for the stack.
    """

    type: str
    unit: str
    row: str
    count: int
    width: int
    large: bool
    function: str
    arguments: tuple[str, ...]
    matrix: str


@dataclass(frozen=True, slots=True)
class Return(Node):
    """The end of the function with ``status`` under a condition, where nothing is to be given back."""

    condition: str
    status: int


@dataclass(frozen=True, slots=True)
class Break(Node):
    """The end of the innermost loop under a condition."""

    condition: str


@dataclass(frozen=True, slots=True)
class Leave(Node):
    """The end of the function with ``status`` under a condition."""

    condition: str
    status: int
