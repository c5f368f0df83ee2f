"""Forests weighed before: numbering and order make no difference, everything else does."""

from __future__ import annotations

import random
from unittest import mock

from hypothesis import given, settings
from hypothesis import strategies as st

from yota.codegen import recall
from yota.codegen.forest import Forest, Sum
from yota.codegen.polynomial import Term
from yota.codegen.recall import Scales

VARIABLES = {atom: atom for atom in range(1, 5)}
TERMS = st.lists(
    st.tuples(
        st.sampled_from([1.0, -1.0, 2.5]),
        st.sets(st.tuples(st.integers(1, 4), st.just(1)), min_size=1).map(lambda each: tuple(sorted(each))),
    ),
    min_size=2,
    max_size=5,
)


def forest(inner: list[Term], outer: list[Term], atom: int = 5, *, ordered: bool = False) -> Forest:
    """A sum, and a sum that has it as a factor."""
    top: list[Term | None] = [*outer, (1.0, ((1, 1), (atom, 1)))]
    sums = {atom: Sum(list(inner), ordered), atom + 1: Sum(top, ordered)}
    return Forest(dict(VARIABLES), sums, roots={9: (1.0, ((atom + 1, 1),))}, count=atom + 1)


def weights_made(*forests: Forest) -> int:
    """How many of the forests are weighed in earnest."""
    scales = Scales()
    with mock.patch.object(recall, "weight", return_value=1) as weight:
        for each in forests:
            scales.weight(each)
    return weight.call_count


@settings(max_examples=50, deadline=None)
@given(TERMS, TERMS, st.integers(6, 20), st.randoms(use_true_random=False))
def test_neither_numbering_nor_order_matters(inner: list[Term], outer: list[Term], atom: int, choose: random.Random):
    other = forest(choose.sample(inner, len(inner)), choose.sample(outer, len(outer)), atom)
    assert weights_made(forest(inner, outer), other) == 1


@settings(max_examples=50, deadline=None)
@given(TERMS, TERMS, TERMS)
def test_other_terms_are_another_forest(inner: list[Term], outer: list[Term], others: list[Term]):
    same = sorted(inner) == sorted(others)
    assert weights_made(forest(inner, outer), forest(others, outer)) == (1 if same else 2)


def test_twice_a_term_an_order_and_what_is_divided_by_what():
    terms: list[Term] = [(1.0, ((1, 1),)), (1.0, ((2, 1),))]
    assert weights_made(forest(terms, terms), forest([*terms, terms[0]], terms)) == 2
    assert weights_made(forest(terms, terms), forest(terms, terms, ordered=True)) == 2
    over = Forest(dict(VARIABLES), {}, {5: (terms[0], terms[1])}, {9: (1.0, ((5, 1),))}, count=5)
    under = Forest(dict(VARIABLES), {}, {5: (terms[1], terms[0])}, {9: (1.0, ((5, 1),))}, count=5)
    assert weights_made(over, under) == 2
