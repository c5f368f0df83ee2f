"""docs/coverage.md says what is so."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy

SCRIPT = Path(__file__).parent.parent / "docs" / "coverage.py"


@pytest.fixture(scope="module")
def script():
    specification = importlib.util.spec_from_file_location("coverage_page", SCRIPT)
    module = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = module
    specification.loader.exec_module(module)
    return module


def test_the_page_is_current(script):
    written = script.PAGE.read_text(encoding="utf-8")
    if f"with NumPy {script.version(np)} and SciPy {script.version(scipy)}:" not in written:
        pytest.skip("the page was written with another version of NumPy or SciPy")
    assert script.page() == written, "run python docs/coverage.py"


def test_a_reason_is_one_line_without_its_place(script):
    message = "/a/b.py:3 in f: `np.svd(x)`: np.svd is not determined. Pass full_matrices=False.\nmore"
    assert script._reason(message) == "np.svd is not determined. Pass full_matrices=False."
