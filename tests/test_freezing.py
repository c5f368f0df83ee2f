"""Functions that are frozen go on in other processes without tracing, and never with code of another function."""

from __future__ import annotations

import collections
import copy
import functools
import importlib.util
import pickle
import tempfile
from pathlib import Path

import numpy as np
import pytest
import scipy.integrate
import scipy.linalg
import scipy.optimize
import scipy.sparse.linalg
import sympy

import yota
from tests.processes import in_new_process
from yota.errors import ArgumentError
from yota.run import persistent as kept
from yota.run.derivatives import calling
from yota.run.machine import native
from yota.tracing.trace import Trace

pytest.importorskip("cloudpickle")
X = np.array([0.5, 1.0, 2.0])
SCALE = [2.0]


def energy(x):
    return SCALE[0] * np.sum(np.sin(x) ** 2)


def sparse_system(x):
    matrix = scipy.sparse.diags_array([np.full(2, -1.0), x + 2, np.full(2, -1.0)], offsets=[-1, 0, 1], format="csc")
    return np.sum(scipy.sparse.linalg.spsolve(matrix, np.ones(3)))


def integral(x):
    return scipy.integrate.quad(lambda t: np.exp(-x[0] * t**2) * x[1], 0.0, 2.0)[0]


def banded_system(x):
    return np.sum(scipy.linalg.solve_banded((1, 1), np.stack([x, x + 3, x]), np.ones(3)))


SYMBOLS = sympy.symbols("x y")
EXPRESSION = sympy.sin(SYMBOLS[0]) * SYMBOLS[1]
MATRIX = np.random.default_rng(0).normal(size=(150, 150))
CASES = {
    "value_and_grad": (lambda target: yota.value_and_grad(energy, target=target), (X,)),
    "gradient": (lambda target: yota.gradient(lambda x: np.sum(x**3), target=target), (X,)),
    "jacobian": (lambda target: yota.jacobian(lambda x: x * x[0], target=target), (X,)),
    "hessian": (lambda target: yota.hessian(energy, target=target), (X,)),
    "hvp": (lambda target: yota.hvp(energy, target=target), (X, X)),
    "beside": (lambda target: yota.gradient(lambda x: (np.sum(x**3), {"n": x[0]}), has_aux=True, target=target), (X,)),
    "sparse": (lambda target: yota.jacobian(lambda x: x**2, sparse=True, target=target), (X,)),
    "structure": (lambda _: yota.jacobian(lambda p: {"y": p["x"] * p["a"]}), ({"x": X, "a": 2.0},)),
    "rows": (lambda _: yota.jacobian(lambda x: np.tanh(MATRIX @ x)), (MATRIX[0],)),
    "batch": (lambda target: yota.batch(yota.value_and_grad(energy), target=target), (np.stack([X, 2 * X]),)),
    "all sizes": (lambda _: yota.value_and_grad(energy, args={"x": "float64[N]"}), (X,)),
    "scan": (lambda _: yota.gradient(lambda x: yota.scan(lambda c, t: (c * t, c), 0.5, x)[0]), (X,)),
    "sparse system": (lambda target: yota.value_and_grad(sparse_system, target=target), (X,)),
    "banded system": (lambda target: yota.value_and_grad(banded_system, target=target), (X,)),
    "integral": (lambda target: yota.value_and_grad(integral, target=target), (X,)),
    "expressions": (lambda target: yota.lambdify(SYMBOLS, (SYMBOLS[1], (EXPRESSION, 2)), target=target), (X, 3.0)),
    "branch": (lambda target: yota.value_and_grad(lambda x: x[0] if x[0] > 0 else x[1], target=target), (X,)),
}
COMPILED = pytest.mark.skipif(not native.is_available(), reason="no C compiler")


@pytest.fixture
def away(tmp_path, monkeypatch):
    """Turns to another process, as far as code that was kept goes; gives how many traces there were since."""
    traces = []
    begin = Trace.__init__

    def counted(self, *args, **kwargs):
        traces.append(None)
        begin(self, *args, **kwargs)

    def elsewhere():
        monkeypatch.setenv("YOTA_CACHE_DIR", tempfile.mkdtemp(dir=tmp_path))
        kept._brought.clear()
        calling._known.clear()
        traces.clear()
        return traces

    monkeypatch.setattr(Trace, "__init__", counted)
    monkeypatch.setenv("YOTA_CACHE", "on")
    elsewhere()
    return elsewhere


def frozen(name="value_and_grad", target="numpy"):
    make, args = CASES[name]
    function = make(target)
    return function(*args), pickle.dumps(yota.freeze(function))


def equal(one, other):
    if isinstance(one, tuple):
        return all(map(equal, one, other))
    one, other = (each.toarray() if hasattr(each, "toarray") else each for each in (one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    return np.array_equal(one, other)


@pytest.mark.parametrize(
    "name, target", [*((name, "numpy") for name in CASES), pytest.param("value_and_grad", "c", marks=COMPILED)]
)
def test_nothing_is_traced_again(away, name, target):
    wanted, data = frozen(name, target)
    traces = away()
    again = pickle.loads(data)
    assert equal(again(*CASES[name][1]), wanted)
    assert not traces
    assert "frozen" in again.info().compilations[-1].why
    assert again.source
    # Once more, from there, before and after a call.
    for passed_on in (pickle.dumps(again), pickle.dumps(pickle.loads(data))):
        traces = away()
        assert equal(pickle.loads(passed_on)(*CASES[name][1]), wanted)
        assert not traces


def test_another_version_compiles_anew(away, monkeypatch):
    wanted, data = frozen()
    traces = away()
    monkeypatch.setattr("yota.api.freezing.state_of_yota", lambda: "another")
    assert equal(pickle.loads(data)(X), wanted)
    assert traces


def test_what_the_function_reads_counts(away, monkeypatch):
    _, data = frozen()
    traces = away()
    monkeypatch.setattr(f"{__name__}.SCALE", [3.0])
    assert np.isclose(pickle.loads(data)(X)[0], 3 * np.sum(np.sin(X) ** 2))
    assert traces


ENDS = np.array([0.5, 2.5])
SOLVED = {
    "elements": lambda x: scipy.optimize.brentq(lambda y: np.cos(y) * x[0], ENDS[0], ENDS[1]) + ENDS[0] * x[1],
    "array": lambda x: np.sum(scipy.optimize.fsolve(lambda y: np.cos(y) * x[0], ENDS)) + ENDS[0] * x[1],
    "view": lambda x: np.sum(scipy.optimize.fsolve(lambda y: np.cos(y) * x[0], ENDS[:1])) + ENDS[0] * x[1],
    "equation": lambda x: scipy.optimize.brentq(lambda y: y - ENDS[0] * x[0], -9.0, 9.0),
}


@pytest.mark.parametrize("name", SOLVED)
def test_solvers_read_captured_arrays_at_each_call(away, name):
    function = yota.value_and_grad(SOLVED[name])
    wanted, data = function(X), pickle.dumps(yota.freeze(function))
    traces = away()
    again = pickle.loads(data)
    plain = again.__wrapped__.__wrapped__
    assert equal(again(X), wanted)
    assert not traces
    plain.__globals__["ENDS"][:] += 3
    assert np.isclose(again(X)[0], plain(X))
    assert not np.isclose(plain(X), wanted[0])


def test_another_version_of_scipy_compiles_anew(away, monkeypatch):
    function = yota.value_and_grad(SOLVED["elements"])
    wanted, data = function(X), pickle.dumps(yota.freeze(function))
    traces = away()
    monkeypatch.setattr("scipy.__version__", "0")
    assert equal(pickle.loads(data)(X), wanted)
    assert traces


def test_code_that_was_changed_on_the_way_is_not_run(away):
    wanted, data = frozen()
    at = data.index(b"np.sin")
    traces = away()
    assert equal(pickle.loads(data[:at] + b"np.cos" + data[at + 6 :])(X), wanted)
    assert traces


def test_code_of_another_function_is_not_run(away):
    _, data = frozen()
    function, version, _, records = pickle.loads(data).__reduce__()[1]
    other = yota.value_and_grad(lambda x: np.sum(x))
    other(X)
    ((_, text),) = yota.freeze(other).records().items()
    traces = away()
    away()
    # A digest of what is not this function's may be right.
    kept.adopt([("0" * 40, text)])
    assert np.isclose(pickle.loads(function)(X)[0], energy(X))
    assert traces


def test_it_is_the_function_in_other_ways(away):
    function = yota.value_and_grad(energy)
    wanted = function(X)
    again = yota.freeze(function)
    assert (again.__name__, again.__wrapped__) == ("energy", function)
    assert str(again.info()).splitlines()[1].startswith("value_and_grad of energy")
    assert copy.deepcopy(again) is again
    assert np.allclose(yota.gradient(lambda x: again(x)[0])(X), wanted[1])
    again.clear()
    assert not function.info().title.endswith("1 compiled")


class Model:
    def __init__(self, weight):
        self.weight = weight

    def loss(self, x):
        return self.weight * np.sum(x * x)


def test_a_deep_copy_of_a_method_is_one_of_the_copied_object(away):
    model = Model(2.0)
    slope = yota.gradient(model.loss)
    slope(X)
    model.slope = yota.freeze(slope)
    copied = copy.deepcopy(model)
    model.weight = 0.0
    assert np.array_equal(copied.slope(X), 4 * X) and copied.slope.records()
    assert np.array_equal(model.slope(X), 0 * X)


def test_what_cannot_be_frozen_is_said(away, monkeypatch):
    for function in (energy, 3):
        with pytest.raises(ArgumentError, match="freeze needs a compiled function"):
            yota.freeze(function)
    with pytest.raises(ArgumentError, match="nothing is compiled yet; call it with"):
        yota.freeze(yota.value_and_grad(energy))
    random = yota.value_and_grad(lambda x: np.sum(x) * np.random.default_rng(0).uniform())
    random(X)
    with pytest.raises(ArgumentError, match=r"the code may behave differently.*default_rng"):
        yota.freeze(random)
    beside = yota.value_and_grad(lambda x: (np.sum(x), collections.defaultdict(int, a=x[0])), has_aux=True)
    beside(X)
    with pytest.raises(ArgumentError, match=r"its result is a defaultdict.*Pickle it as it is"):
        yota.freeze(beside)
    steep = yota.value_and_grad(lambda x: np.sum(np.sin(np.linspace(0.0, 1.0, 1_100_000)) * x[0]))
    steep(X)
    with pytest.raises(ArgumentError, match="more than 8 MB"):
        yota.freeze(steep)
    with_callback = functools.partial(scipy.optimize.root, method="krylov", callback=lambda *_: None)
    solved = yota.value_and_grad(lambda x: with_callback(lambda y: y**3 - x, x).x[0])
    solved(X)
    with pytest.raises(ArgumentError, match=r"callback of scipy\.optimize\.root is a function of this process"):
        yota.freeze(solved)
    monkeypatch.setenv("YOTA_CACHE", "off")
    function = yota.value_and_grad(lambda x: np.sum(x))
    function(X)
    with pytest.raises(ArgumentError, match="YOTA_CACHE disables"):
        yota.freeze(function)


def test_a_full_disk_does_not_matter(away, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("yota.run.machine.store.Store.write", full)
    wanted, data = frozen()
    traces = away()
    assert equal(pickle.loads(data)(X), wanted)
    assert not traces


POOLS = """
import multiprocessing, os, sys
import numpy as np
from scipy.optimize import brentq
import yota

def solved(x):
    return brentq(lambda y: y**3 + x[0] * y - x[1], 0.0, 2.0)

def energy(x):
    return np.sum(np.sin(x) ** 2)

def beside(x):
    return energy(x), {"first": x[0]}

def called(function, x):
    return np.sum(function(x)[0]), function.info().compilations[-1].why

if __name__ == "__main__":
    x, shift = np.array([0.5, 1.0, 2.0]), 1.5
    functions = list(map(yota.value_and_grad, [energy, solved, lambda x: shift * np.sum(x)]))
    functions += [yota.gradient(beside, has_aux=True), yota.batch(yota.value_and_grad(energy))]
    functions += [yota.jacobian(lambda x: x**2, sparse=True), yota.hessian(energy)]
    wanted = [np.sum(each(x)[0]) for each in functions]
    frozen = list(map(yota.freeze, functions))
    os.environ["YOTA_CACHE_DIR"] += "-of-others"
    found = []
    for way in set(multiprocessing.get_all_start_methods()) - {"forkserver"}:
        with multiprocessing.get_context(way).Pool(1) as pool:
            found += [pool.apply(called, (each, x)) for each in frozen]
    if "joblib" in sys.argv:
        import joblib
        found += joblib.Parallel(n_jobs=2, backend="loky")(joblib.delayed(called)(each, x) for each in frozen)
    assert [value for value, _ in found] == len(found) // len(wanted) * wanted
    assert all("frozen" in why for _, why in found), found
    print("equal")
"""


def test_process_pools(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("YOTA_CACHE", "on")
    monkeypatch.setenv("YOTA_CACHE_DIR", str(tmp_path / "cache"))
    installed = importlib.util.find_spec("joblib") is not None
    assert in_new_process(tmp_path, POOLS, *["joblib"][: int(installed)]) == "equal"
