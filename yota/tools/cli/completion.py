"""Shell completion of files, functions in them, and rules, without imports."""

from __future__ import annotations

import ast
from pathlib import Path

_MOST = 200


def functions(incomplete: str) -> list[str]:
    """Completions of ``path/to/file.py:f``; the file is parsed and not executed."""
    place, colon, name = incomplete.rpartition(":")
    if colon:
        try:
            tree = ast.parse(Path(place).read_text(encoding="utf-8"))
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            return []
        names = [each.name for each in tree.body if isinstance(each, ast.FunctionDef)]
        return [f"{place}:{each}" for each in names if each.startswith(name)]
    folder = Path(incomplete) if incomplete.endswith("/") else Path(incomplete).parent
    try:
        entries = sorted(folder.iterdir())[:_MOST]
    except OSError:
        return []
    found = [f"{each.as_posix()}/" if each.is_dir() else f"{each.as_posix()}:" for each in entries if _offered(each)]
    return [each for each in found if each.startswith(incomplete)]


def _offered(path: Path) -> bool:
    return not path.name.startswith((".", "__")) and (path.is_dir() or path.suffix == ".py")


def primitives(incomplete: str) -> list[str]:
    """Completions of a rule's name."""
    from yota.rules.registry import registry

    return [name for name in registry().names() if name.startswith(incomplete)]
