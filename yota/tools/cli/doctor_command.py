"""``yota doctor``: reports the installation for bug reports."""

from __future__ import annotations

import sys

HELP = """
Report versions, the C compiler, vector functions, threads, BLAS, CUDA, the cache and the settings, and test them. yota
compiles and runs a small function for each available target.

    yota doctor

Include the output in bug reports; it shows the home folder as ~. The exit code is 1 if an installed part does not work.
The command does not need the packages of the extra `cli`.
"""


def doctor() -> int:
    """See `HELP`."""
    from yota.tools.doctor import report

    text, code = report()
    sys.stdout.write(f"{text}\n")
    return code
