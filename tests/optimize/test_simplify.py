"""Local algebra: what is rewritten, what must not be, and that special values survive."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.optimize.tapes import FLOAT, agree, evaluate, names, tape_of
from yota.ir.indexing import Slice
from yota.ir.tape import Tape
from yota.ir.types import TensorType
from yota.ir.verify import verify
from yota.optimize import cse, dce, fold, simplify
from yota.optimize import simplify_arithmetic as arithmetic

SPECIAL = [0.0, -0.0, 1.0, -2.5, math.inf, -math.inf, math.nan, 5e-324, 1e308]


def simplified(tape: Tape, **options: bool) -> Tape:
    return dce.run(cse.run(simplify.run(fold.run(tape), **options)))


def check(function, *types, arguments=None, exact=False, **options):
    """The simplified tape, after comparing its results with the original's."""
    tape = tape_of(function, *types)
    found = verify(simplified(tape, **options))
    if arguments is None:
        random = np.random.default_rng(1)
        arguments = [random.normal(size=type) if isinstance(type, tuple) else 1.25 for type in types]
    mine, theirs = evaluate(found, *arguments), evaluate(tape, *arguments)
    agree(mine, theirs)
    if exact:
        assert [np.asarray(m).tobytes() for m in mine] == [np.asarray(t).tobytes() for t in theirs]
    for variable, original in zip(found.outputs, tape.outputs, strict=True):
        assert found.types[variable] == tape.types[original]
    return found


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: x * 1.0, []),
        (lambda x: 1 * x, []),
        (lambda x: x / 1.0, []),
        (lambda x: (-x).call("negative"), []),
        (lambda x: x + (-(x * x)), ["square", "subtract"]),
        (lambda x: (-(x * 3.0)) + x, ["multiply", "add"]),
        (lambda x: x - (-x), ["add"]),
        (lambda x: x * x, ["square"]),
        (lambda x: x**1, []),
        (lambda x: x**2.0, ["square"]),
        (lambda x: x**5, ["square", "square", "multiply"]),
        (lambda x: x**-2, ["square", "divide"]),
        (lambda x: x**0.5, ["power"]),
        (lambda x: x**65, ["power"]),
        (lambda x: x * (1.0 / (x + 2.0)), ["add", "divide"]),
        (lambda x: x.call("positive"), []),
        (lambda x: x.call("real"), []),
        (lambda x: x.call("conjugate"), []),
        (lambda x: x.call("astype", dtype=FLOAT), []),
        (lambda x: -1.0 * x, ["negative"]),
        (lambda x: x - 0.0, []),
        (lambda x: x + 0.0, ["add"]),
        (lambda x: x * x + 0.0, ["square"]),
        (lambda x: x * 0.0, ["multiply"]),
        (lambda x: 2.0 * (3.0 * x), ["multiply"]),
    ],
)
@pytest.mark.parametrize("shape", [(), (3,)])
def test_rewrites(function, expected, shape):
    assert names(check(function, shape)) == expected


@pytest.mark.parametrize("value", SPECIAL)
@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * 1.0,
        lambda x: x / 1.0,
        lambda x: (-x).call("negative"),
        lambda x: x - 0.0,
        lambda x: x + 0.0,
        lambda x: 0.0 + x * x,
        lambda x: x * 0.0,
        lambda x: (-x) * 3.0 + x,
        lambda x: x * 2.0 - (-x),
        lambda x: x**0,
        lambda x: x**3,
        lambda x: x**-1,
    ],
)
def test_special_values(function, value):
    tape = tape_of(function, ())
    (mine,), (theirs,) = (evaluate(each, np.float64(value)) for each in (simplified(tape), tape))
    np.testing.assert_equal(float(mine), float(theirs))
    if theirs == 0:
        assert np.signbit(mine) == np.signbit(theirs)


def test_zeroth_power_of_an_array_is_ones():
    found = check(lambda x: x**0, (3,), arguments=[np.array([np.nan, 0.0, 2.0])])
    assert names(found) in (["broadcast_to"], [])


def test_single_use_is_respected():
    found = check(lambda x: ((r := 1.0 / x) * x, r), ())
    assert names(found).count("divide") == 1


def test_strict_keeps_the_value_but_not_no_ops():
    def function(x):
        value = (x**3) * 1.0
        return value, value * (1.0 / (x * x)) + x**3 * 2.0

    tape = tape_of(function, ())
    found = simplified(tape, strict=True)
    assert names(found).count("power") == 1
    assert "divide" in names(found)
    assert evaluate(found, np.float64(1.7))[0] == evaluate(tape, np.float64(1.7))[0]


def test_reshapes_and_transposes():
    assert names(check(lambda x: x.call("reshape", shape=(6,)).call("reshape", shape=(3, 2)), (2, 3))) == ["reshape"]
    assert names(check(lambda x: x.call("reshape", shape=(6,)).call("reshape", shape=(2, 3)), (2, 3))) == []
    assert names(check(lambda x: x.call("transpose", axes=(1, 0)).call("transpose", axes=(1, 0)), (2, 3))) == []
    found = check(lambda x: x.call("transpose", axes=(1, 2, 0)).call("transpose", axes=(1, 2, 0)), (2, 3, 4))
    assert names(found) == ["transpose"]


def test_broadcasts_are_left_to_elementwise_ops():
    found = check(lambda s, x: s.call("broadcast_to", shape=(4,)) * x, (), (4,))
    assert names(found) == ["multiply"]
    found = check(lambda s: s.call("broadcast_to", shape=(4,)).call("exp"), ())
    assert names(found) == ["exp", "broadcast_to"]
    found = check(lambda x: x * np.ones(4), (4,))
    assert names(found) == []


def test_sums_of_broadcasts():
    found = check(lambda s: s.call("broadcast_to", shape=(4, 3)).sum(), ())
    assert names(found) == ["multiply"]
    found = check(lambda v: v.call("broadcast_to", shape=(4, 3)).sum((0,)), (3,))
    assert names(found) == ["multiply"]
    found = check(lambda v: v.call("broadcast_to", shape=(4, 3)).sum((1,)), (3,))
    assert names(found) == ["sum", "broadcast_to"]
    found = check(lambda v: v.call("broadcast_to", shape=(4, 3)).sum((0, 1), keepdims=True), (3,))
    assert "broadcast_to" not in names(found)
    assert names(check(lambda x: x.sum((1,)), (4, 1))) == ["reshape"]


def test_scalar_factors_leave_sums():
    found = check(lambda s, x: (s * x).sum(), (), (5,))
    assert names(found) == ["sum", "multiply"]


@pytest.mark.parametrize("shape", [(), (4,), (3, 1)])
def test_products_with_broadcast_matrices(shape):
    """The adjoint of ``np.sum(W @ x)`` multiplies a matrix of equal elements."""
    found = check(lambda s, b: s.call("broadcast_to", shape=(3, 4)) @ b, shape, (4, 2))
    assert ("matmul" in names(found)) == (shape == (4,))
    found = check(lambda s, a: a @ s.call("broadcast_to", shape=(4, 2)), shape if shape == () else (2,), (3, 4))
    assert names(found).count("matmul") <= 1


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.call("stack", x * 2.0, axis=0)[1, 2],
        lambda x: x.call("stack", x * 2.0, axis=1)[2, 0],
        lambda x: x.call("concatenate", x * 2.0, axis=0)[4],
        lambda x: x.call("reshape", shape=(3, 1))[2, 0],
        lambda x: x.call("broadcast_to", shape=(2, 3))[1, 1],
        lambda x: x.call("setitem", 7.5, index=(1,))[1],
        lambda x: x.call("setitem", 7.5, index=(1,))[2],
        lambda x: x.call("setitem", x * 2.0, index=(Slice(0, 3),))[2],
        lambda x: x[0].call("scatter", x[1], shape=(4,), indices=((2,), (2,)))[2],
        lambda x: x[0].call("scatter", x[1], shape=(4,), indices=((2,), (3,)))[1],
        lambda x: x[(Slice(0, 3, 2),)][1],
        lambda x: x[(Slice(2, None, -1),)][0],
    ],
)
def test_elements_are_taken_from_where_they_were_put(function):
    left = set(names(check(function, (3,))))
    assert left <= {"getitem", "multiply", "add"}


@pytest.mark.parametrize(
    ("first", "second", "left"),
    [
        (Slice(1, 5), Slice(1, 5), 1),
        (Slice(1, 5), Slice(0, 6), 1),
        (2, Slice(0, 6, 2), 1),
        (Slice(1, 5, 2), Slice(1, 5), 1),
        (Slice(4, 0, -2), Slice(0, 5, 2), 1),
        (Slice(0, 6), Slice(1, 5), 2),
        (Slice(1, 5), Slice(1, 5, 2), 2),
        (Slice(1, 4), Slice(2, 6), 2),
        (3, 2, 2),
    ],
)
def test_what_is_written_over_is_not_written(first, second, left):
    found = check(lambda x: (x * 2.0).call("setitem", 7.5, index=(first,)).call("setitem", 8.5, index=(second,)), (6,))
    assert names(found).count("setitem") == left


def test_reads_of_reads_compose():
    found = check(lambda x: x[1, Slice(0, 4, 1)][(Slice(1, 4, 2),)], (3, 4))
    assert names(found) == ["getitem"]


def test_constant_choices():
    found = check(lambda x: x.call("positive").apply("where", np.array([True, True]), x, x * 2.0), (2,))
    assert names(found) == []
    found = check(lambda x: x.apply("where", np.array([True, False]), x, x * 2.0), (2,))
    assert "where" in names(found)


def test_single_precision_is_kept():
    single = TensorType(np.dtype("float32"), (3,))
    tape = tape_of(lambda x: (x**3 * 1.0 + x * 2.0) / 1, single)
    found = simplified(tape)
    (result,) = evaluate(found, np.float32([1, 2, 3]))
    assert result.dtype == np.float32
    promoted = tape_of(lambda x: x * np.float64(1), single)
    assert names(simplified(promoted)) == ["multiply"]


def test_the_transpose_of_a_product_is_a_product_of_transposes() -> None:
    def turned(a, b):
        return (a @ b).call("transpose", axes=(1, 0))

    assert names(check(turned, (3, 4), (4, 5))) == ["transpose", "transpose", "matmul"]
    assert names(check(turned, (3, 4), (4, 5), strict=True)) == ["matmul", "transpose"]


def test_products_with_a_common_factor_are_one() -> None:
    def left(a, b, c):
        return a @ b + a @ c

    def right(a, b, c):
        return b @ a - c @ a

    assert names(check(left, (3, 4), (4, 5), (4, 5))) == ["add", "matmul"]
    assert names(check(right, (4, 5), (3, 4), (3, 4))) == ["subtract", "matmul"]
    assert names(check(left, (3, 4), (4, 5), (4, 5), strict=True)) == ["matmul", "matmul", "add"]


def test_products_that_are_read_elsewhere_stay() -> None:
    def elsewhere(a, b, c):
        product = a @ b
        return product + a @ c, product

    assert names(check(elsewhere, (3, 4), (4, 5), (4, 5))).count("matmul") == 2
    assert names(check(lambda a, b: (p := a @ b) + p, (3, 4), (4, 5))).count("matmul") == 1
    assert names(check(lambda a, b, c: a @ b + b @ c, (4, 4), (4, 4), (4, 4))).count("matmul") == 2


def test_conjugates_of_conjugates_are_none() -> None:
    complex_ = TensorType(np.dtype(complex), (3,))
    assert names(simplified(tape_of(lambda x: x.call("conjugate").call("conjugate"), complex_))) == []


@pytest.mark.parametrize("seed", range(4))
def test_no_rule_fits_where_none_is_tried(seed, monkeypatch):
    """Ops on scalars are passed over by what their operands are."""
    random = np.random.default_rng(seed)

    def program(*arguments):
        values = list(arguments)
        for name in random.choice(sorted(arithmetic.LOOKED_FOR), 400):
            one, two = random.choice(np.array([*values[-3:], 1.0, -1.0, 2.5], object), 2)
            one = one if hasattr(one, "apply") else values[-1].apply("multiply", one, 1.0)
            values.append(one.call(name) if name in ("negative", "square") else one.call(name, two))
        return values[-1]

    tape = tape_of(program, (), (), ())
    found = simplify.run(tape)
    monkeypatch.setattr(arithmetic, "LOOKED_FOR", {})
    assert simplify.run(tape).ops == found.ops
