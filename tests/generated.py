"""What tests of generated modules share: loading one from its text, and what its text may hold."""

from __future__ import annotations

import ast
import itertools
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parent.parent
_serial = itertools.count()


def loaded(text: str) -> Any:
    """The module that ``text`` is."""
    module = types.ModuleType(f"generated_{next(_serial)}")
    sys.modules[module.__name__] = module
    exec(compile(text, module.__name__, "exec"), module.__dict__)
    return module


def same(left: Any, right: Any) -> bool:
    """Whether two results have the same bits."""
    left, right = np.asarray(left), np.asarray(right)
    return left.dtype == right.dtype and left.shape == right.shape and left.tobytes() == right.tobytes()


def imported(text: str) -> set[str]:
    """Top-level packages that the code imports."""
    found: set[str] = set()
    for statement in ast.walk(ast.parse(text)):
        if isinstance(statement, ast.Import):
            found.update(each.name.partition(".")[0] for each in statement.names)
        elif isinstance(statement, ast.ImportFrom):
            found.add((statement.module or "").partition(".")[0])
    return found


def lint(folder: Path) -> None:
    """Fail if a linter or a type checker has something to say about the modules of a folder."""
    # All workers read the types of NumPy once.
    mypy = ["mypy", "--strict", "--cache-dir", str(ROOT / ".mypy_cache" / "generated")]
    for words in (["ruff", "check", "--isolated"], ["ruff", "format", "--isolated", "--diff"], mypy):
        done = subprocess.run(
            [sys.executable, "-m", *words, "."], capture_output=True, text=True, cwd=folder, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
