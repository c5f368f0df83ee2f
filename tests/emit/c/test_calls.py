"""Calls of compiled functions: layouts, types, guards, threads, and what surrounds the kernels."""

from __future__ import annotations

import multiprocessing
import re
import subprocess
import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import yota
from tests.emit.compiled import compiled, needs_compiler
from tests.emit.programs import Writer, arguments, check, evaluate
from yota.emit.c import kernels as kernel
from yota.emit.targets import c
from yota.ir.indexing import Slice
from yota.ir.tape import Tape
from yota.ir.types import type_of
from yota.optimize import pipeline
from yota.run.machine import compiler, native
from yota.run.machine.signals import StaleTape
from yota.run.specialise import Target, compile_tape, simplified

pytestmark = needs_compiler


def polynomial(dtype: str = "float64") -> Tape:
    write = Writer("polynomial")
    x = write.input("x", (3,), dtype)
    elements = [write("getitem", x, index=(number,)) for number in range(3)]
    product = write("multiply", elements[0], write("multiply", elements[1], elements[2]))
    return write.finish(product, write("stack", *elements[::-1], axis=0))


def layouts(x: np.ndarray) -> dict[str, np.ndarray]:
    spread = np.zeros((2 * x.size,), x.dtype)
    spread[::2] = x
    shifted = np.zeros(x.nbytes + 1, np.uint8)[1:].view(x.dtype)
    shifted[...] = x
    locked = x.copy()
    locked.flags.writeable = False
    return {
        "strided": spread[::2],
        "reversed": x[::-1].copy()[::-1],
        "unaligned": shifted,
        "read-only": locked,
        "swapped": x.astype(x.dtype.newbyteorder()),
    }


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "complex64"])
def test_any_layout_is_taken(dtype: str) -> None:
    tape = polynomial(dtype)
    function = compiled(tape)
    (x,) = arguments(tape)
    expected = evaluate(tape, x)
    for array in layouts(x).values():
        results = function(array)
        check(tape, results, expected)
        assert results[1].flags.c_contiguous and results[1].flags.owndata


def test_wrong_arguments_are_refused() -> None:
    function = compiled(polynomial())
    for wrong in (np.zeros(4), np.zeros((3, 1)), np.zeros(3, "float32"), [1.0, 2.0, 3.0], None):
        with pytest.raises(TypeError, match="x must be an array of dtype"):
            function(wrong)
    with pytest.raises(TypeError, match="1 argument"):
        function()


def test_python_numbers_stay_python_numbers() -> None:
    write = Writer()
    a, b = write.input("a", (), float, weak=True), write.input("b", (), complex, weak=True)
    tape = write.finish(write("multiply", a, a), write("multiply", a, b), write("less", a, 1.0))
    check(tape, compiled(tape)(1.5, 2j), [2.25, 3j, False])


@pytest.mark.parametrize("dtype", ["bool", "int64", "int32", "uint8"])
def test_arrays_of_other_types_are_read(dtype: str) -> None:
    write = Writer()
    n, x = write.input("n", (40,), dtype), write.input("x", (40,))
    tape = write.finish(
        write("sum", write("multiply", write("sin", x), n)), write("where", write("equal", n, 1), x, 0.5)
    )
    count = (np.arange(40) % 3).astype(dtype)
    values = np.linspace(0, 1, 40)
    check(tape, compiled(tape)(count, values), evaluate(tape, count, values))


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("number", [float, np.float64, np.float32])
def test_functions_of_numbers_are_one_kernel(number: Any, strict: bool) -> None:
    def f(x: Any, y: Any, z: Any) -> Any:
        return x * y + 1, x * y * z, y, y, 2.5, (x * y) ** 2

    _, tape = yota.trace(f, *map(number, (0.5, -1.5, 3.0)))
    found = yota.compile(tape, target="c", strict=strict)
    for values in ((0.5, -1.5, 3.0), (np.nan, -0.0, 2.0), (np.inf, 0.0, -1.0)):
        given = [*map(number, values)]
        with np.errstate(all="ignore"):
            wanted = f(*given)
        for one, other in zip(found(*given), wanted, strict=True):
            np.testing.assert_array_equal(one, other)
            assert np.signbit(one) == np.signbit(other) or np.isnan(one)
            assert type(one) is type(other)
    assert "import numpy" not in found.source


def test_dtypes_that_c_does_not_know_are_left_to_numpy() -> None:
    write = Writer()
    x = write.input("x", (50,), "float16")
    tape = write.finish(write("sin", x), write("sum", write("astype", x, dtype=np.dtype("float64"))))
    values = np.linspace(0, 1, 50).astype("float16")
    check(tape, compiled(tape)(values), evaluate(tape, values), rtol=1e-3)


@pytest.mark.parametrize("dtype", ["float64", "complex64"])
def test_long_straight_code_is_cut_into_functions(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "_LONGEST", 6)
    monkeypatch.setattr(kernel, "_PIECE", 4)
    write = Writer("cut")
    x, scale = write.input("x", (6,), dtype), write.input("scale", (), dtype)
    terms = [write("getitem", x, index=(number,)) for number in range(6)]
    for number in range(12):
        product = write("multiply", terms[number % 6], write("exp", terms[(number + 1) % 6]))
        chosen = write("where", write("equal", product, terms[0]), product, write("multiply", product, scale))
        terms[number % 6] = chosen
    tape = write.finish(terms[0], write("stack", *terms, axis=0))
    source = c.generate(pipeline.run(tape))
    assert source.code.count("noinline") > 4
    values = [0.1 * value for value in arguments(tape)]
    check(tape, native.load(source)(*values), evaluate(tape, *values), rtol=1e-4 if dtype == "complex64" else 1e-12)


def test_guards_raise_the_signal() -> None:
    write = Writer()
    x = write.input("x", (2,))
    first = write("getitem", x, index=(0,))
    write.builder.guard(write("greater", first, 0.0), True, "bool")
    tape = write.finish(write("multiply", first, 2.0))
    function = compiled(tape)
    assert function(np.array([1.5, 0.0])) == 3.0
    with pytest.raises(StaleTape) as caught:
        function(np.array([-1.0, 0.0]))
    assert caught.value.index == 0


def test_what_c_cannot_do_stays_with_numpy() -> None:
    def f(W: Any, x: Any, index: Any) -> Any:
        hidden = np.tanh(W @ x)
        picked = hidden[index]
        scores = np.exp(picked - np.max(picked))
        return np.sum(scores / np.sum(scores) * picked) + np.linalg.det(W) + np.sum(np.cumsum(hidden))

    random = np.random.default_rng(0)
    args = random.normal(size=(40, 40)) / 6, random.normal(size=40), np.array([3, 3, 0, 39])
    value, found = yota.grad(f, *args)
    fast, other = yota.grad(f, *args, target="c")
    np.testing.assert_allclose(fast, value, rtol=1e-12)
    for mine, theirs in zip(other, found, strict=True):
        if theirs is not None:
            np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-12)


def rosenbrock(x: Any) -> Any:
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def table(x: Any) -> Any:
    squares = np.sum((x[:, None, :] - x[None, :, :]) ** 2, axis=-1) + np.eye(len(x))
    return np.sum(1.0 / squares**3)


def softmax(x: Any) -> Any:
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    return np.sum((e / np.sum(e, axis=1, keepdims=True))[:, 0])


def rows(x: Any) -> Any:
    return np.sum(x[0] * x[1] ** 2 + np.sin(x[2]))


CASES = [(rosenbrock, (1000,)), (table, (60, 3)), (softmax, (200, 40)), (rows, (3, 500))]


@pytest.mark.parametrize("threads", ["1", "2", "5"])
@pytest.mark.parametrize("function, shape", CASES, ids=lambda case: getattr(case, "__name__", ""))
def test_gradients_of_loops(function: Any, shape: Any, threads: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YOTA_NUM_THREADS", threads)
    monkeypatch.setattr("yota.emit.c.kernels._WORTH_THREADS", 1)
    x = np.random.default_rng(0).uniform(0.5, 2.0, shape)
    value, gradient = yota.value_and_grad(function)(x)
    compiled_ = yota.value_and_grad(function, target="c")
    fast, other = compiled_(x)
    np.testing.assert_allclose(fast, value, rtol=1e-12)
    np.testing.assert_allclose(other, gradient, rtol=1e-10, atol=1e-10 * np.max(np.abs(gradient)))
    again = compiled_(x)
    assert again[0] == fast
    np.testing.assert_array_equal(again[1], other)


@pytest.mark.parametrize("text", ["0", "-3", "two", "7x", "1e3", "\u0662"])
def test_numbers_of_threads_that_are_none(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each number of threads adds up in an order of its own: the sum tells how many there were."""
    monkeypatch.setattr("yota.emit.c.kernels._WORTH_THREADS", 1)
    x = np.random.default_rng(0).normal(size=20_001)

    def added(x: Any) -> Any:
        return np.sum(x * 0.3)

    function = yota.value_and_grad(added, target="c")
    sums = {}
    for number in ("5", "7", " 5 ", text, ""):
        monkeypatch.setenv("YOTA_NUM_THREADS", number)
        sums[number] = function(x)[0]
    assert sums[text] == sums[""] and sums[" 5 "] == sums["5"]
    function.clear()
    monkeypatch.setenv("YOTA_NUM_THREADS", text)
    with pytest.warns(RuntimeWarning, match="is no number of threads.*OMP_NUM_THREADS.*from 1 on"):
        function(x)
    function.clear()
    monkeypatch.setenv("YOTA_NUM_THREADS", " 5 ")
    function(x)


def test_several_python_threads_at_once() -> None:
    x = np.random.default_rng(0).normal(size=200_000)
    function = yota.value_and_grad(lambda x: np.sum(np.sin(x) * x), target="c")
    expected = function(x)
    wrong: list[Any] = []

    def work() -> None:
        for _ in range(10):
            value, gradient = function(x)
            if value != expected[0] or not np.array_equal(gradient, expected[1]):
                wrong.append(value)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_strict_values_have_numpys_bits() -> None:
    def f(x: Any) -> Any:
        return np.sum(np.sin(x) * x + np.exp(-x) / (x + 1.0))

    x = np.random.default_rng(0).uniform(size=1001)
    assert yota.grad(f, x, target="c", strict=True)[0] == f(x)


def test_compiled_text_is_clean(tmp_path: Path) -> None:
    """No warning from a compiler that warns of much, and no comment or name that a user's text could break."""
    write = Writer("f */ int;")
    x = write.input("x*/", (300, 4))
    y = write.input("double", (), float)
    mixed = write("where", write("greater", x, 0.0), write("maximum", x, y), write("remainder", x, 0.3))
    total = write("sum", mixed, axis=(1,))
    piece = write("getitem", x, index=(Slice(0, 300), 1))
    tape = write.finish(
        total, write("max", mixed), write("sum", write("multiply", piece, total)), write("sum", mixed, axis=(0,))
    )
    values = arguments(tape)
    source = c.generate(tape)
    check(tape, native.load(source)(*values), evaluate(tape, *values))
    file = tmp_path / "generated.c"
    file.write_text(source.code)
    found = compiler.find()
    strict = ["-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas"]
    done = subprocess.run(
        [*found.command, *found.flags, *strict, str(file), "-o", str(tmp_path / "out.so")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert max(map(len, source.code.splitlines())) <= 160
    assert not re.search(r"\bsafe_|nan_to_num|fast-math", source.code)


def test_compile_tape_knows_the_target() -> None:
    tape = polynomial()
    function, source = compile_tape(simplified(tape, Target("c")), Target("c"))
    assert source.startswith("/*\n * polynomial: generated by yota.")
    results = function(np.array([2.0, 3.0, 4.0]))
    assert [type_of(result) for result in results] == [tape.types[output] for output in tape.outputs]
    assert results[0] == 24.0


def test_forked_children_do_not_wait_for_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    if "fork" not in multiprocessing.get_all_start_methods():
        pytest.skip("this system does not fork")
    monkeypatch.setenv("YOTA_NUM_THREADS", "2")
    function = yota.value_and_grad(lambda x: np.sum(np.sin(x) * np.exp(x)), target="c")
    x = np.linspace(0, 1, 500_000)
    value, _ = function(x)
    context = multiprocessing.get_context("fork")
    receive, send = context.Pipe(duplex=False)
    # A daemon, so that this process can end even if the child does not.
    child = context.Process(target=lambda: send.send(function(x)[0]), daemon=True)
    with warnings.catch_warnings():
        # Forking with threads is what this is about; JAX warns of it too, once it is loaded.
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        child.start()
    assert receive.poll(30)
    assert abs(receive.recv() - value) < 1e-6 * abs(value)
    child.join(10)


def test_names_of_any_kind() -> None:
    """Keywords, macros, functions of C, and names that the file gives itself."""
    hints = "x x_shape double linux sin I RAND_MAX args PyObject npy_intp x_parts first value i main y0".split()
    write = Writer("exp")
    inputs = [write.input(hint, (40,)) for hint in hints]
    total = inputs[0]
    for number, hint in enumerate(hints[1:], start=1):
        total = write("add", write("sin", total), inputs[number])
        write.builder.names[total] = f"{hint}_sum_part"
    tape = write.finish(write("sum", total), write("multiply", total, total))
    values = arguments(tape)
    check(tape, compiled(tape)(*values), evaluate(tape, *values))


def test_memory_of_large_results_is_used_again() -> None:
    write = Writer("large")
    x = write.input("x", (600_000,))
    function = compiled(write.finish(write("multiply", x, 2.0)))
    values = np.arange(600_000.0)
    first, second = function(values), function(values + 1)
    assert first.flags.owndata and not np.shares_memory(first, second)
    np.testing.assert_array_equal(first, 2 * values)
    place = first.ctypes.data
    del first
    again = function(values + 2)
    assert again.ctypes.data == place
    np.testing.assert_array_equal(again, 2 * values + 4)
    np.testing.assert_array_equal(second, 2 * values + 2)
    again.resize(700_000, refcheck=False)
    assert again[599_999] == 2 * 599_999.0 + 4


def test_threads_do_not_get_the_same_memory() -> None:
    write = Writer("large")
    x = write.input("x", (600_000,))
    function = compiled(write.finish(write("add", x, 1.0)))
    wrong: list[int] = []

    def work(number: int) -> None:
        values = np.full(600_000, float(number))
        for _ in range(20):
            result = function(values)
            if result[0] != number + 1 or not np.all(result == number + 1):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_arguments_called_as_functions_are() -> None:
    def total(large_array: Any, widened: Any) -> Any:
        return np.sum(large_array.astype(np.float32).astype(float) * widened)

    x = np.random.default_rng(0).random(100_000)
    value, (first, second) = yota.value_and_grad(total, (0, 1), target="c")(x, x)
    np.testing.assert_allclose(value, np.sum(x.astype(np.float32).astype(float) * x), rtol=1e-12)
    np.testing.assert_allclose(first, x, rtol=1e-6)
    np.testing.assert_array_equal(second, x.astype(np.float32))


@pytest.mark.parametrize("wide, narrow", [("float64", "float32"), ("complex128", "complex64")])
@pytest.mark.parametrize("count", [1, 2, 4, 40])
def test_rounding_to_single_precision_is_done(count: int, wide: str, narrow: str) -> None:
    """GCC 12 folds it away in vectors of two and of four."""
    write = Writer()
    x = write.input("x", (count,), wide)
    pieces = [write("getitem", x, index=(number,)) for number in range(count)]
    single = [write("astype", piece, dtype=np.dtype(narrow)) for piece in pieces]
    straight = write("stack", *(write("subtract", s, p) for s, p in zip(single, pieces, strict=True)), axis=0)
    loop = write("subtract", write("astype", x, dtype=np.dtype(narrow)), x)
    function = compiled(write.finish(straight, loop))
    values = (np.random.default_rng(0).random((count, 2)) @ [1.0, 1j if wide == "complex128" else 1.0]).astype(wide)
    expected = values.astype(narrow) - values
    for found in function(values):
        np.testing.assert_array_equal(found, expected)
