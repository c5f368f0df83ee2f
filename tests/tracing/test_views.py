"""Writing into traced arrays and through views of them does what NumPy does, and never touches the caller's arrays."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import yota
from tests.tracing.checking import without_source
from yota import errors

WRITES = [
    lambda y: y.__setitem__(0, 3.0),
    lambda y: y.__setitem__((slice(None), 1), y[:, 0] * 2),
    lambda y: y.T.__setitem__((0, 1), 7.0),
    lambda y: y[1:].__setitem__((slice(None), 0), y[0, 0]),
    lambda y: y.reshape(-1).__setitem__(slice(None, None, 3), 1.0),
    lambda y: y[::-1].__setitem__(0, y[0] + 1),
    lambda y: y.__setitem__(([0, 1, 0], [0, 1, 0]), np.array([5.0, 6.0, 7.0])),
    lambda y: y.__setitem__(y > 2.0, 0.5),
    lambda y: y.__iadd__(y),
    lambda y: y[0].__imul__(y[1]),
    lambda y: np.add(y, 1.0, out=y),
    lambda y: np.multiply(y[0], 2.0, out=y[0]),
    lambda y: np.add.at(y, ([0, 0, 1], [1, 1, 2]), 1.0),
    lambda y: np.copyto(y[1], y[0]),
    lambda y: y.swapaxes(0, 1)[2].fill(4.0),
    lambda y: np.squeeze(y[None]).__setitem__((1, 1), -1.0),
    lambda y: y.ravel().__setitem__(2, 9.0),
    lambda y: y.flatten().__setitem__(2, 9.0),
    lambda y: y.copy().__setitem__(0, 9.0),
    lambda y: np.reshape(y.T, (-1,)).__setitem__(0, 11.0),
    lambda y: y.__setitem__(..., y * y),
    lambda y: y[..., 0].__isub__(1.0),
    lambda y: np.negative(y, where=y > 1.0, out=y),
    lambda y: np.asarray(y).__setitem__(1, 2.5),
]


@settings(max_examples=60)
@given(st.lists(st.sampled_from(range(len(WRITES))), min_size=1, max_size=4))
def test_writes_agree_with_numpy(order):
    start = np.array([[0.5, 1.5, 2.5], [3.5, 4.5, 5.5]])

    def f(x):
        y = x * 1.0
        kept = y[0]
        for position in order:
            WRITES[position](y)
        return np.stack([y.reshape(-1)[:3], y.reshape(-1)[3:], kept])

    value, tape = yota.trace(f, start)
    expected = f(start)
    np.testing.assert_array_equal(value, expected)
    np.testing.assert_array_equal(tape.play(start), expected)


@pytest.mark.parametrize("position", range(len(WRITES)))
def test_the_adjoint_of_each_write(position):
    start = np.array([[0.5, 1.5, 2.5], [3.5, 4.5, 5.5]])
    weights = np.arange(1.0, 7.0).reshape(2, 3)

    def f(x):
        y = x * 1.0
        WRITES[position](y)
        return np.sum(y * y * weights)

    assert yota.gradcheck(f, start)


def test_an_argument_that_is_written_to_stays_as_it_was():
    x = np.ones((2, 2))

    def f(x):
        x[0] = 5.0
        x += 1
        return np.sum(x * x)

    _, g = yota.grad(f, x)
    np.testing.assert_array_equal(x, np.ones((2, 2)))
    np.testing.assert_array_equal(g[0], [[0.0, 0.0], [4.0, 4.0]])


def test_numpys_errors_come_through():
    def wrong(action):
        def f(x):
            y = np.zeros((2, 3))
            action(y, x)
            return np.sum(y)

        return f

    x = np.ones(4)
    with pytest.raises(ValueError, match="broadcast"):
        yota.grad(wrong(lambda y, x: y.__setitem__(0, x)), x)
    with pytest.raises(IndexError, match="out of bounds"):
        yota.grad(wrong(lambda y, x: y.__setitem__(5, x[0])), x)
    with pytest.raises(IndexError, match="too many indices"):
        yota.grad(wrong(lambda y, x: y.__setitem__((0, 0, 0), x[0])), x)
    with pytest.raises(TypeError, match="item assignment"):
        yota.grad(lambda x: operator.setitem(x[0], 0, 1.0), x)


def _written_diagonal(x):
    y = x * 1.0
    np.einsum("ii->i", y)[...] = x[0] * 2
    return np.sum(y * x)


def _read_diagonal(x):
    y = x * 1.0
    d = np.diagonal(y)
    y[0, 0] = 5 * x[1, 1]
    return np.sum(d * d)


def _windows(x):
    y = x[0] * 1.0
    windows = np.lib.stride_tricks.sliding_window_view(y, 3)
    y[2] = x[1, 1]
    return np.sum(windows * windows)


def _selected_windows(x):
    y = x[0] * 1.0
    windows = np.lib.stride_tricks.sliding_window_view(y, 2)
    some, last, planes = windows[::3], windows[..., -2:, :], np.lib.stride_tricks.sliding_window_view(x, (2, 3))
    y[3] = x[1, 1]
    total = np.sum(some**2) + np.sum(np.sin(last)) + np.sum(windows[1, ::-1] * last[1]) + len(windows) * x[2, 2]
    return total + np.sum(planes[::2, 1:] ** 2) + np.sum(planes[..., 1] ** 3) + np.sum(some.reshape(-1) * x[4, :4])


def _resized(x):
    longer, shorter, matrix = x[0] ** 2, np.sin(x[1]), x * 1.0
    longer.resize(7)
    longer[6] = x[2, 2] * 3
    shorter.resize((1, 2))
    matrix.resize(4, 8, refcheck=False)
    return np.sum(longer * np.arange(7.0)) + np.sum(shorter) + np.sum(matrix**3 * np.arange(32.0).reshape(4, 8))


def _turned(x):
    y = x * 1.0
    np.einsum("ij->ji", y)[0] = x[1]
    return np.sum(y * x)


def _diagonals_of_a_stack(x):
    y = np.stack([x, 2 * x])
    v = np.einsum("kii->ik", y)
    v *= 3
    y[:, 0] += 1.0
    return np.sum(y * y) + np.sum(v * v) + np.sum(np.diag(y[0]))


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(
    "f", [_written_diagonal, _read_diagonal, _windows, _selected_windows, _resized, _turned, _diagonals_of_a_stack]
)
def test_views_by_several_ops_follow_writes(f, strict):
    x = np.random.default_rng(0).normal(size=(5, 5))
    value, gradient = yota.value_and_grad(f, strict=strict)(x)
    np.testing.assert_allclose(value, f(x), rtol=1e-13)
    step = 1e-6
    expected = [
        (f(x + step * unit.reshape(5, 5)) - f(x - step * unit.reshape(5, 5))) / (2 * step) for unit in np.eye(25)
    ]
    np.testing.assert_allclose(gradient.ravel(), expected, atol=1e-7)


def test_what_is_shared_is_not_resized():
    def of_argument(x):
        x.resize(2)
        return np.sum(x)

    def of_viewed(x):
        y = x * 1.0
        view = y[1:]
        y.resize(2)
        return np.sum(view)

    def of_view(x):
        view = (x * 1.0)[1:]
        view.resize(1)
        return np.sum(view)

    for f in (of_argument, of_viewed, of_view):
        x = np.arange(5.0)
        with pytest.raises(ValueError, match="cannot resize"):
            f(x)
        with pytest.raises(ValueError, match="cannot resize"):
            yota.grad(f, x)


def test_windows_that_slices_leave_out_are_not_made():
    _, tape = yota.trace(lambda x: np.sum(np.lib.stride_tricks.sliding_window_view(x, 50)[::50]), np.arange(1000.0))
    assert max(type_.size for type_ in tape.types.values()) == 1000


def test_what_overlaps_itself_is_not_written_through():
    def f(x):
        y = x * 1.0
        np.lib.stride_tricks.sliding_window_view(y, 3, writeable=True)[...] = x[0]
        return np.sum(y)

    with pytest.raises(yota.errors.TracingError, match="Write into the array itself"):
        yota.grad(f, np.arange(5.0))


def _through_a_reshape(x):
    y = x.copy("K")
    y.reshape(-1)[1] = 5 * x[0, 0]
    return np.sum(y * y * x)


def _behind_a_reshape(x):
    y = x * 1.0
    z = np.ravel(y)
    y[0] = 2.0
    return np.sum(z**3)


def _kept_order(x):
    y = x.T.copy("F").T
    y += x
    z = y.reshape(-1)
    y[0] = 2.0
    return np.sum(z**3)


def _asks(x):
    return np.sum(x) if x.flags.c_contiguous else np.sum(2 * x)


def _a_row_that_is_raveled(x):
    y = x[:, 1]
    np.ravel(y)[0] = 3.0
    return np.sum(x**3)


def _contiguous(x):
    y = np.ascontiguousarray(x)
    y[0] = 2.0
    return np.sum(x**3) + np.sum(y)


def _part_of_rows(x):
    y = x * 1.0
    part = y[:, :2]
    part += 1.0
    part.reshape(-1)[0] = 3.0
    return np.sum(y**3)


def _written_argument(x):
    x[0] = 1.0
    x.reshape(-1)[1] = 5.0
    return np.sum(x**3)


_ORDERED = [
    *(_through_a_reshape, _behind_a_reshape, _kept_order, _asks, _a_row_that_is_raveled, _contiguous, _part_of_rows),
    _written_argument,
]


def _lying_as(x, by=0.0):
    """``x + by`` with the strides of ``x``: sums with what lies in order keep neither strides nor slices."""
    found = np.lib.stride_tricks.as_strided(np.zeros(64), x.shape, x.strides)
    found[...] = x + by
    return found


@pytest.mark.parametrize(
    "f, strict, target",
    [(f, strict, "numpy") for f in _ORDERED for strict in (False, True)] + [(_through_a_reshape, False, "c")],
)
def test_views_by_memory_order(f, strict, target):
    """Whether a reshape is a view or a copy is decided for each order in memory anew."""
    x = np.random.default_rng(0).normal(size=(4, 3))
    form = yota.value_and_grad(f, strict=strict, target=target)
    for argument in (x, np.asfortranarray(x), np.repeat(x, 2, 1)[:, ::2], x.T.copy().T, x):
        value, gradient = form(argument)
        np.testing.assert_allclose(value, f(_lying_as(argument)), rtol=1e-13)
        for place in np.ndindex(x.shape):
            moved = np.zeros_like(argument)
            moved[place] = 1e-6
            ahead, behind = _lying_as(argument, moved), _lying_as(argument, -moved)
            np.testing.assert_allclose(gradient[place], (f(ahead) - f(behind)) / 2e-6, atol=1e-7)


def test_a_compiled_tape_knows_the_order_of_its_argument():
    x = np.random.default_rng(0).normal(size=(4, 3))
    compiled = yota.compile(yota.trace(_through_a_reshape, x)[1])
    assert compiled(x) == _through_a_reshape(x)
    with pytest.raises(yota.errors.StaleTapeError, match="ascontiguousarray"):
        compiled(np.asfortranarray(x))


def test_parts_of_complex_arrays_are_written():
    def function(z, v):
        z = z.copy()
        z.real = v
        z.imag[1:] *= 2
        z.real.sort()
        return z

    z = np.array([1 + 2j, complex(np.inf, -np.inf), complex(1, np.nan)])
    v = np.array([3.0, -1.0, 0.5])
    assert np.array_equal(yota.trace(function, z, v)[0], function(z, v), equal_nan=True)
    assert yota.gradcheck(lambda z, v: np.sum(np.real(function(z, v) * (1 - 2j)) * v), np.array([1j, 2 + 1j, 3]), v)
    with pytest.raises(TypeError, match="does not have imaginary part"):
        yota.trace(lambda v: setattr(v.copy(), "imag", 1.0), v)


def eliminated(A, b):
    """Solves by elimination; the pivot may stand in its row already."""
    A, b, n = A.copy(), np.copy(b), len(b)
    for k in range(n - 1):
        p = k + np.argmax(np.abs(A[k:, k]))
        A[[k, p]] = A[[p, k]]
        b[[k, p]] = b[[p, k]]
        for i in range(k + 1, n):
            factor = A[i, k] / A[k, k]
            A[i, k:] -= factor * A[k, k:]
            b[i] -= factor * b[k]
    x = np.zeros(n)
    for i in range(n)[::-1]:
        x[i] = (b[i] - A[i, i + 1 :] @ x[i + 1 :]) / A[i, i]
    return x


def test_rows_are_exchanged_at_traced_positions():
    rng = np.random.default_rng(0)
    fg = yota.value_and_grad(lambda A, b: np.sum(eliminated(A, b) ** 2), wrt=(0, 1), dynamic=True)
    for _ in range(12):
        A, b = rng.normal(size=(3, 3)), rng.normal(size=3)
        value, (dA, db) = fg(A, b)
        x = np.linalg.solve(A, b)
        np.testing.assert_allclose(value, x @ x, rtol=1e-9)
        slope = np.linalg.solve(A.T, 2 * x)
        np.testing.assert_allclose(db, slope, rtol=1e-8)
        np.testing.assert_allclose(dA, -np.outer(slope, x), rtol=1e-8)


def test_the_last_value_stays_at_traced_positions():
    def f(x, v):
        y = x * 0
        y[np.argsort(x) // 2] = v
        return np.sum(y * np.arange(1.0, 5.0))

    x, v = np.array([0.3, 0.1, 0.4, 0.2]), np.array([1.0, 2.0, 3.0, 4.0])
    value, g = yota.grad(f, x, v)
    assert value == f(x, v)
    assert yota.gradcheck(f, x, v) and np.count_nonzero(g[1]) == 2
    tape = yota.trace(f, x, v)[1]
    assert yota.play(tape, x * 2, v) == value
    # Of other equal places the last value stays too.
    for other in (np.sort(x), x[::-1]):
        assert yota.play(tape, other, v) == f(other, v)


def test_whole_numbers_index_plain_arrays():
    plain = np.arange(4.0)
    f = lambda x: np.sum(plain[[0, np.argmax(x)]] * x[:2])
    x = np.array([0.1, 0.4, 0.9, 0.2])
    assert yota.grad(f, x)[0] == f(x) and yota.gradcheck(f, x)
    assert yota.gradcheck(lambda x: np.sum(plain[np.argsort(x)] * x), x)
    with pytest.raises(errors.TracingError, match=r"np\.asarray\(a\)\[i\]"):
        yota.grad(without_source("lambda x: np.sum(plain[np.argsort(x)] * x)", plain=plain), x)
    assert yota.gradcheck(lambda x: np.sum(np.asarray(plain)[np.argsort(x)] * x), x)
    assert yota.gradcheck(yota.interpreted(lambda x: np.sum(plain[np.argsort(x)] * x) + np.sum(plain[x > 0.3])), x)


def test_a_view_is_not_written_back_to_where_it_is():
    def f(x):
        y = x * 1.0
        y[1:3] += 1.0
        y[0] *= y[1]
        return np.sum(y * y)

    _, tape = yota.trace(f, np.arange(4.0))
    assert [op.name for op in tape.ops].count("setitem") == 2

    def another_view(x):
        y = x * 1.0
        part = y[1:3]
        y[2] = 7.0
        y[1:3] = part * 2.0
        y[0:2] = part
        return np.sum(y * y)

    x = np.arange(4.0)
    assert yota.value_and_grad(another_view)(x)[0] == another_view(x)


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.complex128])
@pytest.mark.parametrize("target", ["numpy", "c"])
def test_the_last_of_several_values_at_one_traced_place_stays(kind: Any, target: str) -> None:
    """Whichever places are the same: no other ones than when the function was traced are an error."""

    def put(x: Any, y: Any, rows: Any, columns: Any) -> Any:
        z = y * 1
        z[rows, columns] = x
        return np.sum(np.abs(z) ** 2 * np.arange(1, 13).reshape(3, 4))

    random, weights = np.random.default_rng(0), np.arange(1, 13).reshape(3, 4)
    both = yota.value_and_grad(put, wrt=(0, 1), target=target)
    # Where the first has equal places, others have other ones, or none.
    for rows, columns in (
        ([[1], [1]], [[0, 1], [1, 3]]),
        ([[0], [2]], [[0, 1], [2, 3]]),
        ([[2], [2]], [[3, 3], [3, 3]]),
        ([[0], [0]], [[2, 1], [1, 2]]),
    ):
        places = np.array(rows), np.array(columns)
        x, y = random.normal(size=(2, 2)).astype(kind), random.normal(size=(3, 4)).astype(kind)
        written = y.copy()
        written[places] = x
        slopes, by = 2 * written * weights, np.zeros((2, 2), kind)
        last = {(int(rows[k][0]), columns[k][n]): (k, n) for k in range(2) for n in range(2)}
        for where, number in last.items():
            by[number], slopes[where] = slopes[where], 0
        value, (by_x, by_y) = both(x, y, *places)
        np.testing.assert_allclose(value, np.sum(np.abs(written) ** 2 * weights), rtol=1e-5)
        np.testing.assert_allclose(by_x, by, rtol=1e-5)
        np.testing.assert_allclose(by_y, slopes, rtol=1e-5)


def test_a_copy_is_no_view():
    def f(y):
        kept = [np.take(y, -1, axis=-1), y.reshape(-1, copy=True), np.meshgrid(y[0], y[1])[0], np.copy(y.T).ravel()]
        for each in kept:
            each[0] = 9.0
        y[0] = 2.0
        spread = np.repeat(y[:1, 0], 5)
        spread[2] = 0.0
        return np.sum(y**2) + sum(np.sum(each**3) for each in kept) + np.sum(spread**2)

    x = np.random.default_rng(0).normal(size=(3, 4))
    for target in ("numpy", "c"):
        value, gradient = yota.value_and_grad(f, target=target)(x)
        np.testing.assert_allclose(value, f(x.copy()), rtol=1e-13)
        expected = [f(x + 1e-30j * unit.reshape(3, 4)).imag / 1e-30 for unit in np.eye(12)]
        np.testing.assert_allclose(gradient.ravel(), expected, rtol=1e-13)


def test_views_outlive_another_shape_of_their_array():
    def f(x):
        y = x * 1.0
        row = y[0]
        y.shape = (6,)
        y[0] = 5.0
        row[1] = 7.0
        return np.concatenate([row, y])

    x = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(yota.trace(f, x)[0], f(x))
    np.testing.assert_array_equal(yota.play(yota.trace(f, x)[1], x + 1), f(x + 1))


@pytest.mark.parametrize(
    "made",
    [
        lambda y: np.lib.stride_tricks.as_strided(y, (3, 2), (16, 24)),
        lambda y: np.lib.stride_tricks.as_strided(y, (4, 3), (8, 8)),
        lambda y: np.lib.stride_tricks.as_strided(y, (4, 3), (8, 32)),
        lambda y: np.lib.stride_tricks.sliding_window_view(y, 3),
    ],
)
def test_reshaped_views_by_strides_are_copies_where_numpys_are(made):
    def late(y):
        y = y.copy()
        found = made(y)
        flat, turned = found.reshape(-1), found.T.reshape(-1)
        y[...] = 2 * y + 1
        return y * 1, found * 1, flat * 1, turned * 1

    x = np.arange(24.0)
    for one, other in zip(yota.trace(late, x)[0], late(x), strict=True):
        np.testing.assert_array_equal(one, other)


def test_windows_that_are_sliced_later_are_not_all_made():
    def f(x):
        every = np.lib.stride_tricks.sliding_window_view(x, 100)
        some = every[::50]
        return float(x[0]) * np.sum(some**2)

    x = np.sin(np.arange(2000.0) + 1)
    tape = yota.itrace(f, x)[1]
    assert max(tape.types[op.result].size for op in tape.ops) <= 100 * 39
    assert yota.gradcheck(f, x, directions=1)
