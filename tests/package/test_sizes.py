"""Modules for all sizes: what is generalised agrees with yota at every size, and what cannot be names its line."""

from __future__ import annotations

import math
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import yota
from tests.generated import lint, loaded
from yota import errors
from yota.transform.sizes.size_arrays import array_text
from yota.transform.sizes.size_expressions import samples_of


def rosenbrock(x):
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def lennard_jones(x, epsilon):
    one, other = np.triu_indices(len(x), 1)
    s6 = (1 / np.sum((x[one] - x[other]) ** 2, axis=1)) ** 3
    return 4 * epsilon * np.sum(s6 * s6 - s6) / (len(x) * (len(x) - 1) / 2)


def cross_entropy(W, b, X, labels):
    scores = X @ W + b
    scores = scores - np.max(scores, axis=1, keepdims=True)
    logarithms = scores - np.log(np.sum(np.exp(scores), axis=1, keepdims=True))
    return -np.mean(logarithms[np.arange(len(X)), labels])


def moments(x):
    return np.std(x, ddof=1) + np.sum(np.linspace(0.0, 1.0, len(x)) * x) + x.mean() / np.sqrt(x.size)


def hinge(w, X, y):
    return np.mean(np.maximum(0, 1 - y * (X @ w))) + 0.01 * np.sum(w * w)


def quadratic(A, x):
    return x @ np.tril(A) @ x + np.trace(A) + np.sum(np.cumsum(x) * np.arange(len(x)))


def spread(X):
    return np.mean((X - X.mean(axis=0)) ** 2) / (X.shape[0] + X.shape[1])


def joined(x, y):
    return np.sum(np.concatenate([x, y]) ** 2 * np.arange(len(x) + len(y)))


def gaussian_process(theta, X, y):
    distances = np.sum((X[:, None, :] - X[None, :, :]) ** 2, axis=-1)
    K = theta[0] ** 2 * np.exp(-0.5 * distances / theta[1] ** 2) + theta[2] ** 2 * np.eye(len(X))
    return 0.5 * y @ np.linalg.solve(K, y) + np.sum(np.log(np.diag(np.linalg.cholesky(K))))


def windowed(x):
    n = np.arange(len(x))
    w = 0.5 - 0.5 * np.cos(2 * np.pi * n / len(x))
    return np.sum((w * x) ** 2) + x @ (1.0 / (n[:, None] + n + 1)) @ x


def spectrum(x):
    i, j = np.tril_indices(len(x))
    kernel = np.exp(-np.abs(i - j))
    power = np.abs(np.fft.rfft(x)) ** 2 * np.exp(-(np.fft.rfftfreq(len(x)) ** 2))
    return np.sum(kernel * x[i] * x[j]) + np.sum(power) + np.sum(np.hanning(len(x)) * x)


def halves(x):
    n = np.arange(len(x))
    return np.sum(x[: len(x) // 2] ** 2) - np.sum(x[len(x) // 2 :]) + np.sum(x[n % 2 == 0] ** 3)


def likelihood(mu, x):
    n = len(x)
    return -0.5 * n * np.log(2 * np.pi) - 0.5 * np.sum((x - mu) ** 2) + 1.5 * mu * np.log(n)


def products(x):
    return np.sum(np.cumprod(x) * np.arange(len(x))) + np.prod(x[:-1])


def middle(x):
    return np.median(x) ** 2 + np.sum(np.median(np.outer(x, x[:2]), axis=0))


def fitted(x, y):
    return np.sum(np.polyfit(x, y, 1) ** 2)


def smoothed(x, k):
    return np.sum(np.convolve(x, k) ** 2) + np.sum(np.correlate(x, k, "full") ** 3)


def quantiles(x):
    return np.quantile(x, 0.3) ** 2 + np.sum(np.percentile(x, [10, 35, 90]) * np.arange(1.0, 4.0))


def windows(x, k):
    return np.sum((np.lib.stride_tricks.sliding_window_view(x, 2) @ k) ** 2)


RANDOM = np.random.default_rng(3)
CASES: list[tuple[Any, dict[str, str], Any]] = [
    (rosenbrock, {"x": "float64[N]"}, lambda n: (RANDOM.normal(size=n),)),
    (
        hinge,
        {"w": "float64[K]", "X": "float64[N,K]", "y": "float64[N]"},
        lambda n: (RANDOM.normal(size=4), RANDOM.normal(size=(n, 4)), np.sign(RANDOM.normal(size=n))),
    ),
    (lennard_jones, {"x": "float64[N,3]", "epsilon": "float"}, lambda n: (RANDOM.normal(size=(n, 3)), 1.5)),
    (
        cross_entropy,
        {"W": "float64[D,K]", "b": "float64[K]", "X": "float64[N,D]", "labels": "int64[N]"},
        lambda n: (
            RANDOM.normal(size=(3, n)),
            RANDOM.normal(size=n),
            RANDOM.normal(size=(5, 3)),
            RANDOM.integers(0, n, 5),
        ),
    ),
    (moments, {"x": "float64[N]"}, lambda n: (RANDOM.normal(size=n),)),
    (
        quadratic,
        {"A": "float64[N,N]", "x": "float64[N]"},
        lambda n: (RANDOM.normal(size=(n, n)), RANDOM.normal(size=n)),
    ),
    (
        gaussian_process,
        {"theta": "float64[3]", "X": "float64[N,D]", "y": "float64[N]"},
        lambda n: (np.array([1.5, 0.8, 0.6]), RANDOM.normal(size=(n, 2)), RANDOM.normal(size=n)),
    ),
    (windowed, {"x": "float64[N]"}, lambda n: (RANDOM.normal(size=n),)),
    (spectrum, {"x": "float64[N]"}, lambda n: (RANDOM.normal(size=n),)),
    (halves, {"x": "float64[N]"}, lambda n: (RANDOM.normal(size=n),)),
    (likelihood, {"mu": "float", "x": "float64[N]"}, lambda n: (0.3, RANDOM.normal(size=n))),
    (spread, {"X": "float64[N,M]"}, lambda n: (RANDOM.normal(size=(n, 3)),)),
    (products, {"x": "float64[N]"}, lambda n: (np.where(np.arange(n) == 1, 0.0, RANDOM.normal(size=n)),)),
    (middle, {"x": "float64[N]"}, lambda n: (RANDOM.normal(size=n),)),
    (fitted, {"x": "float64[N]", "y": "float64[N]"}, lambda n: (RANDOM.normal(size=n), RANDOM.normal(size=n))),
    (smoothed, {"x": "float64[N]", "k": "float64[K]"}, lambda n: (RANDOM.normal(size=n), RANDOM.normal(size=5))),
    (quantiles, {"x": "float64[N]"}, lambda n: (RANDOM.normal(size=n),)),
    (windows, {"x": "float64[N]", "k": "float64[2]"}, lambda n: (RANDOM.normal(size=n), RANDOM.normal(size=2))),
    (joined, {"x": "float64[N]", "y": "float64[M]"}, lambda n: (RANDOM.normal(size=n), RANDOM.normal(size=n + 2))),
]


def squashed(x):
    return np.mean(np.tanh(x)) + 0.5 * np.var(x)


def test_quotients_of_sizes_read_like_numpys() -> None:
    for spec in ("float64[N]", "float32[N]"):
        text = str(yota.generate(squashed, {"x": spec}))
        assert "np.add.reduce(np.tanh(x)) / N\n" in text
        # Of no elements the mean is no number, and the gradient has none.
        value, gradient = loaded(text).squashed_value_and_gradient(np.zeros(0, spec[:7]))
        assert np.isnan(value) and gradient.shape == (0,) and gradient.dtype == spec[:7]


WEIGHTS = np.array([0.2, 0.5, 0.3])


def near(x):
    return np.sum(np.convolve(x, WEIGHTS, "same") ** 2)


def between(x, xp, fp):
    return np.sum(np.interp(x, xp, fp) ** 2)


def special_at_one(x):
    return np.sum(x) if len(x) == 1 else np.sum(x**2)


def ascending(N: int, M: int = 1) -> dict[str, Any]:
    return {"x": np.linspace(0.1, 0.9, N) ** 1.3, "xp": np.linspace(0.0, 1.0, M), "fp": np.cos(np.arange(M))}


@pytest.mark.parametrize("f, least", [(near, "N >= 3"), (special_at_one, "N >= 2")])
def test_sizes_at_which_the_function_does_something_else_are_refused(f: Any, least: str) -> None:
    module = loaded(str(yota.generate(f, {"x": "float64[N]"}, name="f")))
    small = int(least[-1])
    for size in (small, small + 1, 10, 101):
        x = RANDOM.normal(size=size)
        slopes = [f(x + 1e-30j * unit).imag / 1e-30 for unit in np.eye(size)]
        np.testing.assert_allclose(module.f_gradient(x), slopes, rtol=1e-12, atol=1e-14)
    with pytest.raises(ValueError, match=f"sizes must be {least}"):
        module.f_gradient(np.ones(small - 1))


def special_among_several(x, y):
    return np.sum(x**2) * special_at_one(y)


def test_the_size_that_is_too_small_is_found_among_several() -> None:
    module = loaded(str(yota.generate(special_among_several, {"x": "float64[N]", "y": "float64[M]"})))
    with pytest.raises(ValueError, match=r"sizes must be M >= 2$"):
        module.special_among_several_gradient(np.ones(3), np.ones(1))
    module.special_among_several_gradient(np.ones(1), np.ones(2))


def test_interpolation_between_points_of_a_named_number() -> None:
    specs = {"x": "float64[N]", "xp": "float64[M]", "fp": "float64[M]"}
    module = loaded(str(yota.generate(between, specs, sample=ascending)))
    for n, m in ((1, 1), (40, 1), (1, 2), (1, 9), (40, 3)):
        given = ascending(n, m)
        value, found = module.between_value_and_gradient(**given)
        assert value == pytest.approx(between(**given), rel=1e-13)
        weights = 2 * np.interp(given["x"], given["xp"], given["fp"])
        hats = [np.interp(given["x"], given["xp"], unit) for unit in np.eye(m)]
        np.testing.assert_allclose(found.fp, np.array(hats) @ weights, rtol=1e-10, atol=1e-13)


@cache
def generated(number: int) -> yota.export.Module:
    """The module of one of `CASES`, which checks itself."""
    f, specs, _ = CASES[number]
    return yota.generate(f, specs, self_test=True)


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda number: CASES[number][0].__name__)
def test_one_module_for_all_sizes(number: int) -> None:
    f, _, arguments = CASES[number]
    module = loaded(str(generated(number)))
    for size in (2, 3, 8, 100):
        given = arguments(size)
        value, gradient = getattr(module, f"{f.__name__}_value_and_gradient")(*given)
        expected, g = yota.grad(f, *given)
        np.testing.assert_allclose(value, expected, rtol=1e-11)
        parts = gradient if isinstance(gradient, tuple) else (gradient,)
        for found, wanted in zip(parts, (each for each in g if each is not None), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(getattr(module, f.__name__)(*given), expected, rtol=1e-11)


def test_arrays_of_indices_keep_their_names() -> None:
    text = str(yota.generate(lennard_jones, {"x": "float64[N,3]", "epsilon": "float"}))
    assert "    one, other = np.triu_indices(N, 1)\n" in text


def test_sizes_that_must_agree_need_one_name() -> None:
    def product(x, y):
        return np.sum(x * y)

    message = r"product, line \d+: `return np.sum\(x \* y\)`: at N = \d+, M = \d+ this raises ValueError: .*same name"
    with pytest.raises(errors.ArgumentError, match=message):
        yota.generate(product, {"x": "float64[N]", "y": "float64[M]"})


def test_sizes_must_agree() -> None:
    specs = {"A": "float64[N,N]", "x": "float64[N]"}
    module = loaded(str(yota.generate(quadratic, specs)))
    with pytest.raises(ValueError, match=r"A has shape \(3, 4\), not \(N, N\) with N = 3"):
        module.quadratic(np.ones((3, 4)), np.ones(3))
    with pytest.raises(ValueError, match=r"x has shape \(4,\), not \(N\) with N = 3"):
        module.quadratic(np.ones((3, 3)), np.ones(4))


def looping(x):
    total = 0.0
    for i in range(len(x)):
        total = total + x[i] ** 2
        if i == 20:
            break
    return total


def branching(x):
    if len(x) > 8:
        return np.sum(x**2)
    return np.sum(x)


def branching_far_out(x):
    scale = 2.0 if x.shape[0] <= 3000 else np.sqrt(x[0])
    return np.sum(scale * x)


def swapped_far_out(x):
    one, other = np.sum(x**2), np.sum(np.sin(x))
    if len(x) > 1000:
        one, other = other, one
    return one * one * other


def another_result_far_out(x):
    one, other = np.sum(x**2), np.sum(np.sin(x))
    return np.array([one, other] if len(x) > 1000 else [other, one])


def another_number_far_out(x):
    return np.sum(x**2) * (2.0 if len(x) < 1000 else 3.0)


def window(x):
    return np.sum(x[1:100] ** 2)


def unknown_constant(x):
    return np.sum(x * np.array([math.sin(k) for k in range(len(x))]))


LIMIT = 300_000


def far_away(x):
    return np.sum(x**2) if len(x) > LIMIT else np.sum(x)


def at_one_size(x):
    few = 8 * 25
    if x.shape[0] == few:
        return np.sum(np.sin(x))
    return np.sum(x)


def helped(x):
    return _shortened(x, x.size)


def _shortened(x, count):
    return np.sum(x[: min(count, 70_000)] ** 2)


def too_far_away(x):
    return np.sum(x[:, None] * x) if len(x) < 10**6 else np.sum(x)


def harmless(x, y):
    """Numbers are compared, but no sizes."""
    return np.sum(np.where(x > 1000, x, y)) if y > -5000 else y


@pytest.mark.parametrize(
    "f, message",
    [
        (far_away, r"far_away, line \d+: `return np.sum\(x\*\*2\) if .*other steps are taken when N changes"),
        (at_one_size, r"at_one_size, line \d+: `return np.sum\(np.sin\(x\)\)`: other steps are taken"),
        (helped, r"_shortened, line \d+: `.*min\(count, 70_000\).*`: other steps are taken"),
        (
            too_far_away,
            r"too_far_away, line \d+: `return .* if len\(x\) < 10\*\*6 .*`: arrays of such a size are too large",
        ),
    ],
)
def test_branches_on_sizes_that_are_rare_or_far_away(f: Any, message: str) -> None:
    with pytest.raises(errors.ArgumentError, match=message):
        yota.generate(f, {"x": "float64[N]"})


def test_comparisons_of_values_are_no_branches_on_sizes() -> None:
    module = loaded(str(yota.generate(harmless, {"x": "float64[N]", "y": "float"})))
    assert module.harmless(np.array([2000.0, 3.0]), 7.0) == 2007.0


@pytest.mark.parametrize(
    "f, message",
    [
        (
            looping,
            r"looping, line \d+: `total = total \+ x\[i\] \*\* 2`: .*Fix the size, as in float64\[\d+\], or write",
        ),
        (branching, r"branching, line \d+: `return np.sum\(x\*\*2\)`: other steps are taken when N changes"),
        (branching_far_out, r"branching_far_out, line \d+: `scale = 2.0 if .*other steps are taken when N changes"),
        (another_number_far_out, r"`return np.sum\(x\*\*2\) \* .*`: another constant is met when N changes"),
        (swapped_far_out, r"`return one \* one \* other`: other values are combined when N changes"),
        (another_result_far_out, r"`return np.array.*: other values are combined when N changes"),
        (window, r"`return np.sum\(x\[1:100\] \*\* 2\)`: another part of an array is taken.* when N changes"),
        (
            unknown_constant,
            r"`return np.sum\(x \* np.array\(\[math.sin\(k\) for k in range\(.*: a constant whose form is unknown",
        ),
    ],
)
def test_what_cannot_be_generalised_names_the_line(f: Any, message: str) -> None:
    with pytest.raises(errors.ArgumentError, match=message):
        yota.generate(f, {"x": "float64[N]"})


def coupled(x):
    return np.sum(np.sin(x[1:] * x[:-1])) / len(x)


def rows(A, x):
    return np.tanh(A @ x) * len(x)


def test_matrices_of_any_size() -> None:
    module = loaded(str(yota.generate(coupled, {"x": "float64[N]"}, with_=("gradient", "jacobian", "hessian", "hvp"))))
    for size in (1, 2, 9, 40):
        x, v = RANDOM.normal(size=size), RANDOM.normal(size=size)
        hessian = yota.hessian(coupled)(x)
        np.testing.assert_allclose(module.coupled_hessian(x), hessian, rtol=1e-11, atol=1e-13)
        np.testing.assert_allclose(module.coupled_hvp(x, v), hessian @ v, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(module.coupled_jacobian(x), module.coupled_gradient(x), rtol=1e-12)
    with pytest.raises(ValueError, match=r"v has shape \(3,\), not \(N\) with N = 2"):
        module.coupled_hvp(np.ones(2), np.ones(3))


def test_jacobians_of_any_size() -> None:
    specs = {"A": "float64[M,N]", "x": "float64[N]"}
    module = loaded(str(yota.generate(rows, specs, with_="jacobian", wrt="x")))
    for shape in ((1, 1), (3, 2), (2, 5), (0, 3)):
        A, x = RANDOM.normal(size=shape), RANDOM.normal(size=shape[1])
        # The derivative of tanh is 1 - tanh^2.
        expected = (shape[1] * (1 - np.tanh(A @ x) ** 2))[:, None] * A
        np.testing.assert_allclose(module.rows_jacobian(A, x), expected, rtol=1e-12, atol=1e-14)


def test_strict_code_of_any_size_has_numpys_bits() -> None:
    specs = {"A": "float64[N,N]", "x": "float64[N]"}
    module = loaded(str(yota.generate(quadratic, specs, strict=True)))
    for size in (1, 2, 33):
        A, x = RANDOM.normal(size=(size, size)), RANDOM.normal(size=size)
        assert module.quadratic(A, x) == quadratic(A, x)
        assert module.quadratic_value_and_gradient(A, x)[0] == quadratic(A, x)


def centred(x):
    return np.sum((x - x.mean()) ** 2) / len(x) + np.linalg.norm(x) ** 3 + np.var(x)


def test_strict_code_of_any_size_calls_what_the_function_calls() -> None:
    module = loaded(str(yota.generate(centred, {"x": "float64[N]"}, strict=True)))
    for size in (1, 2, 7, 300, 5000):
        x = RANDOM.random(size)
        assert module.centred(x) == centred(x)
        assert module.centred_value_and_gradient(x)[0] == centred(x)


@pytest.mark.parametrize("name", ["np", "Any", "float"])
def test_names_that_the_module_needs(name: str) -> None:
    with pytest.raises(errors.ArgumentError, match="cannot name a size"):
        yota.generate(rosenbrock, {"x": f"float64[{name}]"})


@pytest.mark.parametrize(
    "make, expected",
    [
        (lambda N: N, "N"),
        (lambda N: 7, "7"),
        (lambda N: N * (N - 1) // 2, "(N*(N - 1)) // 2"),
        (lambda N: 3 * N + 2, "3*N + 2"),
        (lambda N: 2**N, None),
    ],
)
def test_ints_of_sizes(make: Any, expected: str | None) -> None:
    samples = samples_of(["N"])
    assert samples.whole([make(**size) for size in samples.sizes]) == expected


@pytest.mark.parametrize(
    "make", [lambda N: 1 / N, lambda N: N / (N - 1), lambda N: N**0.5, lambda N: -1 / (2 * N) ** 0.5, lambda N: 0.5 * N]
)
def test_floats_of_sizes(make: Any) -> None:
    samples = samples_of(["N"])
    text = samples.real([float(make(**size)) for size in samples.sizes])
    assert text is not None
    for N in (3, 40, 1000):
        import math

        assert eval(text, {"np": np, "math": math, "N": N}) == pytest.approx(make(N), rel=1e-15)


@pytest.mark.parametrize(
    "make",
    [
        np.eye,
        np.zeros,
        np.arange,
        lambda N: 1.0 - np.eye(N),
        lambda N: np.triu_indices(N, 1)[0],
        lambda N: np.tril_indices(N)[1],
        lambda N: np.tri(N, k=-1),
        lambda N: np.linspace(-1.0, 1.0, N),
        lambda N: np.full((N, 3), 1 / N),
        lambda N: np.arange(N)[:, None],
        lambda N: np.broadcast_to(np.arange(N) * 2 + 1, (N, N)),
        lambda N: np.arange(float(N)),
        lambda N: np.tri(N, dtype=bool),
    ],
)
def test_arrays_of_sizes(make: Any) -> None:
    samples = samples_of(["N"])
    text = array_text([np.asarray(make(size["N"])) for size in samples.sizes], samples)
    assert text is not None
    for N in (1, 2, 30):
        found, wanted = eval(text, {"np": np, "N": N}), np.asarray(make(N))
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("specs", [{"x": "float64[6]"}, {"x": "float64[N]"}])
def test_modules_check_themselves(specs: Any, tmp_path: Path) -> None:
    path = tmp_path / "checked.py"
    yota.generate(rosenbrock, specs, self_test=True).write(path)
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("rosenbrock_value_and_gradient: agrees with")
    path.write_text(path.read_text().replace("return results[0], results[1]", "return results[0], results[1] * 1.001"))
    assert (
        "AssertionError: the slope is"
        in subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False).stderr
    )


def test_linters_have_nothing_to_say(tmp_path: Path) -> None:
    for number, (f, *_) in enumerate(CASES):
        generated(number).write(tmp_path / f"{f.__name__}.py")
    lint(tmp_path)


def test_sizes_that_divide_as_products_do() -> None:
    """Arrays are divided by powers of two in another way: no sample is one."""

    def scaled(x: Any) -> Any:
        return np.sum((x / len(x)) ** 3 + (x / (len(x) - 1)) ** 2)

    module = loaded(str(yota.generate(scaled, {"x": "float64[N]"})))
    for size in (3, 4, 5, 8, 9, 300):
        x = np.random.default_rng(0).random(size)
        np.testing.assert_allclose(module.scaled(x), scaled(x), rtol=1e-13)


def test_percentiles_along_an_axis_of_named_size() -> None:
    def f(x):
        return np.sum(np.percentile(x, [10, 35, 90], axis=0, keepdims=True) * np.arange(1.0, 7.0).reshape(3, 1, 2))

    module = loaded(str(yota.generate(f, {"x": "float64[N,2]"})))
    for rows in (1, 2, 6, 31):
        x = RANDOM.normal(size=(rows, 2))
        value, gradient = module.f_value_and_gradient(x)
        step = 1e-7 * np.cos(np.arange(x.size)).reshape(x.shape)
        np.testing.assert_allclose(value, f(x), rtol=1e-13)
        np.testing.assert_allclose(np.sum(gradient * step), (f(x + step) - f(x - step)) / 2, rtol=1e-6, atol=1e-14)


def test_medians_and_quantiles_of_named_sizes_take_infinities_and_no_numbers_as_numpy_does() -> None:
    for f in (lambda x: np.median(x), lambda x: np.quantile(x, 0.5)):
        module = loaded(str(yota.generate(f, {"x": "float64[N]"}, name="f")))
        for row in ([1, 2, np.inf], [np.inf, np.inf, 1, 2], [1, np.inf, np.inf, np.inf], [1, np.nan, 3], [4.0]):
            x = np.array(row, float)
            with np.errstate(invalid="ignore"):
                np.testing.assert_equal(module.f(x), f(x))


@pytest.mark.parametrize("size", ["30", "N"])
def test_a_jacobian_of_complex_numbers_is_refused(size: str) -> None:
    with pytest.raises(errors.ArgumentError, match="returns complex numbers"):
        yota.generate(lambda x: x * (1 + 2j), {"x": f"float64[{size}]"}, with_="jacobian")
