"""Which ops become one loop, in which order units run, and what is stored."""

from __future__ import annotations

import cProfile
import pstats
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import yota
from tests.emit.programs import Writer, tapes
from yota.ir.indexing import NEWAXIS, Slice
from yota.ir.tape import Tape
from yota.ir.types import TensorType
from yota.optimize.array_writes import is_view
from yota.schedule.blocked.fuse import fuse
from yota.schedule.blocked.row_ops import place
from yota.schedule.blocked.units import Unit

N = 1_000_000


def loops(tape: Tape) -> list[Unit]:
    return [unit for unit in fuse(tape) if unit.extent]


def names(unit: Unit) -> list[str]:
    return [member.op.name for member in unit.members]


def test_value_and_gradient_are_one_pass() -> None:
    write = Writer()
    x = write.input("x", (N,))
    y = write("tanh", x)
    slope = write("subtract", 1.0, write("square", y))
    (loop,) = fuse(write.finish(write("sum", y), slope))
    assert names(loop) == ["tanh", "square", "subtract", "sum"] or set(names(loop)) == {
        "tanh",
        "square",
        "subtract",
        "sum",
    }
    assert loop.extent == N
    assert 0 < loop.block < N
    assert loop.stored == {slope}


def test_small_arrays_need_no_loop() -> None:
    write = Writer()
    x = write.input("x", (100,))
    y = write("exp", x)
    assert not loops(write.finish(write("sum", y), write("multiply", y, 2.0)))


def test_the_long_axis_is_cut() -> None:
    for shape, axis in (((3, N), 1), ((N, 3), 0), ((1000, 1000), 0), ((2, 1, N), 2)):
        write = Writer()
        x = write.input("x", shape)
        y = write("exp", x)
        (loop,) = loops(write.finish(write("sum", y), write("add", y, x)))
        assert loop.extent == shape[axis]
        assert loop.local[y] == axis


def test_what_needs_a_sum_runs_after_it() -> None:
    write = Writer()
    x = write.input("x", (N,))
    y = write("exp", x)
    share = write("divide", y, write("sum", y))
    first, second = fuse(write.finish(share, write("sin", share)))
    assert names(first) == ["exp", "sum"]
    assert names(second) == ["divide", "sin"]
    assert first.stored == {y}


def test_what_only_a_later_loop_reads_is_moved_there() -> None:
    write = Writer()
    x = write.input("x", (N,))
    y, slope = write("sin", x), write("cos", x)
    total = write("sum", write("square", y))
    first, second = loops(write.finish(write("exp", write("multiply", slope, total))))
    assert names(first) == ["sin", "square", "sum"]
    assert sorted(names(second)) == ["cos", "exp", "multiply"]
    assert not first.stored


def test_cheap_values_are_computed_again_and_dear_ones_stored() -> None:
    for name, stored in (("add", 0), ("arctan2", 1)):
        write = Writer()
        x = write.input("x", (N,))
        y = write(name, x, 2.0)
        total = write("sum", write("square", y))
        first, second = loops(write.finish(write("exp", write("multiply", y, total))))
        assert len(first.stored) == stored
        assert (name in names(second)) is not bool(stored)


def test_pairs_are_cut_along_one_point_and_read_the_other_whole() -> None:
    write = Writer()
    n = 1000
    x = write.input("x", (n, 3))
    here = write("getitem", x, index=(Slice(0, n), NEWAXIS, Slice(0, 3)))
    there = write("getitem", x, index=(NEWAXIS, Slice(0, n), Slice(0, 3)))
    apart = write("subtract", here, there)
    square = write("sum", write("square", apart), axis=(2,))
    (loop,) = loops(write.finish(write("sum", square), write("sum", apart, axis=(0,)), write("sum", apart, axis=(1,))))
    subtract = next(member for member in loop.members if member.op.name == "subtract")
    assert subtract.placement is not None
    assert subtract.placement.reads == (0, None)
    assert loop.layout.kind == "planes"
    assert len(loop.stored) == 1


def test_pairs_and_triples_of_one_loop_lie_in_planes() -> None:
    write = Writer()
    x = write.input("x", (N, 3))
    flat = write("getitem", write("sin", x), index=(Slice(0, N), Slice(0, 2)))
    size = write("sum", write("square", flat), axis=(1,))
    total = write("sum", write("square", write("sin", x)), axis=(1,))
    (loop,) = loops(write.finish(write("multiply", size, total)))
    assert [loop.layout.order(TensorType(np.dtype(float), (N, short)), 0) for short in (1, 2, 3)] == [
        None,
        (1, 0),
        (1, 0),
    ]


def test_guards_come_first() -> None:
    write = Writer()
    x = write.input("x", (10,))
    write("exp", x)
    early = write("exp", x)
    total = write("sum", write("sin", x))
    write.builder.guard(total, 0.0, "float")
    order = [names(unit)[0] for unit in fuse(write.finish(early))]
    assert order == ["sin", "sum", "exp"]


def test_exact_variables_are_computed_whole() -> None:
    write = Writer()
    x = write.input("x", (N,))
    y = write("exp", x)
    value = write("sum", y)
    units = fuse(write.finish(value, write("multiply", write("sin", y), y)), frozenset({y, value}))
    assert [unit.extent for unit in units if unit.members[0].op.result in (y, value)] == [0, 0]


def test_dead_ops_are_dropped() -> None:
    write = Writer()
    x = write.input("x", (5,))
    write("exp", x)
    assert [names(unit) for unit in fuse(write.finish(write("sin", x)))] == [["sin"]]


@pytest.mark.parametrize(
    ("name", "shapes", "static", "known", "expected"),
    [
        ("add", [(8, 3), (3,)], {}, {1: 0}, (0, (0, None))),
        ("add", [(8,), (3, 8)], {}, {1: 0}, (1, (0, 1))),
        ("add", [(8, 1), (8,)], {}, {1: 0, 2: 0}, None),
        ("sum", [(8, 3)], {"axis": (1,), "keepdims": False}, {1: 0}, (0, (0,))),
        ("sum", [(3, 8)], {"axis": (0,), "keepdims": False}, {1: 1}, (0, (1,))),
        ("sum", [(3, 8)], {"axis": (0,), "keepdims": True}, {1: 1}, (1, (1,))),
        ("sum", [(8, 3)], {"axis": (0,), "keepdims": False}, {1: 0}, (None, (0,))),
        ("transpose", [(8, 3)], {"axes": (1, 0)}, {1: 0}, (1, (0,))),
        ("reshape", [(8, 3)], {"shape": (1, 8, 3, 1)}, {1: 0}, (1, (0,))),
        ("reshape", [(8, 3)], {"shape": (24,)}, {1: 0}, None),
        ("broadcast_to", [(8, 1)], {"shape": (2, 8, 5)}, {1: 0}, (1, (0,))),
        ("getitem", [(8, 3)], {"index": (Slice(0, 8), NEWAXIS, 1)}, {1: 0}, (0, (0,))),
        ("getitem", [(8, 3)], {"index": (2, Slice(0, 3))}, {1: 0}, None),
        ("getitem", [(8, 3)], {"index": (Slice(0, 7), Slice(0, 3))}, {1: 0}, None),
        ("stack", [(8,), (8,)], {"axis": 0}, {1: 0}, (1, (0, 0))),
        ("stack", [(8,), (8,)], {"axis": 1}, {1: 0}, (0, (0, 0))),
        ("concatenate", [(8, 3), (8, 2)], {"axis": 1}, {1: 0}, (0, (0, 0))),
        ("concatenate", [(8, 3), (8, 3)], {"axis": 0}, {1: 0}, None),
        ("scatter", [(8,)], {"shape": (10,), "indices": ((Slice(1, 9),),)}, {1: 0}, (None, (0,))),
        ("scatter", [(8,)], {"shape": (8, 2), "indices": ((Slice(0, 8), 1),)}, {1: 0}, (0, (0,))),
        ("scatter", [(8,)], {"shape": (16,), "indices": ((Slice(0, 16, 2),),)}, {1: 0}, None),
        ("matmul", [(8, 3), (3, 2)], {}, {1: 0}, None),
    ],
)
def test_how_ops_follow_the_cut(name: str, shapes: list, static: dict, known: dict, expected: tuple | None) -> None:
    write = Writer()
    operands = [write.input("x", shape) for shape in shapes]
    write(name, *operands, **static)
    found = place(write.builder.ops[0], write.builder.types, 8, known, None)
    assert (found and (found.axis, found.reads)) == expected


@pytest.mark.parametrize("shapes", [((997, 7), (7,), (997, 1)), ((61, 1, 3), (1, 61, 3), (61, 61))])
@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_units_read_only_what_earlier_ones_made(data: st.DataObject, shapes: tuple) -> None:
    tape = data.draw(tapes(shapes, length=20))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("yota.schedule.blocked.fuse.CACHE_BYTES", 8_000)
        units = fuse(tape)
    ready = {item.variable for item in tape.inputs} | set(tape.constants)
    made: list[int] = []
    for unit in units:
        assert set(unit.reads) <= ready
        inner = set(ready)
        for member in unit.members:
            assert set(member.op.operands) <= inner
            inner.add(member.op.result)
        ready.update(unit.results)
        made += unit.results
        for variable in unit.stored:
            assert not is_view(tape.definitions()[variable], tape.types)
    assert len(made) == len(set(made))
    assert set(tape.outputs) <= ready


def test_work_grows_with_the_length_of_tapes() -> None:
    def calls(length: int) -> int:
        write = Writer()
        x = write.input("x", (N,))
        total = x
        for number in range(length):
            total = write("sin" if number % 3 else "add", total, *(() if number % 3 else (x,)))
        tape = write.finish(write("sum", total))
        profile = cProfile.Profile()
        profile.runcall(fuse, tape)
        return pstats.Stats(profile).total_calls  # type: ignore[attr-defined]

    assert calls(2000) < 5 * calls(500)


def test_an_op_is_not_moved_to_a_loop_that_reads_it_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("yota.schedule.blocked.fuse.CACHE_BYTES", 8_000)
    n = 100
    write = Writer()
    x, y = write.input("x", (n, n)), write.input("y", (n, 1))
    spread = write("add", y, write("sum", x, axis=(1,)))  # cut along its second axis
    column = write("getitem", spread, index=(Slice(0, n), NEWAXIS, 0))  # needs the whole of it
    both = write("add", column, write("negative", x))
    tape = write.finish(both, write("negative", column))
    ready = {item.variable for item in tape.inputs}
    for unit in fuse(tape):
        assert set(unit.reads) <= ready
        ready.update(unit.results)
    assert {both, spread} <= ready


def test_views_of_what_moves_are_followed() -> None:
    """A view that stands before what it is a view of in the list of units still stands for its readers."""
    n = 100_003
    x = np.random.default_rng(0).normal(size=n)

    def f(x: Any) -> Any:
        u = x.copy()
        u[-1] *= 2
        largest = np.max(u)
        return np.sum(np.sin(np.stack([u, x]))) + largest

    value, gradient = yota.value_and_grad(f, strict=True)(x)
    assert value == f(x)
    u = x.copy()
    u[-1] *= 2
    expected = np.cos(x) + np.cos(u) * np.where(np.arange(n) == n - 1, 2.0, 1.0)
    expected[np.argmax(u)] += 2.0 if np.argmax(u) == n - 1 else 1.0
    np.testing.assert_allclose(gradient, expected, rtol=1e-13, atol=1e-14)


def test_views_of_what_leaves_a_loop_stand_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """A view that leaves a loop with its reader, but not into the reader's loop, still reads what it is a view of."""
    monkeypatch.setattr("yota.schedule.blocked.fuse.CACHE_BYTES", 12_000)
    monkeypatch.setattr("yota.schedule.blocked.fuse._SMALLEST_RUN", 16)
    monkeypatch.setattr("yota.schedule.blocked.fuse._SMALLEST_TURNED", 64)
    monkeypatch.setattr("yota.emit.python.storage.WORKSPACE_BYTES", 512)

    def f(x: Any) -> Any:
        v0 = np.zeros(x.shape)
        v0 += x
        v1 = np.cross(x[:, :3], v0[:, :3])[:, :1] * x
        v2 = v1 + 0.0
        v2.T[...] = v2.T * 2
        v3 = v0 * 1.0
        v3[np.arange(v0.shape[0]) // 2] = x
        v5 = np.max(np.stack([x, v3 * 1.1]), axis=0)
        v6 = np.cumsum(v2, axis=1) * 0.1
        v7 = v3.copy()
        v7[v7 > 0] *= 0.5
        return np.tensordot(v5, v5, 2) + np.sum(v5) + np.sum(np.einsum("ij,ij->i", v7, v6) ** 2) * 0.01

    x = np.random.default_rng(0).normal(size=(300, 3))
    value, gradient = yota.value_and_grad(f)(x)
    np.testing.assert_allclose(value, f(x), rtol=1e-10)
    direction = np.random.default_rng(1).normal(size=x.shape)
    slope = (f(x + 1e-6 * direction) - f(x - 1e-6 * direction)) / 2e-6
    np.testing.assert_allclose(np.sum(gradient * direction), slope, rtol=1e-5)


def test_a_loop_that_gave_all_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("yota.schedule.blocked.fuse.CACHE_BYTES", 12_000)
    monkeypatch.setattr("yota.schedule.blocked.fuse._SMALLEST_RUN", 16)

    def f(x: Any) -> Any:
        return np.prod(1 + 0.001 * np.tanh(x)) + np.average(x, weights=x**2 + 1) + np.trace(x.T @ x) * 0.01

    x = np.random.default_rng(0).normal(size=(4, 2001))
    value, gradient = yota.value_and_grad(f)(x)
    np.testing.assert_allclose(value, f(x), rtol=1e-12)
    direction = np.random.default_rng(1).normal(size=x.shape)
    slope = (f(x + 1e-6 * direction) - f(x - 1e-6 * direction)) / 2e-6
    np.testing.assert_allclose(np.sum(gradient * direction), slope, rtol=1e-5)
