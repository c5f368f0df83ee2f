"""Horner's scheme for value and gradient: the sum stays what it is, in its order, and the search finds the least."""

from __future__ import annotations

import itertools
import random
from unittest import mock

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import yota
from benchmarks.systems import random_polynomial
from yota.codegen import scheme
from yota.codegen.forest import Forest, Sum
from yota.codegen.polynomial import Term, multiply
from yota.codegen.scheme import _Tree, arrange, is_worth_it

SUM = 9
MONOMIALS = st.lists(st.integers(0, 3), min_size=4, max_size=4).map(
    lambda exponents: tuple((atom, each) for atom, each in enumerate(exponents, start=1) if each)
)
TERMS = st.lists(st.tuples(st.sampled_from([1.0, -1.0, 2.0, -0.3]), MONOMIALS), min_size=24, max_size=48)


def forest(terms: list[Term], *, ordered: bool = True) -> Forest:
    roots = {1: (1.0, ((SUM, 1),))}
    return Forest({atom: atom for atom in range(1, 5)}, {SUM: Sum(list(terms), ordered)}, roots=roots, count=SUM)


def written_out(found: Forest, atom: int) -> list[Term]:
    """The terms of a sum without nesting, in the order in which they are added."""
    terms: list[Term] = []
    for coefficient, monomial in found.sums[atom].alive():
        products = [(coefficient, ())]
        for factor, exponent in monomial:
            inner = written_out(found, factor) if factor in found.sums else [(1.0, ((factor, exponent),))]
            products = [(a * b, multiply(one, two)) for a, one in products for b, two in inner]
        terms += products
    return terms


@settings(max_examples=20, deadline=None)
@given(TERMS, st.booleans(), st.integers(1, 3))
def test_the_sum_stays_what_it_is(terms, ordered, seed):
    found = forest(terms, ordered=ordered)
    assert is_worth_it(found)
    with mock.patch.object(scheme, "_TRIES_EACH", 5):
        arrange(found, seed)
    assert sorted(written_out(found, SUM)) == sorted(terms)
    assert {each.ordered for each in found.sums.values()} == {ordered}


@settings(max_examples=20, deadline=None)
@given(st.lists(MONOMIALS, min_size=24, max_size=48, unique=True))
def test_terms_are_added_in_the_order_of_the_user(monomials):
    """What is pulled together stands where its first term stood."""
    terms = [(1.5, monomial) for monomial in monomials]
    found = forest(terms)
    with mock.patch.object(scheme, "_TRIES_EACH", 5):
        arrange(found, 1)
    places = {monomial: place for place, (_, monomial) in enumerate(terms)}
    for atom in found.sums:
        firsts = []
        for term in found.sums[atom].alive():
            alone = Forest(found.variables, {**found.sums, 0: Sum([term], True)})
            firsts.append(min(places[monomial] for _, monomial in _placed(alone, found, atom)))
        assert firsts == sorted(firsts)


def _placed(alone: Forest, found: Forest, atom: int) -> list[Term]:
    """Terms of the whole sum that one term of the sum ``atom`` stands for."""
    outside = {SUM: ()}
    pending = [SUM]
    while pending:
        outer = pending.pop()
        for _, monomial in found.sums[outer].alive():
            for inner, _ in monomial:
                if inner in found.sums:
                    rest = tuple(each for each in monomial if each[0] != inner)
                    outside[inner] = multiply(outside[outer], rest)
                    pending.append(inner)
    return [(number, multiply(monomial, outside[atom])) for number, monomial in written_out(alone, 0)]


def test_short_sums_and_large_powers_are_left_alone():
    short = [(2.0, ((1, k),)) for k in range(1, 24)]
    assert not is_worth_it(forest(short))
    assert is_worth_it(forest([*short, (2.0, ((2, 1),))]))
    large = [*short, (2.0, ((2, 33),))]
    assert not is_worth_it(forest(large))
    found = forest(large)
    arrange(found, 1)
    assert found.sums[SUM].alive() == large


def packed(*exponents: int) -> int:
    return sum(exponent << (8 * number) for number, exponent in enumerate(exponents))


def least(terms: list[int]) -> int:
    """By trying all factors that the terms can give up."""
    tree = _Tree(dict.fromkeys(terms, True), 3, random.Random(0))
    return min(
        _counted(terms, choice) for choice in itertools.product(*(sorted(set(tree.factors(term))) for term in terms))
    )


def _counted(terms: list[int], choice: tuple[int, ...]) -> int:
    tree = _Tree(dict.fromkeys(terms, True), 3, random.Random(0))
    for term, factor in zip(terms, choice, strict=True):
        tree._change(term, factor, float("inf"))
    return tree.count


def test_the_search_finds_the_least():
    choose = random.Random(3)
    for _ in range(6):
        terms = sorted({packed(*(choose.randrange(3) for _ in range(3))) for _ in range(7)} - {0})
        tree = _Tree(dict.fromkeys(terms, True), 3, random.Random(1))
        tree.search(600)
        best = min(_seen(terms, seed) for seed in range(1, 4))
        assert best <= least(terms)


def _seen(terms: list[int], seed: int) -> int:
    tree = _Tree(dict.fromkeys(terms, True), 3, random.Random(seed))
    found = tree.search(600)
    for term in terms:
        tree._change(term, found[term], float("inf"))
    return tree.count


def test_what_is_taken_back_is_as_it_was():
    choose = random.Random(5)
    terms = {packed(*(choose.randrange(4) for _ in range(3))): choose.random() < 0.5 for _ in range(20)}
    tree = _Tree(terms, 3, random.Random(1))
    for _ in range(300):
        before = dict(tree.factor), tree.count, list(tree.products), [set(each) for each in tree.made]
        monomial = choose.choice(sorted(tree.factor))
        tree._change(monomial, choose.choice(tree.factors(monomial)), limit=-1.0)
        assert (dict(tree.factor), tree.count, tree.products, tree.made) == before
        tree._change(monomial, choose.choice(tree.factors(monomial)), limit=float("inf"))
        assert tree.products == [tree._products(number) for number in range(3)]


def test_sparse_polynomials_take_fewer_operations():
    """The best of common subexpressions, Horner forms and CasADi takes 251."""
    function = random_polynomial(6, 50, 4, seed=2)
    x = np.linspace(0.5, 1.5, 6)
    value, gradient = yota.grad(function, x)
    assert sum(gradient.operations.values()) <= 200
    np.testing.assert_allclose(value, function(x), rtol=1e-12)
    # The complex step has no error of cancellation.
    steps = [function(x + 1e-30j * unit).imag / 1e-30 for unit in np.eye(6)]
    np.testing.assert_allclose(gradient[0], steps, rtol=1e-11)
