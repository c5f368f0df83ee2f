"""The features of this processor, which are part of the keys of compiled files."""

from __future__ import annotations

import functools
import platform


@functools.cache
def processor() -> str:
    """The features of this processor: code for one processor does not run on every other."""
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as lines:
            features = (line for line in lines if line.startswith(("flags", "Features")))
            return next(features, "").partition(":")[2].strip()
    except OSError:
        return platform.processor()
