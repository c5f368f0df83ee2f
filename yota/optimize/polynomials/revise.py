"""Greedy choices taken back: a few sums at a time are factored anew, beside all that has been found already."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Collection, Iterator

from yota.optimize.polynomials.factor import Options, factor, factor_anew
from yota.optimize.polynomials.pairs import LARGEST_DEGREE, Wanted, cover, extract, length
from yota.optimize.polynomials.system import PolynomialSystem
from yota.optimize.polynomials.terms import Place, Sums, Table

_BITS = 60
"""Of the numbers by which factors are told apart."""


class Scales:
    """Weighs sums of one table; what is found out about products on the way is kept."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self._products: dict[int, Wanted] = {}
        self._codes: dict[tuple[float | str, ...], int] = {}
        self._chance = random.Random(0)

    def weight(self, sums: Sums) -> int:
        """Number of additions, subtractions, products, divisions and negations."""
        table = self.table
        living = table.living(sums)
        times = Counter([table.unsigned(term) for terms in (table.roots, *living.values()) for term in terms])
        total = sum(self._is_negated(term, times) for term in table.roots)
        for atom, terms in living.items():
            if atom in table.quotients:
                total += 1
            else:
                total += len(terms) - 1 + self._begins_negated(atom, terms, times)
        return total + self._multiplied(times)

    def _begins_negated(self, atom: int, terms: tuple[int, ...], times: Counter[int]) -> bool:
        """Whether there is no term to subtract from, and no number to take the sign."""
        if not self._is_negated(terms[0], times):
            return False
        others = terms[1:2] if atom in self.table.ordered else terms[1:]
        return all(self.table.terms[term][0] < 0 for term in others)

    def _is_negated(self, term: int, times: Counter[int]) -> bool:
        """Whether a sign is an operation: a number takes it if the product that it is a factor of is only one."""
        coefficient, monomial = self.table.terms[term]
        return coefficient < 0 and bool(monomial) and (coefficient == -1.0 or times[self.table.unsigned(term)] > 1)

    def _multiplied(self, terms: Collection[int]) -> int:
        """Number of products."""
        products = [product for product in map(self._product, terms) if len(product.factors) > 1]
        if all(len(product.factors) <= LARGEST_DEGREE for product in products):
            return len(products) + len(cover(products))
        monomials: list[dict[int, int]] = [Counter(product.factors) for product in products]
        pairs = extract(monomials, lambda: self._chance.getrandbits(_BITS))
        return len(pairs) + sum(map(length, monomials))

    def _product(self, term: int) -> Wanted:
        found = self._products.get(term)
        if found is None:
            coefficient, monomial = self.table.terms[term]
            factors = [self._code(atom) for atom, exponent in monomial for _ in range(exponent)]
            if monomial and coefficient != 1.0:
                factors.append(self._code(coefficient, "number"))
            found = self._products[term] = Wanted(factors)
        return found

    def _code(self, *factor: float | str) -> int:
        found = self._codes.get(factor)
        if found is None:
            found = self._codes[factor] = self._chance.getrandbits(_BITS)
        return found


_ATTEMPTS_EACH = 12
"""Attempts for each operation that there is at first: more find nothing."""
_STEPS = 600_000
"""Attempts in a second, times what each of them may look at: pairs of factors, and pairs of terms."""
_MOST_ATTEMPTS = 300
"""Attempts in a second on the shortest tapes."""
_PAIR = 8
"""How much longer it takes to look at a pair of terms than at a pair of factors."""
_HOT, _COLD = 0.5, 0.05
"""Operations by which an attempt may be worse, at first and in the end."""
_STARTS = tuple(Options(shared=shared, whole=True) for shared in (True, False))
_CHOSEN = 0.5
"""How often a divisor is chosen first, and not the sums that are factored anew."""
_INSIDE = 0.3
"""How often a coefficient that both terms of a divisor have stays in it."""
_MOST_SUMS = 6
"""Sums that are factored anew together."""


def revise(system: PolynomialSystem, seed: int = 1, *, seconds: float = 10.0) -> Table:
    """The terms and sums of ``system``, on scalars, factored to few operations.

    seed: of all choices.
    seconds: about how long it takes at most; what is counted is steps.
    """
    return _Revision(system, random.Random(seed)).run(seconds)


class _Revision:
    def __init__(self, system: PolynomialSystem, choose: random.Random) -> None:
        self.choose = choose
        self.table = Table(system)
        self.scales = Scales(self.table)
        self.original = self.table.original
        starts = [*(factor(self.table, self.original, options) for options in _STARTS), self.original]
        self.sums = min(starts, key=self.scales.weight)
        self.weight = self.scales.weight(self.sums)
        self.homes = self._homes()
        self.popular = [divisor for divisor, homes in self.homes.items() if len(homes) > 1]
        self._look()

    def run(self, seconds: float) -> Table:
        least, best = self.weight, self.sums
        most = int(min(_MOST_ATTEMPTS * seconds, _STEPS * seconds / self._size()))
        attempts = min(most, _ATTEMPTS_EACH * self.weight) if self.whole else 0
        for number in range(attempts):
            temperature = _HOT * (1 - number / attempts) + _COLD
            found = self._attempt()
            # Most often nothing else comes out than there was.
            if found == self.sums:
                continue
            weight = self.scales.weight(found)
            if weight <= self.weight - math.log(1.0 - self.choose.random()) * temperature:
                self.weight, self.sums = weight, found
                self._look()
                if weight < least:
                    least, best = weight, found
        self.table.sums = best
        return self.table

    def _size(self) -> int:
        """How much there is to look at."""
        degrees = [
            sum([exponent for _, exponent in self.table.terms[term][1]])
            for terms in self.original.values()
            for term in terms
        ]
        pairs = sum([len(self.table.places(atom, terms)) for atom, terms in self.original.items()])
        return 1 + _PAIR * pairs + sum([degree * degree for degree in degrees])

    def _homes(self) -> dict[int, dict[int, tuple[int, ...]]]:
        """For each divisor the sums that it is found in, written so that it is."""
        found: dict[int, dict[int, tuple[int, ...]]] = {}
        for atom in list(self.original):
            for terms in self._written(atom):
                for divisor, _, _ in self.table.places(atom, terms):
                    found.setdefault(divisor, {}).setdefault(atom, terms)
        return found

    def _written(self, atom: int) -> Iterator[tuple[int, ...]]:
        """A sum as it was; and, if it is not the user's, with ``2*a`` as ``a + a``: one ``a`` may be shared."""
        terms = self.original[atom]
        yield terms
        for term in () if atom in self.table.ordered else terms:
            coefficient, monomial = self.table.terms[term]
            if abs(coefficient) == 2.0 and monomial:
                half = self.table.number((coefficient / 2, monomial))
                yield (*(half if each == term else each for each in terms), half)

    def _look(self) -> None:
        """Note what there is to be factored anew: sums of several terms, divisors, and where these occur."""
        self.living = self.table.living(self.sums)
        self.whole = [atom for atom in self.living if len(self.original.get(atom, ())) > 1]
        self.divisors = [atom for atom in self.living if atom in self.table.defined]
        self.places: dict[int, list[Place]] = {}
        for atom in sorted(self.living.keys() & self.original.keys()):
            for divisor, place, _ in self.table.places(atom, self.living[atom]):
                self.places.setdefault(divisor, []).append(place)

    def _attempt(self) -> dict[int, tuple[int, ...]]:
        """Other sums of the same value."""
        if self.popular and self.choose.random() < _CHOSEN:
            divisor = self.choose.choice(self.popular)
            homes = self.homes[divisor]
            changed = {atom: homes[atom] for atom in self._few([atom for atom in homes if atom in self.living])}
        else:
            divisor = None
            chosen = self.choose.choices([*self.whole, *self.divisors], k=self.choose.choice((1, 1, 1, 2)))
            few = [atom for each in chosen for atom in (self._readers(each) if each in self.table.defined else [each])]
            changed = {atom: self.original[atom] for atom in few}
        options = Options(
            whole=True,
            seed=self.choose.randrange(1, 10**6),
            most=self.choose.choice((1024, 1024, 1, 2)),
            inside=self.choose.random() < _INSIDE,
        )
        found = factor_anew(self.table, {**self.sums, **changed}, options, changed, self.places, divisor)
        # What is left of an ``a + a`` is doubled again; what the user adds twice stays as it is.
        for atom in changed:
            if atom not in self.table.ordered:
                found[atom] = self._doubled(found[atom])
        return found

    def _doubled(self, terms: tuple[int, ...]) -> tuple[int, ...]:
        """Terms of which what is added twice is doubled."""
        counts = Counter(terms)
        if len(counts) == len(terms):
            return terms
        known = self.table.terms
        return tuple(
            [
                term if times == 1 else self.table.number((times * known[term][0], known[term][1]))
                for term, times in counts.items()
            ]
        )

    def _readers(self, divisor: int) -> list[int]:
        """Original sums that now read ``divisor``, or divisors made from it."""
        reading: dict[int, list[int]] = {}
        for atom, terms in self.living.items():
            for inner in self.table.inside(terms):
                reading.setdefault(inner, []).append(atom)
        found: dict[int, None] = {}
        pending = [divisor]
        for atom in pending:
            for each in reading.get(atom, ()):
                if each in self.original:
                    found[each] = None
                elif each in self.table.defined and each not in pending:
                    pending.append(each)
        return self._few(list(found))

    def _few(self, atoms: list[int]) -> list[int]:
        most = self.choose.randint(1, _MOST_SUMS)
        return atoms if len(atoms) <= most else self.choose.sample(atoms, most)
