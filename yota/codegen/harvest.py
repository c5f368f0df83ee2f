"""A factored forest back on a tape: each atom once, when it is first needed, signs folded into subtractions."""

from __future__ import annotations

import math
from collections.abc import Iterable

from yota.codegen.forest import Forest
from yota.codegen.polynomial import Term
from yota.codegen.sharing import Products
from yota.ir.types import TensorType
from yota.passes.rewrite import Rewriting

__all__ = ["Harvest"]


class Harvest:
    """Emits the arithmetic of one forest.

    Parameters
    ----------
    rewriting
        The tape that is made; variables of the forest are those of the tape it reads.
    forest
        Sums and roots.
    products
        How its monomials are made from shared products.
    type
        Of its results, unless all that one is made from are of another.
    """

    def __init__(self, rewriting: Rewriting, forest: Forest, products: Products, type: TensorType) -> None:
        self.rewriting = rewriting
        self.forest = forest
        self.products = products
        self.type = type
        self._typed: set[int] = set()
        """Variables that have this type."""
        self._ready: dict[int, int] = {}
        self._made: dict[tuple[tuple[int, int], ...], int] = {}
        self._negated: dict[int, int] = {}
        self._flipped = _flipped(forest, products)

    def root(self, variable: int) -> int:
        """The new variable of a root."""
        term = self.forest.roots[variable]
        self._prepare(self._needs(term))
        found = self._signed(term)
        type = self.rewriting.tape.types[variable]
        if self.rewriting.type(found) != type:
            # Only whether it is a Python number can differ.
            found = self.rewriting.emit("astype", (found,), {"dtype": type.dtype}, type)
        return found

    def _op(self, name: str, *operands: int) -> int:
        """Append an op; one that reads a variable of the forest's type gives that type."""
        if self._typed.isdisjoint(operands):
            found = self.rewriting.emit(name, operands)
            if self.rewriting.type(found) != self.type:
                return found
        else:
            found = self.rewriting.emit(name, operands, (), self.type)
        self._typed.add(found)
        return found

    def _needs(self, term: Term) -> Iterable[int]:
        """Atoms that a term is made from."""
        return self.products.factors[abs(term[0]), term[1]] if term[1] else ()

    def _parts(self, atom: int) -> Iterable[int]:
        """Atoms that an atom is made from."""
        if atom in self.forest.variables:
            return ()
        if atom in self.products.pairs:
            return self.products.pairs[atom]
        if atom in self.products.products:
            return [each for each, _ in self.products.products[atom]]
        return [each for term in self.forest.parts(atom) for each in self._needs(term)]

    def _prepare(self, atoms: Iterable[int]) -> None:
        """Emit atoms and what they depend on; a stack of its own, because sums may nest a thousand deep."""
        ready = self._ready
        pending = [*atoms][::-1]
        while pending:
            atom = pending[-1]
            missing = [] if atom in ready else [each for each in self._parts(atom) if each not in ready]
            if missing:
                pending.extend(reversed(missing))
            elif pending.pop() not in ready:
                ready[atom] = self._emit(atom)

    def _emit(self, atom: int) -> int:
        if atom in self.forest.variables:
            found = self.rewriting[self.forest.variables[atom]]
            if self.rewriting.type(found) == self.type:
                self._typed.add(found)
            return found
        if atom in self.products.numbers:
            return self.rewriting.builder.constant(self.products.numbers[atom])
        if atom in self.products.pairs:
            one, two = sorted(self.products.pairs[atom], key=lambda each: each not in self.products.numbers)
            return self._times(self._ready[one], self._ready[two])
        if atom in self.products.products:
            return self._multiplied(self.products.products[atom])
        if atom in self.forest.quotients:
            top, bottom = self.forest.quotients[atom]
            return self._op("divide", self._unsigned(top), self._unsigned(bottom))
        return self._sum(atom)

    def _times(self, left: int, right: int) -> int:
        if left == right:
            return self._op("square", left)
        return self._op("multiply", left, right)

    def _multiplied(self, factors: tuple[tuple[int, int], ...]) -> int:
        """The product of powers; numbers and 0-d factors first."""
        found = self._made.get(factors)
        if found is None:
            order = sorted(factors, key=self._rank)
            total: int | None = None
            for atom, exponent in order:
                power = self._power(self._ready[atom], exponent)
                total = power if total is None else self._times(total, power)
            assert total is not None
            found = self._made[factors] = total
        return found

    def _rank(self, factor: tuple[int, int]) -> tuple[bool, bool, int]:
        atom = factor[0]
        return atom not in self.products.numbers, atom not in self.forest.scalars, atom

    def _power(self, base: int, exponent: int) -> int:
        found = base
        for digit in bin(exponent)[3:]:
            found = self._op("square", found)
            if digit == "1":
                found = self._op("multiply", found, base)
        return found

    def _unsigned(self, term: Term) -> int:
        if not term[1]:
            return self.rewriting.builder.constant(abs(term[0]))
        factors = self.products.factors[abs(term[0]), term[1]]
        if len(factors) == 1:
            ((atom, exponent),) = factors.items()
            if exponent == 1:
                return self._ready[atom]
        return self._multiplied(tuple(sorted(factors.items())))

    def _signed(self, term: Term) -> int:
        """A term with its sign: in its coefficient if that is nobody else's, else as a negation."""
        if not term[1]:
            return self.rewriting.builder.constant(term[0])
        positive = math.copysign(1.0, term[0]) > 0
        if positive != self._is_flipped(term):
            return self._unsigned(term)
        key = abs(term[0]), term[1]
        factors = self.products.factors[key]
        numbers = [atom for atom in factors if atom in self.products.numbers]
        if self.products.signed(term):
            rest = tuple(sorted(item for item in factors.items() if item[0] not in numbers))
            value = self.rewriting.builder.constant(-self.products.numbers[numbers[0]])
            return self._scaled(value, rest)
        found = self._unsigned(term)
        if found not in self._negated:
            self._negated[found] = self._op("negative", found)
        return self._negated[found]

    def _scaled(self, value: int, factors: tuple[tuple[int, int], ...]) -> int:
        total = value
        for atom, exponent in sorted(factors, key=self._rank):
            total = self._times(total, self._power(self._ready[atom], exponent))
        return total

    def _is_flipped(self, term: Term) -> bool:
        flipped = self._flipped
        return bool(flipped) and any(atom in flipped for atom, exponent in term[1] if exponent % 2)

    def _sum(self, atom: int) -> int:
        each = self.forest.sums[atom]
        terms = each.alive()
        if atom in self._flipped:
            terms = [(-coefficient, monomial) for coefficient, monomial in terms]
        signs = [math.copysign(1.0, term[0]) > 0 for term in terms]
        if self._flipped:
            signs = [sign != self._is_flipped(term) for sign, term in zip(signs, terms, strict=True)]
        if not signs[0]:
            # b - a is -a + b to the bit; further back only where the order is free.
            limit = 2 if each.ordered else len(terms)
            first = next((number for number in range(1, min(limit, len(terms))) if signs[number]), None)
            if first is not None:
                terms.insert(0, terms.pop(first))
                signs.insert(0, signs.pop(first))
        total = self._unsigned(terms[0]) if signs[0] else self._signed(terms[0])
        for term, positive in zip(terms[1:], signs[1:], strict=True):
            total = self._op("add" if positive else "subtract", total, self._unsigned(term))
        return total


def _flipped(forest: Forest, products: Products) -> set[int]:
    """Sums to be emitted with all signs turned, because their one user would negate them."""
    if not any(term[0] == -1.0 for term in forest.roots.values()):
        return set()
    users: dict[int, list[Term]] = {}
    for term in forest.roots.values():
        for atom, _ in term[1]:
            users.setdefault(atom, []).append(term)
    inner: set[int] = set()
    for atom in forest.living():
        for term in forest.parts(atom):
            inner.update(each for each, _ in term[1])
    found: set[int] = set()
    taken: set[int] = set()
    for atom, terms in users.items():
        each = forest.sums.get(atom)
        if each is None or each.ordered or atom in inner or len(terms) > 1 or len(each.alive()) < 2:
            continue
        term = terms[0]
        exponents = dict(term[1])
        alone = exponents[atom] == 1 and taken.isdisjoint(exponents)
        turned = any(coefficient < 0 for coefficient, _ in each.alive())
        if term[0] == -1.0 and alone and turned and products.times[1.0, term[1]] == 1:
            found.add(atom)
            taken.update(exponents)
    return found
