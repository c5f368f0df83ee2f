"""Frozen functions that call solvers go on in another process: nothing is traced or generated there."""

from __future__ import annotations

import functools
import pickle

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize.elementwise
import scipy.sparse
import scipy.sparse.linalg
import scipy.stats
from scipy import optimize

import yota
from tests.processes import in_new_process
from yota.rules import registry as rules
from yota.run.machine import native

pytest.importorskip("cloudpickle")

X, OTHER = np.array([0.5, 1.25]), np.array([0.6, 1.125])
LOW = np.array([1.5, 1.7])


def cubic(y, a, b):
    return y**3 + a * y - b


def slope(y, a, b):
    return 3 * y**2 + a


def pair(y, a, b):
    return [y[0] ** 3 + a * y[0] - b, y[1] - y[0] * a - 1]


def bracketing(solver, x):
    return solver(cubic, 0.0, 2.0, args=(x[0], x[1])) * x[1]


def rising(y, a, b):
    return cubic(y, a, b) if y > 0.25 else 4 * y - b


def inner_root(x):
    def outer(y):
        return y - optimize.brentq(lambda z: z**3 + y * z - x[1], 0.0, 2.0, xtol=1e-15) * x[0]

    return optimize.brentq(outer, 0.0, 2.0)


ROOTS = {
    **{name: functools.partial(bracketing, getattr(optimize, name)) for name in "brentq toms748".split()},
    "closure": lambda x: optimize.brentq(lambda y: y**3 + x[0] * y - x[1], 0.0, 2.0),
    "full": lambda x: optimize.brentq(cubic, 0.0, 2.0, args=(x[0], x[1]), full_output=True)[1].root,
    "branches": lambda x: optimize.brentq(rising, 0.0, 2.0, args=(x[0], x[1])),
    "in a function of another": inner_root,
    "root_scalar": lambda x: optimize.root_scalar(cubic, args=(x[0], x[1]), bracket=(0, 3)).root,
    "with slope": lambda x: (
        optimize.root_scalar(lambda y: (cubic(y, *x), slope(y, *x)), x0=1.0, fprime=True, method="newton").root
    ),
    "by elements": lambda x: np.sum(optimize.elementwise.find_root(cubic, (0.0, 2.0), args=(x, x[::-1])).x),
    "several": lambda x: np.sum(scipy.stats.gamma.ppf(np.array([0.25, 0.5]), x[0] + 1, scale=x[1])),
}
EQUATIONS = {
    "secant": lambda x: optimize.newton(cubic, 1.0, args=(x[0], x[1])),
    "newton": lambda x: optimize.newton(cubic, 1.0, slope, (x[0], x[1])),
    "elements": lambda x: np.sum(optimize.newton(lambda y: y**3 + x * y - 1.0, np.ones(2))),
    "fsolve": lambda x: optimize.fsolve(pair, LOW, args=(x[0], x[1]), xtol=1e-13)[0],
    "fixed_point": lambda x: optimize.fixed_point(lambda y: np.cos(x[0] * y) * x[1], 0.9, xtol=1e-13),
    "hybr": lambda x: optimize.root(pair, [1.5, 1.7], args=(x[0], x[1]), tol=1e-12).x[1],
    "krylov": lambda x: optimize.root(pair, [1.5, 1.7], args=(x[0], x[1]), tol=1e-12, method="krylov").x[0],
    "broyden1": lambda x: optimize.root(pair, LOW, args=(x[0], x[1]), tol=1e-12, method="broyden1").x[0],
}
TIMES = np.linspace(0.0, 1.0, 5)


def rates(t, y):
    return np.stack([-y[0] * y[1], y[0] - 0.5 * y[1]])


def decay(t, y, a, b):
    return [-a * y[0] + b * np.sin(t), a * y[0] - y[1] ** 2]


def integrated(x, method, **options):
    found = scipy.integrate.solve_ivp(decay, (0.0, 1.0), [1.0, x[0]], method, TIMES, args=(x[0], x[1]), **options)
    return np.sum(found.y**2)


def landing(x):
    def height(t, y):
        return y[0]

    height.terminal = True
    fall = lambda t, y: [y[1], -x[0]]
    found = scipy.integrate.solve_ivp(fall, (0.0, 20.0), [x[1], 0.0], events=height, rtol=1e-10, atol=1e-12)
    return found.t_events[0][0]


def dense(x):
    found = scipy.integrate.solve_ivp(lambda t, y: -x[0] * y, (0.0, 2.0), [x[1]], dense_output=True, rtol=1e-9)
    return found.sol(x[0])[0]


TIGHT = {"rtol": 1e-9, "atol": 1e-11}
STEPS = {
    **{name: functools.partial(integrated, method=name, **TIGHT) for name in "RK45 Radau BDF LSODA".split()},
    "class": functools.partial(integrated, method=scipy.integrate.RK45, **TIGHT),
    "tolerances": functools.partial(integrated, method="RK45", rtol=1e-9, atol=np.array([1e-9, 1e-11])),
    "all steps": lambda x: np.sum(scipy.integrate.solve_ivp(rates, (0, x[0]), x, **TIGHT).y[:, -1]),
    "event": landing,
    "dense": dense,
    "odeint": lambda x: np.sum(scipy.integrate.odeint(decay, [1.0, x[0]], TIMES, (x[0], x[1]), tfirst=True, **TIGHT)),
    "full odeint": lambda x: scipy.integrate.odeint(lambda y, t: -y * x[1], x, TIMES, full_output=True, **TIGHT)[0][
        3, 0
    ],
}
START = np.cos(np.arange(12.0))


def matrix(x):
    ends = np.concatenate([x, np.zeros(10)])
    lines = [np.full(11, -1.0), ends + np.arange(3.0, 15.0), np.full(11, -1.0)]
    return scipy.sparse.diags_array(lines, offsets=[-1, 0, 1], format="csc")


def products(x):
    operator = scipy.sparse.linalg.LinearOperator((2, 2), matvec=lambda v: np.array([3.0, 4.0]) * v + x * np.sum(v))
    return np.sum(scipy.sparse.linalg.gmres(operator, x, rtol=1e-13)[0])


MATRICES = {
    "eigsh": lambda x: np.sum(scipy.sparse.linalg.eigsh(matrix(x), 3, v0=START)[0] ** 2),
    "eigenvectors": lambda x: np.sum(scipy.sparse.linalg.eigsh(matrix(x), 2, v0=START)[1][:2] ** 2),
    "eigs": lambda x: np.sum(np.real(scipy.sparse.linalg.eigs(matrix(x), 2, v0=START, return_eigenvectors=False))),
    "svds": lambda x: np.sum(scipy.sparse.linalg.svds(matrix(x), 2, v0=START, return_singular_vectors=False)),
    "cg": lambda x: scipy.sparse.linalg.cg(matrix(x), START, rtol=1e-13)[0][0],
    "products": products,
    "linprog": lambda x: optimize.linprog([-1.0, -2.0], [[1.0, 1.0], [1.0, 3.0]], [x[0] + 2, x[1] + 3]).fun,
    "assignment": lambda x: np.sum((m := np.outer(x, [1.0, 3.0]))[optimize.linear_sum_assignment(m)] ** 2),
}
DATA = np.linspace(0.0, 2.0, 9)


def valley(y, a, b):
    return (y[0] - a) ** 2 + (y[1] - b * y[0]) ** 2 + y[0] ** 4


def bent(t, a, b=0.5):
    return a * np.exp(-b * t)


def fitted(x, **options):
    return optimize.curve_fit(bent, DATA, x[0] * np.cos(DATA / 2) + x[1], [1.0, 0.5], **options)[0] @ [1.0, 2.0]


def constrained(x, method, constraints):
    found = optimize.minimize(valley, [0.5, 0.5], (x[0], x[1]), method, constraints=constraints(x), tol=1e-12)
    return found.x @ [1.0, 2.0]


MINIMA = {
    "minimize": lambda x: np.sum(optimize.minimize(valley, [0.5, 0.5], (x[0], x[1]), "SLSQP", tol=1e-14).x),
    "value": lambda x: optimize.minimize(valley, [0.5, 0.5], (x[0], x[1]), "BFGS", tol=1e-7).fun,
    "bounds": lambda x: np.sum(optimize.minimize(valley, LOW, (x[0], x[1]), bounds=[(0.5, 3), (0.1, x[0])]).x),
    "Bounds": lambda x: np.sum(optimize.minimize(valley, LOW, (x[0], x[1]), bounds=optimize.Bounds(0.5, 3)).x),
    "linear": lambda x: constrained(x, "SLSQP", lambda x: optimize.LinearConstraint([[1.0, 1.0]], x[1], np.inf)),
    "dicts": lambda x: constrained(x, "SLSQP", lambda x: [{"type": "eq", "fun": lambda y: y @ y - x[0]}]),
    "scalar": lambda x: optimize.minimize_scalar(lambda y: (y - x[0]) ** 2 + x[1] * y**4, tol=1e-11).x,
    "bounded": lambda x: optimize.minimize_scalar(lambda y: np.cosh(y - x[0]), bounds=(-1, 3), method="bounded").fun,
    "fmin_bfgs": lambda x: np.sum(optimize.fmin_bfgs(valley, LOW, args=(x[0], x[1]), gtol=1e-11, disp=False)),
    "least_squares": lambda x: optimize.least_squares(pair, LOW, args=(x[0], x[1]), xtol=1e-14, loss="soft_l1").x[0],
    "curve_fit": functools.partial(fitted, xtol=1e-14, ftol=1e-14),
    "curve_fit in bounds": functools.partial(fitted, bounds=([0, 0], [9, 9]), xtol=1e-14, ftol=1e-14),
    "nnls": lambda x: np.sum(
        optimize.nnls(np.array([[2.0, 1.0], [1.0, 3.0], [1.0, 1.0]]), np.append(x, x[0] * x[1]))[0]
    ),
}
OTHER_SHAPES = ("event", "dense")
"""Of these, results have other shapes at another point, which is traced there."""

PROGRAM = """
import pickle
import numpy as np
import yota.solvers.explicit, yota.solvers.inner, yota.run.specialise
from yota.tracing.trace import Trace

def fail(*_, **__):
    raise AssertionError("traced or generated")

with open("{file}", "rb") as file:
    data = file.read()
Trace.__init__ = fail
for module in (yota.run.specialise, yota.solvers.explicit, yota.solvers.inner):
    module.source_of = fail
found = [[function(x) for x in points] for function, points in pickle.loads(data)]
with open("{file}", "wb") as file:
    pickle.dump(found, file)
print("done")
"""


def differences(f, x):
    """Central differences, extrapolated once."""
    found = np.zeros(len(x))
    for place in range(len(x)):
        steps = [1e-3 * (np.arange(len(x)) == place) / 2**number for number in range(2)]
        wide, near = ((f(x + h) - f(x - h)) / (2 * np.sum(h)) for h in steps)
        found[place] = near + (near - wide) / 3
    return found


GROUPS = {
    "roots": (ROOTS, "numpy", 1e-7),
    "equations": (EQUATIONS, "numpy", 1e-7),
    "differential equations": (STEPS, "numpy", 1e-5),
    "matrices": (MATRICES, "numpy", 1e-6),
    "minima": (MINIMA, "numpy", 1e-5),
}
if native.is_available():
    IN_C = ("hybr", "RK45", "dicts")
    GROUPS["c"] = {name: (ROOTS | EQUATIONS | STEPS | MINIMA)[name] for name in IN_C}, "c", 1e-5


@pytest.fixture(autouse=True, scope="module")
def shipped_rules():
    """Other processes know the shipped rules alone, not what other tests have loaded."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rules, "_default", None)
        yield


@pytest.fixture(scope="module")
def elsewhere(shipped_rules, tmp_path_factory):
    """Compiled functions by group, name and points, each with what another process gives, to which they went frozen."""
    folder = tmp_path_factory.mktemp("frozen")
    made = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("YOTA_CACHE", "on")
        patch.setenv("YOTA_CACHE_DIR", str(folder / "cache"))
        for group, (cases, target, _) in GROUPS.items():
            for name, f in cases.items():
                function = yota.value_and_grad(f, target=target)
                function(X)
                made.append((group, name, function, [X] if name in OTHER_SHAPES else [X, OTHER]))
        file = folder / "functions"
        file.write_bytes(pickle.dumps([(yota.freeze(function), points) for _, _, function, points in made]))
        patch.setenv("YOTA_CACHE_DIR", str(folder / "other"))
        assert in_new_process(folder, PROGRAM.format(file=file), timeout=600) == "done"
    return list(zip(made, pickle.loads(file.read_bytes()), strict=True))


@pytest.mark.parametrize("group", GROUPS)
def test_another_process_gives_the_same(group, elsewhere):
    """The same as this one and as differences."""
    cases, _, tolerance = GROUPS[group]
    mine = [(name, function, points, found) for (own, name, function, points), found in elsewhere if own == group]
    assert [name for name, *_ in mine] == list(cases)
    for name, function, points, found in mine:
        for x, (value, g) in zip(points, found, strict=True):
            here = function(x)
            assert np.isclose(value, here[0], rtol=1e-13, atol=0), name
            assert np.allclose(g, here[1], rtol=1e-12, atol=0), name
            assert np.isclose(value, cases[name](x), rtol=1e-10), name
            assert np.allclose(g, differences(cases[name], x), rtol=tolerance, atol=tolerance), name
