"""Calls that print, warn or take long."""

from __future__ import annotations

import contextlib
import io
import signal
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.special

__all__ = ["limited", "quiet"]


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Nothing is printed, and nothing warned of; how errors are handled is as before afterwards."""
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
        np.errstate(all="ignore"),
        scipy.special.errstate(all="ignore"),
    ):
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise TimeoutError after so many seconds of the processor's time; an outer limit goes on afterwards."""

    def end(*_: Any) -> None:
        raise TimeoutError

    signal.signal(signal.SIGPROF, end)
    outer, _ = signal.setitimer(signal.ITIMER_PROF, seconds, 1.0)
    try:
        yield
    finally:
        rest, _ = signal.setitimer(signal.ITIMER_PROF, 0)
        if outer:
            signal.setitimer(signal.ITIMER_PROF, max(outer - (seconds - rest), 1e-3), 1.0)
