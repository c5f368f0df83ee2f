"""Captured arrays: what only compiled code reads costs nothing, what the function itself computed with is compared."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import yota
from tests.tracing.checking import without_source

N = 40
X = np.ones(N)
Y = np.ones((5, 8))
DATA = np.arange(1.0, N + 1)
TABLE = DATA.reshape(8, 5)


def loss(x, data):
    return np.sum(x * data)


def folding(x, data):
    return np.sum(x * data) * data.mean()


def outer(x, data):
    return loss(x, data) + np.sum(x[: len(data)])


def scale():
    return DATA[2]


def plain(data, x):
    return data.max()


def nested(x):
    def inner(y):
        return y * DATA

    return np.sum(inner(x))


def several(x):
    total = 0.0
    for function in (loss, lambda x, data: plain(data, x) * np.sum(x)):
        total = total + function(x, DATA)
    return total


def renamed(x):
    data = DATA
    return np.sum(x * data) * np.max(data)


AFRESH = {
    "operand": lambda x: np.sum(x * DATA),
    "function": lambda x: np.dot(DATA, x),
    "twice": lambda x: np.sum(DATA * x) + np.sum((x - DATA) ** 2),
    "conditional": lambda x: np.sum(x * (DATA if x.size else 1.0)),
    "shape": lambda x: np.sum(x * DATA) / DATA.shape[0] * DATA.size / len(DATA),
    "argument": lambda x: loss(x, DATA),
    "argument of an argument": lambda x: outer(x, DATA),
    "inner function": nested,
    "view": lambda x: np.sum(x[:20] * DATA[20:]) + DATA[:20] @ x[:20],
}
COMPARED = {
    "reduction": lambda x: np.sum(x * DATA) * np.sum(DATA),
    "method": lambda x: np.sum(x * DATA) * DATA.mean(),
    "element": lambda x: np.sum(x * DATA) * DATA[2],
    "copy": lambda x: np.sum(x * DATA) * np.sum(x[:3] * DATA[[1, 2, 3]]),
    "branch": lambda x: np.sum(x * DATA) * (2.0 if DATA[2] > 5 else 3.0),
    "in a function": lambda x: folding(x, DATA),
    "in a function without arguments": lambda x: np.sum(x * DATA) * scale(),
    "passed on": lambda x: np.sum(x * DATA) * plain(DATA, x),
    "several functions at one place": several,
    "under another name": renamed,
    "by another name": lambda x: np.sum(x * DATA) * np.sum(TABLE),
    "default": lambda x, data=DATA: np.sum(x * data) * data.max(),
    "kept": lambda x: [np.sum(x * DATA), other := DATA, np.sum(x) * other.sum()][2],
    "string": lambda x: np.sum(x * DATA) * globals()["DATA"].sum(),
    "loop": lambda x: sum(each * x[0] for each in DATA) + np.sum(x * DATA),
}


@pytest.fixture(autouse=True)
def as_before():
    before = DATA.copy()
    yield
    DATA[:] = before


def watched(fg):
    form = fg.form
    (prepared,) = form.table.values()
    return [array for array, _ in prepared.root.gradient.contents.pairs]


@pytest.mark.parametrize("name", [*AFRESH, *COMPARED])
def test_a_change_is_noticed(name):
    f = {**AFRESH, **COMPARED}[name]
    fg = yota.value_and_grad(f)
    for value in (3.0, 7.0, 9.0):
        DATA[2] = DATA[21] = value
        for _ in range(2):
            assert np.isclose(fg(X)[0], f(X))
    assert bool(watched(fg)) == (name in COMPARED)


def test_transposes_are_read_afresh():
    table = np.arange(40.0).reshape(8, 5)
    fg = yota.value_and_grad(lambda y: np.sum(table.T * y) + np.sum(y.T * table))
    for value in (3.0, 7.0):
        table[1, 2] = value
        assert np.isclose(fg(Y)[0], 2 * np.sum(table))
    assert not watched(fg)


@pytest.mark.parametrize("own", [lambda a: float(a.max()), operator.itemgetter(7)], ids=["python", "compiled"])
def test_a_len_of_the_users_own_is_no_len(own):
    data = DATA.copy()
    f = without_source("lambda x: np.sum(x * data) * len(data)", data=data, len=own)
    fg = yota.value_and_grad(f)
    for _ in range(2):
        assert np.isclose(fg(X)[0], f(X))
        data *= 3.0
