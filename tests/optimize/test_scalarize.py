"""Arrays that fall apart into scalars: which tapes qualify, and that values stay."""

from __future__ import annotations

import numpy as np
import pytest

from tests.optimize.tapes import agree, eight, evaluate, gradient, names, tape_of
from yota.emit.python.scalar import is_scalar
from yota.ir.indexing import GATHER, NEWAXIS, Slice
from yota.ir.verify import verify
from yota.optimize import pipeline, scalarize


def unrolled(function, *types, arguments=None):
    tape = tape_of(function, *types)
    found = verify(scalarize.run(tape))
    if arguments is None:
        random = np.random.default_rng(2)
        arguments = [random.normal(size=type) if isinstance(type, tuple) else 0.75 for type in types]
    mine, theirs = evaluate(found, *arguments), evaluate(tape, *arguments)
    agree(mine, theirs)
    for variable, original in zip(found.outputs, tape.outputs, strict=True):
        assert found.types[variable] == tape.types[original]
    return found


@pytest.mark.parametrize(
    ("function", "types"),
    [
        (lambda x: (x * x + 1.0).sum(), ((4,),)),
        (lambda a, b: a @ b, ((2, 2), (2,))),
        (lambda a, b: a @ b, ((2,), (2, 2))),
        (lambda a, b: a @ b, ((2, 3), (3, 2))),
        (lambda a, b: a @ b, ((3,), (3,))),
        (lambda a, b: a.apply("einsum", a, b, subscripts="ij,kj->ik"), ((2, 2), (2, 2))),
        (lambda x: x.call("transpose", axes=(1, 0)).call("reshape", shape=(4,)) * 2.0, ((2, 2),)),
        (lambda x: x.call("stack", x * 3.0, axis=1), ((3,),)),
        (lambda x: x.call("concatenate", x * 3.0, axis=0), ((3,),)),
        (lambda x: x.call("setitem", x[0] * 2.0, index=(1,)) * x, ((3,),)),
        (lambda x: x.call("setitem", 2.0, index=(Slice(0, 2),)) * x, ((3,),)),
        (lambda x: x[0].call("scatter", x, shape=(3,), indices=((1,), (Slice(0, 3),))), ((3,),)),
        (lambda x: x.call("getitem", np.array([2, 0, 2]), index=(GATHER,)) * x, ((3,),)),
        (lambda x: x.call("getitem", index=(Slice(0, 3), NEWAXIS)) * x, ((3,),)),
        (lambda x: x.call("max", axis=(1,), keepdims=False), ((2, 3),)),
        (lambda x: x.call("min", axis=(0,), keepdims=True), ((2, 3),)),
        (lambda x: x.call("prod", axis=(0, 1), keepdims=False), ((2, 3),)),
        (lambda x: x.call("cumsum", axis=1), ((2, 3),)),
        (lambda x: x.apply("where", x.call("greater", 0.0), x, x * 2.0), ((4,),)),
        (lambda x: x * np.array([1.0, 2.0, 0.0]), ((3,),)),
        (lambda x, s: (x * s).call("exp"), ((3,), "weak")),
        (lambda x: x.sum((0,)) + x.sum((1,)), ((2, 2),)),
        (lambda x: x.sum((0,)), ((0, 2),)),
        (lambda x: (x * x).sum(), ((0,),)),
    ],
)
def test_small_arrays_fall_apart(function, types, monkeypatch):
    monkeypatch.setattr(scalarize, "_ARRAY_CALL", 100_000)
    assert is_scalar(unrolled(function, *types))


@pytest.mark.parametrize("size", [7, 8, 15, 17, 40, 128, 129, 300])
def test_sums_add_in_numpys_order(size, monkeypatch):
    monkeypatch.setattr(scalarize, "_ARRAY_CALL", 100_000)
    random = np.random.default_rng(3)
    x = random.normal(size=size) * 10.0 ** random.integers(-8, 8, size)
    tape = tape_of(lambda x: x.sum(), (size,))
    found = scalarize.run(tape)
    assert is_scalar(found)
    assert evaluate(found, x)[0] == evaluate(tape, x)[0]


def test_large_arrays_stay():
    tape = tape_of(lambda x: (x * x).sum(), (1000,))
    assert scalarize.run(tape) is tape
    tape = tape_of(lambda x: x.call("exp") + x, (100,))
    assert scalarize.run(tape) is tape


def test_unknown_functions_stay():
    tape = tape_of(lambda x: x.call("sort", axis=0), (3,))
    assert scalarize.run(tape) is tape


def test_few_reads_of_a_long_array():
    tape = gradient(tape_of(lambda x: x[3] * x[500] ** 2, (100_000,)))
    found = pipeline.run(tape)
    assert is_scalar(found)
    assert names(found).count("getitem") == 2
    assert names(found)[-1] == "scatter"
    x = np.arange(100_000.0)
    agree(evaluate(found, x), evaluate(tape, x))


def test_dense_gradients_are_stacked():
    found = pipeline.run(gradient(tape_of(eight, (8,))))
    assert is_scalar(found)
    assert names(found)[-1] == "stack"


def test_long_loops_over_scalars_qualify():

    from yota.ir.catalog import primitive

    tape = tape_of(lambda x: x[0] * 1.0, (2,))
    builder = tape.builder()
    whole = builder.constant(np.array([1, 0]))
    (entry,) = builder.inputs
    stacked = builder.emit(primitive("stack"), (whole, entry.variable), {"axis": 0})
    product = builder.emit(primitive("matmul"), (stacked, whole))
    found = scalarize.run(builder.finish([product]), most=100)
    assert "matmul" not in names(found)
    np.testing.assert_array_equal(evaluate(found, np.array([3.0, 4.0]))[0], [1.0, 3.0])


def test_long_tapes_unroll_further_where_they_are_compiled():
    def steps(q):
        for _ in range(300):
            q = q * q - q / 3.0
        return q @ q

    tape = tape_of(steps, (3,))
    assert not is_scalar(scalarize.run(tape))
    found = scalarize.run(tape, compiled=True)
    assert is_scalar(found) and len(found) < 6 * len(tape)
    q = np.array([0.5, -0.25, 0.125])
    agree(evaluate(found, q), evaluate(tape, q))


def test_compiled_tapes_do_not_unroll_without_end():
    def steps(q):
        for _ in range(100):
            q = q @ q
        return q[0, 0]

    tape = tape_of(steps, (4, 4))
    assert scalarize.run(tape, compiled=True) is tape


def test_the_longest_compiled_tapes_unroll_as_others_do(monkeypatch):
    monkeypatch.setattr(scalarize, "_MOST_COMPILED", 1000)

    def steps(q):
        for _ in range(300):
            q = q * q - q / 3.0
        return q @ q

    tape = tape_of(steps, (3,))
    assert scalarize.run(tape, compiled=True) is tape
