"""Options of the test run, and what tests share."""

from __future__ import annotations

import gc
import os
import tempfile

import pytest

# Compiled code goes to a folder of this run's own, not to the user's cache.
os.environ.setdefault("YOTA_VERIFY", "1")
os.environ.setdefault("YOTA_CACHE_DIR", tempfile.mkdtemp(prefix="yota-tests-"))
# Functions are traced in each test, whatever other tests have traced.
os.environ.setdefault("YOTA_CACHE", "off")


def pytest_collection_finish() -> None:
    """Leave the modules and the tests themselves, millions of objects, out of every garbage collection."""
    gc.collect()
    gc.freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        default=False,
        help="write the README's outputs and the golden files anew instead of comparing with them",
    )
