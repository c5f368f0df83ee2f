"""A digest of all that a function reads besides its arguments, equal in all processes that would record the same tape.

It covers the names in the code, as change detection does; see `yota.tracing.captured.reach`. Code whose behaviour no
digest covers has none: it uses files, the clock, the environment, random numbers, computed attribute names, or
objects of other libraries.
"""

from __future__ import annotations

import builtins
import dis
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from yota.structures import children, is_leaf, is_library, is_on_device
from yota.tracing.bytecode import nested
from yota.tracing.captured.checks import State
from yota.tracing.captured.description import IMPURE, PLAIN, READERS, Description, NoDigest, code, is_librarys
from yota.tracing.captured.mentions import mentions
from yota.tracing.captured.reach import Reach
from yota.tracing.observation import Running

_MOST_FOLLOWED = 2_000
_UNFOLLOWED = frozenset(dis.opmap[name] for name in ("MATCH_CLASS", "IMPORT_STAR") if name in dis.opmap)
"""Instructions that read unnamed attributes."""


class _Everything(Reach):
    """All that a function reads, installed packages included."""

    def __init__(self) -> None:
        super().__init__()
        self.libraries: list[types.ModuleType] = []
        self.running: list[Running] = []
        """All code that is reached, with its global variables."""

    def _is_foreign(self, value: Any) -> bool:
        return is_library(value)

    def _variable(self, names: Mapping[str, Any], name: str) -> Any:
        value = super()._variable(names, name)
        if isinstance(value, types.ModuleType):
            self.libraries.append(value)
        return value

    def _code(self, code: types.CodeType, names: dict[str, Any], *, ran: bool = False) -> list[Any]:
        was_known = self._knows(code)
        found = super()._code(code, names, ran=ran)
        if self._knows(code) and not was_known:
            self.running += [Running(inner, names) for inner in nested(code)]
            if any(each not in sys.modules for each in mentions(code).modules):
                raise NoDigest("a module that is not loaded yet")
            self.libraries += [sys.modules[each] for each in mentions(code).modules]
        return found


class Read:
    """The data, classes, files and code that a function reads now, in an order that is equal in all processes.

    others: functions, and classes of objects, among its arguments.
    given: further values to include; see `kinds`.
    ran: whether it has just run and may have filled caches.
    Raises NoDigest if no digest covers the function.
    """

    def __init__(
        self, function: Callable[..., Any], others: Iterable[Any], given: Any = None, *, ran: bool = False
    ) -> None:
        others = list(others)
        reach = _Everything()
        reach.take([function, *others])
        if reach.is_dynamic or reach.followed >= _MOST_FOLLOWED:
            raise NoDigest("names that are computed, or too many functions")
        if reach.attributes & READERS:
            raise NoDigest(f"the attribute {min(reach.attributes & READERS)}")
        state = State.now(reach)
        self.running = reach.running
        codes = [each.code for each in self.running]
        self._places = {id(each.code): place for place, each in enumerate(self.running)}
        if any(not _UNFOLLOWED.isdisjoint(code.co_code[::2]) for code in codes):
            raise NoDigest("a pattern with a class, which reads attributes that the code does not name")
        described = Description(ran=ran)
        dependencies = [(names, name) for kind, names, name in reach.dependencies if kind == "entry"]
        described.add([_built_in(name) for names, name in dependencies if name not in names])
        own = [
            value
            for kind, names, _, value in state.variables()
            if kind == "cell" or not is_library(names.get("__name__"))  # for those see `_of_libraries`
        ]
        own += state.defaults
        described.add([function, others, given, own, [name for _, name in dependencies], reach.libraries])
        described.add([code(each) for each in reach.codes])
        described.add(list(_of_libraries(reach.libraries, sorted(reach.attributes))))
        self.parts, self.classes = described.arrays, described.classes
        self.digest = described.digest()
        self.files = sorted({each.co_filename for each in codes})

    def places(self, ran: Iterable[Running]) -> list[int]:
        """The positions in `running` of code that ran; NoDigest if some of it is not included."""
        found = [self._places.get(id(each.code)) for each in ran]
        if None in found:
            raise NoDigest("code that was not found before it ran")
        return [place for place in found if place is not None]


def kinds(value: Any) -> Any:
    """The key of an argument for compiled code, in values that `Read` can include."""
    if is_on_device(value):
        raise NoDigest("an array on a GPU")
    if isinstance(value, np.ndarray):
        return "array", type(value), value.dtype.str, value.shape
    if is_leaf(value):
        return "number", type(value)
    parts = children(value)
    return value if parts is None else (type(value), [(key, kinds(part)) for key, part in parts])


def _built_in(name: str) -> Any:
    """The built-in function of a name in code; None if there is none."""
    found = getattr(builtins, name, None)
    if found is not None and name in IMPURE:
        raise NoDigest(f"the built-in function {name}")
    return found


def _of_libraries(modules: list[types.ModuleType], names: list[str]) -> Iterator[tuple[Any, ...]]:
    """Library members with names that are read as attributes; users may replace them."""
    pending, seen = list(modules), set()
    while pending:
        module = pending.pop()
        if module.__name__ in seen or not is_library(module):
            continue
        seen.add(module.__name__)
        for name in names:
            value = vars(module).get(name)
            if isinstance(value, types.ModuleType):
                pending.append(value)
            elif isinstance(value, types.FunctionType) and not is_librarys(value):
                raise NoDigest(f"{module.__name__}.{name}, which was replaced")
            elif value is not None:
                own = repr(value) if type(value) in PLAIN else str(getattr(value, "__name__", ""))
                yield module.__name__, name, type(value).__name__, str(getattr(value, "__module__", "")), own
