"""Which piece of an array an element is in."""

from __future__ import annotations

import numpy as np
import pytest

import yota
from yota.emit.targets.c import generate
from yota.ir.indexing import Slice
from yota.optimize import pipeline
from yota.schedule.nests import pull
from yota.schedule.nests.linear_index import CutError, Linear, UnreachableError, by_place, piece_of, pieces_at


def test_pieces_between_cuts():
    cuts = [0, 2, 2, 5]
    assert [piece_of(Linear(place), cuts, {}) for place in range(5)] == [0, 0, 2, 2, 2]
    for place in (-1, 5):
        with pytest.raises(UnreachableError):
            piece_of(Linear(place), cuts, {})
    counter = Linear(1, ((0, 1),))
    assert piece_of(counter, cuts, {0: (1, 4)}) == 2
    with pytest.raises(CutError) as caught:
        piece_of(counter, cuts, {0: (0, 3)})
    assert (caught.value.axis, caught.value.place) == (0, 1)


def test_single_elements_are_known_by_their_places():
    singles = by_place([(0, 1), (1, 0), (0, 1)])
    place = Linear(0), Linear(1)
    assert list(pieces_at(place, singles, range(3))) == [0, 2]
    assert list(pieces_at((Linear(1), Linear(1)), singles, range(3))) == []
    assert list(pieces_at((Linear(0), Linear(0, ((0, 1),))), singles, range(3))) == [0, 1, 2]
    assert list(pieces_at(place, by_place([(0, 1), (0, Slice(0, 2))]), range(2))) == [0, 1]


def test_the_elements_of_a_matrix_are_not_looked_for_in_each_other(monkeypatch):
    """Else a matrix of 64 rows and columns would take a minute to compile."""
    looks, within = [], pull.within

    def counted(*args):
        looks.append(args)
        return within(*args)

    monkeypatch.setattr(pull, "within", counted)
    _, tape = yota.trace(lambda x: np.array([[a * b for a in x] for b in x]), np.ones(20))
    assert "double" in generate(pipeline.run(tape, compiled=True)).text
    assert 0 < len(looks) <= 4 * 400
