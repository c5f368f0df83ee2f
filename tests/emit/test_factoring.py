"""Sums factored anew: the same polynomials come out, in fewer operations, and nothing is rounded that was exact."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yota.optimize.polynomials.factor import Options, factor
from yota.optimize.polynomials.horner import nested
from yota.optimize.polynomials.sharing import share
from yota.optimize.polynomials.system import Monomial, PolynomialSystem, Sum, Term, multiply
from yota.optimize.polynomials.terms import Table

X, Y, Z, W = 1, 2, 3, 4


def system_of(*sums: list[Term], ordered: tuple[int, ...] = ()) -> PolynomialSystem:
    """A root for each of ``sums``, whose atoms are 10, 11 and so on."""
    atoms = range(10, 10 + len(sums))
    found = {atom: Sum(list(terms), atom - 10 in ordered) for atom, terms in zip(atoms, sums, strict=True)}
    roots = {atom: (1.0, ((atom, 1),)) for atom in atoms}
    return PolynomialSystem({atom: atom for atom in (X, Y, Z, W)}, found, roots=roots, count=20)


def term(coefficient: float, *atoms: int) -> Term:
    return coefficient, tuple(sorted(Counter(atoms).items()))


def system_in(table: Table) -> PolynomialSystem:
    """The sums of a table as they were factored."""
    origin, sums = table.origin, {**table.sums, **table.defined}
    found = {atom: Sum([table.terms[each] for each in terms], atom in table.ordered) for atom, terms in sums.items()}
    return PolynomialSystem(origin.variables, found, origin.quotients, origin.roots, count=table.count)


def factored(system: PolynomialSystem) -> PolynomialSystem:
    """The system after Horner's scheme and the extraction of divisors."""
    table = Table(system)
    table.sums = factor(table, nested(table, table.original), Options())
    return system_in(table)


def expanded(found: PolynomialSystem) -> list[dict[Monomial, Fraction]]:
    """The polynomials of the roots."""
    known: dict[int, dict[Monomial, Fraction]] = {}

    def polynomial(terms: list[Term]) -> dict[Monomial, Fraction]:
        total: dict[Monomial, Fraction] = {}
        for coefficient, monomial in terms:
            product = {(): Fraction(coefficient)}
            for atom, exponent in monomial:
                for _ in range(exponent):
                    product = times(product, of(atom))
            for each, number in product.items():
                total[each] = total.get(each, Fraction(0)) + number
        return {each: number for each, number in total.items() if number}

    def of(atom: int) -> dict[Monomial, Fraction]:
        if atom not in found.sums:
            return {((atom, 1),): Fraction(1)}
        if atom not in known:
            known[atom] = polynomial(found.sums[atom].alive())
        return known[atom]

    return [polynomial([root]) for root in found.roots.values()]


def times(left: dict[Monomial, Fraction], right: dict[Monomial, Fraction]) -> dict[Monomial, Fraction]:
    found: dict[Monomial, Fraction] = {}
    for one, a in left.items():
        for two, b in right.items():
            product = multiply(one, two)
            found[product] = found.get(product, Fraction(0)) + a * b
    return found


def weight(found: PolynomialSystem) -> int:
    """Number of operations, but for changes of sign."""
    return share(Table(found)).least()


COEFFICIENTS = st.sampled_from([1.0, -1.0, 2.0, -2.0, 3.0, 0.5, -6.0, 0.1])
MONOMIALS = st.lists(st.integers(X, W), max_size=4).map(lambda atoms: tuple(sorted(Counter(atoms).items())))
SUMS = st.dictionaries(MONOMIALS, COEFFICIENTS, min_size=1, max_size=6).map(
    lambda terms: [(coefficient, monomial) for monomial, coefficient in terms.items()]
)


@settings(max_examples=60)
@given(st.lists(SUMS, min_size=1, max_size=5), st.sets(st.integers(0, 4)))
def test_the_polynomials_stay_exactly_the_same(sums, ordered):
    system = system_of(*sums, ordered=tuple(ordered))
    found = factored(system)
    assert expanded(found) == expanded(system)


@settings(max_examples=60)
@given(SUMS)
def test_a_sum_of_the_user_is_added_in_his_order(terms):
    system = system_of(terms, ordered=(0,))
    found = factored(system)
    firsts = [min(_positions(found, each, terms)) for each in found.sums[10].alive()]
    assert firsts == sorted(firsts)
    for number, each in enumerate(found.sums[10].alive()):
        # What is summed apart has a factor of its own, or is the beginning.
        bare = len(each[1]) == 1 and each[1][0][1] == 1 and each[1][0][0] in found.sums and abs(each[0]) == 1.0
        assert not bare or number == 0


def _positions(found: PolynomialSystem, each: Term, terms: list[Term]) -> list[int]:
    """Where the terms that one term stands for were."""
    alone = PolynomialSystem(found.variables, found.sums, roots={0: each}, count=found.count)
    places = {monomial: position for position, (_, monomial) in enumerate(terms)}
    return [places[monomial] for monomial in expanded(alone)[0]]


@pytest.mark.parametrize("coefficient", [1.0, -1.0, 0.1, 3.0])
@pytest.mark.parametrize("often", [2, 3])
def test_what_the_user_adds_twice_is_not_doubled(coefficient, often):
    twice = [term(coefficient, X), term(1.0, Y, Z), *[term(coefficient, X)] * (often - 1)]
    found = factored(system_of(twice, [term(1.0, Y, Z), term(1.0, W)], ordered=(0, 1)))
    assert found.sums[10].alive() == twice


def test_nesting_does_not_cancel_what_the_user_adds_and_takes_away_again():
    terms = [term(-1.0, X), term(-1.0, Y), term(1.0, Y), term(-1.0, X), term(1.0, Y)]
    system = system_of(terms, ordered=(0,))
    table = Table(system)
    assert nested(table, table.original) == table.original


def test_what_all_terms_have_is_pulled_out_at_once():
    terms = [term(-3.0, X, Y), term(3.0, X, Z), term(-3.0, X, W), term(1.0, Y, Z)]
    system = system_of(terms)
    table = Table(system)
    table.sums = nested(table, table.original)
    found = system_in(table)
    assert expanded(found) == expanded(system)
    assert weight(found) == 6


@pytest.mark.parametrize(("last", "length"), [(True, 2), (False, 3)])
def test_a_coefficient_is_pulled_out_of_the_first_terms_of_an_ordered_sum_alone(last, length):
    doubled, other = [term(2.0, X), term(2.0, Y)], term(1.0, Z)
    table = Table(system_of([*doubled, other] if last else [other, *doubled], ordered=(0,)))
    (found,) = nested(table, table.original).keys() & table.original.keys()
    assert len(nested(table, table.original)[found]) == length


def test_a_product_that_several_sums_need_stays():
    table = Table(system_of([term(1.0, X, Y), term(1.0, X, Z)], [term(1.0, X, Y), term(1.0, W)], [term(1.0, X, Z)]))
    assert nested(table, table.original) == table.original


@pytest.mark.parametrize("numbers", [(0.1, 0.1, 0.5), (2.0**-600, 2.0**-600, 2.0**600)])
def test_a_quotient_of_coefficients_that_is_rounded_is_not_used(numbers):
    # 0.5 / 0.1 is 5.0, but 0.5 is not five times the number next to 0.1; and 2.0**1200 is none at all.
    system = system_of(*([term(each, X, Y), term(each, X, Z)] for each in numbers))
    table = Table(system)
    table.sums = factor(table, table.original, Options())
    assert expanded(system_in(table)) == expanded(system)


def test_no_coefficient_becomes_inexact():
    system = system_of(
        [term(3.0, X), term(3.0, Y)], [term(1.0, X, Z), term(1.0, Y, Z)], [term(1.0, X, W), term(1.0, Y, W)]
    )
    found = factored(system)
    assert all(coefficient in (1.0, 3.0) for each in found.sums.values() for coefficient, _ in each.alive())
    assert weight(found) == 4


@pytest.mark.parametrize("zeros", [(0.0, -0.0), (-0.0, 0.0)])
def test_signs_of_zeros_are_kept(zeros):
    system = system_of(*([term(zero, X), term(1.0, Y, Z)] for zero in zeros))
    found = factored(system)
    signs = [math.copysign(1.0, found.sums[atom].alive()[0][0]) for atom in (10, 11)]
    assert signs == [math.copysign(1.0, zero) for zero in zeros]


def test_the_same_comes_out_every_time():
    system = system_of(
        *([term(1.0, a, b), term(2.0, b, c), term(1.0, c, a)] for a, b, c in ((X, Y, Z), (Y, Z, W), (W, X, Y)))
    )
    assert repr(factored(system)) == repr(factored(system)), "down to the order of the parts"
