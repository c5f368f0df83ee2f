"""What a user sees of an exception of his own: his frames, and none of yota's."""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from pathlib import Path

import numpy as np
import pytest

import yota
from yota import errors

PACKAGE = str(Path(yota.__file__).parent)
X = np.ones(3)
pytestmark = pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 keeps the first traceback")


def inner(x):
    return {}["mine"]


def fails(x):
    return inner(x * 2)


def fails_interpreted(x):
    number = float(x[0])
    return sum(
        inner(number)
        for _ in range(2)
    )  # fmt: skip


WAYS = {
    "grad": lambda f: yota.grad(f, X),
    "value_and_grad": lambda f: yota.value_and_grad(f)(X),
    "gradient": lambda f: yota.gradient(f)(X),
    "jacobian": lambda f: yota.jacobian(f)(X),
    "hessian": lambda f: yota.hessian(f)(X),
    "hvp": lambda f: yota.hvp(f)(X, X),
    "jvp": lambda f: yota.jvp(f, (X,), (X,)),
    "vjp": lambda f: yota.vjp(f, X),
    "trace": lambda f: yota.trace(f, X),
    "itrace": lambda f: yota.itrace(f, X),
    "batch": lambda f: yota.batch(f)(np.ones((2, 3))),
    "simplegrad": lambda f: yota.simplegrad(f, X),
    "gradcheck": lambda f: yota.gradcheck(f, X),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("f", [fails, fails_interpreted])
def test_frames_are_the_users(way, f):
    with pytest.raises(KeyError) as caught:
        WAYS[way](f)
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert not [frame for frame in frames if frame.filename.startswith(PACKAGE)]
    assert [frame.name for frame in frames if frame.name != "<genexpr>"][-2:] == [f.__name__, "inner"]
    assert frames[-1].line == 'return {}["mine"]' and frames[-1].lineno == inner.__code__.co_firstlineno + 1
    assert caught.value.__context__ is None or caught.value.__suppress_context__


def test_the_line_that_is_interpreted_is_shown():
    with pytest.raises(KeyError) as caught:
        yota.itrace(fails_interpreted, X)
    frames = traceback.extract_tb(caught.value.__traceback__)[:-1]
    frame = [each for each in frames if each.name != "<genexpr>"][-1]
    assert frame.filename == __file__ and frame.name == "fails_interpreted"
    assert fails_interpreted.__code__.co_firstlineno < frame.lineno <= fails_interpreted.__code__.co_firstlineno + 5


def test_errors_of_numpy_stand_where_the_user_called_it():
    def mismatch(x):
        return np.sum(x @ np.ones(7))

    with pytest.raises(ValueError, match="mismatch") as caught:
        yota.gradient(mismatch)(X)
    assert traceback.extract_tb(caught.value.__traceback__)[-1].name == "mismatch"


def test_errors_of_yota_show_the_users_line_too():
    with pytest.raises(errors.YotaError) as caught:
        yota.gradient(lambda x: np.sum(np.nextafter(x, 2.0)))(X)
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert not [frame for frame in frames if frame.filename.startswith(PACKAGE)]


def test_all_frames_on_demand(monkeypatch):
    monkeypatch.setenv("YOTA_TRACEBACK", "full")
    with pytest.raises(KeyError) as caught:
        yota.gradient(fails)(X)
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert len([frame for frame in frames if frame.filename.startswith(PACKAGE)]) > 5


def test_what_python_prints(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "import numpy as np, yota\n"
        "def f(x):\n"
        "    return {}[float(x[0])]\n"
        "yota.gradient(f)(np.ones(3))\n"
    )  # fmt: skip
    there = {**os.environ, "PYTHONPATH": str(Path(PACKAGE).parent)}
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, env=there, check=False)
    lines = [line for line in done.stderr.splitlines() if line.startswith("  File")]
    assert lines == [f'  File "{path}", line 4, in <module>', f'  File "{path}", line 3, in f']


def test_a_list_is_told_what_it_needs():
    with pytest.raises(errors.TracingError, match=r"np\.array"):
        yota.jacobian(np.sin)([1.0, 2.0])
