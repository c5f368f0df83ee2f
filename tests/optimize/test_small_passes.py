"""The passes `inline`, `fold`, `cse` and `dce`, each on its own, and the pipeline as a whole."""

from __future__ import annotations

import time

import numpy as np
import pytest

from tests.optimize.tapes import FLOAT, Traced, agree, eight, evaluate, gradient, names, tape_of
from yota.errors import TapeError
from yota.ir.catalog import primitive
from yota.ir.primitive import Primitive
from yota.ir.tape import TapeBuilder
from yota.ir.types import TensorType
from yota.ir.verify import verify
from yota.optimize import cse, dce, fold, inline, pipeline


def _expand_double(emitter, operands, static):
    return emitter.emit(primitive("multiply"), (emitter.constant(2), operands[0]), {})


DOUBLE = Primitive("double", None, True, lambda x: 2 * x, _expand_double)


def _expand_quadruple(emitter, operands, static):
    return emitter.emit(DOUBLE, (emitter.emit(DOUBLE, operands, {}),), {})


QUADRUPLE = Primitive("quadruple", None, True, lambda x: 4 * x, _expand_quadruple)


def _apply(found: Primitive):
    builder = TapeBuilder("f")
    x = builder.input(TensorType(FLOAT, (3,)), 0, "x")
    return builder.finish([builder.emit(found, (x,))])


def test_inline_expands_to_any_depth():
    tape = _apply(QUADRUPLE)
    found = inline.run(tape)
    assert names(found) == ["multiply", "multiply"]
    agree(evaluate(found, np.arange(3.0)), evaluate(tape, np.arange(3.0)))


def test_inline_leaves_other_tapes_alone():
    tape = _apply(primitive("exp"))
    assert inline.run(tape) is tape


def test_inline_refuses_a_definition_of_itself():
    def expand(emitter, operands, static):
        return emitter.emit(endless, operands, {})

    endless = Primitive("endless", None, True, lambda x: x, expand)
    with pytest.raises(TapeError, match="endless: its definition refers to itself"):
        inline.run(_apply(endless))


def test_fold_evaluates_constants_once():
    tape = tape_of(lambda x: x * x.apply("exp", np.float64(2)) + x.apply("multiply", 2, 3.5), (3,))
    found = fold.run(tape)
    assert names(found) == ["multiply", "add"]
    agree(evaluate(found, np.arange(3.0)), evaluate(tape, np.arange(3.0)))


def test_fold_keeps_types_and_marks_arrays_read_only():
    tape = tape_of(lambda x: (x * x.apply("multiply", np.ones(3), 2.0), x.apply("multiply", 2, 3.5)), (3,))
    found = dce.run(fold.run(tape))
    arrays = [value for value in found.constants.values() if isinstance(value, np.ndarray)]
    assert arrays
    assert not arrays[0].flags.writeable
    assert type(found.constants[found.outputs[1]]) is float


def test_fold_is_silent_about_infinities():
    found = fold.run(tape_of(lambda x: x * x.apply("divide", np.float64(1), np.float64(0)), ()))
    assert names(found) == ["multiply"]


def test_fold_leaves_large_broadcasts():
    tape = tape_of(lambda x: x * x.apply("broadcast_to", 2.0, shape=(100, 1000)), (100, 1000))
    assert names(fold.run(tape)) == ["broadcast_to", "multiply"]
    small = tape_of(lambda x: x * x.apply("broadcast_to", 2.0, shape=(10,)), (10,))
    assert names(fold.run(small)) == ["multiply"]


def test_cse_numbers_values():
    tape = tape_of(lambda x, y: (x * y + y * x, x - y, y - x, x.call("exp"), x.call("exp")), (), ())
    found = cse.run(tape)
    assert names(found) == ["multiply", "add", "subtract", "subtract", "exp"]


def test_cse_tells_keywords_apart():
    tape = tape_of(lambda x: (x.sum((0,)), x.sum((1,)), x.sum((0,))), (2, 3))
    assert names(cse.run(tape)) == ["sum", "sum"]


def test_cse_interns_arrays_by_content_but_tells_signed_zeros_apart():
    def function(x):
        a, b = np.array([1.0, 0.0]), np.array([1.0, 0.0])
        return x * a, x * b, x * np.array([1.0, -0.0])

    assert names(cse.run(tape_of(function, (2,)))) == ["multiply", "multiply"]


def test_dce_drops_what_nobody_reads_but_no_guard_and_no_input():
    builder = TapeBuilder("f")
    x, y = (Traced(builder, builder.input(TensorType(FLOAT), k, name)) for k, name in enumerate("xy"))
    unused = x.call("exp") * 2.0
    positive = x.call("greater", 0.0)
    builder.guard(positive.variable, True, "bool")
    tape = builder.finish([(x * 3.0).variable])
    found = dce.run(tape)
    assert names(found) == ["greater", "multiply"]
    assert [entry.name for entry in found.inputs] == ["x", "y"]
    assert found.guards[0].after == 1
    assert unused.variable in tape.types
    assert y.variable == 2


def test_names_survive():
    builder = TapeBuilder("f")
    x = Traced(builder, builder.input(TensorType(FLOAT), 0, "x"))
    y = x * x
    builder.names[y.variable] = "area"
    found = pipeline.run(builder.finish([(y + 1.0).variable]))
    assert "area" in found.names.values()


def test_pipeline_stops_where_asked_and_calls_the_verifier():
    seen: list = []
    tape = gradient(tape_of(eight, (8,)))
    until = pipeline.run(tape, until="fold", verify=seen.append)
    assert len(seen) == 2
    assert len(until) <= len(tape)


def test_pipeline_keeps_the_results():
    tape = gradient(tape_of(eight, (8,)))
    x = np.random.default_rng(0).normal(size=8)
    agree(evaluate(pipeline.run(tape, verify=verify), x), evaluate(tape, x), rtol=1e-10)


@pytest.mark.parametrize("strict", [False, True])
def test_long_tapes_are_quick_and_need_no_recursion(strict):
    def function(x):
        s = x[0]
        for k in range(5000):
            s = s * x[k % 8] + 0.5
        return s

    tape = tape_of(function, (8,))
    begin = time.process_time()
    found = pipeline.run(tape, strict=strict)
    assert time.process_time() - begin < 5
    assert len(found) == 10008
