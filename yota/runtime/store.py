"""The private cache of compiled files: found by content, checked before use, safe among processes, bounded."""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import re
import shlex
import shutil
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from yota.errors import CodegenError
from yota.runtime.notices import warn_once
from yota.settings import settings

__all__ = ["MOST_BYTES", "MOST_FILES", "Store", "digest_of", "folder"]

MOST_FILES = 2_000
MOST_BYTES = 256 * 1024 * 1024
_DAY = 24 * 60 * 60
_OWN = re.compile(r"(compiler-|headers-)?[0-9a-f]{40,64}\.(so|cubin|json|h|h\.gch)")
"""Names of files that were put here: the folder may be one in which users keep others."""
_MINE = os.getuid() if hasattr(os, "getuid") else None


def folder() -> Path:
    """Where compiled files are kept."""
    return settings.folder


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
        The folder; made if it is missing. Where nothing can be written, or it belongs to another user, files are made
        for this process alone.

    Raises
    ------
    CodegenError
        If others may write to the folder, or it is a link.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with contextlib.suppress(OSError):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        refusal = _refusal(path)
        if refusal:
            raise CodegenError(f"compiled code is not kept in {path}: {refusal}")
        self._refused = _is_foreign(path)
        self.writable = not self._refused and os.access(path, os.W_OK | os.X_OK) and path.is_dir()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Store) and other.path == self.path

    def __hash__(self) -> int:
        return hash(self.path)

    def get(self, key: str, make: Callable[[Path], None], suffix: str = ".so") -> Path:
        """The file of ``key``; ``make`` writes it to the path it is given if it is not there, or not whole."""
        name = f"{key}{suffix}"
        places = [spare.path / name for spare in _spares_of(self.path)]
        for place in places if self._refused else [self.path / name, *places]:
            if _is_whole(place):
                with contextlib.suppress(OSError):
                    os.utime(place)  # the latest used are kept
                return place
        with tempfile.TemporaryDirectory(prefix="yota-") as scratch:
            fresh = Path(scratch, f"fresh{suffix}")
            make(fresh)
            reason = "it belongs to another user" if self._refused else "nothing may be written there"
            if self.writable:
                try:
                    return self._kept(fresh, name)
                except OSError as error:
                    reason = error.strerror or str(error)
            return _spare(self.path, reason)._kept(fresh, name)

    def noted(self, key: str) -> str | None:
        """A text that is kept and whole, or None."""
        place = self.path / f"{key}.json"
        with contextlib.suppress(OSError, UnicodeDecodeError):
            if not self._refused and _is_private(place):
                digest, _, text = place.read_text(encoding="utf-8").partition("\n")
                if digest == digest_of([key, text]):
                    os.utime(place)
                    return text
        return None

    def note(self, key: str, make: Callable[[], str]) -> str:
        """A text that is kept, if that can be done; ``make`` gives it if it is not there."""
        known = self.noted(key)
        if known is not None:
            return known
        text = make()
        self.put(key, text)
        return text

    def put(self, key: str, text: str) -> None:
        """Keep a text, if that can be done, in the place of what was kept before."""
        if self.writable:
            with contextlib.suppress(OSError):
                self.write(self.path / f"{key}.json", f"{digest_of([key, text])}\n{text}")
                self._forget()

    def write(self, place: Path, text: str) -> None:
        """Put a text into a file of this folder, whole or not at all."""
        with tempfile.TemporaryDirectory(prefix="making-", dir=self.path) as scratch:
            fresh = Path(scratch, "fresh")
            fresh.write_text(text, encoding="utf-8")
            os.chmod(fresh, 0o600)
            os.replace(fresh, place)

    def _kept(self, made: Path, name: str) -> Path:
        """Take up a file, whole or not at all."""
        place = self.path / name
        with tempfile.TemporaryDirectory(prefix="making-", dir=self.path) as scratch:
            fresh, digest = Path(scratch, "fresh"), Path(scratch, "digest")
            shutil.copyfile(made, fresh)
            os.chmod(fresh, 0o700)
            digest.write_text(_digest(fresh))
            # Another process may do the same just now, with the same content: whoever is last wins, and nobody
            # sees half a file. A digest that is older than its file is mended by the next process that looks.
            os.replace(fresh, place)
            os.replace(digest, place.with_suffix(".sha256"))
        self._forget()
        return place

    def _forget(self) -> None:
        """Remove what was not used for the longest time, past the bounds, and what killed processes left behind."""
        found = []
        with os.scandir(self.path) as entries:
            places = [entry for entry in entries if entry.name.startswith("making-") or _OWN.fullmatch(entry.name)]
        for entry in places:
            with contextlib.suppress(OSError):
                state = entry.stat(follow_symlinks=False)
                if not entry.name.startswith("making-"):
                    found.append((state.st_mtime, state.st_size, entry.name))
                elif state.st_mtime < time.time() - _DAY:
                    shutil.rmtree(entry.path, ignore_errors=True)
        size, count = sum(each for _, each, _ in found), len(found)
        for _, each, name in sorted(found)[:-1]:
            if count <= MOST_FILES and size <= MOST_BYTES:
                break
            size, count = size - each, count - 1
            place = self.path / name
            for file in (place, place.with_suffix(".sha256")):
                with contextlib.suppress(OSError):
                    file.unlink()


_spares: dict[Path, Store] = {}
_sparing = threading.Lock()


def _spares_of(path: Path) -> tuple[Store, ...]:
    """The store in the place of one at ``path``, if there had to be one."""
    return (_spares[path],) if path in _spares else ()


def _spare(path: Path, reason: str) -> Store:
    """A store that goes with this process, in the place of one at ``path``."""
    warn_once(
        f"compiled code cannot be kept in {path} ({reason}), so that every process compiles anew; "
        "make room there, or name a folder of your own in YOTA_CACHE_DIR"
    )
    with _sparing:
        if path not in _spares:
            made = tempfile.mkdtemp(prefix="yota-")
            atexit.register(_drop, made, os.getpid())
            _spares[path] = Store(Path(made))
        return _spares[path]


def _drop(folder: str, process: int) -> None:
    """Remove a folder at the end of the process that made it, not of one that was forked from it."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


def _is_whole(place: Path) -> bool:
    try:
        if not _is_private(place) or not _is_private(place.with_suffix(".sha256")):
            return False
        return place.with_suffix(".sha256").read_text() == _digest(place)
    except (OSError, UnicodeDecodeError):
        return False


def _digest(place: Path) -> str:
    return hashlib.sha256(place.read_bytes()).hexdigest()


def _refusal(path: Path) -> str:
    """Why a folder must not be trusted, with the cure; empty if it may be, or if it is none."""
    try:
        state = path.lstat()
    except OSError:
        return ""
    if stat.S_ISLNK(state.st_mode):
        target = os.path.realpath(path)
        return f"it is a link, which may come to lead elsewhere; name what it leads to: YOTA_CACHE_DIR={target}"
    if not stat.S_ISDIR(state.st_mode) or _is_private(path) or _is_foreign(path):
        return ""
    return f"others may write there; run: chmod 700 {shlex.quote(str(path))}, or name another folder in YOTA_CACHE_DIR"


def _is_foreign(path: Path) -> bool:
    try:
        return _MINE is not None and path.lstat().st_uid != _MINE
    except OSError:
        return False


def _is_private(place: Path) -> bool:
    """Whether only this user can have written there."""
    state = place.lstat()
    if stat.S_ISLNK(state.st_mode):
        return False
    if _MINE is None:
        return True
    return state.st_uid == _MINE and not state.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
