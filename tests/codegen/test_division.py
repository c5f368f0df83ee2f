"""Division of sums by sums: what is found, and what must stay as it is."""

from __future__ import annotations

import random

from yota.codegen.division import divide
from yota.codegen.forest import Forest, Sum

X, Y, Z = 1, 2, 3
ROW, PARTIAL = 10, 11


def forest(row: list, partial: list, *, ordered: bool = True) -> Forest:
    sums = {ROW: Sum(list(row), ordered), PARTIAL: Sum(list(partial), ordered=False)}
    roots = {1: (1.0, ((ROW, 1),)), 2: (1.0, ((PARTIAL, 1),))}
    return Forest({X: X, Y: Y, Z: Z}, sums, roots=roots, count=20)


def divided(found: Forest) -> list:
    divide(
        found, ROW, {atom: Sum(list(each.terms), each.ordered) for atom, each in found.sums.items()}, random.Random(0)
    )
    return found.sums[ROW].alive()


PARTIAL_TERMS = [(2.0, ((X, 1),)), (-3.0, ((Y, 1),))]


def test_a_multiple_of_a_partial_is_found() -> None:
    row = [(5.0, ((Z, 3),)), (4.0, ((X, 1), (Z, 1))), (-6.0, ((Y, 1), (Z, 1)))]
    assert divided(forest(row, PARTIAL_TERMS)) == [(5.0, ((Z, 3),)), (2.0, ((Z, 1), (PARTIAL, 1)))]


def test_what_is_no_multiple_stays() -> None:
    row = [(4.0, ((X, 1), (Z, 1))), (-5.0, ((Y, 1), (Z, 1)))]
    assert divided(forest(row, PARTIAL_TERMS)) == row


def test_nothing_is_summed_apart_in_the_order_of_the_user() -> None:
    row = [(1.0, ((Z, 1),)), *PARTIAL_TERMS]
    assert divided(forest(row, PARTIAL_TERMS)) == row
    assert divided(forest(row, PARTIAL_TERMS, ordered=False)) == [row[0], (1.0, ((PARTIAL, 1),))]


def test_a_sum_is_not_made_from_itself() -> None:
    row = [(4.0, ((X, 1), (Z, 1))), (-6.0, ((Y, 1), (Z, 1)))]
    found = forest(row, [(2.0, ((ROW, 1),))])
    twice = Sum([(8.0, ((X, 1), (Z, 1))), (-12.0, ((Y, 1), (Z, 1)))], ordered=False)
    divide(found, ROW, {ROW: Sum(list(row), ordered=True), PARTIAL: twice}, random.Random(0))
    assert found.sums[ROW].alive() == row
    found.sums[PARTIAL].terms = list(twice.terms)
    found.sums[ROW].terms = [(4.0, ((X, 1), (Z, 2))), (-6.0, ((Y, 1), (Z, 2)))]
    divide(found, ROW, {PARTIAL: twice}, random.Random(0))
    assert found.sums[ROW].alive() == [(0.5, ((Z, 1), (PARTIAL, 1)))]


def test_divisors_are_written_out() -> None:
    """The partial stands there factored: ``2*x - 3*y`` times ``x``, and one more term."""
    found = forest([], [(1.0, ((X, 1), (12, 1))), (1.0, ((Y, 2),))])
    found.sums[12] = Sum(list(PARTIAL_TERMS), ordered=False)
    row = [(2.0, ((X, 2), (Z, 1))), (-3.0, ((X, 1), (Y, 1), (Z, 1))), (1.0, ((Y, 2), (Z, 1)))]
    found.sums[ROW].terms = list(row)
    planted = {
        ROW: Sum(list(row), ordered=True),
        PARTIAL: Sum([(2.0, ((X, 2),)), (-3.0, ((X, 1), (Y, 1))), (1.0, ((Y, 2),))], ordered=False),
    }
    divide(found, ROW, planted, random.Random(0))
    assert found.sums[ROW].alive() == [(1.0, ((Z, 1), (PARTIAL, 1)))]


def test_other_names_of_an_atom_are_dropped() -> None:
    found = forest([(1.0, ((12, 1), (Z, 1)))], PARTIAL_TERMS)
    found.sums[12] = Sum([(1.0, ((13, 1),))], ordered=False)
    found.sums[13] = Sum([None, (1.0, ((PARTIAL, 1),))], ordered=False)
    found.tidy({ROW, PARTIAL})
    assert found.sums.keys() == {ROW, PARTIAL}
    assert found.sums[ROW].alive() == [(1.0, ((Z, 1), (PARTIAL, 1)))]
