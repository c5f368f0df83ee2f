"""Generated array code: results of one's own, untouched inputs, exact types, guards, foreign functions, threads."""

from __future__ import annotations

import ast
import threading
import traceback
from typing import Any

import numpy as np
import pytest

from tests.emit.programs import Writer, arguments, check, evaluate
from yota.emit.targets.generated import Source
from yota.emit.targets.numpy import generate
from yota.ir.indexing import GATHER, Slice
from yota.ir.location import Location
from yota.ir.primitive import Primitive
from yota.ir.tape import Tape
from yota.ir.types import TensorType
from yota.run.machine.python import load, text
from yota.run.machine.signals import StaleTape
from yota.schedule.target_forms import as_products

LONG = 600_000


def agree(tape: Tape, *values: Any, rtol: float | None = None) -> Source:
    """Assert that the generated function computes what the tape says; give its source."""
    values = values or tuple(arguments(tape))
    source = generate(tape)
    check(tape, load(source)(*values), evaluate(tape, *values), rtol)
    return source


def long_chain(dtype: Any = float) -> Tape:
    write = Writer("long_chain")
    x = write.input("x", (LONG,), dtype)
    y = write("sin", write("multiply", x, x))
    return write.finish(write("sum", y), write("multiply", y, x))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_long_arrays_are_worked_on_in_pieces(dtype: str) -> None:
    source = agree(long_chain(dtype))
    assert "for piece, start in enumerate(range(0, 600000," in source.text
    assert ("np.empty(600000)" if dtype == "float64" else f"np.empty(600000, np.{dtype})") in source.text


@pytest.mark.parametrize("part", ["real", "imag"])
def test_parts_of_long_complex_arrays_are_views_of_pieces(part: str) -> None:
    write = Writer()
    x = write.input("x", (LONG,), complex)
    y = write(part, write("multiply", x, x))
    agree(write.finish(write("sum", write("multiply", y, y)), write("add", y, write(part, x))))


@pytest.mark.parametrize("shape", [(3, 100_003), (100_003, 3), (300, 1001), (7, 60, 613), (1, LONG), (LONG, 1)])
@pytest.mark.parametrize("axis", [0, 1])
def test_sums_over_any_axis_of_arrays_of_any_shape(shape: tuple[int, ...], axis: int) -> None:
    write = Writer()
    x = write.input("x", shape)
    y = write("exp", write("negative", write("square", x)))
    total = write("sum", y, axis=(axis,), keepdims=True)
    share = write("divide", y, total)
    top = write("max", share, axis=(axis,))
    agree(write.finish(write("sum", share), share, top, write("sum", y, axis=(axis,))))


def test_the_last_piece_may_be_short() -> None:
    write = Writer()
    x = write.input("x", (1_000_003,))  # a prime
    y = write("tanh", x)
    source = agree(write.finish(write("sum", write("multiply", y, y)), write("subtract", 1.0, y)))
    assert "stop = min(" in source.text


def test_sums_are_as_accurate_as_numpys() -> None:
    write = Writer()
    x = write.input("x", (LONG,), np.float32)
    function = load(generate(write.finish(write("sum", write("add", write("square", x), np.float32(0.1))))))
    values = np.random.default_rng(0).random(LONG).astype(np.float32)
    plain = np.square(values) + np.float32(0.1)
    exact = plain.astype(np.longdouble).sum()
    assert abs(function(values) - exact) <= 2 * abs(plain.sum() - exact) + 4 * np.spacing(np.float32(exact))


def test_results_never_share_memory() -> None:
    write = Writer()
    x = write.input("x", (LONG // 3, 3))
    constant = write.constant(np.arange(40.0))
    turned = write("transpose", x, axes=(1, 0))
    y = write("exp", x)
    flat = write("reshape", y, shape=(LONG,))
    part = write("getitem", y, index=(Slice(0, 5), Slice(0, 3)))
    wide = write("broadcast_to", write("sum", y, axis=(0,)), shape=(4, 3))
    tape = write.finish(x, x, turned, constant, y, y, flat, part, wide)
    function = load(generate(tape))
    (value,) = arguments(tape)
    found = function(value)
    check(tape, found, evaluate(tape, value))
    again = function(value)
    for number, one in enumerate(found):
        assert one.flags.writeable
        assert not np.shares_memory(one, value)
        assert not np.shares_memory(one, tape.constants[constant])
        for other in (*found[:number], *again):
            assert not np.shares_memory(one, other)
    for one in found:
        one[...] = np.nan
    check(tape, function(value), evaluate(tape, value))
    check(tape, again, evaluate(tape, value))


@pytest.mark.parametrize("strange", ["read-only", "strided", "reversed", "fortran", "unaligned", "broadcast"])
def test_inputs_may_lie_in_any_way(strange: str) -> None:
    write = Writer()
    x = write.input("x", (1000, 300))
    y = write("multiply", write("sin", x), x)
    rows = write("sum", y, axis=(1,), keepdims=True)
    place = (Slice(0, 1), Slice(0, 300))
    tape = write.finish(write("sum", y), write("divide", y, rows), write("setitem", x, 3.0, index=place))
    plain = np.random.default_rng(1).random((1000, 300))
    if strange == "strided":
        value = np.repeat(np.repeat(plain, 2, axis=0), 3, axis=1)[::2, ::3]
    elif strange == "reversed":
        value = plain[::-1, ::-1].copy()[::-1, ::-1]
    elif strange == "fortran":
        value = np.asfortranarray(plain)
    elif strange == "unaligned":
        value = np.frombuffer(b"\0" + plain.tobytes(), dtype=np.uint8)[1:].view(float).reshape(plain.shape)
        assert not value.flags.aligned
    elif strange == "broadcast":
        value = np.broadcast_to(plain[:1], plain.shape)
    else:
        value = plain.copy()
    value.flags.writeable = False
    before = value.copy()
    check(tape, load(generate(tape))(value), evaluate(tape, value))
    np.testing.assert_array_equal(value, before)


def test_threads_and_calls_within_calls_do_not_meet() -> None:
    write = Writer()
    x = write.input("x", (200_000,))
    y = write("cos", write("multiply", x, 3.0))
    tape = write.finish(write("sum", y), write("add", y, x))
    function = load(generate(tape))
    faults: list[Exception] = []

    def work(seed: int) -> None:
        values = arguments(tape, seed)
        try:
            for _ in range(5):
                check(tape, function(*values), evaluate(tape, *values))
        except Exception as fault:  # noqa: BLE001 - reported by the thread that joins
            faults.append(fault)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults


def test_a_function_may_call_itself_through_a_users_function() -> None:
    depth: list[int] = []
    function: Any = None

    def foreign(x: Any) -> Any:
        if len(depth) < 2:
            depth.append(1)
            function(x + 1.0)
        return np.asarray(x) * 2.0

    primitive = Primitive("foreign", "nowhere.foreign", False, foreign)
    write = Writer()
    x = write.input("x", (50_000,))
    squared = write("square", x)
    called = write.builder.emit(primitive, (squared,), (), TensorType(np.dtype(float), (50_000,)))
    tape = write.finish(write("add", called, squared), write("sum", write("sqrt", squared)))
    source = generate(tape)
    assert "foreign" in source.constants
    function = load(source)
    (value,) = arguments(tape)
    found = function(value)
    check(tape, found, evaluate(tape, value))


def test_a_users_function_may_give_back_its_argument() -> None:
    primitive = Primitive("same", None, False, lambda x: x)
    write = Writer()
    x = write.input("x", (50_000,))
    for source in (x, write("square", x)):
        same = write.builder.emit(primitive, (source,), (), TensorType(np.dtype(float), (50_000,)))
        tape = write.finish(same, write("exp", write("negative", same)), write("sqrt", write("multiply", same, same)))
        (value,) = arguments(tape)
        found = load(generate(tape))(value)
        check(tape, found, evaluate(tape, value))
        assert not np.shares_memory(found[0], value)


def test_functions_of_other_modules_are_imported() -> None:
    special = pytest.importorskip("scipy.special")
    primitive = Primitive("expit", "scipy.special.expit", True, special.expit)
    write = Writer()
    x = write.input("x", (LONG,))
    y = write.builder.emit(primitive, (x,))
    source = agree(write.finish(write("sum", y), write("multiply", y, write("subtract", 1.0, y))))
    assert "import scipy.special\n" in source.text
    assert "scipy.special.expit(x[start:stop], out=" in source.text


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_scalar_types_come_out_exactly(dtype: str) -> None:
    write = Writer()
    x = write.input("x", (5, 4), dtype)
    weak = write.input("p", (), float, weak=True)
    strong = write.input("q", (), np.float64)
    small = write.input("s", (), np.float32)
    total = write("sum", x)
    outputs = [
        write("multiply", x, weak),
        write("multiply", x, strong),
        write("multiply", x, small),
        write("multiply", x, write.constant(2.0)),
        write("multiply", x, write.constant(np.float64(2.0))),
        write("multiply", x, write.constant(np.float32(0.1))),
        write("add", total, write.constant(1)),
        write("add", weak, 1.0),
        write("exp", weak),
        write("divide", weak, 0.0),
        write("power", write("negative", weak), 0.5),
        write("astype", write("real", total), dtype=np.dtype("float32")),
        write("sum", write("reshape", strong, shape=(1, 1)), axis=(0, 1)),
        strong,
        weak,
        write.constant(np.float32(3.0)),
        write("where", write("greater", small, 0.0), small, 1.0),
        write("add", write("add", weak, 1.0), x),
    ]
    tape = write.finish(*outputs)
    agree(tape, np.full((5, 4), 2, dtype), 0.5, np.float64(3.0), np.float32(0.7))
    # A 0-d array is as good as a scalar.
    agree(tape, np.full((5, 4), 2, dtype), 0.5, np.array(3.0), np.array(0.7, np.float32))


def test_empty_arrays() -> None:
    write = Writer()
    x = write.input("x", (0, 3))
    y = write("exp", x)
    tape = write.finish(write("sum", y), write("sum", y, axis=(0,)), write("sum", y, axis=(1,)), y)
    agree(tape, np.empty((0, 3)))


def test_infinities_and_nans_go_through_in_silence(recwarn: pytest.WarningsRecorder) -> None:
    write = Writer()
    x = write.input("x", (LONG,))
    y = write("log", write("divide", 1.0, x))
    tape = write.finish(write("max", y), write("sqrt", write("subtract", y, 1.0)), write("sum", write("sqrt", y)))
    value = np.linspace(-1.0, 1.0, LONG)
    value[7] = 0.0
    agree(tape, value)
    assert not recwarn.list


@pytest.mark.parametrize("kind", ["bool", "int", "float", "value"])
def test_guards(kind: str) -> None:
    write = Writer()
    x = write.input("x", (4,))
    size = write("sum", x)
    late = write("exp", write("multiply", x, size))
    where = write("greater", size, 3.0) if kind == "bool" else x if kind == "value" else size
    expected = {"bool": True, "int": 4, "float": 4.0, "value": np.ones(4)}[kind]
    write.builder.guard(where, expected, kind)
    tape = write.finish(write("sum", late))
    source = generate(tape)
    assert source.guards == 1
    # The check comes before what does not need it.
    assert source.text.index("StaleTape") < source.text.index("np.exp")
    function = load(source)
    check(tape, function(np.ones(4)), evaluate(tape, np.ones(4)))
    with pytest.raises(StaleTape) as caught:
        function(np.zeros(4))
    assert caught.value.index == 0
    assert np.all(caught.value.value == (False if kind == "bool" else 0.0))


def test_a_guard_on_nan() -> None:
    write = Writer()
    x = write.input("x", (4,))
    write.builder.guard(write("sum", x), float("nan"), "float")
    function = load(generate(write.finish(write("exp", x))))
    function(np.full(4, np.nan))
    with pytest.raises(StaleTape):
        function(np.zeros(4))


def test_a_guard_inside_a_loop() -> None:
    write = Writer()
    x = write.input("x", (LONG,))
    y = write("sin", x)
    write.builder.guard(write("greater", write("sum", y), 0.0), True, "bool")
    tape = write.finish(write("sum", write("square", y)), write("cos", y))
    agree(tape, np.full(LONG, 0.5))
    function = load(generate(tape))
    with pytest.raises(StaleTape):
        function(np.full(LONG, -0.5))
    check(tape, function(np.full(LONG, 0.5)), evaluate(tape, np.full(LONG, 0.5)))


def test_strict_values_are_numpys_to_the_bit() -> None:
    write = Writer()
    x = write.input("x", (301, 207), np.float32)
    turned = write("multiply", write("transpose", x, axes=(1, 0)), np.float32(1.7))
    value = write("sum", write("exp", turned))
    tape = write.finish(value, write("exp", write("negative", turned)))
    (argument,) = arguments(tape)
    for seed in range(5):
        (argument,) = arguments(tape, seed)
        found = load(generate(tape, strict=True))(argument)
        assert found[0] == np.sum(np.exp(argument.T * np.float32(1.7)))
        check(tape, found, evaluate(tape, argument))


def test_writes_into_an_array_are_done_in_place() -> None:
    write = Writer()
    x = write.input("x", (50,))
    found = write.constant(np.zeros(50))
    for number in range(5):
        element = write("getitem", x, index=(Slice(number, number + 10),))
        found = write("setitem", found, write("sin", element), index=(Slice(3 * number, 3 * number + 10),))
    kept = write("multiply", found, 2.0)
    last = write("setitem", found, 1.0, index=(Slice(0, 1),))
    source = agree(write.finish(last, kept))
    assert source.text.count("np.array(constant") == 1
    assert agree(write.finish(last, found)).text.count(" = np.array(") == 2


def test_temporary_values_are_held_by_the_arrays_of_results() -> None:
    write = Writer()
    x, y = write.input("x", (5000,)), write.input("y", (5000,))
    first = write("sin", write("add", write("multiply", x, y), write.constant(2)))
    second = write("exp", write("multiply", first, y))
    source = agree(write.finish(first, second))
    assert "_pool" not in source.text
    assert "np.add(v0, 2.0, out=v0)" in source.text


def test_a_result_is_not_written_over_what_is_read_later_or_looked_at() -> None:
    write = Writer()
    x = write.input("x", (60, 60))
    given = write("exp", x)
    turned = write("transpose", given, axes=(1, 0))
    mixed = write("add", given, turned)
    both = write("multiply", mixed, given)
    row = write("getitem", mixed, index=(1, Slice(0, 60)))
    source = agree(write.finish(write("add", write("multiply", both, 3.0), row), write("negative", both)))
    value = np.random.default_rng(2).normal(size=(60, 60))
    result = load(source)(value)
    inner = (np.exp(value) + np.exp(value).T) * np.exp(value)
    np.testing.assert_allclose(result[0], inner * 3.0 + (np.exp(value) + np.exp(value).T)[1])
    np.testing.assert_allclose(result[1], -inner)


@pytest.mark.parametrize(
    ("shape", "arrays", "index"),
    [
        ((6,), [(9,)], (GATHER,)),
        ((6,), [(2, 3)], (GATHER,)),
        ((6, 4), [(9,)], (GATHER, Slice(0, 4))),
        ((6, 4), [(3, 2)], (GATHER, Slice(0, 4))),
        ((6, 4), [(9,), (9,)], (GATHER, GATHER)),
        ((6, 4), [(3, 1), (2,)], (GATHER, GATHER)),
        ((6, 4), [(9,)], (Slice(0, 6), GATHER)),
        ((6, 4), [(9,)], (2, GATHER)),
        ((6, 4, 3), [(9,), (9,)], (GATHER, GATHER, Slice(0, 3))),
        ((6, 4, 3), [(9,), (9,)], (GATHER, Slice(0, 4), GATHER)),
        ((6, 4), [(9,)], (GATHER, Slice(1, 3))),
    ],
)
@pytest.mark.parametrize("dtype", [np.int64, np.int32])
def test_repeated_and_negative_indices_add_up(
    shape: tuple[int, ...], arrays: list[tuple[int, ...]], index: Any, dtype: Any
) -> None:
    random = np.random.default_rng(0)
    write = Writer()
    x = write.input("x", shape)
    places = [write.input(f"i{number}", one, dtype) for number, one in enumerate(arrays)]
    read = write("getitem", x, *places, index=index)
    tape = write.finish(read, write("scatter", write("sin", read), *places, shape=shape, indices=(index,)))
    where = [random.integers(-3, 3, one).astype(dtype) for one in arrays]
    agree(tape, random.random(shape), *where)


@pytest.mark.parametrize(
    "subscripts",
    [
        *("ij,jk->ik", "ij,kj->ki", "kij,nkj->nki", "nki,nkj->kij", "ijk,jkl->il", "i,j->ij"),
        *("ij,ij->i", "ij,ij->", "ii,ij->j", "bij,bjk->bki", "ib,jb->ijb"),
    ],
)
def test_einsums(subscripts: str) -> None:
    extents = {letter: 3 + number for number, letter in enumerate(sorted(set(subscripts) - set(",->")))}
    left, right, _ = subscripts.replace("->", ",").split(",")
    write = Writer()
    operands = [
        write.input(name, tuple(extents[letter] for letter in letters)) for name, letters in (("a", left), ("b", right))
    ]
    product = write("einsum", *operands, subscripts=subscripts)
    agree(write.finish(product, write("sin", product)))


@pytest.mark.parametrize("subscripts", ["kij,nkj->nki", "nkj,kij->nki", "ij,jk->ik", "ij,kj->ki", "kij,nkj->kin"])
def test_products_lie_as_their_results_do(subscripts: str) -> None:
    """What is side by side in the result is so in the product; two products of one array look at it once."""
    extents = {letter: 3 + number for number, letter in enumerate(sorted(set(subscripts) - set(",->")))}
    left, right, _ = subscripts.replace("->", ",").split(",")
    write = Writer()
    a, b, c = (
        write.input(name, tuple(extents[letter] for letter in letters))
        for name, letters in (("a", left), ("b", right), ("c", right))
    )
    tape = as_products(write.finish(*(write("einsum", a, other, subscripts=subscripts) for other in (b, c))))
    assert not any(op.name == "einsum" for op in tape.ops)
    for output in tape.outputs:
        last = tape.definitions()[output]
        assert last.name != "transpose" or last.keyword("axes")[-1] == tape.types[output].ndim - 1
    looks = [(op.operands, op.static) for op in tape.ops if op.name in ("transpose", "reshape")]
    assert len(set(looks)) == len(looks)


def test_text_is_the_same_each_time_and_names_are_safe() -> None:
    hostile = ["lambda", "x y", "np", "'''", "\n    import os", "print", "", "é", "β", "a" * 500, "x_y", "1st", "work"]
    write = Writer('evil"""\nimport os\n')
    inputs = [write.input(name, (3,)) for name in hostile]
    total = inputs[0]
    for variable in inputs[1:]:
        total = write("add", total, variable)
    write.builder.names[total] = "def f(): pass"
    tape = write.finish(write("exp", total))
    source = agree(tape)
    assert source.text == generate(tape).text
    module = ast.parse(source.text)
    (function,) = (part for part in module.body if isinstance(part, ast.FunctionDef))
    names = [argument.arg for argument in function.args.args]
    assert len(set(names)) == len(names) == len(hostile)
    assert not any(isinstance(part, ast.Import) and part.names[0].name == "os" for part in ast.walk(module))


def test_source_lines_of_the_user_stay_comments(tmp_path: Any) -> None:
    file = tmp_path / "f.py"
    file.write_text("y = x + 1  # \x0c\u2028 import os\n")
    write = Writer()
    x = write.input("x", (3,))
    write.builder.location = Location(str(file), 1, "f")
    source = agree(write.finish(write("add", x, 1.0), write("exp", x)))
    assert "# y = x + 1" in source.text


def test_large_constants_are_not_printed() -> None:
    write = Writer()
    x = write.input("x", (1000,))
    large, small = write.constant(np.arange(1000.0)), write.constant(np.array([1.0, np.nan, -np.inf]))
    source = agree(write.finish(write("add", x, large), write("multiply", small, 2.0)))
    assert len(source.text) < 2000
    assert [value.shape for value in source.constants.values()] == [(1000,)]
    assert "np.array([1.0, np.nan, -np.inf], np.float64)" in source.text


def test_tracebacks_show_the_generated_line() -> None:
    write = Writer()
    x = write.input("x", (3, 3))
    function = load(generate(write.finish(write("exp", write("matmul", x, x)))))
    with pytest.raises(ValueError) as caught:
        function(np.ones((3, 2)))
    assert " @ " in "".join(traceback.format_exception(caught.value))
    assert text(function).startswith('"""')


def test_a_piece_that_is_read_after_it_landed_is_kept_apart() -> None:
    write = Writer()
    x = write.input("x", (LONG,))
    up, down = write("sin", x), write("cos", x)
    places = ((Slice(2, LONG + 2),), (Slice(0, LONG),))
    one = write("scatter", up, down, shape=(LONG + 2,), indices=places)
    two = write("scatter", up, up, shape=(LONG + 2,), indices=places)
    agree(write.finish(one, two, write("sum", write("multiply", up, down))))


def test_pieces_may_leave_gaps_and_overlap_in_any_order() -> None:
    write = Writer()
    x = write.input("x", (LONG // 4, 4))
    y = write("exp", x)
    shape = (LONG // 4 + 7, 4)
    shifts = (1, 4, 3, 4)
    places = tuple((Slice(shift, shift + LONG // 4), Slice(0, 4)) for shift in shifts)
    agree(write.finish(write("scatter", y, write("sin", y), y, x, shape=shape, indices=places)))


@pytest.mark.parametrize("shape", [(64, 20), (25_000, 3), (40, 7, 5), (9, 2)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sums_of_columns_by_blas(shape: tuple[int, ...], dtype: Any) -> None:
    write = Writer()
    x = write.input("x", shape, dtype)
    y = write("square", x)
    over = tuple(range(len(shape) - 1))
    tape = write.finish(write("sum", y, axis=over), write("exp", write("negative", y)))
    values = arguments(tape)
    source = generate(tape)
    assert "np.ones(" in source.text
    found = load(source)(*values)
    exact = np.sum(np.square(values[0].astype(np.longdouble)), axis=over)
    plain = np.sum(np.square(values[0]), axis=over)
    slack = np.abs(plain - exact).max() + 4 * np.finfo(dtype).eps * exact.max()
    np.testing.assert_allclose(found[0], exact.astype(dtype), rtol=0, atol=float(slack))
    with np.errstate(all="ignore"):
        values[0].flat[0], values[0].flat[1] = np.nan, np.inf
        np.testing.assert_allclose(load(source)(*values)[0], evaluate(tape, *values)[0], rtol=1e-5)


def test_short_rows_are_added_column_by_column() -> None:
    write = Writer()
    x = write.input("x", (50, 3))
    places = write.input("places", (200,), np.int64)
    read = write("getitem", x, places, index=(GATHER, Slice(0, 3)))
    piece = write("sin", read)
    tape = write.finish(write("scatter", piece, places, shape=(50, 3), indices=((GATHER, Slice(0, 3)),)), piece)
    x_, _ = arguments(tape)
    where = np.random.default_rng(0).integers(-50, 50, 200)
    source = generate(tape)
    assert "for column in range(3):" in source.text
    assert "np.take(x, places, axis=0)" in source.text
    check(tape, load(source)(x_, where), evaluate(tape, x_, where))


@pytest.mark.parametrize("repeated", [True, False])
def test_pieces_are_added_into_an_array(repeated: bool) -> None:
    write = Writer()
    x = write.input("x", (5000, 3))
    places = write.constant(np.array([3, -1, 3 if repeated else 0]))
    index = (GATHER, Slice(0, 3))
    read = write("getitem", x, places, index=index)
    twice = write("multiply", x, 2.0)
    gathered = write("scatter", write("sin", read), places, shape=(5000, 3), indices=(index,))
    few = write("getitem", x, index=(Slice(1, 3), Slice(0, 3)))
    sliced = write("scatter", write("cos", few), shape=(5000, 3), indices=((Slice(2, 4), Slice(0, 3)),))
    kept = write("scatter", few, shape=(5000, 3), indices=((Slice(2, 4), Slice(0, 3)),))
    tape = write.finish(
        write("sum", write("square", twice)),
        write("add", twice, gathered),
        write("add", sliced, write("exp", write("negative", twice))),
        write("add", kept, x),
        kept,
    )
    source = agree(tape)
    # One scatter is a result itself, so it stays.
    assert source.text.count("np.zeros") == 1


def test_elements_are_read_before_their_array_is_reused() -> None:
    write = Writer()
    x = write.input("x", (400, 16))
    y = write("add", x, 0.5)
    elements = [write("getitem", y, index=(0, column)) for column in range(3)]
    total = write("sum", write("square", y))
    z = write("multiply", write("square", y), total)
    w = write("sum", write("exp", write("negative", z)), axis=(0,))
    late = elements[0]
    for element in elements[1:]:
        late = write("add", late, element)
    agree(write.finish(write("add", late, total), w, write("multiply", z, 3.0)))


def test_pieces_are_added_into_what_does_not_lie_row_by_row() -> None:
    write = Writer()
    x = write.input("x", (50, 9))
    columns = write.constant(np.array([3, 1, 0, 1, 2, 5, 6, 8, 7]))
    places = write.constant(np.array([3, 1, 3]))
    index = (GATHER, Slice(0, 9))
    for order in ((Slice(0, 50), GATHER), index):
        array = write("getitem", x, columns if order is not index else write.constant(np.arange(50)), index=order)
        piece = write("sin", write("getitem", x, places, index=index))
        added = write("add", array, write("scatter", piece, places, shape=(50, 9), indices=(index,)))
        x = write("multiply", added, 0.5)
    agree(write.finish(write("sum", x), x))
