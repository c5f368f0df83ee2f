"""Settings of the process: environment variables that begin with ``YOTA_``, which `yota.configure` sets."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from types import EllipsisType
from typing import Any

from yota.errors import ArgumentError

__all__ = ["TARGETS", "Settings", "configure", "settings"]

TARGETS = ("numpy", "c", "cuda", "auto")
_OFF = ("0", "off")
_NOT_OF_CODE = ("YOTA_CACHE", "YOTA_TARGET", "YOTA_PROGRESS")


class Settings:
    """What is set now: each attribute reads its environment variable when it is asked for.

    Under ``with`` the settings are as they were before again when the block ends.

    Parameters
    ----------
    before
        Variables that were set to make this object, with what they were.
    """

    def __init__(self, before: dict[str, str | None] | None = None) -> None:
        self._before = before or {}

    @property
    def target(self) -> str:
        """What derivatives generate code for unless they say it: ``YOTA_TARGET``, or ``"numpy"``."""
        name = os.environ.get("YOTA_TARGET", "").strip() or "numpy"
        if name not in TARGETS:
            raise ArgumentError(f"YOTA_TARGET={name!r} is not known; the targets are: {', '.join(TARGETS)}")
        return name

    @property
    def threads(self) -> int | None:
        """Threads of loops in C: ``YOTA_NUM_THREADS``; None where that is no number, and OpenMP's own counts."""
        text = self.threads_text
        return int(text) if text.isascii() and text.isdigit() and int(text) else None

    @property
    def threads_text(self) -> str:
        """What ``YOTA_NUM_THREADS`` is."""
        return os.environ.get("YOTA_NUM_THREADS", "").strip(" ")

    @property
    def cache(self) -> Path | None:
        """Where compiled code is kept; None if what was traced is not kept (``YOTA_CACHE=off``)."""
        return self.folder if self.keeps else None

    @property
    def keeps(self) -> bool:
        """Whether what was traced is kept for other processes."""
        return os.environ.get("YOTA_CACHE", "").strip().lower() not in _OFF

    @property
    def folder(self) -> Path:
        """Where compiled files are kept: ``$YOTA_CACHE_DIR``, or ``yota`` in the user's cache folder."""
        named = os.environ.get("YOTA_CACHE_DIR")
        if named:
            return Path(named)
        base = os.environ.get("XDG_CACHE_HOME")
        if base and os.path.isabs(base):
            return Path(base) / "yota"
        try:
            return Path.home() / ".cache" / "yota"
        except RuntimeError:
            # A user without a home, as processes in containers may have.
            return Path(tempfile.gettempdir(), f"yota-{os.getuid() if hasattr(os, 'getuid') else None}")

    @property
    def verify(self) -> bool:
        """Whether tapes and schedules are checked while code is generated: ``YOTA_VERIFY=1``."""
        return os.environ.get("YOTA_VERIFY") == "1"

    @property
    def full_tracebacks(self) -> bool:
        """Whether yota's own frames stay in tracebacks: ``YOTA_TRACEBACK=full``."""
        return os.environ.get("YOTA_TRACEBACK") == "full"

    @property
    def atomic(self) -> bool:
        """Whether CUDA adds to repeated places in any order: ``YOTA_CUDA_SCATTER=atomic``."""
        return os.environ.get("YOTA_CUDA_SCATTER") == "atomic"

    @property
    def progress(self) -> bool:
        """Whether a long compilation says on a terminal what it is at; ``YOTA_PROGRESS=off`` is no."""
        return os.environ.get("YOTA_PROGRESS", "").strip().lower() not in _OFF

    def of_code(self) -> list[str]:
        """The variables that may change what is generated, each with its value."""
        found = sorted(name for name in os.environ if name.startswith("YOTA_"))
        return [f"{name}={os.environ[name]}" for name in found if not name.startswith(_NOT_OF_CODE)]

    def __enter__(self) -> Settings:
        return self

    def __exit__(self, *_: object) -> None:
        _set(self._before)

    def __repr__(self) -> str:
        return f"Settings(target={self.target!r}, threads={self.threads!r}, cache={str(self.cache or 'off')!r})"


settings = Settings()


def configure(
    *,
    target: str | EllipsisType | None = ...,
    threads: Any = ...,
    cache: Any = ...,
) -> Settings:
    """Set what holds for the whole process, and for the processes that it starts.

    Each setting is an environment variable, which may be set before Python starts just as well. What is left out stays
    as it is, and None is the default again. Set threads and cache before other threads compute.

    Parameters
    ----------
    target
        What derivatives generate code for unless they say it: ``"numpy"``, ``"c"``, ``"cuda"`` or ``"auto"``
        (``YOTA_TARGET``). It counts for derivatives that are made from then on.
    threads
        Threads of each loop in C (``YOTA_NUM_THREADS``); by default what OpenMP says.
    cache
        The folder in which compiled code is kept (``YOTA_CACHE_DIR``). False keeps nothing that was traced, True does
        again (``YOTA_CACHE``).

    Returns
    -------
    Settings
        The settings, with attributes ``target``, ``threads`` and ``cache``. In a ``with`` statement, what was set is
        as before at the end of the block.

    Examples
    --------
    >>> import numpy as np
    >>> import yota
    >>> with yota.configure(threads=2) as settings:
    ...     settings.threads
    2
    >>> yota.configure().target
    'numpy'
    """
    found: dict[str, str | None] = {}
    if target is not ...:
        if target is not None and target not in TARGETS:
            raise ArgumentError(f"target={target!r} is not known; the targets are: {', '.join(map(repr, TARGETS))}")
        found["YOTA_TARGET"] = target
    if threads is not ...:
        if threads is not None and (type(threads) is not int or threads < 1):
            raise ArgumentError(f"threads={threads!r}: give a whole number from 1 on, or None for what OpenMP says")
        found["YOTA_NUM_THREADS"] = None if threads is None else str(threads)
    if cache is not ...:
        found |= _of_cache(cache)
    before = {name: os.environ.get(name) for name in found}
    _set(found)
    return Settings(before)


def _of_cache(cache: Any) -> dict[str, str | None]:
    if isinstance(cache, bool):
        return {"YOTA_CACHE": "on" if cache else "off"}
    if cache is None:
        return {"YOTA_CACHE": None, "YOTA_CACHE_DIR": None}
    if not isinstance(cache, (str, os.PathLike)) or not os.fspath(cache):
        raise ArgumentError(f"cache={cache!r}: give the path of a folder, or False to keep nothing that was traced")
    # Children may have another current folder.
    return {"YOTA_CACHE": "on", "YOTA_CACHE_DIR": os.path.abspath(os.fspath(cache))}


def _set(variables: dict[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
