"""A factored system of polynomials put back on a tape: each atom once, when it is needed, signs in subtractions."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from yota.ir.catalog import primitive
from yota.ir.types import TensorType
from yota.optimize.polynomials.sharing import Products
from yota.optimize.rewrite import Rewriting

_COMMUTES = frozenset({"add", "multiply"})


class Exporter:
    """Emits the arithmetic of one system.

    rewriting: the tape that is made; variables of the system are those of the tape it reads.
    products: the system, and how its monomials are made from shared products.
    type: of its results, unless all that one is made from are of another.
    """

    def __init__(self, rewriting: Rewriting, products: Products, type: TensorType) -> None:
        self.rewriting = rewriting
        self.table = products.table
        self.products = products
        self.type = type
        self._typed: set[int] = set()
        """Variables that have this type."""
        self._known: dict[tuple[str | int, ...], int] = {}
        self._ready: dict[int, int] = {}
        self._unsigned_values: dict[int, int] = {}
        """Variables of terms, without their signs."""
        self._negated: dict[int, int] = {}
        self._flipped = _flipped(products)

    def root(self, variable: int) -> int:
        """The new variable of a root."""
        positive, number = self.products.roots[variable]
        self._prepare(self.products.factors[number])
        found = self._signed(positive, number)
        type, made = self.rewriting.tape.types[variable], self.rewriting.type(found)
        if made is not type and made != type:
            # Only whether it is a Python number can differ.
            found = self.rewriting.emit("astype", (found,), {"dtype": type.dtype}, type)
        return found

    def _op(self, name: str, *operands: int) -> int:
        """Append an op, each once; one that reads a variable of the system's type gives that type."""
        key: tuple[str | int, ...]
        if name in _COMMUTES and operands[0] > operands[1]:
            key = name, operands[1], operands[0]
        else:
            key = name, *operands
        known = self._known.get(key)
        if known is not None:
            return known
        builder = self.rewriting.builder
        if self._typed.isdisjoint(operands):
            found = builder.emit(primitive(name), operands)
            if builder.types[found] != self.type:
                self._known[key] = found
                return found
        else:
            found = builder.emit(primitive(name), operands, (), self.type)
        self._typed.add(found)
        self._known[key] = found
        return found

    def _parts(self, atom: int) -> Iterable[int]:
        """Atoms that an atom is made from."""
        if atom in self.products.pairs:
            return self.products.pairs[atom]
        if atom in self.products.products:
            return [each for each, _ in self.products.products[atom]]
        factors = self.products.factors
        return [each for _, number in self.products.parts.get(atom, ()) for each in factors[number]]

    def _prepare(self, atoms: Iterable[int]) -> None:
        """Emit atoms and what they depend on; a stack of its own, because sums may nest a thousand deep."""
        ready, variables = self._ready, self.table.origin.variables
        pending = [atom for atom in atoms if atom not in ready]
        pending.reverse()
        while pending:
            atom = pending[-1]
            if atom in ready:
                pending.pop()
            elif atom in variables:
                # What stands for a variable of the tape that is read.
                found = self.rewriting[variables[atom]]
                type = self.rewriting.builder.types[found]
                if type is self.type or type == self.type:
                    self._typed.add(found)
                ready[pending.pop()] = found
            else:
                missing = [each for each in self._parts(atom) if each not in ready]
                if missing:
                    missing.reverse()
                    pending += missing
                else:
                    ready[pending.pop()] = self._emit(atom)

    def _emit(self, atom: int) -> int:
        if atom in self.products.numbers:
            return self.rewriting.builder.constant(self.products.numbers[atom])
        if atom in self.products.pairs:
            one, two = sorted(self.products.pairs[atom], key=lambda each: each not in self.products.numbers)
            return self._times(self._ready[one], self._ready[two])
        if atom in self.products.products:
            return self._multiplied(self.products.products[atom])
        if atom in self.table.quotients:
            (_, top), (_, bottom) = self.products.parts[atom]
            return self._op("divide", self._unsigned(top), self._unsigned(bottom))
        return self._sum(atom)

    def _times(self, left: int, right: int) -> int:
        if left == right:
            return self._op("square", left)
        return self._op("multiply", left, right)

    def _multiplied(self, factors: Collection[tuple[int, int]]) -> int:
        """The product of powers; numbers and 0-d factors first."""
        ready, found = self._ready, None
        for atom, exponent in sorted(factors, key=self._rank) if len(factors) > 1 else factors:
            power = ready[atom] if exponent == 1 else self._power(ready[atom], exponent)
            found = power if found is None else self._times(found, power)
        assert found is not None
        return found

    def _rank(self, factor: tuple[int, int]) -> tuple[bool, bool, int]:
        atom = factor[0]
        return atom not in self.products.numbers, atom not in self.table.scalars, atom

    def _power(self, base: int, exponent: int) -> int:
        found = base
        for digit in bin(exponent)[3:]:
            found = self._op("square", found)
            if digit == "1":
                found = self._op("multiply", found, base)
        return found

    def _unsigned(self, number: int) -> int:
        found = self._unsigned_values.get(number)
        if found is None:
            factors = self.products.factors[number]
            if factors:
                found = self._multiplied(factors.items())
            else:
                found = self.rewriting.builder.constant(self.products.terms[number][0])
            self._unsigned_values[number] = found
        return found

    def _signed(self, positive: bool, number: int) -> int:
        """A term with its sign: in its coefficient if that is nobody else's, else as a negation."""
        factors = self.products.factors[number]
        if not factors:
            value = self.products.terms[number][0]
            return self.rewriting.builder.constant(value if positive else -value)
        if positive != self._is_flipped(number):
            return self._unsigned(number)
        numbers = [atom for atom in factors if atom in self.products.numbers]
        if self.products.signed(number):
            rest = tuple(sorted(item for item in factors.items() if item[0] not in numbers))
            value = self.rewriting.builder.constant(-self.products.numbers[numbers[0]])
            total = value
            for atom, exponent in sorted(rest, key=self._rank):
                total = self._times(total, self._power(self._ready[atom], exponent))
            return total
        found = self._unsigned(number)
        if found not in self._negated:
            self._negated[found] = self._op("negative", found)
        return self._negated[found]

    def _is_flipped(self, number: int) -> bool:
        flipped = self._flipped
        return bool(flipped) and any(
            atom in flipped for atom, exponent in self.products.terms[number][1] if exponent % 2
        )

    def _sum(self, atom: int) -> int:
        terms = self.products.parts[atom]
        if atom in self._flipped:
            terms = [(not positive, number) for positive, number in terms]
        if not terms[0][0]:
            # b - a is -a + b to the bit; further back only where the order is free.
            limit = 2 if atom in self.table.ordered else len(terms)
            first = next((place for place in range(1, min(limit, len(terms))) if terms[place][0]), None)
            if first is not None:
                terms = [terms[first], *terms[:first], *terms[first + 1 :]]
        positive, number = terms[0]
        total = self._unsigned(number) if positive else self._signed(False, number)
        for positive, number in terms[1:]:
            total = self._op("add" if positive else "subtract", total, self._unsigned(number))
        return total


def _flipped(products: Products) -> set[int]:
    """Sums to be emitted with all signs turned, because their one user would negate them."""
    terms, table = products.terms, products.table
    if not any(not positive and terms[number][0] == 1.0 for positive, number in products.roots.values()):
        return set()
    users: dict[int, list[tuple[bool, int]]] = {}
    for root in products.roots.values():
        for atom, _ in terms[root[1]][1]:
            users.setdefault(atom, []).append(root)
    inner = {atom for parts in products.parts.values() for _, number in parts for atom, _ in terms[number][1]}
    found: set[int] = set()
    taken: set[int] = set()
    for atom, roots in users.items():
        is_sum = atom in products.parts and atom not in table.quotients
        if not is_sum or atom in table.ordered or atom in inner or len(roots) > 1 or len(products.parts[atom]) < 2:
            continue
        positive, number = roots[0]
        exponents = dict(terms[number][1])
        alone = exponents[atom] == 1 and taken.isdisjoint(exponents)
        turned = any(not sign and terms[part][0] for sign, part in products.parts[atom])
        if not positive and terms[number][0] == 1.0 and alone and turned and products.times[number] == 1:
            found.add(atom)
            taken.update(exponents)
    return found
