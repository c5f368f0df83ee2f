"""``yota doctor``: what there is on this machine, for reports of faults."""

from __future__ import annotations

import sys

__all__ = ["HELP", "doctor"]

HELP = """
Say what yota finds on this machine, and whether it works: versions, the C compiler, vector functions and threads, BLAS,
CUDA, the cache and the settings. A small function is compiled and run for each target that there is.

    yota doctor

The output belongs into reports of faults; the folder of the user is written as ~. Exit code 1 if anything that is
installed does not work. It needs none of the packages of the extra `cli`.
"""


def doctor() -> int:
    """See `HELP`."""
    from yota.doctor import report

    text, code = report()
    sys.stdout.write(f"{text}\n")
    return code
