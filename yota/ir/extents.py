"""Extents: integer expressions of named sizes, in one recording of a function for all sizes."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
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

    @property
    def names(self) -> tuple[str, ...]:
        """The names."""

    def text(self, values: tuple[int, ...]) -> Spelled:
        """The expression with ``values`` at the samples."""

    def never_negative(self, values: Sequence[int]) -> bool:
        """Whether the expression with ``values`` at the samples is certain to be 0 or more at all sizes."""

    def demand(self, values: Sequence[int]) -> None:
        """Code holds only for sizes at which the expression with ``values`` at the samples is 0 or more."""


class Extent(int):
    """An integer expression of named sizes.

    As an int it has the value at the first sample. The values at all samples stand for the expression: arithmetic
    with ints and other extents is exact, and its result is an extent again. Two extents are equal if they are so at
    all samples. An order must be the same at all of them; sizes at which it is another one are refused by the code
    that follows. What may be decided in either way, such as how code is laid out, compares ``int(extent)``.

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
        return bool(self > 0 or self < 0)

    def __float__(self) -> float:
        raise UndecidedError(f"{self} has no value as a number of the tape, which is the same at all sizes")

    def __neg__(self) -> int:
        return extent_of([-value for value in self.values], self.sizes)

    def __abs__(self) -> int:
        return extent_of([abs(value) for value in self.values], self.sizes)

    def _is_negative(self) -> bool:
        """Whether it is below 0 at all samples; where it may be otherwise at further sizes, these are refused."""
        found = {value < 0 for value in self.values}
        if len(found) > 1:
            raise UndecidedError(
                f"the code depends on how large {self} is; fix the sizes, as in float64[100,3], or generate for NumPy "
                '(target="numpy")'
            )
        is_negative = found.pop()
        require(-1 - self if is_negative else self)
        return is_negative

    def _is_less(self, other: Any, *, swapped: bool = False) -> Any:
        pairs = _pairs(self, other)
        if pairs is None:
            return NotImplemented
        margin = extent_of([two - one if swapped else one - two for one, two in pairs], self.sizes)
        return margin._is_negative() if isinstance(margin, Extent) else margin < 0

    def __lt__(self, other: Any) -> Any:
        return self._is_less(other)

    def __gt__(self, other: Any) -> Any:
        return self._is_less(other, swapped=True)

    def __le__(self, other: Any) -> Any:
        found = self._is_less(other, swapped=True)
        return found if found is NotImplemented else not found

    def __ge__(self, other: Any) -> Any:
        found = self._is_less(other)
        return found if found is NotImplemented else not found


def _method(name: str, *, swapped: bool = False) -> Callable[[Extent, Any], Any]:
    """Arithmetic, whose results are extents."""
    function: Callable[[int, int], int] = getattr(operator, name)

    def compute(self: Extent, other: Any) -> Any:
        pairs = _pairs(self, other)
        if pairs is None:
            return NotImplemented
        return extent_of([function(two, one) if swapped else function(one, two) for one, two in pairs], self.sizes)

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


_is_tentative: ContextVar[bool] = ContextVar("is_tentative", default=False)


@contextmanager
def tentative() -> Iterator[None]:
    """Let comparisons refuse no sizes: they are made again for the code that is written."""
    token = _is_tentative.set(True)
    try:
        yield
    finally:
        _is_tentative.reset(token)


def require(number: int) -> None:
    """Refuse sizes at which ``number`` is negative."""
    if isinstance(number, Extent) and not _is_tentative.get() and not number.sizes.never_negative(number.values):
        number.sizes.demand(number.values)


def at_most(one: int, two: int) -> bool:
    """Whether ``one`` is certain to be at most ``two``, at all sizes."""
    margin = two - one
    return margin.sizes.never_negative(margin.values) if isinstance(margin, Extent) else margin >= 0


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
