"""Places that several traces fill and empty, in any order."""

from __future__ import annotations

import random
import sys

import pytest

import yota
from yota.tracing import current, namespace
from yota.tracing.patching import ABSENT, Patch, PatchGroup, enter, held_at, leave


class _Owner:
    known = staticmethod(len)


def _world() -> tuple[list[dict], list[Patch]]:
    tables = [{name: f"{name} of {number}" for name in "abcd"} for number in range(3)]
    listed = ["in a list"]
    made = [Patch(table, name, table[name], f"form of {table[name]}") for table in tables for name in "abcd"]
    made += [Patch(tables[0], "new", ABSENT, "form of none"), Patch(listed, 0, listed[0], "form in a list")]
    made.append(Patch(_Owner, "known", vars(_Owner)["known"], staticmethod(abs)))
    return [*tables, listed], made


def _content(patch: Patch) -> object:
    if isinstance(patch.owner, list):
        return patch.owner[patch.name]
    return (patch.owner if isinstance(patch.owner, dict) else vars(patch.owner)).get(patch.name, ABSENT)


@pytest.mark.parametrize("seed", range(60))
def test_patches_hold_their_forms_as_long_as_a_trace_needs_them_and_what_the_user_writes_stays(seed):
    chance = random.Random(seed)
    tables, world = _world()
    groups = [PatchGroup(chance.sample(world, 9)) for _ in range(2)]
    groups.append(PatchGroup(groups[0].patches[:4]))
    written: dict[int, object] = {}
    traces: list[tuple[PatchGroup, list[Patch]]] = []
    for step in range(30):
        if len(traces) < 4 and (not traces or chance.random() < 0.5):
            traces.append((chance.choice(groups), chance.sample(world, chance.choice((0, 0, 3)))))
            enter(*traces[-1])
        elif chance.random() < 0.1:
            patch = chance.choice([each for each in world if type(each.owner) is dict])
            written[id(patch)] = patch.owner[patch.name] = f"written at {step}"
        else:
            leave(*traces.pop(chance.randrange(len(traces))))
        needed = {id(patch) for group, more in traces for patch in [*group.patches, *more]}
        for patch in world:
            # A trace that began within another one may outlive it, and keeps the patches of both.
            is_held = held_at(patch.owner, patch.name) is not None
            assert _content(patch) == written.get(id(patch), patch.form if is_held else patch.original)
            assert is_held if id(patch) in needed else not is_held or traces
    for trace in traces:
        leave(*trace)
    assert all(_content(patch) == written.get(id(patch), patch.original) for patch in world)


def test_the_first_of_several_forms_for_one_place_counts():
    table = {"a": "original"}
    group = PatchGroup([Patch(table, "a", "original", "first"), Patch(table, "a", "original", "second")])
    enter(group, [])
    assert table == {"a": "first"}
    leave(group, [])
    assert table == {"a": "original"}
    mine = [Patch(table, "a", "original", "mine")]
    enter(group, mine)
    assert table == {"a": "mine"}
    leave(group, mine)
    assert table == {"a": "original"}


def test_the_patches_of_numpy_are_applied_together():
    group = namespace._standard(len(sys.modules), sys.modules.get("cupy"))[0]
    try:
        assert group.apply()
    finally:
        group.undo()


def test_an_interrupt_within_a_context_manager_leaves_no_trace_behind():
    def interrupted(x):
        # As where a signal comes before the exit of a context manager has done anything.
        current.innermost.stack.append(current.current())
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        yota.value_and_grad(interrupted)(1.5)
    assert current.current() is None
    assert yota.value_and_grad(lambda x: x**2)(1.5) == (2.25, 3.0)
