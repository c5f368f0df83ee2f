"""Tapes take what they were recorded with, and nothing else; what they give is the caller's own."""

from __future__ import annotations

import pickle
import threading
from typing import Any

import numpy as np
import pytest

import yota
from yota.errors import ArgumentError
from yota.ir.tape import Tape

POINT = np.array([1.0, 2.0, 3.0])


def power(x: Any, n: Any) -> Any:
    return np.sum(x**n)


def total(parts: Any) -> Any:
    return sum(np.sum(part) for part in parts)


class Weighted:
    """A structure with a number, a static one, and something that cannot be pickled."""

    def __init__(self, factor: float, order: int = 2) -> None:
        self.factor, self.order, self.lock = factor, order, LOCK

    def loss(self, x: Any) -> Any:
        return np.sum(self.factor * x**self.order)


LOCK = threading.Lock()
WAYS = {
    "play": lambda f, *args: yota.trace(f, *args)[1].play,
    "numpy": lambda f, *args: yota.trace(f, *args)[1].compile(),
    "simplegrad": lambda f, *args: lambda *given: yota.simplegrad(f, *args)(*given)[0],
}


@pytest.fixture(params=WAYS)
def made(request: pytest.FixtureRequest) -> Any:
    """Makes a function of one kind of arguments."""
    return WAYS[request.param]


def test_another_static_value(made: Any) -> None:
    function = made(power, POINT, 2)
    assert function(POINT, 2) == 14.0
    for other in (3, True, 2.0, None):
        with pytest.raises(ArgumentError, match=r"argument n of power is .*, but the tape was recorded with 2"):
            function(POINT, other)


def test_another_number_of_parts(made: Any) -> None:
    function = made(total, [POINT, POINT])
    assert function([POINT, POINT]) == 12.0
    with pytest.raises(ArgumentError, match=r"total was recorded without argument 1\[2\]"):
        function([POINT, POINT, POINT])
    with pytest.raises(ArgumentError, match=r"argument parts of total has no parts\[1\]"):
        function([POINT])


def test_another_number_of_arguments() -> None:
    _, tape = yota.trace(power, POINT, 2)
    for call in (tape.play, tape.compile()):
        with pytest.raises(ArgumentError, match="power was recorded without argument 3"):
            call(POINT, 2, 5)
        with pytest.raises(ArgumentError, match="power misses argument 2, n"):
            call(POINT)


def test_functions_among_the_arguments(made: Any) -> None:
    def applied(x: Any, g: Any) -> Any:
        return np.sum(g(x))

    function = made(applied, POINT, np.sin)
    assert function(POINT, np.sin) == np.sum(np.sin(POINT))
    with pytest.raises(ArgumentError, match="argument g of applied"):
        function(POINT, np.cos)


def test_fields_of_objects() -> None:
    _, tape = yota.trace(Weighted(2.0).loss, POINT)
    assert tape.play(Weighted(3.0), POINT) == 42.0
    with pytest.raises(ArgumentError, match=r"argument self\.order of loss is 3"):
        tape.play(Weighted(2.0, 3), POINT)
    assert yota.simplegrad(Weighted(2.0).loss, POINT)(POINT)[0] == 28.0


def test_a_pickled_tape_refuses_what_could_not_be_pickled() -> None:
    _, tape = yota.trace(power, POINT, 2)
    again: Tape = pickle.loads(pickle.dumps(tape))
    assert again.play(POINT, 2) == 14.0
    with pytest.raises(ArgumentError, match="recorded with 2"):
        again.play(POINT, 3)
    _, tape = yota.trace(Weighted(2.0).loss, POINT)
    again = pickle.loads(pickle.dumps(tape))
    with pytest.raises(ArgumentError, match=r"self\.lock of loss .* recorded with what cannot be pickled"):
        again.play(Weighted(2.0), POINT)


def test_a_complex_number_is_not_a_real_one() -> None:
    _, tape = yota.trace(lambda z: z * z, 1j)
    assert repr(tape.compile()(2.0)) == "(4+0j)"
    assert tape.compile()(2j) == -4.0


@pytest.mark.parametrize("way", ["play", "numpy"])
def test_constant_results_are_the_callers_own(way: str) -> None:
    value, tape = yota.trace(lambda x: (np.ones(3), x), POINT)
    function = WAYS[way](lambda x: (np.ones(3), x), POINT)
    for result in (value[0], function(POINT)[0], tape.play(POINT)[0]):
        result[...] = 7.0
    assert np.array_equal(function(POINT)[0], np.ones(3))
    assert np.array_equal(tape.play(POINT)[0], np.ones(3))
