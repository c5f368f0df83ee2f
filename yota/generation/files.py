"""Writing generated files: in one step, and never over what somebody else wrote."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from yota.errors import ArgumentError
from yota.generation import assembly
from yota.generation.c import contents

_HEAD = 16_384
_MARKS = tuple(mark.encode() for mark in (assembly.MARK, contents.MARK))


def check(path: Path, *, force: bool = False) -> None:
    """Refuse a path that must not be written to.

    Raises ArgumentError if the folder is missing, or a file is there that yota did not write and ``force`` is not
        given.
    """
    if path.is_dir():
        raise ArgumentError(f"{path} is a folder; name a file in it")
    if not path.parent.is_dir():
        raise ArgumentError(f"the folder {path.parent} does not exist")
    if path.exists() and not force and not _is_ours(path):
        raise ArgumentError(
            f"{path} was not written by yota; choose another name, or overwrite it with force (--force)"
        )


def write(path: Path, text: str, *, force: bool = False) -> None:
    """Put ``text`` at ``path``, if `check` lets it; readers see either what was there or all of it."""
    check(path, force=force)
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_mask()
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name[:40]}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode("ascii"))
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _mask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _is_ours(path: Path) -> bool:
    with path.open("rb") as file:
        head = file.read(_HEAD)
    return not head or any(line.startswith(_MARKS) for line in head.splitlines())
