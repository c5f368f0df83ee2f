"""Programs in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import yota


def in_new_process(folder: Path, program: str, *words: str, timeout: float = 120) -> str:
    """Run a program as a script in a process of its own; give back what it printed."""
    script = folder / "script.py"
    script.write_text(program)
    environment = {**os.environ, "PYTHONPATH": str(Path(yota.__file__).parent.parent)}
    done = subprocess.run(
        [sys.executable, script, *words], capture_output=True, text=True, check=False, env=environment, timeout=timeout
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
