"""What the user puts into a library between calls is noticed; what a trace in another thread puts there is not."""

from __future__ import annotations

import importlib
import math
import sys
import threading

import numpy as np
import pytest
import scipy.special

import yota

X = np.array([1.0, 2.0])
CASES = {
    "ufunc": (lambda x: np.sum(np.sin(x)), np, "sin", lambda t: t**3, [3.0, 12.0]),
    "function": (lambda x: np.sum(x * x), np, "sum", lambda t: 5 * t[0], [10.0, 0.0]),
    "linalg": (lambda x: np.linalg.norm(x), np.linalg, "norm", lambda t: t[0], [1.0, 0.0]),
    "math": (lambda x: math.log(x[0]), math, "log", lambda t: 7 * t, [7.0, 0.0]),
    "scipy": (lambda x: np.sum(scipy.special.erf(x)), scipy.special, "erf", lambda t: 2 * t, [2.0, 2.0]),
    "constant": (lambda x: np.sum(x) * np.pi, np, "pi", 3.0, [3.0, 3.0]),
}


@pytest.mark.parametrize("target", ["numpy", "c"])
@pytest.mark.parametrize("name", CASES)
def test_another_function_in_a_library_is_called(name, target, monkeypatch):
    f, owner, attribute, other, slope = CASES[name]
    fg = yota.value_and_grad(f, target=target)
    before = [fg(X)[1] for _ in range(3)][-1]
    with monkeypatch.context() as patch:
        patch.setattr(owner, attribute, other)
        for _ in range(2):
            value, g = fg(X)
            np.testing.assert_allclose(value, f(X))
            np.testing.assert_allclose(g, slope)
    np.testing.assert_array_equal(fg(X)[1], before)


INSTALLED = """
import numpy as np
import installed.constants as constants
C, TABLE, ARRAY = 2.0, {"a": 2.0}, np.array([2.0, 1.0])
LARGE = {k: [float(k)] * 3 for k in range(100)}
class Model:
    k = 2.0
    def __init__(self):
        self.a = 2.0
MODEL = Model()
def constant(): return C
def helper(x): return C * np.sum(x)
def of_number(x): return C * np.sum(x)
def of_item(x): return TABLE["a"] * np.sum(x)
def of_array(x): return ARRAY[0] * np.sum(x)
def of_object(x): return MODEL.a * np.sum(x)
def of_class(x): return Model.k * np.sum(x)
def of_module(x): return constants.G * np.sum(x)
def of_function(x): return constant() * np.sum(x)
def of_another(x): return helper(x)
def of_large(x): return LARGE[2][0] * np.sum(x)
"""
CHANGES = {
    "of_number": lambda p: setattr(p, "C", 5.0),
    "of_item": lambda p: p.TABLE.update(a=5.0),
    "of_array": lambda p: p.ARRAY.__setitem__(0, 5.0),
    "of_object": lambda p: setattr(p.MODEL, "a", 5.0),
    "of_class": lambda p: setattr(p.Model, "k", 5.0),
    "of_module": lambda p: setattr(p.constants, "G", 5.0),
    "of_function": lambda p: setattr(p, "C", 5.0),
    "of_another": lambda p: setattr(p, "C", 5.0),
    "of_large": lambda p: setattr(p, "LARGE", {2: [5.0]}),
}


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Loads a package out of a folder of installed packages anew; what is compiled is kept."""
    home = tmp_path / "site-packages" / "installed"
    home.mkdir(parents=True)
    (home / "__init__.py").write_text(INSTALLED)
    (home / "constants.py").write_text("G = 2.0")
    monkeypatch.syspath_prepend(str(home.parent))
    monkeypatch.setenv("YOTA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("YOTA_CACHE", "on")

    def load():
        for name in ("installed", "installed.constants"):
            sys.modules.pop(name, None)
        return importlib.import_module("installed")

    yield load
    for name in ("installed", "installed.constants"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("direct", [True, False], ids=["itself", "in another function"])
def test_a_package_changes(installed, name, direct):
    for _ in range(2):
        # The second time, the code comes from the persistent cache, and nothing is recorded.
        package = installed()
        f = getattr(package, name)
        fg = yota.value_and_grad(f if direct else lambda x, f=f: f(x))
        assert [fg(X)[0] for _ in range(3)] == [6.0] * 3
        CHANGES[name](package)
        assert [fg(X)[0] for _ in range(3)] == [15.0] * 3


TABLE = {"root": math.sqrt}


def test_a_trace_in_another_thread_is_no_change():
    runs = []

    def f(x):
        runs.append(1)
        return np.sum(np.zeros(2) + x) * TABLE["root"](x[0]) + math.exp(x[1])

    fg = yota.value_and_grad(f)
    expected = [fg(X)[1] for _ in range(3)][-1]
    count = len(runs)
    began, go_on = threading.Event(), threading.Event()

    def slow(x):
        y = np.sum(np.ones(2) * x) * TABLE["root"](x[0])
        began.set()
        go_on.wait(60)
        return y

    thread = threading.Thread(target=lambda: yota.grad(slow, X))
    thread.start()
    began.wait(60)
    try:
        assert hasattr(TABLE["root"], "__wrapped__")  # it is the one that records
        for _ in range(3):
            np.testing.assert_array_equal(fg(X)[1], expected)
    finally:
        go_on.set()
        thread.join()
    assert len(runs) == count
    np.testing.assert_array_equal(fg(X)[1], expected)
    assert len(runs) == count


class MadeUp:
    """Has no ``__dict__``, and something else under that name, as wrappers of shared libraries do."""

    __slots__ = ()

    def __getattr__(self, name):
        if name != "__dict__":
            raise AttributeError(name)
        return self

    def scale(self):
        return 2.0


LIBRARY = MadeUp()


def test_objects_with_made_up_attributes():
    value, gradient = yota.value_and_grad(lambda x: x**2 * LIBRARY.scale())(1.5)
    assert (value, gradient) == (4.5, 6.0)
