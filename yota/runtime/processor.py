"""What this machine's processor can do, by which compiled files of one kind of machine are told from another's."""

from __future__ import annotations

import functools
import platform

__all__ = ["processor"]


@functools.cache
def processor() -> str:
    """What this machine's processor can do: code for one does not run on every other."""
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as lines:
            features = (line for line in lines if line.startswith(("flags", "Features")))
            return next(features, "").partition(":")[2].strip()
    except OSError:
        return platform.processor()
