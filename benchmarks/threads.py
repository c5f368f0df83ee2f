"""Hold this process, and every library in it, to a number of threads; runs before NumPy is imported."""

from __future__ import annotations

import os

__all__ = ["limit_threads"]

VARIABLES = (
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


def limit_threads(threads: int) -> None:
    """Let the process run on ``threads`` processors; 0 leaves everything as it is.

    Libraries read the variables when they are imported. XLA ignores them and counts the processors it may use, so
    the affinity mask is narrowed too where the system has one.
    """
    if threads == 0:
        return
    for variable in VARIABLES:
        os.environ[variable] = str(threads)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-threads:])
