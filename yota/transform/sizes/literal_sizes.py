"""Numbers that the functions of a recording hold: near such sizes they may do something else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from types import CodeType, FrameType, ModuleType
from typing import Any, TypeVar

import numpy as np

_T = TypeVar("_T")
_FOREIGN = {*sys.stdlib_module_names, "numpy", "scipy", "yota"}
_MOST, _LARGEST = 64, 100_000


def with_literals(run: Callable[[], _T]) -> tuple[_T, list[int]]:
    """What ``run`` gives, and the whole numbers that the user's functions hold which it called, in order.

    They are literals, arguments, and what closures, globals, attributes and containers of these hold.
    """
    found: set[int] = set()
    known: dict[int, CodeType] = {}

    def note(frame: FrameType, event: str, _argument: Any) -> None:
        if event != "call" or id(frame.f_code) in known:
            return
        known[id(frame.f_code)] = frame.f_code
        module = str(frame.f_globals.get("__name__", ""))
        if module.partition(".")[0] not in _FOREIGN:
            found.update(_held(frame.f_code, {**frame.f_globals, **frame.f_locals}))

    before: Any = sys.getprofile()
    sys.setprofile(note)
    try:
        return run(), sorted(found)
    finally:
        sys.setprofile(None)
        if hasattr(before, "enable"):
            before.enable()  # a profiler written in C
        else:
            sys.setprofile(before)


def _held(code: CodeType, values: Mapping[str, Any]) -> Iterator[int]:
    """Numbers in a function and in what its names stand for."""
    numbers = list(_numbers(code.co_consts[1:] if code.co_consts[:1] == (None,) else code.co_consts))
    yield from numbers
    if "sqrt" in code.co_names:
        yield from (number**2 for number in numbers if number**2 <= _LARGEST)
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _held(each, values)
    owners = [values[name] for name in (*code.co_names, *code.co_varnames, *code.co_freevars) if name in values]
    for owner in owners:
        yield from _numbers(owner)
        if issubclass(type(owner), np.ndarray):  # Traced arrays, whose class only says so, have sizes of samples.
            yield from _numbers(owner.shape)
        for space in (owner, *type(owner).__mro__) if not isinstance(owner, ModuleType) else ():
            known = getattr(space, "__dict__", {})
            yield from _numbers([known[name] for name in code.co_names if name in known])
        if isinstance(owner, ModuleType) and owner.__name__.partition(".")[0] not in _FOREIGN:
            yield from _numbers([vars(owner)[name] for name in code.co_names if name in vars(owner)])


def _numbers(value: Any, depth: int = 3) -> Iterator[int]:
    if type(value) in (int, float) and 2 <= value <= _LARGEST and value == int(value):
        yield int(value)
    elif type(value) is str and value.isdecimal() and len(value) < 7:
        yield from _numbers(int(value))
    elif isinstance(value, Mapping) and depth and len(value) <= _MOST:
        for key, item in value.items():
            yield from _numbers([key, item], depth - 1)
    elif isinstance(value, (tuple, list, set, frozenset)) and depth and len(value) <= _MOST:
        for item in value:
            yield from _numbers(item, depth - 1)
    elif isinstance(value, np.ndarray) and value.dtype.kind in "iu" and value.size <= _MOST:
        yield from _numbers(value.ravel().tolist(), depth)
