"""Subclasses of NumPy's arrays and of float: their own code runs on traced values, and gives its objects."""

from __future__ import annotations

import math

import numpy as np
import pytest

import yota
from tests.tracing.test_leaks import assert_right
from yota import errors

X = np.array([1.25, 0.5, 2.0, -0.75])


class Length(np.ndarray):
    """An array with a unit, which ufuncs put together."""

    def __new__(cls, values, unit=""):
        made = np.asarray(values, float).view(cls)
        made.unit = unit
        return made

    def __array_finalize__(self, parent):
        self.unit = getattr(parent, "unit", "")

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **keywords):
        units = [each.unit for each in inputs if isinstance(each, Length)]
        plain = [each.view(np.ndarray) if isinstance(each, Length) else each for each in inputs]
        if out:
            keywords["out"] = tuple(each.view(np.ndarray) if isinstance(each, Length) else each for each in out)
        found = super().__array_ufunc__(ufunc, method, *plain, **keywords)
        if found is NotImplemented:
            return found
        found = np.asarray(found).view(Length)
        found.unit = "*".join(units)
        return found


class Squaring(np.ndarray):
    """Its products are squared: nobody may compute them as those of plain arrays."""

    def __array_ufunc__(self, ufunc, method, *inputs, **keywords):
        plain = [np.asarray(each) for each in inputs]
        found = getattr(ufunc, method)(*plain, **keywords)
        return (found * found).view(Squaring) if ufunc is np.multiply else found.view(Squaring)


class Named(np.ndarray):
    """Plain but for an attribute and a product of its own."""

    def __array_finalize__(self, parent):
        self.name = getattr(parent, "name", 3)

    @property
    def twice(self):
        return self + self

    def __mul__(self, other):
        return super().__mul__(other) + 1


class Derived(Length):
    def __array_ufunc__(self, ufunc, method, *inputs, **keywords):
        return super(Derived, self).__array_ufunc__(ufunc, method, *inputs, **keywords)  # noqa: UP008  (users do)


KNOWN_LENGTH = Length(np.arange(4.0), "m")
KNOWN_SQUARING = np.arange(4.0).view(Squaring)
KNOWN_NAMED = np.arange(4.0).view(Named)


def units(x):
    area = Length(x, "m") * Length(x[::-1], "s")
    assert isinstance(area, Length) and type(area) is Length
    return float(np.sum(np.sin(area))) * len(area.unit)


def elements(x):
    length = Length(x, "m")
    return (length[1:] * 2.0).view(np.ndarray).sum() + length[0] ** 2 + sum(float(each) ** 2 for each in length)


def reductions(x):
    length = Length(x, "m")
    return float(length.sum()) * float(np.max(length)) + float(length.view(np.ndarray).mean())


def writes(x):
    length = Length(x.copy(), "m")
    view = length[1:]
    length *= x
    length[0] = 5.0 * x[1]
    view[0] = x[3]
    return (np.asarray(length) ** 2).sum()


def outside(x):
    return np.asarray(KNOWN_LENGTH * x).sum() * len((KNOWN_LENGTH * Length(x, "s")).unit)


def own_products(x):
    mine = x.view(Squaring)
    return np.asarray(mine * 3.0 + 1.0).sum() + np.asarray(2.0 * mine).sum() + np.asarray(KNOWN_SQUARING * x).sum()


def own_products_by_function(x):
    return np.asarray(np.multiply(x, KNOWN_SQUARING)).sum() * np.asarray(x.view(Squaring).sum()).item()


def attributes(x):
    named = x.view(Named)
    named.name = 2
    kept = np.sort(named).name + named[1:].twice.name + np.concatenate([named, named])[5]
    return np.asarray(named * 2).sum() * kept + np.where(named > 0, named, 0.0).sum() + named.twice.sum()


def base_by_name(x):
    return np.asarray(Derived(x, "m") * 2.0).prod()


class Rotated(np.ndarray):
    """Made of a buffer, as NumPy's guide to subclasses shows."""

    def __new__(cls, values):
        given = np.asarray(values, float) * 2
        new = super().__new__(cls, given.shape, float, given)
        new.turns = 3
        return new

    def turned(self):
        return np.sin(self) * self.turns


def buffers(x):
    plain = np.ndarray.__new__(np.ndarray, (2, 2), float, x * x)
    return np.sum(Rotated(x).turned() * x) + plain[1, 0] * plain[0, 1]


CASES = [
    buffers,
    units,
    elements,
    reductions,
    writes,
    outside,
    own_products,
    own_products_by_function,
    attributes,
    base_by_name,
]


@pytest.mark.parametrize("function", CASES)
def test_code_of_subclasses_runs_on_traced_values(function):
    assert_right(function, X)


def test_second_derivatives_go_through_subclasses():
    found = yota.hessian(lambda x: float(np.sum(Length(x, "m") * Length(x, "m") * x[0])))(X)
    plain = yota.hessian(lambda x: np.sum(x * x * x[0]))(X)
    np.testing.assert_allclose(found, plain, rtol=1e-14)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: np.sum(x.view(np.recarray)), r"recarray cannot be recorded"),
        (lambda x: np.asarray(KNOWN_NAMED * x).sum(), r"Named, which computes in a way of its own \(__mul__\)"),
    ],
)
def test_subclasses_that_are_not_followed_are_refused_by_name(function, message):
    with pytest.raises(errors.YotaError, match=message):
        yota.value_and_grad(function)(X)


class Metres(float):
    """A float with a unit, which sums keep."""

    def __new__(cls, value=0.0, unit="m"):
        new = float.__new__(cls, value)
        new.unit = unit
        return new

    @property
    def squared(self):
        return self**2

    def __add__(self, other):
        if getattr(other, "unit", self.unit) != self.unit:
            raise ValueError("units differ")
        return type(self)(float.__add__(self, other), self.unit)


class Angle(Metres):
    def __new__(cls, value, unit="deg"):
        return super().__new__(cls, value, unit)

    def __mul__(self, other):
        return Angle(super().__mul__(other))

    def sine(self):
        return math.sin(math.radians(self))


class Plain(float):
    pass


@pytest.mark.parametrize(
    "function",
    [
        lambda x: Metres(x[0] * 2).squared * x[1],
        lambda x: (Metres(x[0]) + Metres(x[1])).squared,
        lambda x: (Angle(x[0]) * 3 + Angle(x[1])).sine(),
        lambda x: Plain(x[0]) * x[1] + math.sin(Plain(x[1])) / Plain(x[2]),
        lambda x: float(Angle(x[0])) * np.exp(Metres(x[1])) + sum([Plain(x[2]), Metres(x[0])]),
        lambda x: np.sum(np.array([Metres(x[0]), Plain(x[1])]) ** 2) * max(Metres(x[0]), Metres(x[1])),
        lambda x: Metres("2.5") * x[0] if isinstance(Angle(x[1]), Metres) and not isinstance(x[1], Metres) else 0.0,
        lambda x: Plain(x[0]),
    ],
)
def test_subclasses_of_float_are_followed(function):
    assert_right(function, np.array([1.5, 0.75, 2.0]))


def test_code_of_subclasses_of_float_raises_its_own_errors():
    with pytest.raises(ValueError, match="units differ"):
        yota.grad(lambda x: Metres(x[0]) + Angle(x[1]), np.ones(2))


class Wrapped:
    """An object that NumPy's functions take for the array that it holds."""

    def __init__(self, held):
        self.held = held

    def __array__(self, dtype=None, copy=None):
        return np.array(self.held, dtype=dtype)


M = np.array([[1.25, 0.5], [2.0, -0.75]])


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.sum(np.asarray(Wrapped(x)) ** 2),
        lambda x: np.linalg.norm(Wrapped(x)),
        lambda x: np.linalg.det(Wrapped(x)) + np.sum(Wrapped(x)),
        lambda x: np.sum((x @ Wrapped(x)) * x + np.stack([Wrapped(x), M])),
        lambda x: np.sum(np.dot(Wrapped(x), M) * np.linalg.norm(Wrapped(np.zeros(3) + 2.0))),
    ],
)
def test_objects_with_an_array_of_their_own(f):
    assert_right(lambda x: f(x.reshape(2, 2)), M.ravel())
