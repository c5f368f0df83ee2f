"""Slots of memory by liveness."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from yota.schedule.liveness import Request, assign

F8, F4 = np.dtype(np.float64), np.dtype(np.float32)


def test_a_slot_is_free_again_after_its_last_read() -> None:
    chosen, slots = assign([Request("a", F8, 8, 0, 1), Request("b", F8, 8, 1, 3), Request("c", F8, 8, 2, 3)])
    assert chosen == {"a": 0, "b": 1, "c": 0}
    assert len(slots) == 2


def test_an_operand_that_dies_is_written_over_only_if_allowed() -> None:
    first, free = Request("a", F8, 8, 0, 1), Request("b", F8, 8, 1, 2)
    assert len(assign([first, free])[1]) == 2
    assert len(assign([first, Request("b", F8, 8, 1, 2, takes_over=("a",))])[1]) == 1


def test_an_operand_that_lives_on_is_not_written_over() -> None:
    chosen, _ = assign([Request("a", F8, 8, 0, 2), Request("b", F8, 8, 1, 2, takes_over=("a",))])
    assert chosen["a"] != chosen["b"]


def test_dtypes_do_not_mix() -> None:
    chosen, slots = assign([Request("a", F8, 8, 0, 0), Request("b", F4, 8, 1, 1)])
    assert chosen["a"] != chosen["b"]
    assert [slot.dtype for slot in slots] == [F8, F4]


def test_the_slot_of_nearest_size_is_taken_and_grows_if_need_be() -> None:
    small, large = Request("small", F8, 10, 0, 1), Request("large", F8, 1000, 0, 1)
    chosen, slots = assign([small, large, Request("c", F8, 900, 2, 3), Request("d", F8, 20, 2, 3)])
    assert chosen["c"] == chosen["large"]
    assert chosen["d"] == chosen["small"]
    assert [slot.size for slot in slots] == [20, 1000]


def test_empty_arrays_have_slots_too() -> None:
    assert assign([Request("a", F8, 0, 0, 0), Request("b", F8, 5, 1, 1)])[0]


@given(
    st.lists(
        st.tuples(st.integers(0, 20), st.integers(0, 6), st.integers(0, 50), st.sampled_from([F4, F8])), max_size=30
    )
)
def test_no_two_arrays_that_live_at_once_share_a_slot(lives: list[tuple[int, int, int, np.dtype]]) -> None:
    requests = [
        Request(number, dtype, size, start, start + length) for number, (start, length, size, dtype) in enumerate(lives)
    ]
    chosen, slots = assign(requests)
    for number, one in enumerate(requests):
        slot = slots[chosen[number]]
        assert slot.dtype == one.dtype
        assert slot.size >= one.size
        for other in requests[:number]:
            if chosen[other.key] == chosen[number]:
                assert one.start > other.stop or other.start > one.stop
