"""Constants that look equal and are not are told apart, as arguments and as what a function reads from outside."""

from __future__ import annotations

import array
import math
from typing import Any

import numpy as np
import pytest

import yota
from yota.marks import content_of, mark_of

POINT = np.array([1.0, 2.0])
NUMBER = 0.0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True),
        (1, 1.0),
        (0.0, -0.0),
        (complex(0.0, 0.0), complex(0.0, -0.0)),
        ((1, 2), (True, 2)),
        (frozenset({1}), frozenset({True})),
        ({1}, {True}),
        ({1}, frozenset({1})),
        (slice(0, 1), slice(False, 1)),
        (b"a", bytearray(b"a")),
        ([], []),
    ],
)
def test_different_marks(one: Any, other: Any) -> None:
    assert mark_of(one) != mark_of(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (math.nan, float("nan")),
        (slice(0, 1), slice(0, 1)),
        ({1, 2}, {2, 1}),
        (array.array("d", [1.0]), array.array("d", [1.0])),
        ((math.nan, {1}), (float("nan"), {1})),
    ],
)
def test_equal_marks(one: Any, other: Any) -> None:
    assert mark_of(one) == mark_of(other)
    assert hash(mark_of(one)) == hash(mark_of(other))


def test_what_can_be_written_is_marked_by_what_it_holds_now() -> None:
    numbers = {1}
    before = content_of(numbers)
    numbers.add(2)
    assert content_of(numbers) != before
    assert content_of((1, 2)) is None


def _signed(x: Any, table: dict[Any, float]) -> Any:
    """The sum, with what only the keys' type and sign tell."""
    ((key, factor),) = table.items()
    return np.sum(x) * factor * math.copysign(2.0 if isinstance(key, bool) else 1.0, key)


def test_keys_of_arguments_are_told_apart() -> None:
    of = yota.value_and_grad(_signed)
    for key in (1, True, 1.0, 0.0, -0.0):
        assert of(POINT, {key: 3.0})[0] == _signed(POINT, {key: 3.0})


def test_sets_among_the_arguments_are_told_apart() -> None:
    def f(x: Any, numbers: Any) -> Any:
        return np.sum(x) * sum(5.0 if isinstance(number, bool) else 1.0 for number in numbers)

    of = yota.value_and_grad(f)
    for numbers in ({1}, {True}, frozenset({1}), frozenset({True})):
        assert of(POINT, numbers)[0] == f(POINT, numbers)


def test_equal_slices_share_compiled_code() -> None:
    traced = []

    def f(x: Any, part: slice) -> Any:
        traced.append(part)
        return np.sum(x[part])

    of = yota.value_and_grad(f)
    assert [of(POINT, slice(0, stop))[0] for stop in (1, 2, 1, 2)] == [1.0, 3.0, 1.0, 3.0]
    assert len(traced) == 2


def test_a_variable_that_changes_its_sign_of_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: Any) -> Any:
        return np.sum(x) * math.copysign(1.0, NUMBER)

    of = yota.value_and_grad(f)
    assert of(POINT)[0] == 3.0
    monkeypatch.setitem(globals(), "NUMBER", -0.0)
    assert of(POINT)[0] == -3.0


def test_a_captured_set_whose_number_becomes_a_truth() -> None:
    numbers: set[Any] = {1}

    def f(x: Any) -> Any:
        return np.sum(x) * sum(5.0 if isinstance(number, bool) else 1.0 for number in numbers)

    of = yota.value_and_grad(f)
    assert of(POINT)[0] == 3.0
    numbers.clear()
    numbers.add(True)
    assert of(POINT)[0] == 15.0
