"""The lines of the user's source: which one is running, the names that it gives to variables, and its tracebacks."""

from __future__ import annotations

import ast
import functools
import importlib.util
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import compress
from operator import is_not
from types import CellType, CodeType, FrameType, FunctionType, TracebackType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from yota.errors import YotaError
from yota.ir.location import Location
from yota.ir.semantics import AccessMap
from yota.settings import settings
from yota.tracing.current import current

if TYPE_CHECKING:
    from yota.ir.compact_recording import Recorder
    from yota.ir.tape import Op
    from yota.tracing.rewriting.definition import Definition

ENTRY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "record.py")
"""The module that calls the traced function."""
_RULES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "rewriting") + os.sep
_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_NUMPY = os.path.dirname(os.path.abspath(np.__file__ or "")) + os.sep


def _home_of(package: str) -> str:
    """The folder of a package, which need not be imported; a file that cannot be if there is none."""
    found = importlib.util.find_spec(package)
    return os.path.dirname(os.path.abspath(found.origin)) + os.sep if found and found.origin else os.devnull + os.sep


_SCIPY = _home_of("scipy")
_BARS = _home_of("tqdm")
_PACKAGES = (_OWN + os.sep, _NUMPY, _SCIPY, _BARS, _home_of("rich"), _home_of("click"))
_MASKED = os.path.join(_NUMPY, "ma") + os.sep
_STANDARD = (os.path.dirname(os.path.abspath(os.__file__)) + os.sep, "<frozen ", "<__array_function__")


class _Kinds(dict[str, str]):
    """What the code of a file is: of the "user", of a "library", a "rule" that rewritten code calls, or the "entry"."""

    def __missing__(self, name: str) -> str:
        if name == ENTRY:
            kind = "entry"
        elif name.startswith(_RULES):
            kind = "rule"
        else:
            kind = "library" if is_library_file(name) else "user"
        return self.setdefault(name, kind)


kinds = _Kinds()


@dataclass(frozen=True, eq=False)
class Rewritten:
    """Code that was made from a rewritten source; ``original`` is what Python would run."""

    code: CodeType
    original: CodeType
    definition: Definition
    _locations: dict[int, Location] = field(default_factory=dict)

    @functools.cached_property
    def _places(self) -> list[Any]:
        # Python 3.10 knows lines alone.
        return list(self.code.co_positions()) if hasattr(self.code, "co_positions") else []

    def part(self, offset: int) -> ast.AST | None:
        """What the instruction at ``offset`` evaluates; None where Python does not know."""
        known = self._places and offset >= 0
        return self.definition.parts.get(self._places[offset // 2]) if known else None

    def location(self, offset: int, line: int) -> Location:
        """The expression that the instruction at ``offset`` evaluates; the line where Python knows no more."""
        found = self._locations.get(offset)
        if found is None:
            part, name = self.part(offset), self.code.co_name
            found = self.definition.span(part, name) if part else Location(self.code.co_filename, line, name)
            self._locations[offset] = found
        return found


rewritten: dict[int, Rewritten] = {}
"""By the identity of the code that runs."""


def is_rewritten(frame: FrameType) -> bool:
    """Whether the frame runs from a rewritten source."""
    return id(frame.f_code) in rewritten


def original_code(function: FunctionType) -> CodeType:
    """The code that Python would run of a function."""
    known = rewritten.get(id(function.__code__))
    return function.__code__ if known is None else known.original


def closure_of(function: FunctionType) -> list[tuple[str, CellType]]:
    """The variables of functions around it that a function reads, without the rules of rewritten code."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    return [(name, cell) for name, cell in cells if not name.startswith(".")]


def is_library(frame: FrameType) -> bool:
    """Whether the frame runs code of yota, NumPy, SciPy or Python itself rather than of the user."""
    return kinds[frame.f_code.co_filename] != "user" and not is_rewritten(frame)


def is_own(frame: FrameType) -> bool:
    """Whether the frame runs code of yota."""
    return is_own_file(frame.f_code.co_filename)


def is_own_file(name: str) -> bool:
    """Whether a file of Python code belongs to yota."""
    return name.startswith(_PACKAGES[0])


def is_rule(frame: FrameType) -> bool:
    """Whether the frame runs a rule that rewritten code calls."""
    return kinds[frame.f_code.co_filename] == "rule"


def is_library_file(name: str) -> bool:
    """Whether a file of Python code belongs to yota, NumPy, SciPy, Python itself, or a package that shows output."""
    if name.startswith(_STANDARD):
        return "-packages" + os.sep not in name
    return name.startswith(_PACKAGES) or name.endswith((".pyx", "<stringsource>"))


def is_installed_file(name: str) -> bool:
    """Whether a file of Python code belongs to an installed package."""
    return f"-packages{os.sep}" in name


def shows_progress(name: str) -> bool:
    """Whether a file of Python code is tqdm's, whose progress bars may be shown again."""
    return name.startswith(_BARS)


def is_deep_file(name: str) -> bool:
    """Whether a file of Python code is NumPy's or SciPy's, and runs from its source where a trace is deep."""
    return name.startswith((_NUMPY, _SCIPY))


def is_masked_file(name: str) -> bool:
    """Whether a file of Python code belongs to NumPy's masked arrays."""
    return name.startswith(_MASKED)


def users(frame: FrameType | None, *, inside: bool = False) -> Iterator[FrameType]:
    """The user's own code that is running, the innermost first; ``inside`` stops at the traced function."""
    while frame is not None:
        if not is_library(frame):
            yield frame
        elif inside and kinds[frame.f_code.co_filename] == "entry":
            return
        frame = frame.f_back


def caller(depth: int = 1) -> FrameType | None:
    """The innermost of the user's own code."""
    return next(users(sys._getframe(depth)), None)


def here() -> Location | None:
    """The user's line that is running."""
    found = caller(2)
    return None if found is None else location_of(found)


def location_of(user: FrameType) -> Location:
    """The line that a frame runs; the expression where the source was rewritten."""
    return _location(user.f_code, user.f_lasti, user.f_lineno)


def _location(code: CodeType, offset: int, line: int) -> Location:
    known = rewritten.get(id(code))
    return Location(code.co_filename, line, code.co_name) if known is None else known.location(offset, line)


def raised_at(fault: BaseException) -> Location | None:
    """The last place in the user's code that an exception passed."""
    found: Location | None = None
    for each in passed(fault.__traceback__):
        if not is_library(each.tb_frame):
            found = _location(each.tb_frame.f_code, each.tb_lasti, each.tb_lineno)
    return found


def passed(traceback: TracebackType | None) -> Iterator[TracebackType]:
    """The entries of a traceback, the outermost first."""
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


Position: TypeAlias = "tuple[str, int, int | None, int | None]"
"""A part of the user's code: file, line, and the first and last byte there if they are known."""


def positions_of(fault: BaseException) -> list[Position]:
    """Where in the user's code an exception was raised, and what called that."""
    found = (each for each in passed(fault.__traceback__) if not is_library(each.tb_frame))
    return [_position(each.tb_frame.f_code, each.tb_lineno, each.tb_lasti) for each in found]


def positions(frame: FrameType | None) -> list[Position]:
    """Where in the user's code a frame is, and what called that."""
    return [_position(each.f_code, each.f_lineno, each.f_lasti) for each in users(frame, inside=True)]


def _position(code: CodeType, line: int, offset: int) -> Position:
    found = list(code.co_positions()) if hasattr(code, "co_positions") else []
    _, _, begin, end = found[offset // 2] if found else (None,) * 4
    return code.co_filename, line, begin, end


def source_line(location: Location | None) -> str:
    """Text of the place, stripped; empty when the source cannot be had."""
    return location.text if location else ""


_ASSIGNMENTS = re.compile(r"^([A-Za-z_][A-Za-z_0-9]*(?:\s*,\s*[A-Za-z_][A-Za-z_0-9]*)+)\s*=(?!=)")
_ASSIGNMENT = re.compile(r"^([A-Za-z_][A-Za-z_0-9]*)(?:\s*:[^=]+)?\s*[-+*/@]?=(?!=)")


def name_variables(builder: Recorder) -> None:
    """Give the last variable that a line ``name = ...`` computes that name; of ``q, r = ...`` the last ones theirs."""
    assigned: dict[Location, str] = {}
    ops = builder.ops.outline()
    locations = [op.location for op in ops]
    following = [*locations[1:], None]
    for op, after in compress(zip(ops, following, strict=False), map(is_not, locations, following)):
        location = op.location
        if location is None or location == after:
            continue
        name = assigned.get(location)
        if name is None:
            match = _ASSIGNMENT.match(source_line(location))
            name = assigned[location] = match.group(1) if match else ""
        if name:
            builder.names[op.result] = name
        elif op.access == AccessMap.ITEM:
            _name_items(builder, op)


def _name_items(builder: Recorder, last: Op) -> None:
    match = _ASSIGNMENTS.match(source_line(last.location))
    names = match.group(1).split(",") if match else []
    items = {
        op.keyword("index"): op for op in builder.ops if op.access == AccessMap.ITEM and op.operands == last.operands
    }
    if len(names) == len(items):
        for number, name in enumerate(names):
            builder.names[items[number].result] = name.strip()


class _UsersFrames:
    """A context that leaves yota's frames out of the traceback of an exception that passes it."""

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: Any, fault: BaseException | None, traceback: TracebackType | None) -> None:
        if isinstance(fault, Exception) and sys.version_info >= (3, 11):
            left_out(fault)


users_frames = _UsersFrames()


def left_out(fault: Exception) -> None:
    """Leave yota's frames out of the traceback of an exception; ``YOTA_TRACEBACK=full`` keeps them.

    Where the user's code had no part in it the traceback of an exception that yota did not raise on purpose stays.
    """
    if settings.full_tracebacks or current() is not None:
        return
    entries = [each for each in passed(fault.__traceback__) if not is_own(each.tb_frame)]
    if not entries and not isinstance(fault, YotaError):
        return
    following: TracebackType | None = None
    for each in reversed(entries):
        following = TracebackType(following, each.tb_frame, each.tb_lasti, each.tb_lineno)
    fault.__traceback__ = following
