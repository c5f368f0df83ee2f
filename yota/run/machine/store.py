"""The private cache of files and texts: content-addressed, verified before use, safe among processes, bounded."""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import os
import platform
import re
import stat
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from yota.errors import CodegenError
from yota.run.machine.signals import warn_once
from yota.settings import settings

MOST_FILES = 2_000
MOST_BYTES = 256 * 1024 * 1024
_DAY = 24 * 60 * 60
_OWN = r"(compiler-|headers-)?[0-9a-f]{40,64}\.(so|cubin|json|h|h\.gch)"
"""Pattern of the names of cache files; users may keep other files in the folder."""
_MINE = os.getuid() if hasattr(os, "getuid") else None


def folder() -> Path:
    """The folder of compiled files."""
    return settings.folder


@functools.cache
def processor() -> str:
    """The features of this processor: code for one processor does not run on every other."""
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as lines:
            features = (line for line in lines if line.startswith(("flags", "Features")))
            return next(features, "").partition(":")[2].strip()
    except OSError:
        return platform.processor()


def digest_of(parts: Iterable[str]) -> str:
    """A key that depends on all ``parts``.

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
    """Files in one folder, each with a digest of its content.

    path: the folder, created with its parent if missing. If it is not writable or belongs to another user, files are
        kept for this process only.
    Raises CodegenError if others may write to the folder, or it is a symbolic link.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with contextlib.suppress(OSError):
            for each in (path.parent, path):
                each.mkdir(mode=0o700, parents=True, exist_ok=True)
        refusal = _refusal(path)
        if refusal:
            raise CodegenError(f"compiled code is not stored in {path}: {refusal}")
        self._refused = _is_foreign(path)
        self.writable = not self._refused and os.access(path, os.W_OK | os.X_OK) and path.is_dir()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Store) and other.path == self.path

    def __hash__(self) -> int:
        return hash(self.path)

    def get(self, key: str, make: Callable[[Path], None], suffix: str = ".so") -> Path:
        """The file of ``key``; if it is missing or damaged, ``make`` writes it to the path that it receives."""
        found = self.kept(key, suffix)
        if found is not None:
            return found
        import tempfile

        name = f"{key}{suffix}"
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

    def kept(self, key: str, suffix: str = ".so") -> Path | None:
        """The intact file of ``key``, or None."""
        name = f"{key}{suffix}"
        places = [_spares[self.path].path / name] if self.path in _spares else []
        for place in places if self._refused else [self.path / name, *places]:
            if _is_whole(place):
                with contextlib.suppress(OSError):
                    os.utime(place)  # the latest used are kept
                return place
        return None

    def noted(self, key: str) -> str | None:
        """A stored, intact text, or None."""
        place = self.path / f"{key}.json"
        with contextlib.suppress(OSError, UnicodeDecodeError):
            if not self._refused and _is_private(place):
                digest, _, text = place.read_text(encoding="utf-8").partition("\n")
                if digest == digest_of([key, text]):
                    os.utime(place)
                    return text
        return None

    def note(self, key: str, make: Callable[[], str]) -> str:
        """A stored text; if it is missing, ``make`` returns it, and it is stored if possible."""
        known = self.noted(key)
        if known is not None:
            return known
        text = make()
        self.put(key, text)
        return text

    def put(self, key: str, text: str) -> None:
        """Store a text if possible, in place of the previous one."""
        if self.writable:
            with contextlib.suppress(OSError):
                self.write(self.path / f"{key}.json", f"{digest_of([key, text])}\n{text}")
                self._forget()

    def write(self, place: Path, text: str) -> None:
        """Write a text to a file of this folder atomically."""
        import tempfile

        with tempfile.TemporaryDirectory(prefix="making-", dir=self.path) as scratch:
            fresh = Path(scratch, "fresh")
            fresh.write_text(text, encoding="utf-8")
            os.chmod(fresh, 0o600)
            os.replace(fresh, place)

    def _kept(self, made: Path, name: str) -> Path:
        """Move a file into the store atomically."""
        import shutil
        import tempfile

        place = self.path / name
        with tempfile.TemporaryDirectory(prefix="making-", dir=self.path) as scratch:
            fresh, digest = Path(scratch, "fresh"), Path(scratch, "digest")
            shutil.copyfile(made, fresh)
            os.chmod(fresh, 0o700)
            digest.write_text(_digest(fresh))
            # Another process may store the same content at the same time: the last one wins, and no reader sees a
            # partial file. The next reader corrects a digest that is older than its file.
            os.replace(fresh, place)
            os.replace(digest, place.with_suffix(".sha256"))
        self._forget()
        return place

    def _forget(self) -> None:
        """Remove the least recently used files above the bounds, and files of killed processes."""
        import shutil

        found = []
        with os.scandir(self.path) as entries:
            places = [entry for entry in entries if entry.name.startswith("making-") or re.fullmatch(_OWN, entry.name)]
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


def _spare(path: Path, reason: str) -> Store:
    """A temporary store of this process that replaces the one at ``path``."""
    warn_once(
        f"compiled code cannot be kept in {path} ({reason}), so that every process compiles anew; "
        "make room there, or name a folder of your own in YOTA_CACHE_DIR"
    )
    import tempfile

    with _sparing:
        if path not in _spares:
            made = tempfile.mkdtemp(prefix="yota-")
            atexit.register(_drop, made, os.getpid())
            _spares[path] = Store(Path(made))
        return _spares[path]


def _drop(folder: str, process: int) -> None:
    """Remove a folder at the end of the process that created it, but not of a forked process."""
    if os.getpid() == process:
        import shutil

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
    """Why a folder must not be trusted, with the remedy; empty if it may be trusted or does not exist."""
    try:
        state = path.lstat()
    except OSError:
        return ""
    if stat.S_ISLNK(state.st_mode):
        target = os.path.realpath(path)
        return f"it is a symbolic link, whose target may change; name the target: YOTA_CACHE_DIR={target}"
    if not stat.S_ISDIR(state.st_mode) or _is_private(path) or _is_foreign(path):
        return ""
    import shlex

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


class Proofs:
    """Marks in a private folder; without such a folder, nothing is stored.

    A mark is named by its key, which is a digest of the rule file, and is empty.

    version: part of every key: another version of yota verifies again.
    """

    def __init__(self, version: str) -> None:
        self.version = version
        self._store: Store | None = None
        with contextlib.suppress(CodegenError):
            self._store = Store(folder() / "proofs")

    def knows(self, key: str) -> bool:
        """Whether ``key`` is stored, perhaps by another process."""
        return self._store is not None and self._store.noted(self._name(key)) is not None

    def add(self, key: str) -> None:
        """Store ``key``."""
        if self._store is not None:
            self._store.put(self._name(key), "")

    def _name(self, key: str) -> str:
        return digest_of(["proved", key, self.version])
