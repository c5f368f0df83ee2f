"""Structures: found, rebuilt and updated, whatever they are made of."""

from __future__ import annotations

import enum
import functools
import types
from collections import ChainMap, Counter, OrderedDict, UserDict, deque, namedtuple
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import yota
from yota import errors
from yota.api.update import update
from yota.marks import MISSING
from yota.structures import flatten, is_leaf, rebuild

Pair = namedtuple("Pair", "a b")


class Mode(enum.Enum):
    FAST = 1


@dataclass(frozen=True)
class Frozen:
    w: Any
    name: str = "frozen"


class Labelled(np.ndarray):
    """A subclass of arrays, whose sums are of that class too."""


class Slotted:
    __slots__ = ("w",)

    def __init__(self, w):
        self.w = w


class Plain:
    def __init__(self, w):
        self.w = w
        self.mode = Mode.FAST

    def forward(self, x):
        return np.sum(self.w * x) * (2 if self.mode is Mode.FAST else 1)


@dataclass
class Deep:
    parts: list = field(default_factory=list)


W = np.array([1.0, 2.0])
SHAPES = [
    (Pair(W, 1.0), {("a",), ("b",)}),
    ([W, [W, 2.0]], {(0,), (1, 0), (1, 1)}),
    ({"x": W, 3: {"y": W}}, {("x",), (3, "y")}),
    (OrderedDict(z=W), {("z",)}),
    (Frozen(W), {("w",)}),
    (Slotted(W), {("w",)}),
    (Plain(W), {("w",)}),
    (types.SimpleNamespace(w=W), {("w",)}),
    (Deep([Pair(Frozen(W), {"k": (W,)})]), {("parts", 0, "a", "w"), ("parts", 0, "b", "k", 0)}),
]


def total(structure):
    return sum(np.sum(part * part) for _, part in flatten(structure) if is_leaf(part))


@pytest.mark.parametrize(("structure", "paths"), SHAPES, ids=[type(s).__name__ for s, _ in SHAPES])
def test_every_kind(structure, paths):
    value, g = yota.grad(total, structure)
    assert set(g[0]) == paths
    assert np.isclose(value, total(structure))
    for path, part in flatten(structure):
        if is_leaf(part):
            np.testing.assert_allclose(g[0][path], 2 * part)


@pytest.mark.parametrize(("structure", "paths"), SHAPES, ids=[type(s).__name__ for s, _ in SHAPES])
def test_rebuild_and_update(structure, paths):
    leaves = [part for _, part in flatten(structure) if is_leaf(part)]
    copy = rebuild(structure, iter([part + 1 for part in leaves]))
    assert type(copy) is type(structure)
    assert [p for p, _ in flatten(copy)] == [p for p, _ in flatten(structure)]
    moved = update(copy, dict.fromkeys(paths, 1.0), lambda x, g: x - g)
    for before, after in zip(flatten(structure), flatten(moved), strict=True):
        np.testing.assert_array_equal(before[1], after[1])


@pytest.mark.parametrize(("structure", "paths"), SHAPES, ids=[type(s).__name__ for s, _ in SHAPES])
def test_later_calls_enter_by_generated_code(structure, paths):
    fg = yota.value_and_grad(total)
    first, _ = fg(structure), fg(structure)
    found = fg.latest(structure)
    assert found is not MISSING and found[0] == first[0] and set(found[1]) == paths


@pytest.mark.parametrize("options", [{}, {"strict": True}, {"target": "c"}])
def test_later_calls_with_subclasses_of_arrays_are_like_the_first(options):
    fg = yota.value_and_grad(lambda pair: np.sum(pair.a * pair.b) * 1.0, **options)
    found = [fg(Pair(W.view(Labelled), 2.0)) for _ in range(4)]
    assert {type(value) for value, _ in found} == {type(fg(Pair(W, 2.0))[0])}
    assert {type(slope["a",]) for _, slope in found} == {np.ndarray}


def test_equal_keys_of_other_types_are_other_keys():
    fg = yota.value_and_grad(lambda d: sum(np.sum(part) * (2 if type(key) is bool else 1) for key, part in d.items()))
    assert [fg({key: W})[0] for key in (1, True, 1, 1.0)] == [3.0, 6.0, 3.0, 3.0]


def test_a_slot_that_loses_its_value_is_seen():
    slotted = Slotted(W)
    fg = yota.value_and_grad(lambda each: np.sum(each.w) if hasattr(each, "w") else 0.0 * each.other)
    assert [fg(slotted)[0], fg(slotted)[0]] == [3.0, 3.0]
    del slotted.w
    with pytest.raises(errors.ArgumentError, match="nothing to differentiate by"):
        fg(slotted)


def test_update_rebinds_in_place_where_it_can():
    plain = Plain(W.copy())
    held = plain.w
    assert update(plain, {("w",): np.ones(2)}, lambda x, g: x - g) is plain
    np.testing.assert_array_equal(held, W)
    np.testing.assert_array_equal(plain.w, W - 1)
    x = W.copy()
    assert update(x, np.ones(2), lambda x, g: x - g) is x
    np.testing.assert_array_equal(x, W - 1)


def test_a_failing_update_changes_nothing():
    def failing(x, g):
        if g > 1:
            raise ZeroDivisionError
        return x - g

    model = Deep([Pair(Plain(W), {"k": [1.0, 2.0]}), (3.0,)])
    before = [part for _, part in flatten(model)]
    first = {("parts", 0, "b", "k", 0): 1.0, ("parts", 0, "a", "w"): 1.0}
    for last in ({("parts", 1, 0): 2.0}, {("parts", 7): 1.0}, {("parts", 0, "nothing"): 1.0}):
        with pytest.raises((ZeroDivisionError, errors.ArgumentError)):
            update(model, {**first, **last}, failing)
        assert all(a is b for a, b in zip(before, (part for _, part in flatten(model)), strict=True))


def test_a_list_that_is_shared_takes_both_steps():
    shared = [1.0]
    assert update({"a": shared, "b": shared}, {("a", 0): 1.0, ("b", 0): 2.0}, lambda x, g: x - g)["a"] == [-2.0]


def test_the_receiver_of_a_method_is_read_at_each_call():
    plain = Plain(W)
    fg = yota.value_and_grad(plain.forward)
    np.testing.assert_array_equal(fg(np.ones(2))[1], 2 * W)
    plain.w = W + 1
    np.testing.assert_array_equal(fg(np.ones(2))[1], 2 * (W + 1))
    plain.mode = None
    np.testing.assert_array_equal(fg(np.ones(2))[1], W + 1)
    value, g = yota.grad(plain.forward, np.ones(2))
    np.testing.assert_array_equal(g[0], W + 1)
    assert len(g) == 1


def test_a_field_read_twice_sums_both_contributions():
    _, g = yota.grad(lambda m: np.sum(m["w"]) + np.sum(m["w"] ** 2), {"w": W, "unused": W})
    assert set(g[0]) == {("w",)}
    np.testing.assert_array_equal(g[0]["w",], 1 + 2 * W)


def test_optree_registered_types():
    _, g = yota.grad(lambda d: np.sum(d[0] * d[1]), deque([W, W + 1]))
    np.testing.assert_array_equal(g[0][0,], W + 1)


def test_shared_arrays_are_separate_arguments():
    _, g = yota.grad(lambda x, y: np.sum(x * y), W, W)
    np.testing.assert_array_equal(g[0], W)
    np.testing.assert_array_equal(g[1], W)
    _, g = yota.grad(lambda m: np.sum(m[0] * m[1]), [W, W])
    np.testing.assert_array_equal(g[0][0,], W)


def test_lookalikes_are_refused():
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(errors.ArgumentError, match="toarray"):
        yota.grad(lambda a: 1.0, sparse.eye(2).tocsr())


class Named(dict):
    """A dict that is made in a way of its own."""

    def __init__(self, scale, **parts):
        super().__init__(**parts)
        self.scale = scale


class Both(tuple):
    def __new__(cls, one, other):
        return super().__new__(cls, (one, other))


class Totals(list):
    def __init__(self, scale, parts):
        super().__init__(parts)
        self.scale = scale


@dataclass
class Derived:
    """What it computes when it is made, and what it keeps when it was asked."""

    w: Any

    def __post_init__(self):
        self.double = 2 * self.w

    @functools.cached_property
    def square(self):
        return self.w**2


class Kept:
    def __init__(self, w):
        self.w = w

    @functools.cached_property
    def square(self):
        return self.w**2


OWN_CLASSES = [
    (Named(3.0, w=W), lambda m: m.scale * np.sum(m["w"] ** 2), {("w",): 6 * W}),
    (Both(W, 2.0), lambda m: m[1] * np.sum(m[0] ** 2), {(0,): 4 * W, (1,): np.sum(W**2)}),
    (Totals(3.0, [W]), lambda m: m.scale * np.sum(m[0] ** 2), {(0,): 6 * W}),
    (Counter(w=2.5), lambda m: m["w"] ** 2 + m["missing"], {("w",): 5.0}),
    (types.MappingProxyType({"w": W}), lambda m: np.sum(m["w"] ** 2), {("w",): 2 * W}),
    (ChainMap({"w": W}), lambda m: np.sum(m["w"] ** 2), {("w",): 2 * W}),
    (UserDict({"w": W}), lambda m: np.sum(m["w"] ** 2), {("w",): 2 * W}),
    (Derived(W), lambda m: np.sum(m.double * m.square), {("w",): 4 * W**2, ("double",): W**2}),
    (Kept(W), lambda m: np.sum(m.square), {("w",): 2 * W}),
]


@pytest.mark.parametrize(("structure", "f", "expected"), OWN_CLASSES, ids=[type(s).__name__ for s, *_ in OWN_CLASSES])
def test_classes_that_are_made_in_a_way_of_their_own(structure, f, expected):
    of = yota.value_and_grad(f)
    for _ in range(2):
        value, found = of(structure)
        assert value == f(structure)  # the second time, a cached property has been asked
        assert set(found) == set(expected)
        for path, gradient in expected.items():
            np.testing.assert_allclose(found[path], gradient)
    moved = update(rebuild(structure, iter([part for _, part in flatten(structure) if is_leaf(part)])), found, np.add)
    assert type(moved) is type(structure)
