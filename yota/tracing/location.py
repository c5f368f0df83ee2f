"""Finding the line of the user's source that is running."""

from __future__ import annotations

import linecache
import os
import sys
import sysconfig
from types import FrameType

import numpy as np

from yota.ir.tape import Location

__all__ = [
    "ENTRY",
    "caller",
    "here",
    "is_library",
    "is_library_file",
    "is_own",
    "location_of",
    "raised_at",
    "source_line",
]

ENTRY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "record.py")
"""The module that calls the traced function."""
_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_PACKAGES = (_OWN + os.sep, os.path.dirname(os.path.abspath(np.__file__ or "")) + os.sep)
_STANDARD = (sysconfig.get_path("stdlib") + os.sep, "<frozen ", "<__array_function__")
_library: dict[str, bool] = {}


def is_library(frame: FrameType) -> bool:
    """Whether the frame runs code of yota, NumPy, SciPy or Python itself rather than of the user."""
    name = frame.f_code.co_filename
    known = _library.get(name)
    if known is None:
        known = _library[name] = is_library_file(name)
    return known


def is_own(frame: FrameType) -> bool:
    """Whether the frame runs code of yota."""
    return frame.f_code.co_filename.startswith(_PACKAGES[0])


def is_library_file(name: str) -> bool:
    """Whether a file of Python code belongs to yota, NumPy, SciPy or Python itself."""
    if name.startswith(_STANDARD):
        return "-packages" + os.sep not in name
    return name.startswith(_PACKAGES) or f"{os.sep}scipy{os.sep}" in name or name.endswith((".pyx", "<stringsource>"))


def caller(depth: int = 1) -> FrameType | None:
    """The innermost frame of the user's own code."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None and is_library(frame):
        frame = frame.f_back
    return frame


def here() -> Location | None:
    """The user's line that is running."""
    frame = caller(2)
    return None if frame is None else location_of(frame)


def location_of(frame: FrameType) -> Location:
    """The line that a frame runs."""
    return Location(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)


def raised_at(fault: BaseException) -> Location | None:
    """The last line of the user's that an exception passed."""
    found = None
    following = fault.__traceback__
    while following is not None:
        frame = following.tb_frame
        if not is_library(frame):
            found = Location(frame.f_code.co_filename, following.tb_lineno, frame.f_code.co_name)
        following = following.tb_next
    return found


def source_line(location: Location | None) -> str:
    """Text of the line, stripped; empty when the source cannot be had."""
    return linecache.getline(location.filename, location.line).strip() if location else ""
