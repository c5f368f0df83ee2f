"""Options of the test run, and what tests share."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

# Compiled code goes to a folder of this run's own, not to the user's cache.
os.environ.setdefault("YOTA_CACHE_DIR", tempfile.mkdtemp(prefix="yota-tests-"))

# Their subject is what is computed, not in how many operations.
BRIEFLY = ("autodiff", "batching", "passes", "rules", "runtime", "sharing", "tracing", "watching", "test_benchmarks.py")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        default=False,
        help="write the README's outputs and the golden files anew instead of comparing with them",
    )


@pytest.fixture(autouse=True)
def short_search(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Most tests look for fewer operations only briefly; the long search is for those of generated code itself."""
    folder = Path(__file__).parent
    if folder in request.path.parents and request.path.relative_to(folder).parts[0] in BRIEFLY:
        monkeypatch.setattr("yota.codegen.revise._EFFORT", 150_000)
