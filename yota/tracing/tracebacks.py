"""Tracebacks without yota's own frames, in which what was interpreted stands as if Python ran it."""

from __future__ import annotations

import ast
import sys
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

from yota.errors import YotaError
from yota.settings import settings
from yota.tracing.current import current
from yota.tracing.source_lines import activation_of, is_own, passed

if TYPE_CHECKING:
    from yota.tracing.interpreter.activation import Activation


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
    entries = _entries(fault.__traceback__)
    if not entries and not isinstance(fault, YotaError):
        return
    following: TracebackType | None = None
    for frame, offset, line in reversed(entries):
        following = TracebackType(following, frame, offset, line)
    fault.__traceback__ = following


def _entries(traceback: TracebackType | None) -> list[tuple[FrameType, int, int]]:
    """Frame, offset and line of each entry that is not yota's own, the outermost first."""
    found: list[tuple[FrameType, int, int] | Activation] = []
    for entry in passed(traceback):
        frame = entry.tb_frame
        if not is_own(frame):
            found.append((frame, entry.tb_lasti, entry.tb_lineno))
        elif (activation := activation_of(frame)) is not None and not any(activation.is_within(each) for each in found):
            found.append(activation)
    return [each if isinstance(each, tuple) else _interpreted(each) for each in found]


def _interpreted(activation: Activation) -> tuple[FrameType, int, int]:
    """A frame for a function that was interpreted: of its name, and at the place in its file where it is."""
    location = activation.location()
    call = ast.Call(ast.Name("frame", ast.Load()), [], [])
    for part in (call, call.func):
        part.lineno, part.end_lineno = location.line, location.end_line
        part.col_offset, part.end_col_offset = location.column - 1, location.end_column - 1
    code = compile(ast.Expression(call), location.filename, "eval").replace(co_name=location.function)
    names = {"frame": lambda: sys._getframe(1), **{name: activation.globals.get(name) for name in _NAMES}}
    frame: FrameType = eval(code, names)
    return frame, frame.f_lasti, location.line


_NAMES = ("__name__", "__loader__", "__file__")
"""Global variables by which a source is found."""
