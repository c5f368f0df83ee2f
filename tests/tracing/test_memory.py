"""What shows the memory of an array, and arrays of truths and whole numbers that traced values are written into."""

from __future__ import annotations

import gc
import math
import weakref

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import yota
from tests.tracing.test_leaks import assert_right
from yota import errors
from yota.tracing.tracer import Tracer

X = np.array([1.25, 0.5, 2.0, -0.75])
KNOWN = np.arange(4.0)


def pairs(x):
    z = x[:2] + 1j * x[2:]
    z.view(float)[1::2] = 0.5 * x[:2]
    return (z**3).real.sum() + (z.view(np.float64) ** 2) @ KNOWN


def complex_numbers(x):
    y = x.copy()
    z = y.view(complex)
    y[0] = x[3] ** 2
    z *= 1j
    return (y**3).sum() + z[1].imag


def windows(x):
    a = x.copy()
    w = as_strided(a, (3, 2), a.strides * 2)
    a[1] = x[0] ** 3
    return (w**2).sum()


def diagonal(x):
    a = x.reshape(2, 2).copy()
    d = as_strided(a, (2,), (a.strides[0] + a.strides[1],))
    d[...] = x[1] ** 2
    d += 1
    return (a**2).sum()


def circulant(x):
    whole = np.concatenate([x, x[:-1]])
    step = whole.strides[0]
    return np.trace(as_strided(whole[3:], (4, 4), (-step, step)) @ np.arange(16.0).reshape(4, 4))


def by_bytes(x):
    known = {}
    for each in (x, 2 * x, x):
        if each.tobytes() not in known:
            known[each.tobytes()] = (each**2).sum()
    return sum(known.values())


def iterated(x):
    total = 0.0
    for place, each in enumerate(np.nditer(x.reshape(2, 2).T)):
        total = total + place * each**2
    it = np.nditer([x.reshape(2, 2), KNOWN[:2]], flags=["multi_index"])
    while not it.finished:
        total = total + it[0] * it[1] * it.multi_index[0]
        it.iternext()
    return total


def iterated_and_written(x):
    y = x.copy()
    with np.nditer(y, op_flags=["readwrite"]) as it:
        for each in it:
            each[...] = each**2
    return (y * x).sum() * np.broadcast(x, KNOWN[:, None]).shape[0]


def truths(x):
    mask, other = np.zeros(4, bool), np.empty(4, dtype=bool)
    np.less(x, 1.0, out=mask)
    alias = other
    alias[:] = x > 0
    mask &= other
    return x[mask].sum() * x[other].prod()


def ranks(x):
    rank, count = np.empty(4, int), np.zeros(4, dtype=int)
    rank[np.argsort(x)] = np.arange(4)
    count[x > 0] += 2
    return (x * rank * count).sum() + np.take(KNOWN, np.argsort(x)) @ x


def arrays_from_outside(x):
    a = KNOWN.copy()
    view = a[2:]
    a[x > 0] *= 2
    view[0] = x[0] ** 2
    return (a * x).sum()


def parts_of_numbers(x):
    fraction, exponent = math.frexp(x[2])
    return fraction * 2.0**exponent * x[0] + x[1].item().is_integer()


CASES = [
    *(pairs, complex_numbers, windows, diagonal, circulant, by_bytes, iterated, iterated_and_written, truths, ranks),
    *(arrays_from_outside, parts_of_numbers),
]


@pytest.mark.parametrize("function", CASES)
def test_memory_is_followed_in_the_order_of_the_recording(function):
    assert_right(function, X)


def test_what_depends_on_strides_is_recorded_again_for_others():
    def total(x):
        return (x**2).sum() if x.strides[0] == x.itemsize else (x**3).sum()

    compiled = yota.gradient(total)
    np.testing.assert_array_equal(compiled(X), 2 * X)
    np.testing.assert_array_equal(compiled(np.repeat(X, 2)[::2]), 3 * X**2)


def shifted(x):
    y = x.copy()
    y.flat[1:] = y[:-1]
    return y


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x.view(np.int64).sum() * x[0], "shows their bits"),
        (lambda x: as_strided(x, (5,), (8,)).sum(), "reaches outside"),
        (lambda x: np.frombuffer(x.tobytes()).sum(), "takes a traced value off the tape"),
        (lambda x: shifted(x).sum(), "written into its .flat"),
    ],
)
def test_memory_that_is_not_followed_is_refused(function, message):
    with pytest.raises(errors.TracingError, match=message):
        yota.value_and_grad(function)(X)


def test_writes_into_an_argument_that_shares_memory_are_refused():
    outside = X.copy()

    def doubled(x, y):
        x *= 2.0
        return np.sum(x * y * outside)

    x, y = X.copy(), X[::-1].copy()
    derivative = yota.gradient(doubled)
    rows = yota.batch(lambda x, y: doubled(x, y), over=(0, 1))
    for _ in range(3):
        np.testing.assert_array_equal(derivative(x, y), 2.0 * y * outside)
        for calls, args, other in (
            (derivative, (x, x), "its argument y"),
            (derivative, (x, x[::-1]), "its argument y"),
            (derivative, (outside, y), "an array from outside"),
            (rows, (x[None], x[None]), "its argument y"),
            (lambda *point: yota.jvp(doubled, point, point), (x, x), "its argument"),
        ):
            with pytest.raises(errors.TracingError, match=f"which shares memory with {other}"):
                calls(*args)
    np.testing.assert_array_equal(x, X)


def test_bases_of_arrays():
    found = yota.trace(lambda x: x * (np.exp(x).base is None), X)[0]
    np.testing.assert_array_equal(found, X)
    with pytest.raises(errors.TracingError, match="base of a traced view"):
        yota.trace(lambda x: x[1:].base, X)


def test_values_of_a_recording_are_freed_when_it_ends():
    made = []

    def f(x):
        y = np.exp(x)
        made.append(weakref.ref(Tracer._value(y)))
        return np.sum(y**2)

    gc.collect()
    gc.disable()
    try:
        yota.trace(f, X)
        yota.itrace(f, X)
        assert [each() is None for each in made] == [True, True]
    finally:
        gc.enable()


def test_none_written_to_numbers_is_nan():
    def f(x):
        b = np.zeros(3)
        b[1] = x[0]
        b[0] = None
        return np.nansum(b * x[1])

    np.testing.assert_array_equal(yota.gradient(f)(np.array([2.0, 5.0])), [5.0, 2.0])
