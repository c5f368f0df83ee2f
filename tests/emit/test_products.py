"""Products are shared as far as possible, and what a division saves is known."""

from __future__ import annotations

import math
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.emit.test_factoring import W, X, system_of, term
from yota.optimize.polynomials.gains import saved
from yota.optimize.polynomials.sharing import share
from yota.optimize.polynomials.terms import Table


def products_of(terms: list) -> tuple[list[dict[int, int]], dict[int, tuple[int, int]]]:
    found = share(Table(system_of([*terms])))
    return [*found.factors], found.pairs


MONOMIALS = st.lists(
    st.lists(st.integers(X, W), min_size=1, max_size=9),
    min_size=1,
    max_size=8,
    unique_by=lambda each: tuple(sorted(each)),
)


@settings(max_examples=150)
@given(MONOMIALS)
def test_shared_products_multiply_out_to_what_is_wanted(monomials):
    found, pairs = products_of([term(1.0, *each) for each in monomials])

    def multiplied_out(factors: dict[int, int]) -> Counter[int]:
        total: Counter[int] = Counter()
        for atom, exponent in factors.items():
            inner = multiplied_out(Counter(pairs[atom])) if atom in pairs else Counter([atom])
            for _ in range(exponent):
                total.update(inner)
        return total

    # The first is the sum itself, which is the root.
    assert [multiplied_out(each) for each in found[1:]] == [Counter(each) for each in monomials]


TERMS = st.tuples(
    st.sampled_from([1.0, -1.0, 2.0, -2.0, 3.0, 0.1]),
    st.dictionaries(st.integers(X, W), st.integers(1, 9), max_size=4).map(lambda found: tuple(sorted(found.items()))),
)


@settings(max_examples=300)
@given(TERMS, TERMS)
def test_what_a_division_saves_is_the_difference_of_what_is_written(left, right):
    table = Table(system_of([left, right]))
    pair = table.pair(*table.original[10])
    if pair is None:
        return
    costs = table.costs
    divisor = table.divisors[pair.divisor]
    one, two, a, b = divisor
    unit = math.copysign(1.0, pair.scale) if abs(a) == abs(b) else pair.scale
    size = 1 + costs[table.number((a * unit, one))] + costs[table.number((b * unit, two))]
    scale = pair.scale / unit
    outside = 1 + costs[table.number((scale, pair.factor))] if pair.factor or abs(scale) != 1.0 else 0
    whole = 1 + sum(costs[each] for each in table.original[10])
    assert saved(left, right) == (whole - size - outside, size)
