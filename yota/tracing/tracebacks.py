"""Tracebacks without yota's own frames."""

from __future__ import annotations

import sys
from types import FrameType, TracebackType
from typing import Any

from yota.errors import YotaError
from yota.settings import settings
from yota.tracing.current import current
from yota.tracing.source_lines import is_own, passed


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
    entries = (each for each in passed(traceback) if not is_own(each.tb_frame))
    return [(each.tb_frame, each.tb_lasti, each.tb_lineno) for each in entries]
