"""Extents: integer expressions of named sizes, in one recording of a function for all sizes."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

from yota.errors import ArgumentError
from yota.ir.types import Record

CHOICE, OR, AND, NOT, SAME, COMPARE, SUM, PRODUCT, UNARY, ATOM = range(10)
"""How tightly an expression binds, in C and in Python."""

_WORDS = {" - ": "_minus_", " + ": "_plus_", " * ": "_times_", " / ": "_over_", "(": "", ")": ""}


class UndecidedError(ArgumentError):
    """A comparison of sizes has different results at different sizes."""


class Spelled(str):
    """Text of an expression with its precedence."""

    __slots__ = ("level",)
    level: int

    def __new__(cls, text: str, level: int = ATOM) -> Spelled:
        """Text with its level."""
        made = super().__new__(cls, text)
        made.level = level
        return made

    def within(self, level: int) -> str:
        """The text, in parentheses if ``level`` binds more tightly."""
        return self if self.level >= level else f"({self})"


class Sizes(Protocol):
    """Named sizes with several samples, which distinguish expressions of the names."""

    def text(self, values: tuple[int, ...]) -> Spelled:
        """The expression with ``values`` at the samples."""


class Extent(int):
    """An integer expression of named sizes.

    As an int it has the value at the first sample. The values at all samples stand for the expression: arithmetic
    with ints and other extents is exact, and its result is an extent again. Two extents are equal if they are so at
    all samples; an order must be the same at all of them.

    An f-string shows the expression in parentheses unless it is a name; `str` shows it without.
    """

    values: tuple[int, ...]
    sizes: Sizes

    def __new__(cls, values: tuple[int, ...], sizes: Sizes) -> Extent:
        """The expression that has ``values`` at the samples of ``sizes``."""
        made = super().__new__(cls, values[0])
        made.values, made.sizes = values, sizes
        return made

    @property
    def text(self) -> Spelled:
        """The expression."""
        return self.sizes.text(self.values)

    @property
    def word(self) -> str:
        """The expression as a part of a name."""
        return functools.reduce(lambda word, sign: word.replace(sign, _WORDS[sign]), _WORDS, str(self))

    def __str__(self) -> str:
        return str(self.text)

    __repr__ = __str__

    def __format__(self, specification: str) -> str:
        return self.text.within(ATOM)

    def __hash__(self) -> int:
        return hash(self.values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Extent) and self.values == other.values and self.sizes is other.sizes

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __bool__(self) -> bool:
        return self._decided(map(bool, self.values))

    def __float__(self) -> float:
        raise UndecidedError(f"{self} has no value as a number of the tape, which is the same at all sizes")

    def __neg__(self) -> int:
        return extent_of([-value for value in self.values], self.sizes)

    def __abs__(self) -> int:
        return extent_of([abs(value) for value in self.values], self.sizes)

    def _decided(self, answers: Iterable[bool]) -> bool:
        found = set(answers)
        if len(found) > 1:
            raise UndecidedError(
                f"the code depends on how large {self} is; fix the sizes, as in float64[100,3], or generate for NumPy "
                '(target="numpy")'
            )
        return found.pop()


def _method(name: str, *, swapped: bool = False) -> Callable[[Extent, Any], Any]:
    """Arithmetic, whose results are extents, or a comparison, which must be the same at all samples."""
    function: Callable[[int, int], int] = getattr(operator, name)

    def compute(self: Extent, other: Any) -> Any:
        pairs = _pairs(self, other)
        if pairs is None:
            return NotImplemented
        found = [function(two, one) if swapped else function(one, two) for one, two in pairs]
        return self._decided(map(bool, found)) if type(found[0]) is bool else extent_of(found, self.sizes)

    return compute


def _pairs(one: Extent, other: Any) -> Sequence[tuple[int, int]] | None:
    """The values of both at each sample; None if ``other`` is no whole number."""
    if isinstance(other, Extent):
        return list(zip(one.values, other.values, strict=True))
    if not isinstance(other, int):
        return None
    number = int(other)
    return [(value, number) for value in one.values]


for _name in ("add", "sub", "mul", "floordiv", "mod"):
    setattr(Extent, f"__{_name}__", _method(_name))
    setattr(Extent, f"__r{_name}__", _method(_name, swapped=True))
for _name in ("lt", "le", "gt", "ge"):
    setattr(Extent, f"__{_name}__", _method(_name))


def extent_of(values: Sequence[int], sizes: Sizes) -> int:
    """The integer with ``values`` at the samples of ``sizes``: a plain int if they are all equal."""
    return values[0] if len(set(values)) == 1 else Extent(tuple(values), sizes)


def factor(number: int) -> str:
    """Text of a number as a factor.

    >>> factor(3)
    '3'
    """
    if not isinstance(number, Extent):
        return str(number)
    return number.text.within(ATOM if "/" in number.text else PRODUCT)


_PLAIN = frozenset((bool, int, float, complex, str, type(None)))
"""Classes of values that hold no extents: most parts of types and keywords."""


def extents_in(value: Any) -> Iterator[Extent]:
    """The extents in a shape, a type, an index, or a keyword of an op."""
    pending = [value]
    while pending:
        part = pending.pop()
        if type(part) in _PLAIN:
            continue
        if isinstance(part, tuple):
            pending += part[::-1]
        elif isinstance(part, Record):
            pending += part.contents()[::-1]
        elif isinstance(part, Extent):
            yield part
        elif hasattr(part, "extents"):
            yield from part.extents()


def with_extents(value: Any, change: Callable[[Extent], int]) -> Any:
    """A shape, a type, an index or a keyword with ``change`` applied to its extents."""
    if isinstance(value, Extent):
        return change(value)
    if isinstance(value, tuple):
        return tuple(with_extents(part, change) for part in value)
    if isinstance(value, Record):
        return type(value)(*with_extents(value.contents(), change))
    return value.with_extents(change) if hasattr(value, "with_extents") else value


def at_sample(value: Any, number: int) -> Any:
    """A shape, a type, an index or a keyword at one sample."""
    return with_extents(value, lambda extent: extent.values[number])
