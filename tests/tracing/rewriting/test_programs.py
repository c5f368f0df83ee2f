"""The functions that are traced elsewhere in the tests, and random programs: their tapes are those of `trace`."""

from __future__ import annotations

import linecache
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import yota
from tests import test_cases
from tests.tracing import test_standard_library, test_text
from tests.tracing.rewriting.agreement import assert_interpreted, shown

X = np.array([0.5, 1.5, 2.5, 4.0])
# The interpreter gives a value that keeps its derivative where `float` is called.
DIFFERS = {"float at return", "numbers", "r_", "c_", "modf", "modf of negative"}
# A text becomes a guard where it is used.
DIFFERS |= {"key", "split", "print too"}
# Only the source shows that Python's function selects, and does not decide.
DIFFERS |= {"builtin max"}


def _with_sum(f):
    return lambda x: (f(x), np.sum(x * x))[1]


TABLES = [
    *((name, f, np.array([0.9, 0.4, 0.7])) for name, f in test_cases.PLAIN.items()),
    *((name, f, X) for name, f in test_standard_library.WORKS.items()),
    *((name, _with_sum(f), test_text.X) for name, f in test_text.WRITTEN.items()),
    *((name, f, test_text.X) for name, f in test_text.USED.items() if name != "repr"),
]


@pytest.mark.parametrize(("name", "f", "x"), TABLES, ids=lambda each: each if isinstance(each, str) else "")
def test_traced_functions_are_interpreted_to_the_same_tape(name, f, x):
    assert_interpreted(f, x, differs=name in DIFFERS)


def expression(chance, depth=0):
    """A random expression."""
    if depth > 2 or chance.random() < 0.25:
        return chance.choice(["a", "b", "v", "x[0]", "x[1]", "x[-1]", "1.5", "2"])
    form = chance.choice(
        [
            "({0} + {1})",
            "({0} - {1})",
            "({0} * {1})",
            "(-{0})",
            "np.tanh({0})",
            "({0} if {1} < {2} else b)",
            "np.sum(np.array([{0}, {1}]))",
            "sum({0} * k for k in range(3) if k != 1)",
            "(lambda q, r=2.0: q * r)({0})",
            "max({0}, {1})",
            "(w := {0})",
            "abs({0} and {1})",
        ]
    )
    return form.format(*(expression(chance, depth + 1) for _ in range(3)))


def block(chance, depth=0):
    """The lines of a random statement."""
    e, f = expression(chance), expression(chance)
    simple = [
        [f"{chance.choice('abv')} = {e}"],
        [f"a {chance.choice('+-*')}= {e}"],
        [f"a, b = b, {e}"],
        [f"y[{chance.randrange(-4, 4)}] = {e}", "y[1:] += y[:-1]"],
        ["def g(p, q=a):", "    nonlocal b", f"    b = {e} * p", "    return b + q", "v = g(v)"],
    ]
    if depth > 1 or chance.random() < 0.6:
        return chance.choice(simple)
    inner = [f"    {line}" for _ in range(chance.randrange(1, 3)) for line in block(chance, depth + 1)]
    return chance.choice(
        [
            [f"if {e} < {f}:", *inner, "else:", f"    a = {f}"],
            ["for v in x[:2]:", *inner, f"    if {e} > 1:", "        break", "else:", "    b = a"],
            ["try:", *inner, "    x[9]", "except IndexError:", "    a += 1", "finally:", "    b = -b"],
        ]
    )


@settings(max_examples=60, derandomize=True)
@given(st.integers(0, 2**32))
def test_random_programs_are_interpreted_to_the_same_tape(seed):
    chance = random.Random(seed)
    inner = [f"    {line}" for _ in range(4) for line in block(chance)]
    lines = ["def f(x):", "    a, b, v, w = x[0], x[1], 0.5, 0.0", "    y = np.zeros(4)", *inner]
    text = "\n".join([*lines, "    return a * b + v + w + np.sum(y)"]) + "\n"
    namespace = {"np": np}
    filename = "<random program>"
    linecache.cache[filename] = len(text), None, text.splitlines(keepends=True), filename
    exec(compile(text, filename, "exec"), namespace)
    f, x = namespace["f"], np.array([0.3, -1.2, 0.8, 0.1])
    value, tape = yota.itrace(f, x)
    np.testing.assert_array_equal(value, f(x))
    if "max(" not in text:
        assert shown(tape) == shown(yota.trace(f, x)[1]), text
