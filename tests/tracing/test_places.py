"""Places that several traces fill and empty, in any order."""

from __future__ import annotations

import random

import pytest

from yota.tracing.patching import ABSENT, Group, Place, enter, held_at, leave


class _Owner:
    known = staticmethod(len)


def _world() -> tuple[list[dict], list[Place]]:
    tables = [{name: f"{name} of {number}" for name in "abcd"} for number in range(3)]
    listed = ["in a list"]
    made = [Place(table, name, table[name], f"form of {table[name]}") for table in tables for name in "abcd"]
    made += [Place(tables[0], "new", ABSENT, "form of none"), Place(listed, 0, listed[0], "form in a list")]
    made.append(Place(_Owner, "known", vars(_Owner)["known"], staticmethod(abs)))
    return [*tables, listed], made


def _content(place: Place) -> object:
    if isinstance(place.owner, list):
        return place.owner[place.name]
    return (place.owner if isinstance(place.owner, dict) else vars(place.owner)).get(place.name, ABSENT)


@pytest.mark.parametrize("seed", range(60))
def test_places_hold_their_forms_as_long_as_a_trace_needs_them_and_what_the_user_writes_stays(seed):
    chance = random.Random(seed)
    tables, world = _world()
    groups = [Group(chance.sample(world, 9)) for _ in range(2)]
    written: dict[int, object] = {}
    traces: list[tuple[Group, list[Place]]] = []
    for step in range(30):
        if len(traces) < 4 and (not traces or chance.random() < 0.5):
            traces.append((chance.choice(groups), chance.sample(world, chance.choice((0, 0, 3)))))
            enter(*traces[-1])
        elif chance.random() < 0.1:
            place = chance.choice([each for each in world if type(each.owner) is dict])
            written[id(place)] = place.owner[place.name] = f"written at {step}"
        else:
            leave(*traces.pop(chance.randrange(len(traces))))
        needed = {id(place) for group, more in traces for place in [*group.places, *more]}
        for place in world:
            expected = place.form if id(place) in needed else place.original
            assert _content(place) == written.get(id(place), expected)
            assert (held_at(place.owner, place.name) is not None) == (id(place) in needed)
    for trace in traces:
        leave(*trace)
    assert all(_content(place) == written.get(id(place), place.original) for place in world)


def test_the_first_of_several_forms_for_one_place_counts():
    table = {"a": "original"}
    group = Group([Place(table, "a", "original", "first"), Place(table, "a", "original", "second")])
    enter(group, [])
    assert table == {"a": "first"}
    leave(group, [])
    assert table == {"a": "original"}
    mine = [Place(table, "a", "original", "mine")]
    enter(group, mine)
    assert table == {"a": "mine"}
    leave(group, mine)
    assert table == {"a": "original"}
