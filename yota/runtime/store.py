"""The private cache of compiled files: found by content, checked before use, safe among processes, bounded."""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import os
import shutil
import stat
import tempfile
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path

from yota.errors import CodegenError

__all__ = ["MOST_BYTES", "MOST_FILES", "Store", "digest_of", "folder"]

MOST_FILES = 2_000
MOST_BYTES = 256 * 1024 * 1024
_COMPILED = (".so", ".gch", ".cubin")
_MINE = os.getuid() if hasattr(os, "getuid") else None


def folder() -> Path:
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
        return Path(tempfile.gettempdir(), f"yota-{_MINE}")


def digest_of(parts: Iterable[str]) -> str:
    """A key for what depends on all ``parts``, and on nothing else.

    Examples
    --------
    >>> digest_of(["a", "bc"]) == digest_of(["ab", "c"])
    False
    """
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogateescape")
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()[:40]


class Store:
    """Files in one folder, each with the digest of its content beside it.

    Parameters
    ----------
    path
        The folder; made if it is missing. Where nothing can be written, files are made for this process alone.

    Raises
    ------
    CodegenError
        If others may write to the folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with contextlib.suppress(OSError):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._writable = os.access(path, os.W_OK | os.X_OK) and path.is_dir()
        if self._writable and not _is_private(path):
            raise CodegenError(
                f"compiled code is not kept in {path}, since others may write there; "
                "run: chmod 700 on it, or name another folder in YOTA_CACHE_DIR"
            )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Store) and other.path == self.path

    def __hash__(self) -> int:
        return hash(self.path)

    def get(self, key: str, make: Callable[[Path], None], suffix: str = ".so") -> Path:
        """The file of ``key``; ``make`` writes it to the path it is given if it is not there, or not whole."""
        place = self.path / f"{key}{suffix}"
        if self._is_whole(place):
            with contextlib.suppress(OSError):
                os.utime(place)  # the latest used are kept
            return place
        if not self._writable:
            return _spare(self.path).get(key, make, suffix)
        with tempfile.TemporaryDirectory(prefix="making-", dir=self.path) as scratch:
            fresh = Path(scratch, f"fresh{suffix}")
            make(fresh)
            os.chmod(fresh, 0o700)
            digest = Path(scratch, "digest")
            digest.write_text(_digest(fresh))
            # Another process may do the same just now, with the same content: whoever is last wins, and nobody
            # sees half a file. A digest that is older than its file is mended by the next process that looks.
            os.replace(fresh, place)
            os.replace(digest, place.with_suffix(".sha256"))
        self._forget()
        return place

    def noted(self, key: str) -> str | None:
        """A short text that is kept, or None."""
        place = self.path / f"{key}.json"
        with contextlib.suppress(OSError):
            if _is_private(place):
                return place.read_text(encoding="utf-8")
        return None

    def note(self, key: str, make: Callable[[], str]) -> str:
        """A short text that is kept; ``make`` gives it if it is not there."""
        known = self.noted(key)
        if known is not None:
            return known
        text = make()
        if not self._writable:
            return text
        self.write(self.path / f"{key}.json", text)
        return text

    def write(self, place: Path, text: str) -> None:
        """Put a text into a file of this folder, whole or not at all."""
        with tempfile.TemporaryDirectory(prefix="making-", dir=self.path) as scratch:
            fresh = Path(scratch, "fresh")
            fresh.write_text(text, encoding="utf-8")
            os.chmod(fresh, 0o600)
            os.replace(fresh, place)

    def _is_whole(self, place: Path) -> bool:
        try:
            if not _is_private(place) or not _is_private(place.with_suffix(".sha256")):
                return False
            return place.with_suffix(".sha256").read_text() == _digest(place)
        except OSError:
            return False

    def _forget(self) -> None:
        """Remove what was not used for the longest time, past the bounds."""
        found = []
        for place in (file for suffix in _COMPILED for file in self.path.glob(f"*{suffix}")):
            with contextlib.suppress(OSError):
                state = place.stat()
                found.append((state.st_mtime, state.st_size, place))
        size = sum(each for _, each, _ in found)
        found.sort()
        for _, each, place in found[: max(0, len(found) - 1)]:
            if len(found) <= MOST_FILES and size <= MOST_BYTES:
                break
            size -= each
            found = found[1:]
            for file in (place, place.with_suffix(".sha256")):
                with contextlib.suppress(OSError):
                    file.unlink()


@functools.cache
def _spare(path: Path) -> Store:
    """A store that goes with this process, in the place of one at ``path``."""
    warnings.warn(
        f"compiled code cannot be kept in {path}, so that every process compiles anew; "
        "name a folder of your own in YOTA_CACHE_DIR",
        RuntimeWarning,
        stacklevel=2,
    )
    made = tempfile.mkdtemp(prefix="yota-")
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return Store(Path(made))


def _digest(place: Path) -> str:
    return hashlib.sha256(place.read_bytes()).hexdigest()


def _is_private(place: Path) -> bool:
    """Whether only this user can have written there."""
    state = place.lstat()
    if stat.S_ISLNK(state.st_mode):
        return False
    if _MINE is None:
        return True
    return state.st_uid == _MINE and not state.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
