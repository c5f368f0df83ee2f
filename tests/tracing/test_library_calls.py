"""What a library refuses is named: the function, what it is, and the rule to paste."""

import re
import subprocess
import sys

import numpy as np
import pytest

import yota
from yota.errors import TracingError
from yota.rules.language.syntax import parse
from yota.tracing import record
from yota.tracing.library_calls import LibraryCall, library_call_of

scipy = pytest.importorskip("scipy")
spatial = pytest.importorskip("scipy.spatial")
signal = pytest.importorskip("scipy.signal")
stats = pytest.importorskip("scipy.stats")


def rules_in(message):
    """The rules that a message prints, completed, parsed."""
    texts = re.findall(r"^(@(?:tensor|elementwise|nodiff)\(.*?)(?:\n\n|\n?\Z)", message, re.DOTALL | re.MULTILINE)
    filled = [re.sub(r"(d\[.*?\] =) \.\.\.", r"\1 0", text) for text in texts]
    return [rule for text in filled for rule in parse("# yota rules 1\n" + text)[1]]


def refused(function, *arguments):
    with pytest.raises(TracingError) as caught:
        yota.grad(function, *arguments)
    return str(caught.value)


POINTS = np.array([[0.0, 0.1], [1.0, 0.2], [0.3, 1.0], [0.9, 1.1]])


def test_a_method_of_compiled_code_is_named_with_a_rule_that_parses():
    tree = spatial.cKDTree(POINTS)
    message = refused(lambda x: tree.query(x)[0], np.array([0.3, 0.4]))
    assert "scipy.spatial.cKDTree.query" in message
    ruled, silent = rules_in(message)
    assert (ruled.kind, silent.kind) == ("tensor", "nodiff")
    assert ruled.target == "your_module.ckdtree_query"
    assert [each.name for each in ruled.operands] == ["x"]


def test_a_class_of_compiled_code_is_refused_and_reads_no_memory_of_traced_values():
    program = (
        "import numpy as np, scipy.spatial, yota\n"
        "points = np.array([[0.0, 0.1], [1.0, 0.2], [0.3, 1.0], [0.9, 1.1]])\n"
        "try:\n"
        "    yota.grad(lambda x: scipy.spatial.ConvexHull(x).volume, points)\n"
        "except yota.errors.TracingError as error:\n"
        "    print(error)\n"
    )
    made = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert made.returncode == 0, made.stderr
    assert "scipy.spatial.ConvexHull" in made.stdout
    assert len(rules_in(made.stdout)) == 2


def test_a_function_in_python_that_takes_plain_arrays_is_named():
    found = library_call_of(signal.lp2bp, (), {})
    assert found.name == "scipy.signal.lp2bp"
    assert found.kind() == "has code in Python that takes plain arrays"
    ruled, _ = rules_in(found.advice())
    assert [each.name for each in ruled.operands] == ["b", "a"]
    assert [(each.name, each.default.value) for each in ruled.keywords] == [("wo", 1.0), ("bw", 1.0)]


def test_names_are_the_public_ones():
    assert library_call_of(stats.pearsonr, (), {}).name == "scipy.stats.pearsonr"
    assert library_call_of(stats.gamma.mean, (), {}).name == "scipy.stats.gamma.mean"
    assert library_call_of(np.linalg.norm, (), {}).name == "numpy.linalg.norm"
    assert library_call_of(scipy.special.expit, (), {}).name == "scipy.special.expit"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: scipy.linalg.cossin(x, p=2, q=1, separate=True)[1], r"scipy.linalg.cossin is not.*svdvals"),
        (lambda x: scipy.linalg.qz(x, np.eye(3))[0], r"scipy.linalg.qz is not.*eigvals"),
        (lambda x: signal.spline_filter(x), r"scipy.signal.spline_filter is not.*scipy.ndimage.spline_filter"),
        (lambda x: scipy.special.ellip_harm(5.0, 8.0, 1, 1, x[0, 0]), r"scipy.special.ellip_harm is not.*Nobody"),
    ],
)
def test_what_is_not_recorded_is_named_with_the_cure(call, message):
    with pytest.raises(TracingError, match=message + r"(.|\n)*@nodiff"):
        yota.grad(lambda x: np.sum(call(x)), np.eye(3) + 2.0)


@pytest.mark.parametrize(
    "function", [stats.pearsonr, signal.lfilter, np.einsum, np.interp, spatial.distance.cdist, min]
)
def test_each_rule_to_paste_parses(function):
    for rule in rules_in(LibraryCall("m.f", function).advice()):
        assert rule.name == "f"


def test_defaults_that_no_rule_can_hold_are_left_out():
    def f(x, y=np.inf, dtype=np.float64, result=(1, 2)):
        """A function."""

    ruled, silent = rules_in(LibraryCall("m.f", f, traced=("y",)).advice())
    assert [each.name for each in ruled.operands] == ["y"]
    assert len(silent.keywords) == 3


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.sum(signal.cheby1(3, x[0], x[1], fs=x[2])[1]),
        lambda x: np.sum(signal.iirdesign(x[1], 2 * x[1], x[0], 40.0, fs=x[2])[1]),
    ],
)
def test_numbers_that_scipy_takes_off_the_tape_need_one_further_recording(monkeypatch, function):
    runs, once = [], record._run
    monkeypatch.setattr(record, "_run", lambda *args: runs.append(1) or once(*args))
    yota.grad(function, np.array([1.0, 10.0, 100.0]))
    assert len(runs) == 2
    assert yota.gradcheck(function, np.array([1.0, 10.0, 100.0]))


def test_a_long_loop_in_scipy_that_no_loop_records_is_recorded_trip_by_trip():
    def sections(x):
        return np.sum(signal.cheby2(12, x[0], x[1], "hp", fs=x[2], output="sos"))

    assert yota.gradcheck(sections, np.array([20.0, 17.0, 1000.0]))
