"""Options of the test run, and what tests share."""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
from collections.abc import Generator
from typing import Any

import hypothesis
import pytest
from _pytest.doctest import DoctestModule

# How long an example takes decides nothing.
hypothesis.settings.register_profile("yota", deadline=None)
hypothesis.settings.load_profile("yota")
# Compiled code goes to a folder of this run's own, not to the user's cache.
os.environ.setdefault("YOTA_VERIFY", "1")
os.environ.setdefault("YOTA_CACHE_DIR", tempfile.mkdtemp(prefix="yota-tests-"))
# Functions are traced in each test, whatever other tests have traced.
os.environ.setdefault("YOTA_CACHE", "off")
# sympy computes as without gmpy2, which most users lack.
os.environ.setdefault("SYMPY_GROUND_TYPES", "python")
# JAX, with which results are compared, compiles in less time.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")


def pytest_configure() -> None:
    """Compile C without optimisation and link it with gold, in half the time. `tests/emit/c` optimises as for users."""
    from yota.run.machine import compiler

    linker = ("-fuse-ld=gold",) if shutil.which("ld.gold") else ()
    compiler._FLAGS = ("-O0", *compiler._FLAGS[1:], *linker)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Collect no garbage meanwhile: what is imported stays."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Generator[None, list[Any], list[Any]]:
    """Search no test file for doctests: there are none, and the search looks at every object of a module."""
    return [each for each in (yield) if not isinstance(each, DoctestModule)]


def pytest_collection_finish() -> None:
    """Leave the modules and the tests themselves, millions of objects, out of every garbage collection."""
    gc.set_threshold(20_000, 10, 10)
    _set_aside()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """After the tests of a file, leave out what they keep in caches too."""
    if nextitem is not None and nextitem.path != item.path:
        _set_aside()


def _set_aside() -> None:
    gc.collect()
    gc.freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        default=False,
        help="write the README's outputs and the golden files anew instead of comparing with them",
    )
