"""What CuPy itself makes of generated code, as far as that shows without a GPU."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys

import pytest

from tests.cuda.hosted import needs_compiler

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("cupy") is None, reason="CuPy is not installed: pip install cupy-cuda12x"
)


@needs_compiler
@pytest.mark.parametrize("part", ["arrays", "names", "calls"])
def test_cupy_agrees(part: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.cuda.real", part], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout) == []
