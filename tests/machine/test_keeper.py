"""Memory of large results that compiled code keeps for the next ones: used again, and bounded."""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.emit.compiled import needs_compiler
from yota.run.machine import native

pytestmark = [needs_compiler, pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc")]
MEGABYTE = 1 << 20


@pytest.fixture(scope="module")
def made() -> Callable[[int], np.ndarray]:
    """A function that makes an array of so many megabytes as compiled code does."""
    native._keeper()
    api = ctypes.pythonapi
    api.PyInterpreterState_Get.restype = api.PyInterpreterState_GetDict.restype = ctypes.c_void_p
    api.PyInterpreterState_GetDict.argtypes = [ctypes.c_void_p]
    state = ctypes.cast(api.PyInterpreterState_GetDict(api.PyInterpreterState_Get()), ctypes.py_object).value
    api.PyCapsule_GetPointer.restype = ctypes.POINTER(ctypes.c_void_p)
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    address = api.PyCapsule_GetPointer(state["yota.large_array"], b"yota.large_array")[0]
    maker = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_int, ctypes.POINTER(ctypes.c_ssize_t), ctypes.c_int)(address)
    return lambda size: maker(1, (ctypes.c_ssize_t * 1)(size * MEGABYTE), np.dtype(np.uint8).num)


def reserved() -> int:
    """Megabytes of addresses that this process has: memory counts that was never written to."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[0]) * 4096 // MEGABYTE


def test_memory_is_used_again(made: Callable[[int], np.ndarray]) -> None:
    first = made(24)
    place = first.ctypes.data
    first[:] = 1
    del first
    again, other = made(24), made(24)
    assert again.ctypes.data == place != other.ctypes.data
    other[:] = 2
    assert not (again == 2).any()


@pytest.mark.parametrize("sizes", [[100] * 12, [40, 90, 130, 20, 70, 250, 60, 110], [1000, 30, 1000, 20], [1500, 2000]])
def test_what_is_kept_is_bounded(made: Callable[[int], np.ndarray], sizes: list[int]) -> None:
    for size in (1000, 1):  # what was kept before is given up for the first, and that for the second
        made(size)
    before = reserved()
    arrays = [made(size) for size in sizes]
    assert reserved() > before + sum(sizes) // 2
    while arrays:
        del arrays[0]
    assert reserved() <= before + 256
    if max(sizes) > 1024:
        assert reserved() <= before + 8


def test_one_large_result_is_kept(made: Callable[[int], np.ndarray]) -> None:
    made(1)
    before = reserved()
    place = made(900).ctypes.data
    assert reserved() >= before + 600
    assert made(900).ctypes.data == place


def test_arrays_of_numpy_between_kernels_are_made_in_kept_memory() -> None:
    keeper = native._keeper()
    first = keeper.within(np.ones, (160, 128))
    place = first.ctypes.data
    del first
    again = keeper.within(np.zeros_like, np.empty((128, 160), bool))
    assert again.sum() == 0
    array = keeper.within(np.full, (128, 160), 3.0)
    assert array.ctypes.data == place
    assert (array == 3).all()


def test_the_exception_of_a_call_within_kept_memory_is_the_functions_own() -> None:
    keeper, handler = native._keeper(), np._core.multiarray.get_handler_name()
    with pytest.raises(ZeroDivisionError):
        keeper.within(divmod, 1, 0)
    assert np._core.multiarray.get_handler_name() == handler
    assert keeper.within(np._core.multiarray.get_handler_name) == "yota"
