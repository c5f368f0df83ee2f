"""The check of what schedules read and write finds each fault that is planted, and none in what is generated."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.emit.programs import Writer, arguments, check, evaluate
from yota.emit.c import kernel_body
from yota.emit.c.kernel_body import BodyWriter
from yota.emit.c.kernels import Kernel, plan_kernel
from yota.emit.c.lines import Needs
from yota.emit.python import accesses as liveness
from yota.emit.python.storage import Storage, StoragePlanner, nested
from yota.emit.targets import c, cuda, numpy
from yota.errors import ScheduleError
from yota.ir.indexing import Slice
from yota.ir.tape import Op, Tape
from yota.run.machine import python
from yota.schedule.blocked.fuse import fuse
from yota.schedule.blocked.units import Unit
from yota.schedule.liveness import Access, Action, Unfinished, simulate
from yota.schedule.nests.groups import Group, Schedule, schedule

LENGTH = 1_000_000


def written(length: int = 65536) -> Tape:
    """``v[::2] *= 1.5`` between two uses of ``v``."""
    write = Writer("written")
    x = write.input("x", (length,))
    v = write("tanh", x)
    even = write("multiply", write("getitem", v, index=(Slice(0, length, 2),)), 1.5)
    w = write("setitem", v, even, index=(Slice(0, length, 2),))
    return write.finish(write("sum", w), write("multiply", v, w))


def chain() -> Tape:
    """A blocked loop of several scratch arrays, with a total of shifted pieces."""
    write = Writer("chain")
    x = write.input("x", (LENGTH,))
    a = write("tanh", x)
    b = write("multiply", a, x)
    d = write("subtract", write("square", b), a)
    places = [(Slice(shift, LENGTH + shift),) for shift in (0, 1)]
    total = write("scatter", d, b, shape=(LENGTH + 1,), indices=tuple(places))
    return write.finish(total, write("sum", write("multiply", d, b)))


def kernels(tape: Tape) -> tuple[Schedule, list[Op | Kernel]]:
    plan = schedule(tape, gathers=("getitem", "scatter"))
    return plan, [
        plan_kernel(plan, step, f"k{number}", Needs()) if isinstance(step, Group) else step
        for number, step in enumerate(plan.steps)
    ]


def units_in_c(tape: Tape) -> list[Unit]:
    definitions = tape.definitions()
    return [Unit.of(step, definitions) for step in kernels(tape)[1]]


def checked(tape: Tape, units: Any, storage: Storage, **options: Any) -> None:
    liveness.check(tape, units, storage, nested(tape, units, storage), **options)


@pytest.mark.parametrize("generate", [numpy.generate, c.generate, cuda.generate])
@pytest.mark.parametrize("make", [written, chain])
def test_what_is_generated_is_checked_and_sound(generate: Any, make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr("yota.emit.python.lower.check", lambda *args: seen.append(liveness.check(*args)))
    monkeypatch.setenv("YOTA_VERIFY", "0")
    generate(make())
    assert not seen
    monkeypatch.setenv("YOTA_VERIFY", "1")
    generate(make())
    assert seen or generate is c.generate  # a lone kernel has no driver, and is checked by itself


def test_a_read_that_storage_knew_nothing_of_is_found() -> None:
    tape = written()
    units = units_in_c(tape)
    checked(tape, units, StoragePlanner(tape, units).plan())
    (later,) = (unit for unit in units if unit.is_kernel and len(unit.inputs or ()) > 1)
    forgotten = [replace(unit, inputs=unit.inputs[1:]) if unit is later else unit for unit in units]
    storage = StoragePlanner(tape, forgotten).plan()
    assert storage.inherits, "the write is in place, since nobody seems to read what was there"
    with pytest.raises(ScheduleError, match="setitem -> %6 has written over it"):
        checked(tape, units, storage)


def test_a_step_that_runs_too_early_is_found() -> None:
    tape = written()
    units = units_in_c(tape)
    units.insert(0, units.pop())
    with pytest.raises(ScheduleError, match="nothing has written it"):
        checked(tape, units, StoragePlanner(tape, units).plan())


def test_memory_that_is_given_back_too_early_is_found() -> None:
    tape = written()
    units = units_in_c(tape)
    first = units[0].results[0]
    with pytest.raises(ScheduleError, match="has freed it"):
        checked(tape, units, StoragePlanner(tape, units).plan(), freed={first: [first]})


def test_a_live_value_under_another_name_is_found() -> None:
    tape = written()
    units = fuse(tape, frozenset(op.result for op in tape.ops))
    storage = StoragePlanner(tape, units).plan()
    checked(tape, units, storage)
    setitem = next(op for op in tape.ops if op.name == "setitem")
    storage.inherits[setitem.result] = storage.owner[setitem.result] = setitem.operands[0]
    with pytest.raises(ScheduleError, match="has written over it"):
        checked(tape, units, storage)


def test_scratch_memory_that_is_used_again_too_early_is_found() -> None:
    tape = chain()
    units = fuse(tape)
    storage = StoragePlanner(tape, units).plan()
    assert any(unit.block < unit.extent for unit in units)
    checked(tape, units, storage)
    slots = [key for key in storage.slot if isinstance(key, tuple)]
    assert len({storage.slot[key] for key in slots}) > 1
    found = 0
    for one in slots:
        for other in slots:
            if storage.slot[one] != storage.slot[other]:
                try:
                    checked(tape, units, replace(storage, slot={**storage.slot, one: storage.slot[other]}))
                except ScheduleError:
                    found += 1
    assert found


def test_a_piece_that_is_written_over_a_total_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    tape = chain()
    units = fuse(tape)
    storage = StoragePlanner(tape, units).plan()
    found = liveness.first_pieces

    def lowest(*args: Any) -> Any:
        firsts = found(*args).items()
        return {v: one and replace(one, number=1 - one.number, shift=0, direct=None) for v, one in firsts}

    monkeypatch.setattr(liveness, "first_pieces", lowest)
    with pytest.raises(ScheduleError, match="unfinished"):
        checked(tape, units, storage)


def test_rows_are_told_apart() -> None:
    fill = Action("fill", writes=(Access("a", Unfinished("t"), (0, 10)),))
    add = Action(
        "add", (Access("a", Unfinished("t"), (5, 15)),), (Access("a", Unfinished("t"), (5, 15)),), frozenset("a")
    )
    with pytest.raises(ScheduleError, match="from row 10"):
        simulate([fill, add])
    with pytest.raises(ScheduleError, match="writes over unfinished t"):
        simulate([fill, replace(add, reads=())])
    simulate([fill, Action("more", writes=(Access("a", Unfinished("t"), (10, 15)),)), add])


def test_a_kernel_that_leaves_elements_out_or_writes_one_twice_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    boxes = BodyWriter._boxes

    def shorter(self: BodyWriter) -> Any:
        return [tuple((start, stop - (stop > 1)) for start, stop in box) for box in boxes(self)]

    def twice(self: BodyWriter) -> Any:
        return 2 * boxes(self)

    for fault in (shorter, twice):
        monkeypatch.setattr(BodyWriter, "_boxes", fault)
        with pytest.raises(ScheduleError, match="a kernel stores"):
            kernels(written())
    monkeypatch.setattr(BodyWriter, "_boxes", boxes)
    kernels(written())


def test_a_kernel_that_reads_outside_of_an_array_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    load = kernel_body.Pull.place
    monkeypatch.setattr(kernel_body.Pull, "place", lambda *args: load(*args).shifted(1))
    with pytest.raises(ScheduleError, match="a kernel reads %1, float64\\[65536\\], from 1 to 65536"):
        kernels(written())


def test_a_total_that_is_stored_again_by_each_part_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    write = Writer("rows")
    x = write.input("x", (100, 300))
    tape = write.finish(write("sum", write("tanh", x), axis=(0,)))
    kernels(tape)
    monkeypatch.setattr(BodyWriter, "is_private", lambda *args: False)
    with pytest.raises(ScheduleError, match="is stored"):
        kernels(tape)


def test_switch_checks_what_each_pass_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    from yota.optimize import pipeline

    seen: list[Tape] = []
    monkeypatch.setattr(pipeline, "checked", seen.append)
    given = list(itertools.accumulate(pipeline.passes(), lambda tape, each: each[1](tape), initial=written(16)))[1:]
    different = len({*map(id, given)})
    assert 1 < different < len(given)
    for value, expected in (("", 0), ("1", different)):
        monkeypatch.setenv("YOTA_VERIFY", value)
        seen.clear()
        pipeline.run(written(16))
        assert len(seen) == expected


def test_memory_of_inputs_is_never_written() -> None:
    write = Writer("kept")
    x = write.input("x", (4096,))
    tape = write.finish(write("setitem", x, np.float64(0.0), index=(Slice(0, 4096, 2),)))
    units = fuse(tape, frozenset(op.result for op in tape.ops))
    assert not StoragePlanner(tape, units).plan().inherits


def test_pieces_that_look_at_the_array_are_not_added_to_it_in_place() -> None:
    write = Writer("exchanged")
    v = write("exp", write.input("x", (4096,)))
    ends = (Slice(0, 10),), (Slice(10, 20),)
    pieces = write("scatter", *(write("getitem", v, index=end) for end in ends), shape=(4096,), indices=ends[::-1])
    tape = write.finish(write("add", v, pieces))
    values = arguments(tape)
    check(tape, python.load(numpy.generate(tape))(*values), evaluate(tape, *values))
