"""What the interpreter sees that operators cannot: which function is called, by what name, from which expression."""

from __future__ import annotations

import functools
import linecache
import math
import operator
import re
import sys
from dataclasses import dataclass
from math import sin as sine

import numpy as np
import pytest
from numpy import array, empty, full, linspace, ones, zeros
from scipy.special import logsumexp

import yota
from tests.tracing.rewriting.agreement import assert_interpreted
from yota import errors
from yota.tracing.captured.reach import Reach

X = np.array([0.5, 1.5, 2.5, 4.0])


def written(x):
    out = zeros(3)
    out[0] = x[0] ** 2
    last = empty(2)
    last[:] = x[2:]
    return np.sum(out * ones(3)) + np.sum(array([x[1], 2.0])) + np.sum(full(2, x[3])) + np.sum(last)


@np.vectorize
def bent(v):
    return v * v if v > 1 else v


@functools.cache
def remembered(v):
    return v * 3.0


@functools.lru_cache(maxsize=8)
def power(v, n):
    return 1.0 if n == 0 else v * power(v, n - 1)


class Compiled:
    """As Numba's functions are: compiled code that cannot take traced values, and the function it was made from."""

    def __init__(self, function):
        self.py_func = function

    def __call__(self, v):
        return float(np.asarray(v, dtype=float)) ** 3


compiled = Compiled(lambda v: v**3)
TABLE = {"sin": math.sin, "root": math.sqrt}
half = functools.partial(operator.mul, 0.5)

# What operators alone do not show.
SEEN = {
    "creation by its own name": written,
    "math by its own name": lambda x: sine(x[0]) * 2,
    "math in a table": lambda x: TABLE["sin"](x[0]) + TABLE["root"](x[1]),
    "scipy by its own name": lambda x: logsumexp(x),
    "linspace by its own name": lambda x: np.sum(linspace(x[0], x[1], 4)),
    "float": lambda x: float(x[0]) * x[1],
    "float in an array": lambda x: np.sum(np.array([float(v) ** 2 for v in x])),
    "float of a sum": lambda x: math.exp(float(np.sum(x)) / 9),
    "vectorized outside": lambda x: np.sum(bent(x)),
    "mapped": lambda x: sum(map(float, x[:2])) + len({*map(type, x)}) * x[2],
    "cached": lambda x: remembered(x[0]) + remembered(x[0]),
    "cached recursion": lambda x: power(x[1], 3),
    "compiled elsewhere": lambda x: compiled(x[1]),
}


@pytest.mark.parametrize("name", SEEN)
def test_what_dispatch_cannot_see_is_recorded(name):
    f = SEEN[name]
    tape = assert_interpreted(f, X, differs=True)
    direction = np.array([0.3, -0.7, 0.2, 0.9])
    step = 1e-6
    slope = (yota.play(tape, X + step * direction) - yota.play(tape, X - step * direction)) / (2 * step)
    exact = (f(X + step * direction) - f(X - step * direction)) / (2 * step)
    np.testing.assert_allclose(slope, exact, rtol=1e-7)
    assert abs(slope) > 1e-3
    np.testing.assert_allclose(yota.gradient(yota.interpreted(f))(X) @ direction, slope, rtol=1e-7)


@pytest.mark.parametrize("name", SEEN)
def test_trace_goes_on_from_the_source(name):
    np.testing.assert_allclose(yota.gradient(SEEN[name])(X), yota.gradient(yota.interpreted(SEEN[name]))(X))


def nobody_else(x):
    y = np.zeros(2)
    before = np.zeros.__module__, vars(np)["zeros"]
    y[0] = x[0]
    assert before[1] is ZEROS
    return np.sum(y * np.array([x[1], 1.0]))


ZEROS = np.zeros


def test_a_gradient_of_an_interpreted_function_follows_what_it_reads():
    slope = yota.gradient(yota.interpreted(lambda x: np.sum(x) * TABLE["factor"]))
    TABLE["factor"] = 2.0
    assert slope(X)[0] == 2.0
    TABLE["factor"] = 3.0
    assert slope(X)[0] == 3.0
    del TABLE["factor"]
    plain = yota.interpreted(written)
    assert plain(X) == written(X) and plain.__name__ == "written"


def test_the_namespace_of_numpy_is_left_alone():
    assert_interpreted(nobody_else, X, differs=True)


knows_columns = pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 knows lines alone")


@knows_columns
def test_operations_know_their_expression():
    def f(x):
        velocity, force = x[0] * 2, np.sin(x[1]) + (x[2] * x[3])
        if velocity > force:
            return velocity
        for part in x:
            force += part
        return force

    tape = yota.itrace(f, X)[1]
    texts = {op.location.text: op.name for op in tape.ops}
    assert texts["x[0] * 2"] == "multiply" and texts["np.sin(x[1])"] == "sin"
    assert texts["x[2] * x[3]"] == "multiply" and texts["force += part"] == "add"
    assert texts["velocity > force"] == "greater"
    first = next(op for op in tape.ops if op.name == "multiply").location
    line = f.__code__.co_firstlineno
    assert (first.line - line, first.column, first.end_line - line, first.end_column) == (1, 27, 1, 35)
    assert str(first) == f"{__file__}:{line + 1}:27"
    assert set(tape.names.values()) == {"velocity", "force", "part"}
    with pytest.raises(errors.StaleTapeError, match=r"test_calls.py:\d+:12: `velocity > force`: bool\(\)"):
        yota.play(tape, np.array([9.0, 0, 0, 0]))


@knows_columns
def test_columns_are_characters():
    def f(x):
        größe = x[0]  # noqa: PLC2401
        return np.abs(größe) + größe * 2

    multiply = yota.itrace(f, X)[1].ops[2].location
    assert (multiply.text, multiply.column) == ("größe * 2", 32)


def test_guards_are_taken_as_python_takes_them():
    def f(x):
        a = x[0] if 0 < x[1] < 2 and not x[2] > 3 else x[3]
        n = int(x[3])
        return a * n + (x[0] or 1.0) + sum(1.0 for v in x if v > 1)

    assert_interpreted(f, X)


@dataclass
class Body:
    mass: float
    at: np.ndarray

    def __post_init__(self):
        self.twice = np.array([self.mass, 2.0]) * 2

    def energy(self):
        return self.mass * np.sum(self.at**2) + np.sum(np.array([self.mass, 1.0]))


@dataclass(frozen=True, order=True)
class Pair:
    a: float
    b: float

    def __add__(self, other):
        return Pair(self.a + other.a, self.b + other.b)


def test_dataclasses_and_callbacks():
    def f(x):
        body = Body(x[0], x[1:])
        pair = sum([Pair(x[1], x[2])], Pair(x[0], 1.0))
        smaller = min(Pair(x[0], x[1]), Pair(x[2], x[3]))
        ordered = sorted([x[1], x[0]], key=lambda v: -v)
        mapped = list(map(written_pair, x[:2]))
        total = functools.reduce(lambda a, b: a * b, mapped)
        applied = np.apply_along_axis(written_row, 0, x)
        return (
            body.energy()
            + body.twice[0]
            + pair.a * pair.b
            + smaller.a
            + ordered[0]
            + total
            + np.sum(applied)
            + half(x[0])
        )

    assert_interpreted(f, X)


def written_pair(v):
    return np.sum(np.array([v, v * v]))


def written_row(row):
    out = np.zeros(2)
    out[:] = row[:2] * row[3]
    return out


def test_arguments_may_be_structures_and_methods():
    body = Body(2.0, np.ones(3))
    value, tape = yota.itrace(body.energy)
    assert value == body.energy()
    assert [entry.path for entry in tape.inputs][:2] == [("mass",), ("at",)]
    value, tape = yota.itrace(lambda body, *, scale: body.energy() * scale, body, scale=3.0)
    assert value == body.energy() * 3


def test_primitives_are_one_op():
    def opaque(v):
        return np.asarray(v).tolist()[0] * 2.0

    def f(x):
        return opaque(x) * x[1]

    _, tape = yota.itrace(f, X, primitives={opaque})
    assert [op.name for op in tape.ops] == ["opaque", "getitem", "multiply"]


def test_gradients_inside():
    def f(x):
        def inner(y):
            out = np.zeros(2)
            out[0] = y[0] * y[1] ** 2
            return np.sum(out)

        return np.sum(yota.gradient(inner)(x))

    assert_interpreted(f, X)


def test_gradients_inside_see_what_changes_between_their_calls():
    def f(x):
        factor, shifts = 2.0, [1.0]

        def inner(y, by=shifts):
            out = np.zeros(2)
            out[0] = factor * (y[0] + by[0]) ** 2
            return np.sum(out)

        slope = yota.gradient(inner)
        first = slope(x)[0]
        factor = 3.0
        second = slope(x)[0]
        shifts[0] = 5.0
        return first + 10 * second + 100 * slope(x)[0]

    a = X[0]
    value, _ = yota.itrace(f, X)
    assert value == 4 * (a + 1) + 10 * 6 * (a + 1) + 100 * 6 * (a + 5)


def test_gradients_inside_watch_the_variables_they_mention_alone():
    kept = []

    def f(x):
        def inner(y):
            return np.sum(y * PLAIN)

        kept.append(inner)
        return inner(x)

    yota.itrace(f, X)
    reach = Reach()
    reach.take(kept)
    assert [(kind, name) for kind, owner, name in reach.dependencies if owner is globals()] == [("entry", "PLAIN")]


REFUSED = {
    "exec": (lambda x: exec("x[0]"), r"test_calls.py:\d+.*: `.*exec\("),
    "plain array": (lambda x: PLAIN.__iadd__(x), "plain array"),
    "unknown": (lambda x: json_of(x), "json"),
}
PLAIN = np.ones(4)


def json_of(x):
    import json

    return json.dumps(x[0].item())


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_known_is_refused(name):
    f, message = REFUSED[name]
    with pytest.raises((errors.TracingError, TypeError), match=message):
        yota.itrace(f, X)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: float(x[0]) * eval("a**2 + np.sum(b)", {"np": np, "a": x[0], "b": x}),
        lambda x: float(x[0]) * eval("x[1] ** 2 * float(x[2])"),
        lambda x: float(x[0]) * eval(compile("max(abs(x[1]), 0.5) * np.zeros(2).sum() + x[0]", "<text>", "eval")),
    ],
)
def test_expressions_in_text_are_followed(function):
    assert_interpreted(function, X, differs=True)
    assert yota.gradcheck(function, X)


def of_parameters(a, /, b, *, c, d=2.0):
    return a + b + c + d


@pytest.mark.parametrize("given", [{}, {"b": 1.0}, {"b": 1.0, "c": 2.0, "e": 3.0}, {"a": 1.0, "b": 1.0, "c": 2.0}])
def test_wrong_arguments_are_refused_as_by_python(given):
    with pytest.raises(TypeError) as expected:
        of_parameters(1.0, **given)
    with pytest.raises(TypeError, match=f"^{re.escape(str(expected.value))}"):
        yota.itrace(lambda x: of_parameters(x[0], **given), X)


def test_classes_made_inside():
    def f(x):
        class Base:
            """A docstring."""

            scale = 2.0

            def __init__(self, v):
                self.v = np.array([v, v])

            def value(self):
                return np.sum(self.v) * self.scale

        class Derived(Base):
            def value(self):
                out = np.zeros(1)
                out[0] = super().value() + x[1]
                return out[0] * self.__twice()

            def __twice(self):
                return 2.0

        @dataclass
        class Record:
            a: float
            b: float = 3.0

        assert Base.__doc__ == "A docstring." and Derived.__name__ == "Derived"
        record = Record(x[0])
        return Derived(x[0]).value() + record.a * record.b

    assert_interpreted(f, X)


def test_syntax_that_is_not_known_is_refused():
    def f(x):
        y = 1.0 + (yield x)
        return y

    with pytest.raises(errors.TracingError, match="generator"):
        yota.itrace(f, X)

    async def g(x):
        return x

    with pytest.raises(errors.TracingError, match="async function"):
        yota.itrace(g, X)


def test_functions_without_source_are_refused():
    namespace = {}
    exec("def f(x): return x * 2", namespace)
    with pytest.raises(errors.TracingError, match=r"source of f cannot be read.*Use yota.trace"):
        yota.itrace(namespace["f"], X)
    # Where another function calls it, Python runs it.
    helper = namespace["f"]
    assert_interpreted(lambda x: np.sum(helper(x)), X)


def test_functions_whose_source_has_changed_are_refused(tmp_path):
    file = tmp_path / "changing.py"
    file.write_text("def f(x):\n    return x * 2\n")
    namespace = {}
    exec(compile(file.read_text(), str(file), "exec"), namespace)
    file.write_text("def f(x):\n    return y * 2\n\ndef g(y):\n    return y\n")
    linecache.checkcache(str(file))
    with pytest.raises(errors.TracingError, match="has changed since it was imported"):
        yota.itrace(namespace["f"], X)


def test_lambdas_in_one_line_are_told_apart():
    first, second = (lambda x: x[0] * 2), (lambda x: x[0] * 3)
    assert yota.itrace(first, X)[0] == 1.0 and yota.itrace(second, X)[0] == 1.5


class Unplaced:
    """A class that has no name of a module, as classes made in C may be."""

    __module__ = property(lambda self: "nowhere")
    scale = 3.0

    def __call__(self, x):
        return x * self.scale


def test_a_class_may_have_no_name_of_a_module():
    unplaced = Unplaced()
    for f in (lambda x: np.sum(unplaced(x)), lambda x: np.sum(x * unplaced.scale)):
        for gradient in (yota.gradient(f), yota.gradient(yota.interpreted(f))):
            assert gradient(np.ones(2)).tolist() == [3.0, 3.0]


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.sum(np.sin([x[0], x[1] * 2, 0.5])),
        lambda x: np.sum(np.maximum.reduce([x, 2 * x[::-1], x**2])),
        lambda x: np.sum(np.multiply.outer((x[0], 2.0), [x[1], x[0]])),
        lambda x: np.add.accumulate([x[0], x[1]])[1] + np.add.reduce((x[2], x[3])),
        lambda x: np.sum(np.hypot([x[0], 1.0], (x[2], x[3]))),
    ],
)
def test_a_ufunc_takes_lists_of_traced_values(f):
    _, (gradient,) = yota.grad(f, X)
    steps = 1e-6 * np.eye(4)
    expected = [(f(X + step) - f(X - step)) / 2e-6 for step in steps]
    np.testing.assert_allclose(gradient, expected, rtol=1e-8, atol=1e-8)


GRID = np.array([[1.1, 2.0], [0.7, 3.0]])


def added_in_place(x):
    grid = GRID.copy()
    grid += [x[0], x[1]]
    grid *= [x[:2], x[2:]]
    return np.sum(grid)


@pytest.mark.parametrize(
    "f",
    [
        added_in_place,
        lambda x: np.sum(GRID @ [x[0], x[1]] * [1.0, 2.0]),
        lambda x: np.sum((x[0], x[1]) @ GRID * [1.0, 2.0]),
        lambda x: np.sum(GRID / [x[:2], x[2:]]),
        lambda x: np.sum(np.where([x[0], x[1]] < GRID, x[2], x[3] ** 2)),
        lambda x: np.sum(np.piecewise(GRID, [x[0] > GRID, x[0] <= GRID], [lambda v: v * x[1], x[2] ** 2])),
    ],
)
def test_a_plain_array_meets_a_list_of_traced_values(f):
    value, gradient = yota.value_and_grad(f)(X)
    assert value == pytest.approx(f(X), rel=1e-14)
    expected = [(f(X + step) - f(X - step)) / 2e-6 for step in 1e-6 * np.eye(4)]
    np.testing.assert_allclose(gradient, expected, rtol=1e-8, atol=1e-8)


WEIGHTS = np.array([[1, 2, 0, 3], [0, 1, 4, 1]])
LEVELS = np.array([0.2, 1.0, 3.0])


def weighed(x):
    found = WEIGHTS.dot(x**2)
    place = LEVELS.searchsorted(x[1])
    return np.sum(found) + LEVELS.clip(x[0], x[2])[0] * LEVELS.take(place) + LEVELS.max(initial=x[3])


def test_methods_of_plain_arrays_take_traced_values():
    value, slopes = yota.value_and_grad(weighed)(X)
    assert value == weighed(X)
    # The first level is below x[0], x[1] between the last two, and x[3] above all.
    np.testing.assert_allclose(slopes, 2 * X * WEIGHTS.sum(axis=0) + [3, 0, 0, 1], rtol=1e-14)
