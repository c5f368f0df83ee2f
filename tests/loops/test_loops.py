"""Loops that stay loops, against plain Python loops and complex steps."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import yota
from tests.cuda.hosted import load, needs_compiler
from tests.generated import loaded
from yota.emit.targets import cuda
from yota.errors import ArgumentError, CodegenError, StaleTapeError, TracingError
from yota.optimize.pipeline import run

RNG = np.random.default_rng(0)
X = RNG.normal(size=5)
W = 0.4 * RNG.normal(size=(5, 5))
U = RNG.normal(size=(7, 5))
ROWS = np.arange(7.0)


def network(w, x, u):
    def step(c, v):
        c = np.tanh(w @ c + v)
        return c, np.sum(c * c)

    c, ys = yota.scan(step, x, u)
    return np.sum(ys * ROWS) + np.sum(c)


def network_plain(w, x, u):
    ys = []
    for v in u:
        x = np.tanh(w @ x + v)
        ys.append(np.sum(x * x))
    return np.sum(np.stack(ys) * ROWS) + np.sum(x)


def closure(w, x):
    return np.sum(yota.fori(5, lambda i, c: np.sin(w @ c) + np.exp(w)[0], x))


def closure_plain(w, x):
    for _ in range(5):
        x = np.sin(w @ x) + np.exp(w)[0]
    return np.sum(x)


def chained(x):
    def body(i, total):
        return total + 100 * (x[i] ** 2 - x[i + 1]) ** 2 + (x[i] - 1) ** 2

    return yota.fori(len(x) - 1, body, 0.0)


def chained_plain(x):
    total = 0.0
    for i in range(len(x) - 1):
        total = total + 100 * (x[i] ** 2 - x[i + 1]) ** 2 + (x[i] - 1) ** 2
    return total


def swapped(x, y):
    found = yota.fori(5, lambda i, c: (c[1], 1.1 * c[0]), (x, y))
    return np.sum(found[0] ** 2) + np.sum(found[1])


def swapped_plain(x, y):
    for _ in range(5):
        x, y = y, 1.1 * x
    return np.sum(x**2) + np.sum(y)


def written(x):
    def body(i, c):
        c = c.copy()
        c[i] = np.sin(c[i - 1]) + c[i]
        return c

    return np.sum(yota.fori(5, body, x))


def written_plain(x):
    for i in range(5):
        x = x.copy()
        x[i] = np.sin(x[i - 1]) + x[i]
    return np.sum(x)


def nested(x):
    def outer(i, c):
        return yota.fori(3, lambda j, d: d + 0.1 * np.sin(d) * j + 0.01 * i, c)

    return np.sum(yota.fori(4, outer, x) ** 2)


def nested_plain(x):
    for i in range(4):
        for j in range(3):
            x = x + 0.1 * np.sin(x) * j + 0.01 * i
    return np.sum(x**2)


def kept(x):
    c, d = yota.fori(4, lambda i, c: (c[0], c[1] * c[0]), (x, np.ones(5)))
    return np.sum(c) + np.sum(d)


def kept_plain(x):
    d = np.ones(5)
    for _ in range(4):
        d = d * x
    return np.sum(x) + np.sum(d)


def number(a):
    return yota.while_loop(lambda x: np.abs(x * x - a) > 1e-13, lambda x: 0.5 * (x + a / x), a)


def number_plain(a):
    x = a
    while np.abs(x * x - a) > 1e-13:
        x = 0.5 * (x + a / x)
    return x


def single(x):
    c = np.float32(0.0)
    return np.sum(yota.scan(lambda c, v: (c + v * v, c * v), c, x)[1])


def single_plain(x):
    c, ys = np.float32(0.0), []
    for v in x:
        ys.append(c * v)
        c = c + v * v
    return np.sum(np.stack(ys))


def rotated(z):
    return np.sum(np.abs(yota.fori(3, lambda i, c: c * c + 0.1j * z, z)) ** 2)


def rotated_plain(z):
    c = z
    for _ in range(3):
        c = c * c + 0.1j * z
    return np.sum(np.abs(c) ** 2)


CASES = {
    "network": (network, network_plain, (W, X, U)),
    "closure": (closure, closure_plain, (W, X)),
    "chained": (chained, chained_plain, (X,)),
    "swapped": (swapped, swapped_plain, (X, U[0])),
    "written": (written, written_plain, (X,)),
    "nested": (nested, nested_plain, (X,)),
    "kept": (kept, kept_plain, (X,)),
    "number": (number, number_plain, (2.0,)),
    "single": (single, single_plain, (X.astype(np.float32),)),
    "rotated": (rotated, rotated_plain, (0.5 * X + 0.1j,)),
}


@pytest.mark.parametrize("name", CASES)
def test_values_have_the_bits_of_the_plain_loop(name):
    function, plain, args = CASES[name]
    wanted = plain(*args)
    value, tape = yota.trace(function, *args)
    for found in (function(*args), value, tape.play(*args)):
        assert np.array_equal(found, wanted)
        assert np.asarray(found).dtype == np.asarray(wanted).dtype
    assert tape.operations["loop"] == 1 + (name == "nested")
    strict, _ = yota.value_and_grad(function, strict=True)(*args)
    assert np.array_equal(strict, wanted)


IN_C = ("network", "chained", "nested", "number", "single")


@pytest.mark.parametrize(("name", "target"), [*((name, "numpy") for name in CASES), *((name, "c") for name in IN_C)])
def test_gradients_are_those_of_the_plain_loop(name, target):
    function, plain, args = CASES[name]
    value, found = yota.grad(function, *args, target=target)
    wanted_value, wanted = yota.grad(plain, *args)
    tolerance = 1e-5 if name == "single" else 1e-11
    np.testing.assert_allclose(value, wanted_value, rtol=tolerance)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


def test_gradient_agrees_with_complex_steps():
    step = 1e-30
    wanted = [network_plain(W, X + 1j * step * unit, U).imag / step for unit in np.eye(5)]
    np.testing.assert_allclose(yota.grad(network, W, X, U)[1][1], wanted, rtol=1e-12)


@pytest.mark.parametrize("name", ["nested", "chained"])
def test_second_derivatives(name):
    function, plain, args = CASES[name]
    np.testing.assert_allclose(yota.hessian(function)(*args), yota.hessian(plain)(*args), rtol=1e-9, atol=1e-9)
    direction = U[1]
    wanted = yota.hvp(plain)(*args, direction)
    np.testing.assert_allclose(yota.hvp(function)(*args, direction), wanted, rtol=1e-9, atol=1e-9)


def test_jacobian_and_directional_derivative():
    def last(x):
        return yota.fori(3, lambda i, c: np.sin(W @ c), x)

    def plain(x):
        return np.sin(W @ np.sin(W @ np.sin(W @ x)))

    wanted = yota.jacobian(plain)(X)
    np.testing.assert_allclose(yota.jacobian(last)(X), wanted, rtol=1e-11, atol=1e-14)
    _, tangent = yota.jvp(last, (X,), (U[0],))
    np.testing.assert_allclose(tangent, wanted @ U[0], rtol=1e-11)


@pytest.mark.parametrize("name", ["network", "chained", "nested", "swapped"])
def test_loops_over_many_points(name):
    function, plain, args = CASES[name]
    last = len(args) - 1
    points = np.stack([args[-1] * scale for scale in (1.0, 0.5, -0.3)])
    wanted = [plain(*args[:-1], point) for point in points]
    np.testing.assert_allclose(yota.batch(function, over=last)(*args[:-1], points), wanted, rtol=1e-12)
    wanted = [yota.gradient(plain, wrt=last)(*args[:-1], point) for point in points]
    slopes = yota.batch(yota.gradient(function, wrt=last), over=last)(*args[:-1], points)
    np.testing.assert_allclose(slopes, wanted, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("first", "wanted"), [(1.0, 4.0), (3.0, 6.0), (-1.0, 2.0)])
def test_carried_constants(first, wanted):
    def function(x):
        return yota.fori(4, lambda i, c: (c[0] + c[1] * x, 1.0), (0.0, first))[0]

    compiled = yota.value_and_grad(function)
    assert compiled(2.0) == (2 * wanted, wanted)
    carries = [op.keyword("region").carries for op in run(compiled.tape).ops if op.regions]
    assert carries[0] == 1 + (first != 1.0)


def test_carried_zeros_keep_their_sign():
    def function(x):
        return yota.fori(3, lambda i, c: (c[0] + np.copysign(x, c[1]), 0.0), (0.0, -0.0))[0]

    assert yota.value_and_grad(function)(2.0) == (2.0, 1.0)


def test_points_that_take_different_numbers_of_trips():
    points = np.array([2.0, 3.0, 100.0])
    np.testing.assert_allclose(yota.batch(number)(points), np.sqrt(points), rtol=1e-12)
    np.testing.assert_allclose(yota.batch(yota.gradient(number))(points), 0.5 / np.sqrt(points), rtol=1e-12)


@pytest.mark.parametrize("target", ["numpy", "c"])
def test_derivatives_of_loops_without_bound_in_batches(target):
    """What is batched is simplified, and differentiated after that."""

    def power(x, left):
        return yota.while_loop(lambda c: c[1] > 0.5, lambda c: (c[0] * c[0] * 0.7 + x, c[1] - 1.0), (x, left))[0]

    points = np.array([0.2, 0.3, 0.1])
    for many in (lambda p: yota.batch(power, over=0)(p, 4.0), lambda p: yota.batch(number)(p + 2.0)):
        slopes = yota.gradient(lambda p, many=many: np.sum(many(p)), target=target)(points)
        shifted = many(points + 1e-6), many(points - 1e-6)
        np.testing.assert_allclose(slopes, (shifted[0] - shifted[1]) / 2e-6, rtol=1e-8)


def test_one_tape_for_every_number_of_trips():
    slope = yota.value_and_grad(number)
    for a in (2.0, 3.0, 100.0, 0.01):
        np.testing.assert_allclose(slope(a), (np.sqrt(a), 0.5 / np.sqrt(a)), rtol=1e-12)


def doubled(x):
    return yota.while_loop(lambda c: c[1] > 0.5, lambda c: (c[0] * 1.5, c[1] - 1.0), (x, x))[0]


def test_more_trips_than_are_kept():
    slope = yota.value_and_grad(doubled, dynamic=False)
    assert slope(2.0)[1] == 1.5**2
    with pytest.raises(StaleTapeError, match="dynamic=True"):
        slope(500.0)
    again = yota.value_and_grad(doubled, dynamic=True)
    assert again(2.0)[1] == 1.5**2
    np.testing.assert_allclose(again(500.0)[1], 1.5**500)


def test_traced_number_of_trips():
    def counted(x, y):
        return yota.fori(np.sum(y > 0), lambda i, c: c * x, 1.0)

    slope = yota.value_and_grad(counted, dynamic=False)
    for count in (3, 5, 0):
        y = np.where(np.arange(6) < count, 1.0, -1.0)
        value, found = slope(1.1, y)
        np.testing.assert_allclose((value, found), (1.1**count, count * 1.1 ** (count - 1)), rtol=1e-12)


@pytest.mark.parametrize("target", ["numpy", "c"])
def test_traced_number_of_trips_beyond_the_room(target):
    def counted(x, n):
        return yota.fori(np.sum(n), lambda i, c: c * x, 1.0)

    slope = yota.value_and_grad(counted, target=target, dynamic=False)
    for count in (3, -2, 64):
        wanted = (1.1 ** max(count, 0), max(count, 0) * 1.1 ** (max(count, 0) - 1))
        np.testing.assert_allclose(slope(1.1, np.array([count])), wanted, rtol=1e-12)
    with pytest.raises(StaleTapeError, match="dynamic=True"):
        slope(1.1, np.array([65]))


@pytest.mark.parametrize("trips", [0, 1])
def test_few_trips(trips):
    def few(x):
        c, ys = yota.scan(lambda c, v: (c * v, np.sin(c)), 2.0, x)
        return c + np.sum(ys)

    x = np.full(trips, 3.0)
    value, (found,) = yota.grad(few, x)
    assert few(x) == value
    np.testing.assert_allclose(found, np.full(trips, 2.0))
    assert value == (2.0 if not trips else 6.0 + np.sin(2.0))


def test_structures_are_carried():
    def step(c, v):
        return {"place": c["place"] + v[0], "turns": (c["turns"][0] * v[1],)}, [c["place"], None]

    start = {"place": np.zeros(2), "turns": (1.0,)}
    found, ys = yota.scan(step, start, (U[:, :2], U[:, 0]))
    np.testing.assert_array_equal(found["place"], np.add.accumulate(U[:, :2])[-1])
    assert ys[0].shape == (7, 2)
    assert ys[1] is None
    value, tape = yota.trace(lambda u: yota.scan(step, start, (u[:, :2], u[:, 0]))[0]["turns"][0], U)
    assert value == found["turns"][0] == tape.play(U)


def test_arguments_are_not_shared_with_results():
    same = yota.trace(lambda x: yota.fori(3, lambda i, c: c, x), X)[1].compile("numpy")
    assert not np.shares_memory(same(X), X)


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (lambda x: yota.fori(3, lambda i, c: c[:-1], x), ArgumentError, r"carry from float64\[5\] to float64\[4\]"),
        (
            lambda x: yota.fori(3, lambda i, c: [c[0], c[1] * 1j], [x, x]),
            ArgumentError,
            r"carry\[1\] from float64.*complex",
        ),
        (
            lambda x: yota.fori(3, lambda i, c: (c, c), x),
            ArgumentError,
            r"given carry and returned carry\[0\], ",
        ),
        (lambda x: yota.scan(lambda c, v: c, 0.0, x), ArgumentError, "returns a pair"),
        (lambda x: yota.scan(lambda c, v: (c, v), 0.0, x, 3), ArgumentError, "they have 3, 5"),
        (lambda x: yota.fori(3, lambda i, c: c if c[0] > 0 else 2 * c, x), TracingError, r"np\.where"),
    ],
)
def test_refusals(function, error, message):
    with pytest.raises(error, match=message):
        yota.grad(lambda x: np.sum(function(x)), X)


def test_arrays_from_outside_are_not_written():
    def leaking(x):
        y = np.zeros(5)

        def body(i, c):
            y[0] = c[0]
            return c

        yota.fori(2, body, x)
        return np.sum(y)

    with pytest.raises(TracingError, match="Carry the array"):
        yota.grad(leaking, X)


def test_tapes_with_loops_are_shown_and_pickled():
    _, tape = yota.trace(chained, X)
    assert "region=<4 trips>" in str(tape)
    assert "      %" in str(tape)
    assert pickle.loads(pickle.dumps(tape)).play(X) == chained_plain(X)


def root(a):
    return yota.while_loop(lambda x: np.abs(x**3 - a) > 1e-12, lambda x: x - (x**3 - a) / (3 * x**2), a)


@needs_compiler
def test_one_thread_makes_all_trips_in_cuda():
    cases = [
        (network, (W, X, U)),
        (root, (2.0,)),
        (lambda x, k: np.sum(yota.fori(9, lambda i, c: c * x[i], k) * x), (np.ones(2000), 0.5)),
    ]
    tapes = [yota.grad(function, *args)[1].tape for function, args in cases]
    for (function, args), call in zip(cases, load([cuda.generate(run(tape)) for tape in tapes]), strict=True):
        value, gradient = yota.value_and_grad(function, wrt=tuple(range(len(args))))(*args)
        for one, other in zip(call(*args), (value, *gradient), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)
        assert len(call.record) < 8
    _, tape = yota.trace(lambda x: yota.fori(9, lambda i, c: np.sin(c), x), np.ones(2000))
    with pytest.raises(CodegenError, match="too many for one thread"):
        cuda.generate(tape)


def test_size_of_code_does_not_depend_on_trips():
    def many(n):
        return yota.trace(lambda x: np.sum(yota.fori(n, lambda i, c: c + 0.001 * np.sin(c), x)), X)[1]

    assert len(many(10)) == len(many(2000))


@pytest.mark.parametrize("function, plain, args", [(network, network_plain, (W, X, U)), (chained, chained_plain, (X,))])
def test_written_modules_have_the_loops(function, plain, args):
    text = str(yota.generate(function, args, effort="quick"))
    assert "import yota" not in text and f"_{function.__name__}_trip(" in text
    module = loaded(text)
    value, gradient = getattr(module, f"{function.__name__}_value_and_gradient")(*args)
    assert value == plain(*args)
    v = RNG.normal(size=args[0].shape)
    slope = plain(args[0] + 1e-20j * v, *args[1:]).imag / 1e-20
    np.testing.assert_allclose(np.sum((gradient.w if len(args) > 1 else gradient) * v), slope, rtol=1e-12)


def test_whole_numbers_wrap_around_as_numpys_do():
    def powers(k):
        return yota.fori(70, lambda i, c: c * 3, k)

    with np.errstate(over="ignore"):
        expected = powers(np.int64(5))
    assert yota.compile(yota.trace(powers, np.int64(5))[1])(np.int64(5)) == expected < 0


@pytest.mark.parametrize("target", ["numpy", "c"])
def test_no_trips_and_rows_that_are_constants(target):
    def none(a):
        return np.sum(np.cos(yota.fori(0, lambda i, c: c * a + i, a)))

    np.testing.assert_allclose(yota.grad(none, X, target=target)[1][0], -np.sin(X), rtol=1e-14)
    _, tape = yota.trace(lambda a: yota.scan(lambda s, x: (s + x, True), a[0], a)[1], X)
    found = yota.compile(tape, target)(X)
    assert found.dtype == bool and list(found) == [True] * len(X)


def in_place(x):
    start = x[:3] * 1.0

    def body(i, c):
        c[i] = np.sin(c[i - 1]) * x[i]
        return c

    def doubled(c):
        c[0] = c[0] * 2
        return c

    def step(c, row):
        c += row
        row *= 2
        return c, c

    rows = x.reshape(-1, 1) * 1.0
    last, stacked = yota.scan(step, start, rows)
    bounded = yota.while_loop(lambda c: c[0] < 5, doubled, start)
    return np.sum(yota.fori(3, body, start) * start) + np.sum(last * stacked * rows[0]) + np.sum(bounded)


def at_the_outer_trip(x):
    return yota.fori(3, lambda i, c: yota.fori(i, lambda j, d: 0.9 * d + np.sin(x[i] * x[j + 1]), c) + x[i], 0.1)


@pytest.mark.parametrize("function", [in_place, at_the_outer_trip])
def test_against_differences(function):
    x = np.array([0.7, 0.4, 0.9, 0.2])
    kept = x.copy()
    value, gradient = yota.value_and_grad(function)(x)
    assert value == pytest.approx(function(x), rel=1e-14)
    np.testing.assert_array_equal(x, kept)
    slopes = [(function(x + h) - function(x - h)) / 2e-6 for h in 1e-6 * np.eye(4)]
    np.testing.assert_allclose(gradient, slopes, rtol=1e-7)


@pytest.mark.parametrize("target", ["numpy", "c"])
def test_more_trips_of_an_inner_loop_than_there_is_room_for(target):
    def f(x):
        return yota.fori(6, lambda i, c: yota.fori(20 * i, lambda j, d: 0.99 * d + np.sin(x * d), c) + x, 0.1)

    with pytest.raises(StaleTapeError):
        yota.value_and_grad(f, target=target)(0.3)


def test_generated_derivatives_refuse_more_trips_than_there_is_room_for():
    def root(a):
        return yota.while_loop(lambda x: x < 1.0, lambda x: x + a, a)

    found = {"__name__": "root"}
    exec(str(yota.generate(root, [0.5], effort="quick")), found)
    assert found["root_gradient"](0.5) == 2
    with pytest.raises(ValueError, match="this code holds only"):
        found["root_gradient"](0.001)


_POSITIONS = {
    "ahead": lambda i, n: i + 1,
    "behind": lambda i, n: i + 1 - 1,
    "backwards": lambda i, n: n - 1 - i,
    "from the end": lambda i, n: -i - 1,
    "every second": lambda i, n: 2 * i,
    "every second from the end": lambda i, n: 2 * (n // 2 - 1 - i),
    "first before the array": lambda i, n: i - 1,
    "the same": lambda i, n: 0 * i + 3,
}


@pytest.mark.parametrize("target", ["numpy", "c"])
@pytest.mark.parametrize("position", _POSITIONS)
def test_elements_at_positions_that_move_with_the_trips(position, target):
    x = np.linspace(0.5, 1.5, 40) ** 2
    place = _POSITIONS[position]

    def total(x):
        return yota.fori(20, lambda i, s: s * 0.9 + x[place(i, len(x))] ** 2 * (i + 1), 0.0)

    value, gradient = yota.value_and_grad(total, target=target)(x)
    assert value == pytest.approx(total(x), rel=1e-14)
    steps = 1e-20j * np.eye(40)
    np.testing.assert_allclose(gradient, [total(x + step).imag / 1e-20 for step in steps], rtol=1e-13)


def test_positions_beyond_the_array_are_refused():
    with pytest.raises(IndexError, match="40"):
        yota.gradient(lambda x: yota.fori(20, lambda i, s: s + x[2 * i + 5], 0.0))(np.ones(40))


@pytest.mark.parametrize("target", ["numpy", "c"])
def test_long_loops_run_as_generated_code_while_they_are_recorded(target):
    rows = np.linspace(0.1, 1.0, 30_000)

    def path(x):
        end, places = yota.scan(lambda c, v: (0.999 * c + x[0] * v, c * x[1]), x[2], rows)
        return end + np.sum(places)

    x = np.array([0.3, 0.2, 0.1])
    value, gradient = yota.value_and_grad(path, target=target)(x)
    assert value == pytest.approx(path(x), rel=1e-12)
    steps = 1e-20j * np.eye(3)
    np.testing.assert_allclose(gradient, [path(x + step).imag / 1e-20 for step in steps], rtol=1e-12)


def test_compiled_trips_sort_and_read_tables():
    table = np.array([3, 1, 0, 2])

    def function(x, y, trips=7):
        def step(trip, c):
            a, total = c
            a = 0.5 * np.sort(a)[table] + 0.3 * np.roll(a, 1) + 0.01 * y * np.sin(x)
            return a, total + a[np.argmax(a)] * trip

        a, total = yota.fori(trips, step, (x, 0.0))
        return total + np.sum(a)

    x, y = RNG.normal(size=(2, 4))
    code = yota.value_and_grad(function, target="c")
    assert yota.gradcheck(function, x, y)
    for found, expected in zip(code(x, y), yota.value_and_grad(function, target="numpy")(x, y), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-14)
    assert "sorted_places" in code.source


def _delayed(c, u):
    """Arrays that others take over, one trip later, two, and in turn; one that stays; one that starts as zeros."""
    now, before, earlier, left, right, still, total = c
    new = np.sin(now) + 0.3 * before * np.roll(earlier, 2) + u[0] * left
    return (new, now, before, right, left, still, total + new * still * right), (before, now * left)


def _delay(x, u, trips):
    start = (x, x[::-1] * 2, x * x, x + 1, x - 1, np.cos(x), np.zeros_like(x))
    c, (rows, more) = yota.scan(_delayed, start, u[:trips]) if trips else (start, (x, x))
    return sum(np.sum(w * each) for w, each in zip(range(2, 9), c, strict=True)) + np.sum(rows * 0.5) + np.sum(more**2)


def _delay_plain(x, u, trips):
    c, rows = (x, x[::-1] * 2, x * x, x + 1, x - 1, np.cos(x), np.zeros_like(x)), []
    for v in u[:trips]:
        c, row = _delayed(c, v)
        rows.append(row)
    value = sum(np.sum(w * each) for w, each in zip(range(2, 9), c, strict=True))
    return value + sum(np.sum(one * 0.5) + np.sum(other**2) for one, other in rows)


@pytest.mark.parametrize("trips", [1, 2, 3, 4, 5, 7])
def test_carried_arrays_that_take_over_others(trips):
    x = np.linspace(-1, 1, 20)
    value, tape = yota.trace(lambda x: _delay(x, U, trips), x)
    plain = _delay_plain(x, U, trips)
    np.testing.assert_allclose([value, yota.compile(tape, target="c")(x)], plain, rtol=1e-13)
    value, slope = yota.value_and_grad(lambda x: _delay(x, U, trips), target="c")(x)
    steps = [_delay_plain(x + 1e-30j * unit, U, trips).imag / 1e-30 for unit in np.eye(20)]
    np.testing.assert_allclose(value, plain, rtol=1e-13)
    np.testing.assert_allclose(slope, steps, rtol=1e-11)
