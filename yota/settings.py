"""Settings of the process: environment variables with the prefix ``YOTA_``, which `yota.configure` sets."""

from __future__ import annotations

import os
from pathlib import Path
from types import EllipsisType
from typing import Any

from yota.errors import ArgumentError

__all__ = ["TARGETS", "Settings", "configure", "settings"]

TARGETS = ("numpy", "c", "cuda", "auto")
_OFF = ("0", "off")
_NOT_OF_CODE = ("YOTA_CACHE", "YOTA_TARGET", "YOTA_PROGRESS")


class Settings:
    """The current settings: each attribute reads its environment variable at each access.

    A ``with`` statement restores the previous settings, ``before``, at its end.
    """

    revision = 0
    """The number of changes of options that compiled code depends on."""

    def __init__(self, before: dict[str, str | None] | None = None) -> None:
        self._before = before or {}

    @property
    def target(self) -> str:
        """Default target of derivatives: ``YOTA_TARGET``, or ``"numpy"``."""
        name = os.environ.get("YOTA_TARGET", "").strip() or "numpy"
        if name not in TARGETS:
            raise ArgumentError(f"YOTA_TARGET={name!r} is not known; the targets are: {', '.join(TARGETS)}")
        return name

    @property
    def threads(self) -> int | None:
        """Threads of C loops: ``YOTA_NUM_THREADS``; None, for OpenMP's default, if that is not a positive integer."""
        text = self.threads_text
        return int(text) if text.isascii() and text.isdigit() and int(text) else None

    @property
    def threads_text(self) -> str:
        """The text of ``YOTA_NUM_THREADS``."""
        return os.environ.get("YOTA_NUM_THREADS", "").strip(" ")

    @property
    def cache(self) -> Path | None:
        """Folder of the persistent cache; None if the cache is disabled (``YOTA_CACHE=off``)."""
        return self.folder if self.keeps else None

    @property
    def keeps(self) -> bool:
        """Whether tapes are kept on disk for other processes."""
        return os.environ.get("YOTA_CACHE", "").strip().lower() not in _OFF

    @property
    def folder(self) -> Path:
        """Folder of compiled files: ``$YOTA_CACHE_DIR``, or ``yota`` in the user's cache folder."""
        named = os.environ.get("YOTA_CACHE_DIR")
        if named:
            return Path(named)
        base = os.environ.get("XDG_CACHE_HOME")
        if base and os.path.isabs(base):
            return Path(base) / "yota"
        try:
            return Path.home() / ".cache" / "yota"
        except RuntimeError:
            import tempfile

            # Processes in containers may have a user without a home folder.
            return Path(tempfile.gettempdir(), f"yota-{os.getuid() if hasattr(os, 'getuid') else None}")

    @property
    def memory(self) -> int:
        """Bytes that the derivative of a loop keeps at most: ``YOTA_MEMORY``, or a quarter of the machine's memory."""
        text = os.environ.get("YOTA_MEMORY", "").strip()
        if text:
            if not (text.isascii() and text.isdigit() and int(text)):
                raise ArgumentError(f"YOTA_MEMORY={text!r} is no number of bytes")
            return int(text)
        try:
            return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4
        except (AttributeError, OSError, ValueError):
            return 2**31

    @property
    def verify(self) -> bool:
        """Whether tapes and schedules are verified during code generation: ``YOTA_VERIFY=1``."""
        return os.environ.get("YOTA_VERIFY") == "1"

    @property
    def full_tracebacks(self) -> bool:
        """Whether tracebacks keep yota's own frames: ``YOTA_TRACEBACK=full``."""
        return os.environ.get("YOTA_TRACEBACK") == "full"

    @property
    def atomic(self) -> bool:
        """Whether CUDA kernels add at repeated indices atomically, in any order: ``YOTA_CUDA_SCATTER=atomic``."""
        return os.environ.get("YOTA_CUDA_SCATTER") == "atomic"

    @property
    def progress(self) -> bool:
        """Whether a long compilation shows its stage on a terminal; ``YOTA_PROGRESS=off`` disables it."""
        return os.environ.get("YOTA_PROGRESS", "").strip().lower() not in _OFF

    def of_code(self) -> list[str]:
        """The variables that may change generated code, with their values."""
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
    memory: int | EllipsisType | None = ...,
) -> Settings:
    """Set options of this process and of its child processes.

    Each option is an environment variable, which can also be set before Python starts. Omitted options keep their
    value; None restores the default. Set ``threads`` and ``cache`` before other threads compute.

    Parameters
    ----------
    target
        Default target of derivatives that are created afterwards: ``"numpy"``, ``"c"``, ``"cuda"`` or ``"auto"``
        (``YOTA_TARGET``).
    threads
        Threads of each C loop (``YOTA_NUM_THREADS``); by default OpenMP's setting.
    cache
        Folder for compiled code (``YOTA_CACHE_DIR``). False disables the cache of tapes, True enables it again
        (``YOTA_CACHE``).
    memory
        Bytes that the derivative of one loop may keep (``YOTA_MEMORY``); by default a quarter of the machine's memory.
        A derivative that needs more recomputes states of the loop. Applies to code that is compiled afterwards.

    Returns
    -------
    Settings
        The settings, with attributes ``target``, ``threads``, ``cache`` and ``memory``. As a context manager it
        restores the previous settings at the end of the block.

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
            raise ArgumentError(f"threads={threads!r}: give a positive integer, or None for OpenMP's setting")
        found["YOTA_NUM_THREADS"] = None if threads is None else str(threads)
    if memory is not ...:
        if memory is not None and (type(memory) is not int or memory < 1):
            raise ArgumentError(f"memory={memory!r}: give a number of bytes, or None for a quarter of the machine's")
        found["YOTA_MEMORY"] = None if memory is None else str(memory)
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
        raise ArgumentError(f"cache={cache!r}: give the path of a folder, or False to disable the cache of tapes")
    # Child processes may have another current folder.
    return {"YOTA_CACHE": "on", "YOTA_CACHE_DIR": os.path.abspath(os.fspath(cache))}


def _set(variables: dict[str, str | None]) -> None:
    Settings.revision += "YOTA_MEMORY" in variables
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
