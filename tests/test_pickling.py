"""Everything that yota gives back goes to other processes: by pickle, as copies, in pools, in estimators."""

from __future__ import annotations

import copy
import functools
import inspect
import multiprocessing
import pickle
import pickletools
from pathlib import Path

import numpy as np
import pytest

import yota
from tests.processes import in_new_process
from yota.errors import StaleTapeError
from yota.rules.registry import registry
from yota.run.machine import native

X = np.array([0.5, 1.0, 2.0])
POINTS = np.arange(6.0).reshape(2, 3)


def energy(x):
    """The energy of a point."""
    return np.sum(np.sin(x) ** 2)


def both(x):
    return np.stack([x[0] * x[1], np.sin(x[2])])


def branching(x):
    return np.sum(x) if x[0] > 0 else np.sum(x**2)


@yota.value_and_grad
def decorated(x):
    return np.sum(x**3)


class Model:
    scale = 2.0

    def __init__(self, weights):
        self.weights = weights

    def loss(self, x):
        return self.scale * np.sum(self.weights * x**2)

    @yota.gradient
    def slope(self):
        return np.sum(self.weights**2)


cube = yota.diffrule("""
@elementwise
def cube_to_pickle(x: Real) -> y:
    y = x * x * x
""")


def cubes(x):
    return np.sum(cube(x))


CASES = {
    "value_and_grad": (lambda target: yota.value_and_grad(energy, target=target), (X,)),
    "options": (lambda target: yota.value_and_grad(branching, "x", strict=True, dynamic=True, target=target), (X,)),
    "gradient": (lambda target: yota.gradient(energy, target=target), (X,)),
    "jacobian": (lambda target: yota.jacobian(both, with_value=True, target=target), (X,)),
    "jacobians": (lambda target: yota.jacobian(both, ("x",), target=target), (X,)),
    "hessian": (lambda target: yota.hessian(energy, target=target), (X,)),
    "sparse": (lambda target: yota.hessian(energy, sparse=True, target=target), (X,)),
    "hessians": (lambda target: yota.hessian(energy, (0,), target=target), (X,)),
    "hvp": (lambda target: yota.hvp(energy, target=target), (X, X)),
    "nested": (lambda target: yota.jacobian(yota.gradient(energy), target=target), (X,)),
    "batch": (lambda target: yota.batch(energy, target=target), (POINTS,)),
    "batched gradient": (lambda target: yota.batch(yota.gradient(energy), target=target), (POINTS,)),
    "gradient of a batch": (lambda target: yota.value_and_grad(yota.batch(energy), target=target), (POINTS,)),
    "simplegrad": (lambda target: yota.simplegrad(energy, X, target=target), (X,)),
    "pullback": (lambda target: yota.vjp(both, X, target=target)[1], (np.ones(2),)),
    "tape": (lambda target: yota.compile(yota.trace(cubes, X)[1], target), (X,)),
    "method": (lambda target: yota.gradient(Model(X).loss, target=target), (X,)),
    "partial": (lambda target: yota.gradient(functools.partial(Model.loss, Model(X)), target=target), (X,)),
    "interpreted": (lambda target: yota.gradient(yota.interpreted(energy), target=target), (X,)),
    "recomputed": (lambda target: yota.gradient(yota.checkpoint(energy), target=target), (X,)),
    "checkpoint": (lambda _: yota.checkpoint(energy), (X,)),
    "all sizes": (lambda _: yota.gradient(energy, args={"x": "float64[N]"}), (X,)),
    "decorated": (lambda _: decorated, (X,)),
    "rule": (lambda _: cube, (X,)),
    "source": (lambda _: yota.interpreted(energy), (X,)),
}
TARGETS = ["numpy", pytest.param("c", marks=pytest.mark.skipif(not native.is_available(), reason="no C compiler"))]


def equal(one, other):
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(equal, one, other))
    one, other = (each.toarray() if hasattr(each, "toarray") else each for each in (one, other))
    return np.array_equal(one, other)


def called(function, *args):
    return function(*args)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", CASES)
def test_all_protocols(name, target):
    make, args = CASES[name]
    function = make(target)
    wanted = function(*args)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert equal(pickle.loads(pickle.dumps(function, protocol))(*args), wanted)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", CASES)
def test_copies(name, target):
    make, args = CASES[name]
    function = make(target)
    assert copy.copy(function) is function
    copied = copy.deepcopy({"held": [function]})["held"][0]
    assert equal(copied(*args), function(*args))


@pytest.mark.parametrize("target", TARGETS)
def test_a_deep_copy_of_a_method_is_one_of_the_copied_object(target):
    model = Model(X.copy())
    model.slope_of_loss = yota.gradient(model.loss, target=target)
    model.plain = yota.gradient(energy, target=target)
    copied = copy.deepcopy(model)
    model.weights[:] = 0
    assert np.array_equal(copied.slope_of_loss(X), 4 * X * X)
    assert np.array_equal(model.slope_of_loss(X), 0 * X)
    assert copied.plain is model.plain


@pytest.mark.parametrize("target", TARGETS)
def test_functions_that_pickle_cannot_find_are_named(target):
    def inner(x):
        return np.sum(x)

    for function in (inner, lambda x: np.sum(x)):
        with pytest.raises((pickle.PicklingError, AttributeError), match=r"<locals>"):
            pickle.dumps(yota.value_and_grad(function, target=target))


@pytest.mark.parametrize("target", TARGETS)
def test_cloudpickle_takes_them(target):
    cloudpickle = pytest.importorskip("cloudpickle")
    shift = X + 1
    function = yota.value_and_grad(lambda x: np.sum((x - shift) ** 2), target=target)
    assert equal(pickle.loads(cloudpickle.dumps(function))(X), (3.0, np.full(3, -2.0)))


@pytest.mark.parametrize("target", TARGETS)
def test_a_pickle_holds_no_code(target):
    function = yota.value_and_grad(energy, target=target)
    function(X)
    texts = [text for _, text, _ in pickletools.genops(pickle.dumps(function)) if isinstance(text, str)]
    assert not any("def " in text or "np." in text for text in texts)
    assert {"energy", "value_and_grad"} <= {part for text in texts for part in text.split()}


@pytest.mark.parametrize("target", TARGETS)
def test_names_and_signatures_are_those_of_the_function(target):
    for function in (yota.value_and_grad(energy, target=target), yota.interpreted(energy), yota.batch(energy)):
        assert (function.__name__, function.__qualname__, function.__module__) == ("energy", "energy", __name__)
        assert function.__wrapped__ is energy
        assert inspect.signature(function) == inspect.signature(energy)
    assert yota.interpreted(energy).__doc__ == energy.__doc__
    assert functools.wraps(yota.gradient(energy, target=target))(lambda x: x).__name__ == "energy"


@pytest.mark.parametrize("target", TARGETS)
def test_results_are_bound_as_functions_are(target):
    class Held:
        slope = yota.gradient(Model.loss, 1, target=target)
        both = yota.value_and_grad(Model.loss, 1, target=target)
        scale, weights = 1.0, np.ones(3)

    assert np.array_equal(Held().slope(X), 2 * X)
    assert np.array_equal(Held().both(X)[1], 2 * X)
    assert np.array_equal(Model(X).slope()[("weights",)], 2 * X)


def test_a_method_that_is_decorated_is_found_by_its_name():
    again = pickle.loads(pickle.dumps(Model.slope))
    assert again is Model.slope


def test_gradients_and_tapes():
    value, g = yota.grad(cubes, X)
    again = pickle.loads(pickle.dumps(g))
    assert np.array_equal(again[0], g[0])
    assert (str(again.tape), again.source) == (str(g.tape), g.source)
    assert again.tape.play(X)[0] == value
    assert equal(again.tape.compile()(X), g.tape.compile()(X))


def test_what_else_is_public():
    module = yota.generate(energy, {"x": "float64[3]"})
    assert str(pickle.loads(pickle.dumps(module))) == str(module)
    (rule,) = (each for each in registry().rules("cube_to_pickle"))
    assert pickle.loads(pickle.dumps(rule)).source == rule.source


@pytest.mark.parametrize("target", TARGETS)
def test_an_error_comes_back_from_another_process(target):
    function = yota.value_and_grad(branching, target=target, dynamic=False)
    function(X)
    with pytest.raises(StaleTapeError) as caught:
        function(-X)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.decision) == (str(caught.value), caught.value.decision)


# A pool of its own process: a fork of this one could copy a lock that a thread of another library holds.
POOLS = """
import concurrent.futures, multiprocessing, sys
import numpy as np
import yota

def energy(x):
    return np.sum(np.sin(x) ** 2)

if __name__ == "__main__":
    way, *targets = sys.argv[1:]
    context = multiprocessing.get_context(way)
    x = np.array([0.5, 1.0, 2.0])
    functions = [yota.value_and_grad(energy, target=target) for target in targets]
    for function in functions:
        function(x)
    with context.Pool(1) as pool:
        found = [pool.apply(function, (x,)) for function in functions]
    with concurrent.futures.ProcessPoolExecutor(1, context) as pool:
        again = [pool.submit(function, x).result() for function in functions]
    for (value, slope), (value_too, slope_too) in zip(found, again):
        assert abs(value - np.sum(np.sin(x) ** 2)) < 1e-15 and value_too == value
        assert np.allclose(slope, np.sin(2 * x), rtol=1e-14) and np.array_equal(slope, slope_too)
    print("equal")
"""


@pytest.mark.parametrize("way", ["spawn", "fork"])
def test_process_pools(tmp_path: Path, way):
    if way not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system cannot {way}")
    assert in_new_process(tmp_path, POOLS, way, "numpy", *["c"][: native.is_available()]) == "equal"


@pytest.mark.parametrize("target", TARGETS)
def test_joblib(target):
    joblib = pytest.importorskip("joblib")
    functions = [yota.value_and_grad(energy, target=target), yota.value_and_grad(lambda x: np.sum(x), target=target)]
    found = joblib.Parallel(n_jobs=2)(joblib.delayed(called)(each, X) for each in functions)
    assert equal(tuple(found), tuple(each(X) for each in functions))


def test_estimators():
    pytest.importorskip("sklearn")
    from sklearn.base import BaseEstimator, RegressorMixin, clone
    from sklearn.model_selection import GridSearchCV

    class Ridge(RegressorMixin, BaseEstimator):
        def __init__(self, loss=None, penalty=0.0):
            self.loss, self.penalty = loss, penalty

        def fit(self, X, y):
            from scipy.optimize import minimize

            self.w_ = minimize(self.loss, np.zeros(X.shape[1]), (X, y, self.penalty), jac=True).x
            return self

        def predict(self, X):
            return X @ self.w_

    generator = np.random.default_rng(0)
    data, wanted = generator.normal(size=(60, 3)), np.array([1.0, -2.0, 0.5])
    estimator = Ridge(yota.value_and_grad(ridge))
    assert clone(estimator).loss is estimator.loss
    search = GridSearchCV(estimator, {"penalty": [0.0, 10.0]}, n_jobs=2, error_score="raise")
    search.fit(data, data @ wanted)
    assert search.best_params_ == {"penalty": 0.0}
    np.testing.assert_allclose(search.best_estimator_.w_, wanted, atol=1e-4)


def ridge(w, X, y, penalty):
    return np.sum((X @ w - y) ** 2) + penalty * np.sum(w**2)


def test_a_script_is_found_by_the_processes_it_starts(tmp_path: Path):
    program = (
        "import multiprocessing, numpy as np, yota\n"
        "@yota.value_and_grad\n"
        "def energy(x):\n"
        "    return np.sum(x**2)\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool:\n"
        "        print(float(pool.apply(energy, (np.ones(3),))[0]))\n"
    )
    assert in_new_process(tmp_path, program) == "3.0"
