"""docs/coverage.md says what is so, and what it is written by finds what is wrong."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import yota
from benchmarks.survey.calls import Call, call_of
from benchmarks.survey.examine import examine
from benchmarks.survey.examples import Observer, observe
from benchmarks.survey.page import _section, page, reason, version
from benchmarks.survey.report import message_of, refusals, shares

sklearn = pytest.importorskip("sklearn")
ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "coverage.md"


def outcome(text, **given):
    moving = {name: value for name, value in given.items() if np.asarray(value).dtype.kind in "fc"}
    rest = {name: value for name, value in given.items() if name not in moving}
    return examine(Call("sample", text, moving, rest))


def groups():
    """What the page says of each function: its whole name, and the words."""
    found = {}
    module = words = ""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            module = line[3:]
        elif line.startswith(": `"):
            found |= {f"{module}.{name}": words for name in names_in(line)}
        elif row := re.match(r"\| (`.+?) \| (\w+) \|", line):
            found |= {f"{module}.{name}": row[2] for name in names_in(row[1])}
        words = line.partition(":")[0]
    return found


def names_in(text):
    """Names of functions, and of ``owners: methods``."""
    found = []
    for part in text.removeprefix(": ").split("; "):
        owners, _, methods = part.rpartition(": ")
        owners = [f"{each}." for each in re.findall("`(.+?)`", owners)] or [""]
        found += [owner + each for owner in owners for each in re.findall("`(.+?)`", methods)]
    return found


NAMES = [
    *("numpy.hypot", "numpy.argmax", "numpy.floor", "numpy.fft.fftshift", "numpy.linalg.norm", "scipy.linalg.polar"),
    *("scipy.special.logsumexp", "scipy.spatial.distance.cosine", "scipy.stats.zscore"),
    *("scipy.signal.detrend", "sklearn.metrics.pairwise.rbf_kernel", "sklearn.metrics.mean_squared_error"),
]


@pytest.mark.parametrize("name", NAMES)
def test_the_page_is_current(name):
    from benchmarks.survey.functions import outcomes

    text = PAGE.read_text(encoding="utf-8")
    if f"NumPy {version('numpy')}, SciPy {version('scipy')}, scikit-learn {version('sklearn')}." not in text:
        pytest.skip("the page was written with other versions of the libraries")
    if name not in groups():
        pytest.skip("not examined")
    found = [vars(each) | {"module": name.rpartition(".")[0]} for each in outcomes(name)]
    written = page(found)
    (line,) = (each for each in written.splitlines() if f"`{name.rpartition('.')[2]}`" in each)
    words = next((row[1] for row in [re.match(r"\| `.+?` \| (\w+) \|", line)] if row), None)
    assert groups()[name] == (words or written.splitlines()[written.splitlines().index(line) - 1])


def of(module, names):
    return {f"{module}.{name}" for name in names.split()}


WRONG = {
    # A minimum inside of its bounds does not move with them; where SciPy's search ends does, within its tolerance.
    *of("scipy.optimize", "fminbound minimize_scalar"),
    # Moments and sums of which SciPy, or an integral, has eight or nine digits.
    *of("scipy.stats", "halfgennorm.stats nchypergeom_wallenius.stats nchypergeom_wallenius.logsf"),
}
"""What is known to be wrong."""


def test_no_derivative_on_the_page_is_wrong_but_what_is_known():
    assert {name for name, words in groups().items() if words == "wrong"} <= WRONG
    assert len(groups()) > 100


def test_each_kind_is_told_apart():
    x = np.array([0.3, 0.7])
    assert outcome("np.sin(x)", x=x).kind == "right"
    assert outcome("np.floor(x)", x=x).kind == "constant"
    assert outcome("np.argmax(x)", x=x).kind == "discrete"
    assert outcome("np.spacing(x)", x=x).kind in ("constant", "unknown")
    assert outcome("np.nextafter(x, 2.0)", x=x).kind == "refused"
    assert outcome("x * np.random.default_rng().uniform()", x=x).kind == "random"
    assert outcome("np.eye(4)").kind == "no float"
    # At a kink, the place is moved.
    assert outcome("np.abs(x)", x=np.array([0.0, 1.0])).kind == "right"


def test_a_function_of_one_triangle_is_compared_along_symmetric_steps():
    given = [[2.0, 0.5j], [-0.5j, 1.0 + 0j]]
    assert outcome("np.linalg.cholesky(x)", x=given).kind == "right"
    assert outcome("np.linalg.cholesky(x)", x=np.array(given)).kind == "right"


def test_plain_calls_that_take_long_are_no_fault_of_the_derivative():
    import time

    def sluggish(x):
        end = time.process_time() + 0.05
        while time.process_time() < end:
            pass
        return x

    found = examine(Call("sample", "c0(x)", {"x": 0.5}, {"c0": sluggish}), seconds=0.2)
    assert (found.kind, found.detail) == ("unknown", "plain calls for differences take more than 0.2 s")


def test_the_page_lists_names_together():
    found = [{"name": f"a.m.{name}", "module": "a.m", "kind": "right", "detail": ""} for name in ("f", "A.x", "B.x")]
    found += [
        {"name": f"a.m.{name}", "module": "a.m", "kind": "refused", "detail": f"a.py:1: `f`: a.m.{name} is not."}
        for name in ("h", "g")
    ]
    text = "\n".join(_section("a.m", found))
    assert ": `f`; `A`, `B`: `x`" in text
    assert "| `g`, `h` | refused | it is not" in text


def test_a_wrong_derivative_is_found(monkeypatch):
    right = yota.grad

    def wrong(function, *arguments):
        value, gradient = right(function, *arguments)
        return value, [each * np.array([1.0, 1.001]) for each in gradient]

    monkeypatch.setattr(yota, "grad", wrong)
    found = outcome("np.sin(x)", x=np.array([0.3, 0.7]))
    assert found.kind == "wrong"
    assert found.detail.startswith("by x: ")


def test_calls_of_examples_are_observed_as_they_were_made():
    observer = Observer()
    text = """
    >>> from scipy.interpolate import CubicSpline
    >>> x = np.arange(4.0)
    >>> spline = CubicSpline(x, np.sin(x))
    >>> spline(0.5)
    >>> x[0] = 7
    >>> import matplotlib.pyplot as plt
    >>> plt.plot(x, np.cos(x))
    >>> unknown + 1
    """
    assert observe("sample", text, observer) == 1
    names = [each.name for each in observer.calls]
    assert "scipy.interpolate.CubicSpline.__call__" in names
    assert "numpy.cos" in names
    made = call_of(observer.calls[names.index("scipy.interpolate.CubicSpline.__call__")])
    assert made.text == "scipy.interpolate.CubicSpline(p0, p1)(p2)"
    assert made.given["p0"][0] == 0.0


def test_refusals_are_grouped_by_their_cause():
    message = "<a.f: call 3>:2: `return total(a.f(p0))`: np.svd is not determined. Pass full_matrices=False.\nmore"
    assert message_of(message) == "np.svd is not determined. Pass full_matrices=False."
    assert reason(message) == "np.svd is not determined"
    found = [{"name": "a.f", "module": "a.m", "kind": "refused", "text": "a.f(p0)", "detail": message}]
    found += [{"name": "a.g", "module": "a.m", "kind": "right", "text": "a.g(p0)", "detail": ""}]
    assert "## no derivative in closed form: 1\n" in refusals(found)
    assert re.search(r"^a +50\.0 % of +2", shares(found), re.MULTILINE)


def test_the_command_keeps_what_it_found(tmp_path):
    state = tmp_path / "state.jsonl"
    state.write_text(
        json.dumps({"name": "numpy.sin", "found": [{"name": "numpy.sin", "text": "s", "kind": "constant"}]})
    )
    with state.open("a") as file:
        file.write("\n")
    command = [sys.executable, "-m", "benchmarks.survey", "numpy.sin", "numpy.fft.fftshift", "--state", str(state)]
    made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, env={**os.environ})
    assert made.returncode == 0, made.stderr
    assert "constant  s" in made.stdout
    assert "right     numpy.fft.fftshift(p0)" in made.stdout
    assert len(state.read_text().splitlines()) == 2
