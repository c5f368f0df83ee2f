"""Numbers that come from sizes: found as expressions of the sizes' names, from their values at several sizes."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from yota.errors import ArgumentError
from yota.ir.extents import ATOM, SUM, Spelled
from yota.transform.sizes.evaluation import evaluated

if TYPE_CHECKING:
    import sympy

_Terms: TypeAlias = "dict[tuple[str, ...], Fraction]"
"""Monomials, each with a factor."""
_DEGREE = 3
_DIVISORS = (2, 3, 4, 5, 8, 10)
_CLOSE = 4 * 2.0**-52
_CLOSE_IN_SINGLE = 4 * 2.0**-23


def closeness(dtype: np.dtype[Any]) -> float:
    """How far numbers of ``dtype`` may be from what they are meant to be, relative to them."""
    return {4: _CLOSE_IN_SINGLE, 8: _CLOSE}.get(dtype.itemsize, 4 * float(np.finfo(dtype).eps))


def _as_it_is(text: str) -> Spelled:
    return Spelled(text, ATOM if text.isidentifier() else SUM)


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """Sizes at which a function was traced.

    sizes: each sample: a size for each name.
    spell: how an expression, given in Python, is written.
    smallest: the size from which on code is to hold.
    """

    names: tuple[str, ...]
    sizes: tuple[Mapping[str, int], ...]
    spell: Callable[[str], Spelled] = _as_it_is
    smallest: int = 1
    _texts: dict[tuple[int, ...], Spelled] = field(default_factory=dict, init=False)
    _wholes: dict[tuple[int, ...], str | None] = field(default_factory=dict, init=False)
    _signs: dict[tuple[int, ...], bool] = field(default_factory=dict, init=False)
    arrays: dict[Any, str | None] = field(default_factory=dict, init=False)
    """Texts of arrays, by what they are at the samples."""
    demands: dict[tuple[int, ...], None] = field(default_factory=dict, init=False)
    """Values of what must not be negative, for decisions to be right that code was made by."""

    def demand(self, values: Sequence[int]) -> None:
        """Code holds only for sizes at which the expression with ``values`` at the samples is 0 or more."""
        self.demands[tuple(values)] = None

    def text(self, values: tuple[int, ...]) -> Spelled:
        """The expression that has ``values`` at the samples."""
        if values not in self._texts:
            self._texts[values] = self.spell(self.expression(values))
        return self._texts[values]

    def expression(self, values: Sequence[int]) -> str:
        """Python text of an int that has ``values`` at the samples."""
        text = self.whole(values)
        if text is None:
            shown = ", ".join(map(str, values[:3]))
            raise ArgumentError(f"a number of the code is no polynomial of the sizes: {shown}, ...")
        return text

    def whole(self, values: Sequence[int]) -> str | None:
        """Python text of an int that has ``values`` at the samples; None if no polynomial or quotient fits."""
        key = tuple(values)
        if key not in self._wholes:
            self._wholes[key] = self._whole(key)
        return self._wholes[key]

    def _whole(self, values: Sequence[int]) -> str | None:
        if len(set(values)) == 1:
            return str(values[0])
        if (shifted := self._shifted(values)) is not None:
            return _plus(*shifted)
        found = self._exact([Fraction(value) for value in values])
        if found is None:
            floored = self._floored(values)
            return _plus(*floored) if floored else self._product(values)
        above, below = _parts(found)
        return above if below == "1" else f"({above}) // {below}"

    def _shifted(self, values: Sequence[int]) -> tuple[str, int] | None:
        """A size and what is added to it."""
        for name in self.names:
            offset = values[0] - self.sizes[0][name]
            if all(value == size[name] + offset for value, size in zip(values, self.sizes, strict=True)):
                return name, offset
        return None

    def _floored(self, values: Sequence[int]) -> tuple[str, int] | None:
        """A quotient of a size by a small number, perhaps times that, or a remainder; and what is added to it."""
        forms = ("{0} // {1}", "{1} * ({0} // {1})", "{0} % {1}")
        for name, divisor, form in itertools.product(self.names, _DIVISORS, forms):
            for start in range(divisor):
                text = form.format(f"({name} + {start})" if start else name, divisor)
                parts = [evaluated(text, size) for size in self.sizes]
                rest = values[0] - parts[0]
                if all(value == part + rest for value, part in zip(values, parts, strict=True)):
                    return text, rest
        return None

    def _product(self, values: Sequence[int]) -> str | None:
        """A size or a number times what is no polynomial, as for the bytes of every other row."""
        for name in self.names:
            if all(value and not value % size[name] for value, size in zip(values, self.sizes, strict=True)):
                rest = self.whole([value // size[name] for value, size in zip(values, self.sizes, strict=True)])
                return rest and f"{name} * ({rest})"
        common = math.gcd(*values)
        rest = self.whole([value // common for value in values]) if common > 1 else None
        return rest and f"{common} * ({rest})"

    def never_negative(self, values: Sequence[int]) -> bool:
        """Whether an int that has ``values`` at the samples is certain to be 0 or more at all sizes."""
        key = tuple(values)
        if key not in self._signs:
            self._signs[key] = min(key) >= 0 and self._never_negative(key)
        return self._signs[key]

    def _never_negative(self, values: Sequence[int]) -> bool:
        if (shifted := self._shifted(values)) is not None:
            return shifted[1] >= -self.smallest
        if self.smallest < 1:
            return replace(self, smallest=1).never_negative(values) and all(
                self._is_positive_without(name, values) for name in self.names
            )
        # In sizes less one, all of which are zero or more, no coefficient may pull it down.
        less = [{name: extent - 1 for name, extent in size.items()} for size in self.sizes]
        exact = [Fraction(value) for value in values]
        if len(set(exact)) == 1:
            return exact[0] >= 0
        found = Samples(self.names, tuple(less))._polynomial(exact)
        if found is None and (common := math.gcd(*values)) > 1:
            return self.never_negative([value // common for value in values])
        if found is None and (floored := self._floored(values)) is not None:
            return floored[1] >= 0
        return found is not None and min(found.values()) >= 0

    def _is_positive_without(self, name: str, values: Sequence[int]) -> bool:
        """Whether the int is never negative where the size ``name`` is 0."""
        text, others = self.whole(values), tuple(each for each in self.names if each != name)
        sizes = tuple({each: size[each] for each in others} for size in self.sizes)
        found = [] if text is None else [evaluated(text, {**size, name: 0}) for size in sizes]
        return bool(found) and replace(self, names=others, sizes=sizes).never_negative(found)

    def real(self, values: Sequence[float], close: float = _CLOSE) -> str | None:
        """Python text of a float, ``close`` to it: a polynomial, its reciprocal, or the square root of such."""
        if all(value == values[0] for value in values) and len({math.copysign(1.0, value) for value in values}) == 1:
            return repr(float(values[0]))
        if not all(math.isfinite(value) and value for value in values):
            return None
        for root, reciprocal in itertools.product((False, True), (False, True)):
            if root and len({value > 0 for value in values}) > 1:
                return None
            plain = [(value * value if root else value) for value in values]
            fractions = [_fraction(1 / value if reciprocal else value, close) for value in plain]
            exact = [fraction for fraction in fractions if fraction is not None]
            found = self._exact(exact) if len(exact) == len(values) else None
            if found is None and not reciprocal and len(exact) == len(values):
                found = self._quotient(exact)
            if found is not None:
                text = _spelled(found, reciprocal, root, negative=root and values[0] < 0)
                if self._agrees(text, values, close):
                    return text
        return self._measured(values, close)

    def _measured(self, values: Sequence[float], close: float) -> str | None:
        """A real number times a product of sizes, or of their logarithms, perhaps with another number added."""
        powers = [monomial for degree in (1, 2) for monomial in _monomials(self.names, degree)]
        texts = [" * ".join(monomial) for monomial in dict.fromkeys(powers) if monomial]
        texts += [f"float(np.log({text}))" for text in texts[: len(self.names)]]
        texts += [f"{name} * float(np.log({other}))" for name in self.names for other in self.names]
        for text in texts:
            first, second, *_ = (float(evaluated(text, size)) for size in self.sizes)
            candidates = [_times(values[0] / first, text)]
            if first != second:
                factor = (values[1] - values[0]) / (second - first)
                candidates.append(f"{values[0] - factor * first!r} + {_times(factor, text)}")
            for found in candidates:
                if self._agrees(found, values, close):
                    return found
        return None

    def _agrees(self, text: str, values: Sequence[float], close: float) -> bool:
        results = [float(evaluated(text, size)) for size in self.sizes]
        return all(abs(result - value) <= close * abs(value) for result, value in zip(results, values, strict=True))

    def _exact(self, values: Sequence[Fraction]) -> sympy.Expr | None:
        found = self._monomial(values) or self._polynomial(values)
        return found and _expression(tuple(found.items()))

    def _monomial(self, values: Sequence[Fraction]) -> _Terms | None:
        """A product of sizes times a line in one further size: numbers of elements are such, of any degree."""
        for count in range(len(self.names), 1, -1):
            for chosen in itertools.combinations(self.names, count):
                others = (name for name in self.names if name not in chosen)
                lines: list[list[tuple[str, ...]]] = [[()], *([(), (other,)] for other in others)]
                for factors in lines:
                    found = self._combined([(*chosen, *factor) for factor in factors], values)
                    if found is not None:
                        return found
        return None

    def _polynomial(self, values: Sequence[Fraction]) -> _Terms | None:
        """The polynomial of lowest degree through all samples, which must be more than it has coefficients."""
        for degree in range(1, _DEGREE + 1):
            monomials = list(_monomials(self.names, degree))
            if len(monomials) >= len(values):
                return None
            found = self._combined(monomials, values)
            if found is not None:
                return found
        return None

    def _combined(self, monomials: Sequence[tuple[str, ...]], values: Sequence[Fraction]) -> _Terms | None:
        """The sum of ``monomials``, each with a factor, that has ``values``."""
        found = _solved([[_value(each, size) for each in monomials] for size in self.sizes], values)
        return None if found is None else dict(zip(monomials, found, strict=True))

    def _quotient(self, values: Sequence[Fraction]) -> sympy.Expr | None:
        """The simplest quotient of polynomials in a single size."""
        if len(self.names) > 1:
            return None
        for above, below in ((1, 1), (2, 1), (1, 2), (2, 2)):
            over, under = (list(_monomials(self.names, degree)) for degree in (above, below))
            if len(over) + len(under) > len(values):
                return None
            rows, right = [], []
            for size, value in zip(self.sizes, values, strict=True):
                lower = [value * _value(monomial, size) for monomial in under]
                rows.append([*(_value(monomial, size) for monomial in over), *(-each for each in lower[:-1])])
                right.append(lower[-1])
            found = _solved(rows, right)
            if found is not None:
                lowest = _expression(tuple(zip(under, [*found[len(over) :], Fraction(1)], strict=True)))
                return _expression(tuple(zip(over, found, strict=False))) / lowest
        return None


def samples_of(
    names: Sequence[str], smallest: int = 5, apart: int = 1, avoided: Collection[int] = (), *, few: bool = False
) -> Samples:
    """Samples enough to find polynomials of third degree in a few names, and to notice what is none.

    A ``few`` are enough for products and sums of sizes. Sizes are ``smallest`` at least, and as far ``apart`` from one
    another in each sample, and from those ``avoided``. Nor are they, their neighbours or their sums powers of two: to
    divide by those is written in another way.
    """
    count = max(4, 1 + len(names)) if few else {1: 7, 2: 14}.get(len(names), 24)
    span = 16 + 4 * (len(names) - 1) + 4 * (apart - 1) * (len(names) + len(avoided))
    found: list[dict[str, int]] = []
    state = 1
    while len(found) < count:
        sizes = []
        for _ in names:
            state = (state * 1103515245 + 12345) % 2**31
            sizes.append(smallest + (state >> 16) % span)
        sample = dict(zip(names, sizes, strict=True))
        pairs = itertools.combinations([*avoided, *sizes], 2)
        near = any(abs(one - other) < apart for one, other in pairs if one in sizes or other in sizes)
        if not near and not _is_special(sizes) and sample not in found:
            found.append(sample)
    return Samples(tuple(names), tuple(found))


def _is_special(sizes: Sequence[int]) -> bool:
    """Whether code may treat sizes in a way of their own: arrays are divided by powers of two by products."""
    sums = (one + other for one, other in itertools.combinations(sizes, 2))
    near = (extent + step for extent in sizes for step in (-1, 0, 1))
    return any(each & (each - 1) == 0 for each in (*near, *sums))


def _plus(text: str, number: int) -> str:
    return f"{text} {'+' if number > 0 else '-'} {abs(number)}" if number else text


def _times(factor: float, text: str) -> str:
    return text if factor == 1.0 else f"{factor!r} * {text}"


def _monomials(names: Sequence[str], degree: int) -> Iterator[tuple[str, ...]]:
    for each in range(degree + 1):
        yield from itertools.combinations_with_replacement(names, each)


def _value(monomial: tuple[str, ...], size: Mapping[str, int]) -> Fraction:
    return Fraction(math.prod(size[name] for name in monomial))


def _solved(rows: list[list[Fraction]], values: Sequence[Fraction]) -> list[Fraction] | None:
    """The exact solution of an overdetermined system; None if there is none or several."""
    table = [[*row, value] for row, value in zip(rows, values, strict=True)]
    width = len(rows[0])
    for column in range(width):
        pivot = next((row for row in range(column, len(table)) if table[row][column]), None)
        if pivot is None:
            return None
        table[column], table[pivot] = table[pivot], table[column]
        lead = table[column][column]
        table[column] = [entry / lead for entry in table[column]]
        for row in range(len(table)):
            factor = table[row][column]
            if row != column and factor:
                table[row] = [one - factor * other for one, other in zip(table[row], table[column], strict=True)]
    if any(row[-1] for row in table[width:]):
        return None
    return [row[-1] for row in table[:width]]


@functools.lru_cache(1024)
def _expression(terms: tuple[tuple[tuple[str, ...], Fraction], ...]) -> Any:
    """The factored sum of monomials, each with a factor."""
    import sympy

    summands = [
        sympy.Rational(value.numerator, value.denominator)
        * sympy.prod(sympy.Symbol(name, integer=True) for name in monomial)
        for monomial, value in terms
    ]
    return sympy.factor(sympy.Add(*summands))


@functools.lru_cache(1024)
def _parts(expression: Any) -> tuple[str, str]:
    """Numerator and denominator as text."""
    import sympy

    above, below = sympy.factor(expression).as_numer_denom()
    return str(sympy.factor(above)), str(below)


def _spelled(expression: Any, reciprocal: bool, root: bool, *, negative: bool) -> str:
    above, below = _parts(expression)
    if reciprocal:
        above, below = below, above
    # NumPy's division gives an infinity where Python's raises.
    text = above if below == "1" else f"np.divide({above}, {below})"
    text = f"math.sqrt({text})" if root else f"float({text})"
    return f"-{text}" if negative else text


def _fraction(value: float, close: float) -> Fraction | None:
    """The simple fraction that ``value`` is meant to be, and ``close`` to."""
    found = (Fraction(value).limit_denominator(10**digits) for digits in range(7))
    return next((each for each in found if abs(float(each) - value) <= close * abs(value)), None)
