"""C for all sizes: it compiles without a word, agrees with yota at each size, and refuses what it cannot."""

from __future__ import annotations

import ctypes
import itertools
import math
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import yota
from tests.emit.compiled import needs_compiler
from tests.package.test_c import COMPILERS, NUMBERS, STRICT, built, built_extension
from tests.package.test_sizes import coupled, lennard_jones, moments, rosenbrock, spread
from yota import errors
from yota.emit.language import tabled
from yota.ir.tape import TapeBuilder
from yota.ir.types import type_of
from yota.package.c.c_contents import proved
from yota.package.c.size_spelling import SizeNames, whole
from yota.tracing.replay import evaluate
from yota.transform.sizes.conditions import Conditions
from yota.transform.sizes.size_arrays import array_text
from yota.transform.sizes.size_expressions import samples_of
from yota.transform.sizes.size_ops import emitted

pytestmark = needs_compiler
RANDOM = np.random.default_rng(7)


def network(W, b, v, x):
    return np.sum(np.maximum(x @ W + b, 0) @ v)


def cross_entropy(X):
    scores = X - np.max(X, axis=1, keepdims=True)
    return -np.mean(scores[:, 0] - np.log(np.sum(np.exp(scores), axis=1)))


def laplace(u):
    return np.sum((4 * u[1:-1, 1:-1] - u[:-2, 1:-1] - u[2:, 1:-1] - u[1:-1, :-2] - u[1:-1, 2:]) ** 2)


def windowed(x):
    n = np.arange(len(x))
    w = 0.5 - 0.5 * np.cos(2 * np.pi * n / len(x))
    return np.sum((w * x) ** 2) + np.sum(x[: len(x) // 2] ** 3)


def likelihood(mu, x):
    n = len(x)
    return -0.5 * n * np.log(2 * np.pi) - 0.5 * np.sum((x - mu) ** 2) + 1.5 * mu * np.log(n)


def ends(x):
    return x[0] * x[-1] + np.sum(x * x[::-1]) + np.sum(np.roll(x, 1) * x)


def padded(x):
    y = np.zeros(len(x) + 2)
    y[1:-1] = x
    return np.sum(np.diff(y) ** 2) * np.max(x)


def pairs(X):
    row, column = np.triu_indices(len(X), 1)
    at = np.linspace(0.0, 1.0, len(row))
    return np.sum(at * np.sqrt(1 + np.sum((X[row] - X[column]) ** 2, axis=1)))


def remainders(x):
    return x[0] * (len(x) % 3) + np.sum(x[np.arange(len(x)) - 1] * x)


def antidiagonal(A):
    n = len(A)
    return np.sum(A[np.arange(n), n - 1 - np.arange(n)] ** 2)


def decided(x, scale):
    if scale > 0:
        return scale * np.sum(np.tanh(x) ** 2)
    return np.sum(x)


def squares(x):
    """The longest stretch of memory is of the squares."""
    return np.sum(np.sin(np.outer(x, x)) @ x)


def by_columns(X):
    """What all rows have in common comes once for each row: a size is a factor."""
    return np.sum((X - X.sum(0)) / (1 + X[0] ** 2))


def every_other(x):
    return np.sum(x[::2] ** 2) + np.sum(x[1::2] ** 3) + np.sum(np.sin(x[::3]))


def running(X):
    return np.sum(np.cumsum(X, axis=1) ** 2) + np.sum(np.cumsum(X[:, 0]) * np.cumsum(np.sin(X), axis=0)[:, -1])


def running_product(x):
    return np.sum(np.cumprod(x)[::2]) + x @ np.cumprod(x)


def running_single(x):
    return np.sum(np.cumsum(x) ** 2)


def every_other_row(X):
    return np.sum((X @ X.T)[::2] ** 2) + X[0, 2]


FUNCTIONS: list[tuple[Callable[..., Any], dict[str, str], list[tuple[int, ...]]]] = [
    (rosenbrock, {"x": "float64[N]"}, [(2,), (3,), (130,), (1000,)]),
    (lennard_jones, {"x": "float64[N,3]", "epsilon": "float"}, [(2,), (5,), (40,)]),
    (moments, {"x": "float64[N]"}, [(2,), (129,)]),
    (spread, {"X": "float64[N,M]"}, [(1, 1), (1, 5), (6, 2), (13, 150)]),
    (
        network,
        {"W": "float64[D,H]", "b": "float64[H]", "v": "float64[H]", "x": "float64[B,D]"},
        [(1, 1, 1), (2, 3, 4), (17, 9, 30), (2, 3, 0), (2, 0, 4), (0, 3, 4)],
    ),
    (by_columns, {"X": "float64[N,M]"}, [(1, 1), (2, 3), (30, 200)]),
    (cross_entropy, {"X": "float64[N,K]"}, [(1, 1), (1, 4), (20, 3), (5, 200)]),
    (laplace, {"u": "float64[N,M]"}, [(5, 5), (7, 20)]),
    (windowed, {"x": "float64[N]"}, [(1,), (2,), (65,)]),
    (likelihood, {"mu": "float", "x": "float64[N]"}, [(1,), (300,)]),
    (ends, {"x": "float64[N]"}, [(2,), (3,), (200,)]),
    (remainders, {"x": "float64[N]"}, [(1,), (2,), (3,), (70,)]),
    (antidiagonal, {"A": "float64[N,N]"}, [(1,), (2,), (3,), (20,)]),
    (padded, {"x": "float64[N]"}, [(4,), (50,)]),
    (pairs, {"X": "float64[N,3]"}, [(0,), (1,), (2,), (40,)]),
    (decided, {"x": "float32[N]", "scale": "float"}, [(1,), (300,)]),
    (every_other, {"x": "float64[N]"}, [(1,), (2,), (3,), (10,), (301,)]),
    (every_other_row, {"X": "float64[N,M]"}, [(1, 3), (2, 3), (7, 5)]),
    (running, {"X": "float64[N,M]"}, [(1, 1), (3, 2), (40, 130)]),
    (running_product, {"x": "float64[9]"}, [()]),
    (running_single, {"x": "float32[N]"}, [(1,), (2,), (70,)]),
]


def arguments(specs: dict[str, str], sizes: dict[str, int]) -> list[Any]:
    found: list[Any] = []
    for spec in specs.values():
        kind, _, extents = spec.partition("[")
        shape = (
            tuple(sizes[each] if each in sizes else int(each) for each in extents.rstrip("]").split(","))
            if extents
            else ()
        )
        found.append(RANDOM.normal(size=shape).astype(kind) if shape else 0.7)
    return found


def called(library: ctypes.CDLL, name: str, sizes: tuple[int, ...], args: list[Any], results: list[Any]) -> int:
    given = [
        each.ctypes.data_as(ctypes.c_void_p) if np.ndim(each) else NUMBERS[np.asarray(each).dtype.name](each)
        for each in args
    ]
    words = [each.ctypes.data_as(ctypes.c_void_p) for each in results]
    return int(getattr(library, name)(*map(ctypes.c_ssize_t, sizes), *given, *words))


def names_of(specs: dict[str, str]) -> list[str]:
    return list(dict.fromkeys(re.findall(r"[\[,]([A-Z])", " ".join(specs.values()))))


@pytest.mark.parametrize(("f", "specs", "sizes"), FUNCTIONS, ids=lambda case: getattr(case, "__name__", ""))
def test_values_and_gradients_at_all_sizes(f: Any, specs: Any, sizes: Any, tmp_path: Path) -> None:
    library = built(yota.generate(f, specs, target="c"), tmp_path, COMPILERS[-1])
    for each in sizes:
        args = arguments(specs, dict(zip(names_of(specs), each, strict=True)))
        single = any("float32" in spec for spec in specs.values())
        value = np.zeros((), np.asarray(args[0]).dtype)
        slopes = [np.full(np.shape(arg), np.nan, np.asarray(arg).dtype) for arg in args]
        assert called(library, f"{f.__name__}_value_and_gradient", each, args, [value, *slopes]) == 0
        # Traced for just these arguments.
        expected, gradients = yota.value_and_grad(f, wrt=tuple(range(len(args))))(*args)
        tolerance = {"rtol": 2e-5, "atol": 1e-5} if single else {"rtol": 1e-9, "atol": 1e-11}
        np.testing.assert_allclose(value, expected, **tolerance)
        for found, wanted in zip(slopes, gradients, strict=True):
            np.testing.assert_allclose(found, wanted, **tolerance)
        assert called(library, f.__name__, each, args, [value]) == 0
        np.testing.assert_allclose(value, f(*args), **tolerance)


def neighbours(i, X):
    j = X[i] * 2
    return np.sum(np.outer(j, X) ** 2)


@pytest.mark.parametrize("specs", [{"i": "int64[K]", "X": "float64[N]"}, {"i": "int64[50]", "X": "float64[40]"}])
@pytest.mark.parametrize("target", ["c", "cuda"])
def test_counters_leave_the_function_its_names(specs: dict[str, str], target: str) -> None:
    text = str(yota.generate(neighbours, specs, target=target))
    assert "[k]" in text
    assert not re.search(r"\b[ijX]_\d", text)
    assert not re.search(r"(ptrdiff_t|int|int64_t) [ij] = ", text)


def test_sizes_that_are_too_small_are_said(tmp_path: Path) -> None:
    module = yota.generate(laplace, {"u": "float64[N,M]"}, target="c")
    assert "-2 unless N >= " in module.files["laplace.h"]
    library = built(module, tmp_path)
    for sizes in ((0, 5), (-3, 5), (5, 1), (1, 1)):
        value, gradient = np.zeros(()), np.full((5, 5), 7.0)
        assert called(library, "laplace_value_and_gradient", sizes, [np.ones((5, 5))], [value, gradient]) == -2
        assert np.all(gradient == 7.0)


def test_memory_that_would_overflow_is_not_asked_for(tmp_path: Path) -> None:
    library = built(yota.generate(squares, {"x": "float64[N]"}, target="c"), tmp_path)
    assert called(library, "squares", (2**33,), [np.ones(2)], [np.zeros(())]) == -1


@pytest.mark.parametrize(
    ("f", "specs"),
    [
        (network, FUNCTIONS[4][1]),
        (decided, {"x": "float32[N]", "scale": "float"}),
        (padded, {"x": "float64[N]"}),
    ],
    ids=lambda case: getattr(case, "__name__", ""),
)
def test_files_check_themselves_under_sanitizers(f: Any, specs: Any, tmp_path: Path) -> None:
    module = yota.generate(f, specs, target="c", self_test=True)
    for name, text in module.files.items():
        (tmp_path / name).write_text(text)
    words = [*STRICT, "-fsanitize=address,undefined", "-fno-sanitize-recover", f"-D{f.__name__.upper()}_SELF_TEST"]
    for compiler in COMPILERS:
        done = subprocess.run(
            [compiler, *words, f"{f.__name__}.c", "-o", "test", "-lm"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        ran = subprocess.run([str(tmp_path / "test")], capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        assert "gradients agree with differences" in ran.stdout


def test_extensions_take_sizes_from_arrays(tmp_path: Path) -> None:
    contents = ("value", "gradient", "jacobian", "hessian", "hvp")
    yota.generate(coupled, {"x": "float64[N]"}, target="c", with_=contents, extension=True).write(
        tmp_path / "coupled.c"
    )
    module = built_extension(tmp_path, "coupled")
    for size in (2, 9, 300):
        x, v = RANDOM.normal(size=size), RANDOM.normal(size=size)
        hessian = yota.hessian(coupled)(x)
        np.testing.assert_allclose(module.coupled(x), coupled(x), rtol=1e-12)
        np.testing.assert_allclose(module.coupled_jacobian(x[::-1][::-1]), yota.gradient(coupled)(x), rtol=1e-12)
        np.testing.assert_allclose(module.coupled_hessian(x), hessian, rtol=1e-11, atol=1e-13)
        np.testing.assert_allclose(module.coupled_hvp(x, v), hessian @ v, rtol=1e-10, atol=1e-12)
    with pytest.raises(ValueError, match="sizes must be N >= 2"):
        module.coupled(np.ones(1))
    with pytest.raises(TypeError, match="v must be an array of dtype"):
        module.coupled_hvp(np.ones(3), np.ones(4))
    assert "ptrdiff_t" not in module.coupled.__doc__


def test_strict_values_have_numpys_bits(tmp_path: Path) -> None:
    def cubed(x):
        return np.sin(x**3 / len(x)) + x**5

    library = built(yota.generate(cubed, {"x": "float64[N]"}, target="c", with_="value", strict=True), tmp_path)
    x = RANDOM.normal(size=333)
    found = np.zeros(333)
    assert called(library, "cubed", (333,), [x], [found]) == 0
    np.testing.assert_allclose(found, cubed(x), rtol=1e-15)


@pytest.mark.parametrize(
    "make",
    [
        np.eye,
        lambda N: 1.0 - np.eye(N),
        np.arange,
        lambda N: np.triu_indices(N, 1)[0],
        lambda N: np.tril_indices(N)[1],
        lambda N: np.tri(N, k=-1),
        lambda N: np.linspace(-1.0, 1.0, N),
        lambda N: np.linspace(0.0, 2.0, N + 1),
        lambda N: np.full((N, 3), 1 / N),
        lambda N: np.arange(N)[:, None],
        lambda N: np.arange(N) / 4,
        lambda N: np.broadcast_to(np.arange(N) * 2 + 1, (N, N)),
        lambda N: np.arange(N) * 0.5 - 1.0,
        lambda N: np.full(N, np.sqrt(N)),
        np.fft.fftfreq,
        np.fft.rfftfreq,
        np.hanning,
        np.hamming,
        np.blackman,
        np.bartlett,
    ],
)
def test_arrays_of_sizes_are_made_by_ops(make: Any) -> None:
    samples = samples_of(["N"])
    text = array_text([np.asarray(make(size["N"])) for size in samples.sizes], samples)
    assert text is not None
    check_ops(text, make)


@pytest.mark.parametrize(
    "text",
    [
        "np.where(np.tri(N, k=-1) == 1.0, 2.0, np.where(np.eye(N) == 1.0, 0.5, -1.0)).astype(np.float32)",
        "np.broadcast_to((np.arange(N, dtype=np.int64))[None, :], (3, N))",
        "float(np.divide(2, N*(N + 1)))",
        "-math.sqrt(float(2*N))",
        "0.5 + 2.0 * float(np.log(N))",
        "np.float32(np.divide(1, N))",
        "3*N**2 + N % 3",
    ],
)
def test_forms_are_written_as_ops(text: str) -> None:
    check_ops(text, lambda N: eval(text, {"np": np, "math": math, "N": N}))


@pytest.mark.parametrize("offset", range(-3, 4))
def test_triangles_are_written_as_ops(offset: int) -> None:
    for which, part in itertools.product(("triu", "tril"), (0, 1)):
        text = f"np.{which}_indices(N, {offset})[{part}]"
        check_ops(text, lambda N, text=text: eval(text, {"np": np, "N": N}), max(1, abs(offset)))


def check_ops(text: str, make: Any, smallest: int = 1) -> None:
    for size in (smallest, smallest + 1, 5, 30, 600):
        with np.errstate(all="ignore"):
            wanted = make(size)
        builder = TapeBuilder("made")
        made = emitted(text, {"N": size}, type_of(wanted), builder)
        (found,) = evaluate(builder.finish([made]), {})
        np.testing.assert_allclose(found, wanted, rtol=4e-16, atol=4e-16 if "cos" in text else 0)
        assert np.asarray(found).dtype == np.asarray(wanted).dtype


def test_numbers_of_sizes_in_c() -> None:
    names = SizeNames({"N": "N"})
    assert str(whole("(N*(N - 1)) // 2 + 3", names)) == "N * (N - 1) / 2 + 3"
    assert str(whole("N*(N // 2) - (N - (N % 3))", names)) == "N * (N / 2) - (N - N % 3)"
    assert str(whole("(N + 1) // 2", SizeNames(names, tabled("javascript")))) == "whole_quotient(N + 1, 2)"
    assert str(whole("N % 2", SizeNames(names, tabled("fortran")))) == "mod(N, int(2, c_ptrdiff_t))"


def test_conditions_on_sizes() -> None:
    samples = samples_of(["N", "M"])
    names = SizeNames({"N": "N", "M": "cols"})
    conditions = Conditions(samples, names, lambda text: str(whole(text, names)), {})
    for make in (lambda N, M: N - 3, lambda N, M: N * M - 1, lambda N, M: N - M + 20, lambda N, M: M):
        conditions.demand([make(**size) for size in samples.sizes])
    assert conditions.failed() == "N < 3 || cols < 1 || -cols + N + 20 < 0"
    with pytest.raises(errors.ArgumentError, match="no value at some of the sizes"):
        conditions.demand([-1] * len(samples.sizes))


def transformed(x):
    return np.sum(np.abs(np.fft.fft(x)))


def by_length(x):
    return np.sum(x) if len(x) == 1 else np.sum(x**2)


@pytest.mark.parametrize(
    ("f", "specs", "message"),
    [
        (transformed, {"x": "float64[N]"}, r"(?s)numpy.fft.fft of float64\[N\] cannot be said in C.*np.fft.fft\(x\)"),
        (by_length, {"x": "float64[N]"}, "the value at N = 1 is not what the code for all sizes gives"),
    ],
)
def test_what_cannot_be_had_says_so(f: Any, specs: Any, message: str) -> None:
    with pytest.raises(errors.YotaError, match=message):
        yota.generate(f, specs, target="c")


def test_code_that_is_wrong_without_elements_is_refused_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def checked(*given: Any) -> str:
        if given[-1].smallest == 0:
            raise errors.ArgumentError("wrong")
        return ""

    monkeypatch.setattr("yota.package.c.c_contents.proved", checked)
    assert "-2 unless N >= 1." in yota.generate(squares, {"x": "float64[N]"}, target="c").files["squares.h"]


def test_a_wrong_line_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from yota.package.c import c_contents as contents

    def broken(source: str, *rest: Any) -> str:
        return proved(source.replace("N - 1", "N - 2"), *rest)

    monkeypatch.setattr(contents, "proved", broken)
    with pytest.raises(errors.ArgumentError, match="is not what the code for all sizes gives"):
        yota.generate(rosenbrock, {"x": "float64[N]"}, target="c")
