"""What the user's code was seen to do while it was traced: where it stood, what it called, and with which arrays."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

import numpy as np

from yota.ir.location import Location
from yota.tracing.bytecode import running
from yota.tracing.memory import owner_of
from yota.tracing.source_lines import caller, is_library, is_own, is_rewritten, kinds, location_of, rewritten, users


@dataclass(frozen=True, slots=True, eq=False)
class Running:
    """Code that was seen to run, and the global variables that it uses."""

    code: CodeType
    names: dict[str, Any]


class Observation:
    """Notes on the user's code, taken whenever something is recorded; if ``calls``, on its calls with arrays too."""

    def __init__(self, *, calls: bool) -> None:
        self._notes_calls = calls
        self.begin: Callable[[Running], None] = lambda found: None
        """Told of code that runs, once."""
        self.ran: dict[int, Running] = {}
        """Code of the user's that was running when something was recorded."""
        self.uses: dict[int, set[tuple[int, int]]] = {}
        """By the identity of what owns its memory, where the user's code handed over an array from outside."""
        self.calls: dict[tuple[int, int], list[tuple[CodeType, dict[str, Any]]]] = {}
        """What the user's code called, and the arrays among the arguments, by where it did."""
        self._every: dict[int, dict[int, Location]] = {}
        """The lines of instructions by their offset, for each code of `ran` by identity."""
        self._known: dict[Location, Location] = {}
        """Lines by themselves: those that are equal are the same object."""
        self.code: CodeType | None = None
        """The code of the last call of `here`, and its lines."""
        self.lines: dict[int, Location] = {}

    def here(self, inner: FrameType) -> Location | None:
        """The user's line that ``inner`` runs for, inside of the function; its code, and what called it, is noted."""
        frame: FrameType | None = inner
        while frame is not None:
            code = frame.f_code
            if code is self.code:
                break
            if kinds[code.co_filename] in ("user", "entry") or id(code) in rewritten:
                self.code, self.lines = code, self._every.setdefault(id(code), {})
                break
            frame = frame.f_back
        else:
            return None
        found = self.lines.get(frame.f_lasti)
        return self._noted(frame) if found is None else found

    def _noted(self, frame: FrameType) -> Location | None:
        first = None
        for user in users(frame, inside=True):
            first = first or user
            known = rewritten.get(id(user.f_code))
            code = user.f_code if known is None else known.original
            if id(code) in self.ran:
                break
            self.ran[id(code)] = Running(code, user.f_globals)
            self.begin(self.ran[id(code)])
            if self._notes_calls and known is None:
                self._call(user)
        if first is None:
            return None
        location = self._known.setdefault(found := location_of(first), found)
        if first is frame:
            self.lines[frame.f_lasti] = location
        return location

    def _call(self, frame: FrameType) -> None:
        """Note who called the code of ``frame``, and with which arrays."""
        outer = frame.f_back
        if outer is None or is_library(outer):
            return
        code, values = frame.f_code, frame.f_locals
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        arrays = {name: values[name] for name in names if type(values.get(name)) is np.ndarray}
        self.calls.setdefault((id(outer.f_code), running(outer).offset), []).append((code, arrays))

    def use(self, value: np.ndarray) -> None:
        """Note where the user's code hands over an array from outside."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and is_own(frame):
            frame = frame.f_back
        if frame is None or is_library(frame) or is_rewritten(frame) or caller(1) is not frame:
            return  # a library may have computed with the content
        self.uses.setdefault(id(owner_of(value)), set()).add((id(frame.f_code), running(frame).offset))
