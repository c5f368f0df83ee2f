"""Python loops over a size with a name: one loop in the code for all sizes."""

from __future__ import annotations

import numpy as np
import pytest

import yota
from tests.emit.compiled import needs_compiler
from tests.package.test_c import COMPILERS, built
from tests.package.test_sizes import looping
from tests.package.test_sizes_in_c import called
from yota.errors import ArgumentError, YotaError


def chained(x):
    return sum(100 * (x[i - 1] ** 2 - x[i]) ** 2 + (x[i - 1] - 1) ** 2 for i in range(1, len(x)))


def squares(x):
    total = 0.0
    for each in x:
        total += each * each
    return total


def differences(x):
    total = 0.0
    for i in range(2, len(x) - 2):
        total += (x[i - 2] - 2 * x[i] + x[i + 2]) ** 2
    return total


def filtered(x):
    y = np.zeros(len(x))
    y[0] = x[0]
    for i in range(1, len(x)):
        y[i] = 0.9 * y[i - 1] + np.sin(x[i])
    return np.sum(y**2)


def backwards(x):
    total = x[-1]
    for i in range(len(x) - 2, -1, -1):
        total = 0.7 * total + x[i] ** 2
    return total


def listed(x):
    return np.sum(np.array([x[i] * i for i in range(len(x))]) ** 2)


def pairwise(x):
    total = 0.0
    for i in range(len(x)):
        for j in range(i):
            total += 1 / (1 + (x[i] - x[j]) ** 2)
    return total


def marked(x):
    """One trip is not like the others."""
    total = x[0]
    for i in range(len(x)):
        total = total * 1.01 + 0.1 * np.sin(x[i])
        if i == 7:
            total = total * 2
    return total


def scanned(x):
    def step(carry, row):
        carry = carry + 0.1 * np.sin(carry) * row
        return carry, carry**2

    carry, rows = yota.scan(step, x[0], x)
    return carry + np.sum(rows)


def stepped(x):
    return yota.fori(len(x), lambda i, state: state + 0.1 * np.cos(state) * x[i], x[0] * 2)


def windows(x):
    total = x[0]
    for i in range(len(x) - 2):
        total += np.sum(x[i : i + 3] * np.array([0.2, 0.3, 0.5])) ** 2
    return total


def curved(x):
    total = 0.0
    for i in range(len(x)):
        total += (i * i + 3 * i + 1) * x[i] + i / len(x) * x[i] ** 2 + x[i] * ((i + 1) / (2 * len(x)))
    return total


FUNCTIONS = [
    windows,
    curved,
    chained,
    squares,
    differences,
    filtered,
    backwards,
    listed,
    pairwise,
    marked,
    scanned,
    stepped,
]


def slopes(f, x):
    """Derivatives by complex steps."""
    steps = x + 1e-30j * np.eye(len(x))
    return np.array([complex(f(each)).imag / 1e-30 for each in steps])


def complex_filtered(x):
    y = [x[0]]
    for i in range(1, len(x)):
        y.append(0.9 * y[-1] + np.sin(x[i]))
    return sum(each**2 for each in y)


@pytest.mark.parametrize("f", FUNCTIONS)
def test_one_code_for_all_sizes(f):
    found = yota.value_and_grad(f, args={"x": "float64[N]"})
    assert "for " in found.source or f in (squares, chained, differences, listed)
    least = {marked: 8, differences: 4, backwards: 2, windows: 2}.get(f, 1)
    for n in (1, 2, 3, 4, 5, 8, 9, 14, 40, 150):
        x = np.random.default_rng(n).uniform(0.2, 0.9, n)
        if n < least:
            with pytest.raises(ValueError, match=f"N >= {least}"):
                found(x)
            continue
        value, gradient = found(x)
        np.testing.assert_allclose(value, f(x), rtol=1e-12)
        plain = complex_filtered if f is filtered else f
        np.testing.assert_allclose(gradient, slopes(plain, x), rtol=1e-10, atol=1e-12)


def branching(x):
    total = 0.0
    for each in x:
        total += each * each
    return total if len(x) < 9 else total * 2


def halved(x):
    total = x[0]
    while len(x) > 1:
        x = x[: len(x) // 2] * 1.1
        total = total + x[0]
    return total


@pytest.mark.parametrize("f", [branching, looping, halved])
def test_loops_that_are_another_at_other_sizes_are_refused(f):
    with pytest.raises((ArgumentError, YotaError), match="N"):
        yota.value_and_grad(f, args={"x": "float64[N]"})


def shared(x):
    total = 0.0
    for i in range(len(x)):
        total += x[i] ** 2 / len(x)
    return total


def test_a_number_in_a_loop_that_changes_with_the_size_is_named():
    with pytest.raises(ArgumentError, match=r"reads the number \d+, which is N. Take it out of the loop"):
        yota.value_and_grad(shared, args={"x": "float64[N]"})


@pytest.mark.parametrize("f", [chained, filtered])
def test_modules_have_the_loop(f):
    (module,) = yota.generate(f, {"x": "float64[N]"}, effort="quick").files.values()
    space: dict[str, object] = {}
    exec(compile(module, "<module>", "exec"), space)
    x = np.linspace(0.2, 0.9, 30)
    plain = complex_filtered if f is filtered else f
    value, gradient = space[f"{f.__name__}_value_and_gradient"](x)
    np.testing.assert_allclose(value, f(x), rtol=1e-12)
    np.testing.assert_allclose(gradient, slopes(plain, x), rtol=1e-10)


def states(x, k):
    """Trips carry an array whose length is another size."""
    for i in range(len(k)):
        x = x + 0.1 * np.sin(x) * k[i]
    return np.sum(x)


def heated(x):
    for _ in range(60):
        x = np.concatenate([x[:1], x[1:-1] + 0.2 * (x[2:] - 2 * x[1:-1] + x[:-2]), x[-1:]])
    return np.sum(x**2)


def peeled(x):
    """A loop whose steps call a function of the file."""
    total = 0.0
    for _ in range(50):
        total = total + x[np.argmax(x)] ** 2
        x = 0.99 * x + 0.01 * np.roll(x, 1)
    return total


def test_long_loops_stay_loops_beside_a_named_size():
    for f, least in ((heated, 2), (states_of_steps, 1)):
        found = yota.value_and_grad(f, args={"x": "float64[N]"})
        assert found.source.count("\n") < 200
        for n in (1, 2, 3, 4, 9, 40, 150):
            x = np.random.default_rng(n).uniform(0.2, 0.9, n)
            if n < least:
                continue
            value, gradient = found(x)
            np.testing.assert_allclose(value, f(x), rtol=1e-11)
            np.testing.assert_allclose(gradient, slopes(f, x), rtol=1e-9, atol=1e-12)


def states_of_steps(x):
    for k in range(150):
        x = x + 0.001 * np.sin(x) * (k % 3) - 0.002 * np.sum(x) / 7
    return np.sum(x * np.arange(len(x)))


C_FUNCTIONS = [
    *((f, 1) for f in (windows, chained, squares, differences, backwards, marked, scanned, stepped, filtered, heated)),
    (peeled, 1),
    (states_of_steps, 1),
    (states, 2),
]


@needs_compiler
@pytest.mark.parametrize(("f", "count"), C_FUNCTIONS, ids=lambda case: getattr(case, "__name__", ""))
def test_c_files_have_the_loop(f, count, tmp_path):
    names = ("x", "k")[:count]
    sizes = ("N", "M")[:count]
    specs = {name: f"float64[{size}]" for name, size in zip(names, sizes, strict=True)}
    library = built(yota.generate(f, specs, target="c", effort="quick"), tmp_path, COMPILERS[-1])
    for n in (1, 2, 3, 9, 40, 500):
        args = [np.random.default_rng(n + place).uniform(0.2, 0.9, n + place) for place in range(count)]
        value, slopes_ = np.zeros(()), [np.full(each.shape, np.nan) for each in args]
        given = [each.size for each in args]
        status = called(library, f"{f.__name__}_value_and_gradient", given, args, [value, *slopes_])
        if n < {marked: 9, differences: 5, backwards: 2, chained: 2, windows: 4, filtered: 2, heated: 4}.get(f, 1):
            assert status == -2
            continue
        assert status == 0
        np.testing.assert_allclose(value, f(*args), rtol=1e-11)
        plain = complex_filtered if f is filtered else f
        for place, slope in enumerate(slopes_):
            # Along a random direction an element that is wrong shows in the sum.
            direction = np.random.default_rng(place).normal(size=slope.shape)
            moved = [each + 1e-30j * direction if number == place else each for number, each in enumerate(args)]
            np.testing.assert_allclose(slope @ direction, complex(plain(*moved)).imag / 1e-30, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.sum(x[1:][1:] ** 2),
        lambda x: np.sum(x[::2][1:] ** 2),
        lambda x: np.sum(x[::-1][1:] * x[:-1]),
        lambda x: x[:-1][-1] * x[0],
    ],
)
def test_parts_of_parts_are_right_beyond_all_sizes_that_are_tried(f):
    found = yota.value_and_grad(f, args={"x": "float64[N]"})
    for size in (2, 3, 40, 379, 1001):
        x = np.cos(np.arange(float(size)))
        value, gradient = found(x)
        np.testing.assert_allclose(value, f(x), rtol=1e-12)
        np.testing.assert_allclose(gradient, yota.gradient(f)(x), rtol=1e-12)
