"""Functions record wherever traced code has them from: installed packages, code without a module, imports meanwhile."""

from __future__ import annotations

import importlib
import importlib.util
import math
import re
import subprocess
import sys
import threading

import numpy as np
import pytest

import yota
from tests.tracing.styles import HELPER, STYLES
from yota.rules.registry import registry
from yota.tracing import patching as places
from yota.tracing.intercept import interceptions
from yota.tracing.namespace import prepared

NAMES = re.findall(r"^(?:def )?(by_\w+)", STYLES, re.MULTILINE)
A, B = 1.3, 2.7
X = np.array([0.5, 1.5, 2.5])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder of installed packages; one of them is ``formulas``."""
    found = tmp_path_factory.mktemp("lib") / "site-packages"
    package = found / "formulas"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "helper.py").write_text(HELPER)
    (package / "styles.py").write_text(STYLES.replace("HOME", "formulas"))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(found)
        yield found
    for name in [name for name in sys.modules if name.partition(".")[0] == "formulas"]:
        del sys.modules[name]


@pytest.fixture(scope="module", params=["installed", "unregistered", "exec", "exec without a name"])
def styles(request, folder):
    """The variables of the module, loaded in some way."""
    if request.param == "installed":
        return vars(importlib.import_module("formulas.styles"))
    if request.param == "unregistered":
        spec = importlib.util.spec_from_file_location("elsewhere", folder / "formulas" / "styles.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return vars(module)
    names = {} if "without" in request.param else {"__name__": "plugin"}
    exec(compile(STYLES.replace("HOME", "formulas"), "<plugin>", "exec"), names)
    return names


def assert_right(f):
    """Value and gradient are those of the plain function."""
    step = 1e-5
    slopes = [(f(A + s, B + t) - f(A - s, B - t)) / (2 * step) for s, t in ((step, 0), (0, step))]
    value, g = yota.grad(f, A, B)
    np.testing.assert_allclose(value, f(A, B), rtol=1e-13)
    np.testing.assert_allclose(g, slopes, rtol=1e-7, atol=1e-9)
    assert slopes[0] and slopes[1]


@pytest.mark.parametrize("name", NAMES)
def test_every_way_to_a_function_records_and_is_left_as_it_was(styles, name):
    before = dict(styles)
    inner = [dict(styles["TABLE"]), list(styles["LIST"]), dict(vars(styles["Attributes"])), dict(vars(styles["thing"]))]
    assert_right(styles[name])
    assert not places._held
    assert all(styles[key] is value for key, value in before.items()) and styles.keys() == before.keys()
    after = [styles["TABLE"], styles["LIST"], vars(styles["Attributes"]), vars(styles["thing"])]
    assert inner == [list(each) if isinstance(each, list) else dict(each) for each in after]


def test_what_an_exception_leaves(folder):
    styles = importlib.import_module("formulas.styles")

    def f(x):
        styles.by_name(x[0], x[1])
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        yota.grad(f, X)
    assert styles.log is math.log and not places._held


def test_what_the_function_puts_into_a_variable_stays():
    names = {}
    exec("from math import log\ndef f(x):\n    global log\n    y = log(x)\n    log = abs\n    return y * log(x)", names)
    np.testing.assert_allclose(yota.grad(names["f"], 2.0)[1], [np.log(2.0) + 1])
    assert names["log"] is abs


def test_what_the_user_puts_into_a_library_is_used(monkeypatch):
    monkeypatch.setattr(np, "identity", lambda n: np.ones(n))
    monkeypatch.setattr(math, "log", lambda t: t * t)
    np.testing.assert_allclose(yota.grad(lambda t: math.log(t) + np.sum(np.identity(2) * t), 3.0)[1], [8.0])


PLUGIN = """
import numpy as np
from math import log
from numpy import zeros
TABLE = zeros(2) + 2
assert type(TABLE) is np.ndarray and zeros is {zeros}


class Model:
    def value(self, x):
        made = zeros(2)
        made[:] = log(x[0]), x[1]
        return np.sum(made * TABLE)
"""


def plugin(folder, name, how):
    def load():
        if how == "import":
            return importlib.import_module(name)
        if how == "statement":
            return __import__(name)
        spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


@pytest.mark.parametrize("how", ["import", "statement", "unregistered"])
def test_a_module_that_is_loaded_meanwhile_runs_plainly_and_records_afterwards(folder, how):
    name = f"plugin_{how}"
    (folder / f"{name}.py").write_text(PLUGIN.format(zeros="np.zeros"))
    importlib.invalidate_caches()
    load = plugin(folder, name, how)
    kept = []

    def f(x):
        module = load()
        kept.append(module)
        return module.Model().value(x)

    np.testing.assert_allclose(yota.grad(f, X)[1][0], [2 / X[0], 2.0, 0.0])
    assert kept[0].zeros is np.zeros and type(kept[0].TABLE) is np.ndarray
    sys.modules.pop(name, None)


def test_installed_code_is_followed_once(folder):
    styles = importlib.import_module("formulas.styles")
    loaded = 0
    while loaded != len(sys.modules):  # the first times load modules of yota's
        loaded = len(sys.modules)
        yota.trace(lambda a, b: styles.by_name(a, b), A, B)
    known = prepared(interceptions(registry().user_targets())[0]).packages["formulas"]
    seen, patches = len(known._seen), len(known.patches)
    assert patches and styles.by_name.__globals__["log"] is math.log
    _, tape = yota.trace(lambda a, b: styles.by_name(a, b), A, B)
    assert (len(known._seen), len(known.patches)) == (seen, patches) and tape.ops


def test_names_of_scipy_hold_what_records_only_where_scipy_is_reached():
    import scipy.special

    kept = []

    def without(x):
        kept.append(len(places._held))
        return x * x

    def within(x):
        kept.append(len(places._held))
        return scipy.special.expit(x)

    for f in (without, within, without):
        yota.trace(f, A)
    assert kept[0] == kept[2] < kept[1] - 100


def test_scipy_may_be_imported_by_the_function():
    code = """
import numpy as np, yota
def f(x):
    from scipy import stats
    return np.sum(stats.norm.logpdf(x))
x = np.array([0.1, 0.2])
assert np.allclose(yota.grad(f, x)[1][0], -x)
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_threads_trace_one_module_at_once(folder):
    styles = importlib.import_module("formulas.styles")
    failed = []

    def work(name):
        try:
            for _ in range(10):
                assert_right(vars(styles)[name])
        except Exception as fault:  # noqa: BLE001  (it is raised below)
            failed.append(fault)

    threads = [threading.Thread(target=work, args=(name,)) for name in ("by_list", "by_class", "by_tuple", "by_zeros")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed and not places._held and styles.log is math.log and styles.LIST[0] is math.log


def test_what_records_may_be_kept_in_a_variable_and_called() -> None:
    # While a function is traced `np.stack` is what records it, whose closure has NumPy's own.
    def stacked(x):
        scope = {"f": np.stack, "x": x}
        return np.sum(eval("f([x, 2.0 * x])", scope))

    assert yota.grad(stacked, np.ones(3))[1][0].tolist() == [3.0, 3.0, 3.0]
