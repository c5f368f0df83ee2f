"""The lines of the user's source: which one is running, and the names that it gives to variables."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from types import CodeType, FrameType, TracebackType
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from yota.ir.location import Location

if TYPE_CHECKING:
    from yota.ir.compact_recording import Recorder
    from yota.ir.tape import Op
    from yota.tracing.interpreter.activation import Activation
import re
from itertools import compress
from operator import is_not

from yota.ir.semantics import AccessMap

ENTRY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "record.py")
"""The module that calls the traced function."""
_INTERPRETER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "interpreter") + os.sep
_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_NUMPY = os.path.dirname(os.path.abspath(np.__file__ or "")) + os.sep


def _home_of(package: str) -> str:
    """The folder of a package, which need not be imported; a file that cannot be if there is none."""
    found = importlib.util.find_spec(package)
    return os.path.dirname(os.path.abspath(found.origin)) + os.sep if found and found.origin else os.devnull + os.sep


_SCIPY = _home_of("scipy")
_PACKAGES = (_OWN + os.sep, _NUMPY, _SCIPY)
_DEEP = (_SCIPY, os.path.join(_NUMPY, "ma") + os.sep)
_STANDARD = (os.path.dirname(os.path.abspath(os.__file__)) + os.sep, "<frozen ", "<__array_function__")


class _Kinds(dict[str, str]):
    """What the code of a file is: of the "user", of a "library", of the "interpreter", or the "entry"."""

    def __missing__(self, name: str) -> str:
        if name == ENTRY:
            kind = "entry"
        elif name.startswith(_INTERPRETER):
            kind = "interpreter"
        else:
            kind = "library" if is_library_file(name) else "user"
        return self.setdefault(name, kind)


kinds = _Kinds()


def is_library(frame: FrameType) -> bool:
    """Whether the frame runs code of yota, NumPy, SciPy or Python itself rather than of the user."""
    return kinds[frame.f_code.co_filename] != "user"


def is_own(frame: FrameType) -> bool:
    """Whether the frame runs code of yota."""
    return is_own_file(frame.f_code.co_filename)


def is_own_file(name: str) -> bool:
    """Whether a file of Python code belongs to yota."""
    return name.startswith(_PACKAGES[0])


def is_interpreter(frame: FrameType) -> bool:
    """Whether the frame runs the interpreter of source."""
    return kinds[frame.f_code.co_filename] == "interpreter"


def is_library_file(name: str) -> bool:
    """Whether a file of Python code belongs to yota, NumPy, SciPy or Python itself."""
    if name.startswith(_STANDARD):
        return "-packages" + os.sep not in name
    return name.startswith(_PACKAGES) or name.endswith((".pyx", "<stringsource>"))


def is_installed_file(name: str) -> bool:
    """Whether a file of Python code belongs to an installed package."""
    return f"-packages{os.sep}" in name


def is_deep_file(name: str) -> bool:
    """Whether a file of Python code belongs to SciPy, or to NumPy's masked arrays."""
    return name.startswith(_DEEP)


def is_array_file(name: str) -> bool:
    """Whether a file of Python code belongs to NumPy or SciPy."""
    return name.startswith((_NUMPY, _SCIPY))


def activation_of(frame: FrameType) -> Activation | None:
    """What the interpreter of source is at in a frame of its own."""
    if not is_interpreter(frame) or "activation" not in frame.f_code.co_varnames:
        return None
    found: Activation | None = frame.f_locals.get("activation")
    return found


def users(frame: FrameType | None, *, inside: bool = False) -> Iterator[FrameType | Activation]:
    """The user's own code that is running, the innermost first; ``inside`` stops at the traced function."""
    while frame is not None:
        kind = kinds[frame.f_code.co_filename]
        if kind == "user":
            yield frame
        elif kind == "interpreter" and (activation := activation_of(frame)) is not None:
            yield activation
        elif kind == "entry" and inside:
            return
        frame = frame.f_back


def caller(depth: int = 1) -> FrameType | Activation | None:
    """The innermost of the user's own code."""
    return next(users(sys._getframe(depth)), None)


def here() -> Location | None:
    """The user's line that is running."""
    found = caller(2)
    return None if found is None else location_of(found)


def location_of(user: FrameType | Activation) -> Location:
    """The line that a frame runs, or the expression that is interpreted."""
    if isinstance(user, FrameType):
        return Location(user.f_code.co_filename, user.f_lineno, user.f_code.co_name)
    return user.location()


def raised_at(fault: BaseException) -> Location | None:
    """The last place in the user's code that an exception passed."""
    found: Location | None = None
    for each in passed(fault.__traceback__):
        frame, activation = each.tb_frame, activation_of(each.tb_frame)
        if activation is not None:
            found = activation.location()
        elif not is_library(frame):
            found = Location(frame.f_code.co_filename, each.tb_lineno, frame.f_code.co_name)
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
    every = [each for each in users(frame, inside=True) if isinstance(each, FrameType)]
    return [_position(each.f_code, each.f_lineno, each.f_lasti) for each in every]


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
