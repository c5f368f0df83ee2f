"""Objects of other classes than NumPy's beside traced values, and classes whose code programs have written."""

from __future__ import annotations

import functools
import math
import operator
import re
import subprocess
import sys
from dataclasses import InitVar, dataclass, field

import numpy as np
import pytest
import scipy.signal
import scipy.stats

import yota
from tests.tracing.test_leaks import assert_right
from yota.errors import MissingRuleError

X = np.array([1.25, 0.5, 2.0])


class Length:
    """A number with a unit, which takes part in ufuncs and functions."""

    def __init__(self, size, unit):
        self.size, self.unit = size, unit

    def __array_ufunc__(self, ufunc, method, *inputs, **keywords):
        plain = [each.size if isinstance(each, Length) else each for each in inputs]
        return Length(getattr(ufunc, method)(*plain, **keywords), self.unit)

    def __array_function__(self, function, kinds, args, keywords):
        plain = [each.size if isinstance(each, Length) else each for each in args]
        return Length(function(*plain, **keywords), self.unit)


class Unit:
    """It decides by its priority, and has no array protocol."""

    __array_priority__ = 17

    def __rmul__(self, other):
        return Length(other, "m")


class Aloof:
    __array_ufunc__ = None

    def __radd__(self, other):
        return other * 3


KNOWN = Length(np.arange(3.0), "s")


def by_ufunc(x):
    return (x * KNOWN).size.sum() + np.add(x, KNOWN).size.prod()


def of_one_number(x):
    return (x[0] * KNOWN).size.sum() * (x[1] ** 2 * KNOWN).size.sum()


def by_function(x):
    return np.dot(x, KNOWN).size ** 2


def by_priority(x):
    return (x * Unit()).size.sum() * (x[0] * Unit()).size


def by_refusal(x):
    return (x + Aloof()).sum() * (x[1] + Aloof())


@dataclass
class Model:
    rate: float
    scale: InitVar[float]
    powers: list = field(default_factory=lambda: [2])

    def __post_init__(self, scale):
        self.rate = float(self.rate) * np.float64(scale)


@dataclass(frozen=True)
class Frozen:
    rate: float
    shift: float = 2.0

    def __post_init__(self):
        object.__setattr__(self, "rate", float(self.rate))


def by_dataclass(x):
    model, frozen = Model(x[0], x[1]), Frozen(x[2])
    return model.rate ** model.powers[0] * frozen.rate + frozen.shift


class Made:
    def __new__(cls, value):
        made = super().__new__(cls)
        made.value = float(value)
        return made

    def __init__(self, value):
        self.more = float(value) ** 2


def by_new(x):
    return Made(x[0]).value * Made(x[1]).more


def _inner(value):
    return float(value) ** 2


exec("def written(value): return _inner(value)")


def by_written_code(x):
    return written(x[0]) * x[1]  # noqa: F821


class Wrapped:
    def __init__(self, value):
        self.value = value

    def __mul__(self, other):
        return float(self.value) * float(other)

    def __float__(self):
        return float(self.value) * 2


def by_operator(x):
    return operator.mul(Wrapped(x[0]), x[1]) + functools.reduce(operator.mul, [float(each) for each in x])


def by_float_method(x):
    return float(Wrapped(x[0])) * float(x[1])


def casts_of_scipy(x):
    b, a = scipy.signal.butter(2, x[0], "low", analog=True)
    wave = scipy.signal.chirp(KNOWN.size, x[1], 1.0, x[2])
    return (b.sum() * a**2).sum() * wave.sum()


def ranges_of_scipy(x):
    return scipy.stats.cramervonmises(x, "norm").statistic


def arranged_by_name(x):
    steps = np.arange(0.5, stop=2 * x[2], step=x[0])
    return (steps**2).sum()


CASES = [
    *(by_ufunc, of_one_number, by_function, by_priority, by_refusal, by_dataclass, by_new, by_written_code),
    *(by_operator, by_float_method, casts_of_scipy, ranges_of_scipy, arranged_by_name),
]


@pytest.mark.parametrize("function", CASES)
def test_operands_and_classes_of_others_keep_derivatives(function):
    assert_right(function, X)


def test_filters_of_images_load_what_they_are_recorded_as() -> None:
    code = (
        "import numpy as np, yota\nfrom scipy import ndimage\n"
        "x = np.arange(5.0)\n"
        "g = yota.gradient(lambda x: np.sum(ndimage.uniform_filter(x, 3)))(x)\n"
        "assert abs(np.sum(g) - 5) < 1e-12, g\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


class Checked:
    """An attribute that is converted when it is set."""

    def __set_name__(self, owner, name):
        self.name = name

    def __get__(self, instance, owner=None):
        return 1.0 if instance is None else float(instance.__dict__[self.name]) * 2

    def __set__(self, instance, value):
        instance.__dict__[self.name] = abs(float(value))


class Once:
    """An attribute that is computed when it is first read."""

    def __init__(self, function):
        self.function = function

    def __get__(self, instance, owner=None):
        found = instance.__dict__["volume"] = float(self.function(instance)) ** 2
        return found


@dataclass(frozen=True)
class Box:
    width: float = Checked()
    height: float = Checked()

    @Once
    def volume(self):
        return self.width * self.height


class Rod:
    length = Checked()

    def __init__(self, length):
        self.length = length


def twice_read(x):
    box = Box(x[0], x[2])
    return box.volume + box.volume * box.width


def in_words(x):
    return re.compile("b+").sub("", "bab").count("a") * float(x[0]) ** 3


@pytest.mark.parametrize(
    "f",
    [
        lambda x: Box(x[0], x[1]).volume,
        twice_read,
        lambda x: Rod(-x[1]).length ** 2,
        in_words,
    ],
)
def test_descriptors_run_from_their_source(f):
    assert_right(f, X)


@pytest.mark.filterwarnings("ignore:Compilation requested")
def test_functions_of_elements_that_numba_compiles():
    numba = pytest.importorskip("numba")

    @numba.vectorize
    def split(a, b):
        return a * b if a > 1 else math.sin(a) - b

    assert_right(lambda x: np.sum(split(x, x[::-1])) + split(x[0], 2.0), X)


def test_functions_of_several_elements_that_numba_compiles_are_refused_with_the_rule():
    numba = pytest.importorskip("numba")

    @numba.guvectorize(["void(float64[:], float64[:])"], "(n)->()")
    def total(a, result):
        result[0] = a.sum()

    with pytest.raises(MissingRuleError, match=rf'@tensor\("{__name__}.total"\)\ndef total\(x: Array\)'):
        yota.grad(lambda x: total(x) * 2, X)
