"""Ops that repeat are kept as columns while they are recorded: they are the ops that were recorded."""

from __future__ import annotations

import linecache
import warnings

import numpy as np
import pytest

import yota.tape_methods
from tests.loops.programs import N, Program
from yota.ir import compact_recording as recorded
from yota.ir.compact_recording import Recorded, Repeating
from yota.ir.inputs import Leaf
from yota.rules.registry import registry
from yota.tracing.record import record
from yota.transform.rolling import roll
from yota.transform.rolling.periods import Worth

X = np.random.default_rng(0).normal(size=24)


def both(function, *args):
    """The tapes with all ops as they are, and with those that repeat as columns."""
    leaves = [Leaf(value, number, f"x{number}", ()) for number, value in enumerate(args)]
    return [record(function, leaves, tuple, registry=registry(), rolls=rolls).tape for rolls in (False, True)]


@pytest.mark.parametrize("first", range(0, 60, 10))
def test_columns_are_the_ops_of_random_programs(first, monkeypatch):
    monkeypatch.setattr(recorded, "_WINDOW", 24)
    monkeypatch.setattr(recorded, "_FEWEST", 8)
    found = 0
    for seed in range(first, first + 10):
        program, source, name = Program(seed), np.random.default_rng(seed), f"<program {seed}>"
        linecache.cache[name] = len(program.text), None, [f"{line}\n" for line in program.text.split("\n")], name
        known = {
            "np": np,
            "yota": yota,
            "K": source.normal(size=40),
            "H": source.normal(size=(40, 3)),
            "P": [*range(N), *[0] * 10],
        }
        exec(compile(program.text, name, "exec"), known)
        args = [*(source.normal(size=shape) for shape in (N, N, (3, 3))), 0.3]
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                known["f"](*map(np.copy, args[:3]), args[3])
        except (IndexError, ValueError, TypeError):
            continue
        if "yota.scan" in program.text:
            continue  # a region equals only itself
        plain, columns = both(known["f"], *args)
        ops = plain.ops
        assert tuple(columns.ops) == ops
        assert [columns.ops[number] for number in range(len(ops))] == list(ops)
        for every in (slice(3, 40, 7), slice(0, None, 5), slice(11, len(ops) - 2, 13)):
            assert columns.ops[every] == ops[every]
        if not isinstance(columns.ops, Recorded):
            continue
        found += 1
        for op in ops[::7]:
            assert columns.ops.find(op.result) == op
        assert columns.ops.find(plain.inputs[0].variable) is None
        worth = Worth(trips=4, ops=24, computed=0)
        values = [roll.run(tape, worth).play(*args) for tape in (plain, columns)]
        np.testing.assert_array_equal(*values)
    assert found


def test_few_of_the_ops_of_a_long_loop_are_made(monkeypatch):
    monkeypatch.setattr(recorded, "_PATIENCE", 10**9)  # or its source would be read

    def f(x):
        total = 0.0
        for i in range(5000):
            total = total * 0.5 + x[i % 24] * np.sin(total)
        return total

    plain, columns = both(f, X)
    assert sum(len(part) for part in columns.ops.parts if isinstance(part, list)) <= 5000
    assert str(roll.run(columns)) == str(roll.run(plain))
    assert yota.value_and_grad(f)(X)[0] == pytest.approx(f(X), rel=1e-12)


def test_what_looks_alike_is_told_apart(monkeypatch):
    monkeypatch.setattr(recorded, "_WINDOW", 24)
    monkeypatch.setattr(recorded, "_FEWEST", 8)

    def f(x):
        for i in range(90):
            x = np.tanh(x * np.sum(x, axis=1 if i == 70 else 0)) + x[:, 1 if i % 3 else 2]
            x = x.astype(np.float32) if i == 80 else x * 1.5
        return x

    plain, columns = both(f, X[:9].reshape(3, 3))
    assert any(isinstance(part, Repeating) for part in columns.ops.parts)
    assert tuple(columns.ops) == plain.ops
    assert columns.types == plain.types


def test_operators_of_other_lines_functions_and_dtypes_are_told_apart(monkeypatch):
    monkeypatch.setattr(recorded, "_WINDOW", 48)
    monkeypatch.setattr(recorded, "_FEWEST", 8)

    def opposite(value):
        return -value

    def lowered(value, depth):
        return lowered(value, depth - 1) * 0.5 if depth else value - 1.0

    def f(x, matrix, short):
        y, other = np.zeros(24), np.zeros(24, np.float32)
        y[0], other[0] = x[0], short[0]
        total = x[0]
        for i in range(400):
            total = total * x[i % 24] + (np.negative if i % 97 else opposite)(x[-1 - i % 7])
            if i % 89:
                total = total / 1.5
            else:
                total = total / 2.5
            total = (lowered(total, 1 + (i == 150)) + (matrix[i % 3, 1] if i > 200 else matrix[1, i % 3])) ** 2
            total = np.sin(np.float32(1) * total.astype(np.float32) if i == 290 else total)
            total = total + short[i % 24] * (1.5 if i != 350 else np.float64(1.5))
            if i == 320:
                y = other
            y[i % 24] = total
        return np.sum(y)

    plain, columns = both(f, X, X[:9].reshape(3, 3), X.astype(np.float32))
    assert any(isinstance(part, Repeating) for part in columns.ops.parts)
    assert tuple(columns.ops) == plain.ops
    assert columns.types == plain.types


def test_an_op_among_columns_is_replaced():
    def f(x):
        for _ in range(3000):
            x = np.cos(x * 1.5)
        return x

    ops = both(f, X)[1].ops
    other = ops[5500]
    ops[5000] = other
    assert ops[5000] == ops[5500] == other
    assert ops[4999] != other
    assert len(ops) == len(list(ops)) == 6000
