"""The cases that the library promises, each against exact values or an independent oracle."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import mpmath
import numpy as np
import pytest
import scipy.optimize

import yota
from yota import errors


@dataclass
class Linear:
    W: np.ndarray
    b: np.ndarray


def test_structure_gradient_names_only_fields_that_matter():
    rng = np.random.default_rng(0)
    m, X = Linear(rng.standard_normal((3, 4)), rng.standard_normal(3)), rng.standard_normal((4, 5))

    def loss(m, X):
        return np.sum(m.W @ X)

    val, g = yota.grad(loss, m, X)
    assert np.isclose(val, np.sum(m.W @ X))
    assert set(g[0]) == {("W",)}
    np.testing.assert_allclose(g[0]["W",], np.tile(X.sum(1), (3, 1)))
    np.testing.assert_allclose(g[1], np.tile(m.W.sum(0)[:, None], (1, 5)))


@dataclass
class Net:
    layers: list = field(default_factory=list)
    scale: dict = field(default_factory=dict)


def test_a_hundred_epochs_of_update():
    rng = np.random.default_rng(1)
    net = Net(
        [Linear(rng.standard_normal((4, 3)), np.zeros(4)), Linear(rng.standard_normal((1, 4)), np.zeros(1))], {"s": 1.0}
    )
    X, Y = rng.standard_normal((3, 20)), rng.standard_normal((1, 20))

    def loss(net, X, Y):
        h = np.tanh(net.layers[0].W @ X + net.layers[0].b[:, None])
        out = net.layers[1].W @ h * net.scale["s"] + net.layers[1].b[:, None]
        return np.mean((out - Y) ** 2) + 1e-3 * np.sum(net.layers[0].W ** 2)

    first, g = yota.grad(loss, net, X, Y)
    assert ("layers", 0, "W") in g[0] and ("scale", "s") in g[0]
    old = net.layers[0].W
    for _ in range(100):
        last, g = yota.grad(loss, net, X, Y)
        assert yota.update(net, g[0], lambda x, gx: x - 0.05 * gx) is net
    assert last < 0.7 * first
    assert net.layers[0].W is not old
    assert isinstance(net.scale["s"], float)


def test_user_rule_logistic():
    logistic = yota.diffrule(
        """
@elementwise
def logistic(x: Complex) -> y:
    y = 1 / (1 + exp(-x))
    d[y, x] = y * logistic(-x)
"""
    )
    x = np.array([-800.0, -30.0, -1.0, 0.0, 2.0, 30.0, 800.0])
    val, g = yota.grad(lambda x: np.sum(logistic(x)), x)
    with mpmath.workdps(50):
        expected = [float(mpmath.exp(-v) / (1 + mpmath.exp(-v)) ** 2) for v in x]
    np.testing.assert_allclose(g[0], expected, rtol=1e-14)
    val, g = yota.grad(lambda x: logistic(x), 2.0)
    assert np.isclose(g[0], 0.10499358540350652, rtol=1e-15)
    np.testing.assert_allclose(logistic(x[2:5]), 1 / (1 + np.exp(-x[2:5])))


def frozen(x):
    return 2 * x


def test_nodiff_rule_stops_the_adjoint():
    yota.diffrule(f'@nodiff("{__name__}.frozen")\ndef frozen(x: Array) -> y: ...')
    val, g = yota.grad(lambda x: np.sum(frozen(x) * x), np.array([3.0]))
    assert val == 18.0
    np.testing.assert_array_equal(g[0], [6.0])


def test_trace_print_play_compile():
    logistic = yota.diffrule("@elementwise\ndef logistic5(x: Real) -> y:\n    y = 1 / (1 + exp(-x))\n")

    def L(x):
        return np.sum(logistic(x))

    x = np.linspace(-1, 1, 5)
    val, tape = yota.trace(L, x)
    text = str(tape)
    assert "inp %1::float64[5]" in text and "%2 = logistic5(%1)::float64[5]" in text
    assert "return np.sum(logistic(x))" in text
    np.testing.assert_allclose(tape.play(x), val)
    np.testing.assert_allclose(tape.compile()(x), val)
    np.testing.assert_allclose(yota.play(tape, x + 1), L(x + 1))
    np.testing.assert_allclose(yota.compile(tape)(x + 1), L(x + 1))


@pytest.mark.parametrize("dynamic", [False, True])
def test_iterative(dynamic):
    def iterative(x, n):
        for _ in range(n):
            x = 2 * x
        return np.sum(x)

    for n, expected in [(1, 2.0), (2, 4.0), (3, 8.0), (1, 2.0)]:
        _, g = yota.grad(iterative, np.ones(3), n, dynamic=dynamic)
        np.testing.assert_array_equal(g[0], [expected] * 3)
        assert g[1] is None


def test_data_dependent_loop_needs_dynamic():
    def until(x, c):
        while np.sum(x) < c:
            x = 2 * x
        return np.sum(x)

    runs = []

    def counted(x, c):
        runs.append(1)
        return until(x, c)

    _, g = yota.grad(until, np.ones(3), 10.0)
    np.testing.assert_array_equal(g[0], [4.0] * 3)
    with pytest.raises(errors.StaleTapeError, match=r"while np.sum\(x\) < c.*dynamic=True"):
        yota.grad(until, np.ones(3), 100.0)
    for c, factor in [(10.0, 4.0), (100.0, 64.0), (1.0, 1.0), (10.0, 4.0), (100.0, 64.0)]:
        _, g = yota.grad(counted, np.ones(3), c, dynamic=True)
        np.testing.assert_array_equal(g[0], [factor] * 3)
    assert len(runs) == 2, "the second number of trips gives one tape for all"


def test_simplegrad():
    rng = np.random.default_rng(2)
    W, b, x = rng.standard_normal((128, 784)), rng.standard_normal(128), rng.standard_normal((784, 100))

    def loss(W, b, x):
        return np.sum(W @ x + b[:, None])

    dloss = yota.simplegrad(loss, W, b, x)
    val, dW, db, dx = dloss(W, b, x)
    np.testing.assert_allclose(val, loss(W, b, x))
    np.testing.assert_allclose(dW, np.tile(x.sum(1), (128, 1)))
    np.testing.assert_allclose(db, np.full(128, 100.0))
    np.testing.assert_allclose(dx, np.tile(W.sum(0)[:, None], (1, 100)))
    assert "def " in dloss.source
    with pytest.raises(errors.ArgumentError):
        dloss(W, b, x[:, :50])


def test_pairwise_distances():
    x = np.random.default_rng(3).standard_normal((4, 6))

    def pd(x):
        m = x.T @ x
        v = np.diag(m)
        return np.sum(v[:, None] + v[None, :] - 2 * m)

    assert yota.gradcheck(pd, x)
    expected = 2 * (2 * 6 * x - 2 * x.sum(1, keepdims=True))
    np.testing.assert_allclose(yota.grad(pd, x)[1][0], expected)


def code_of(source: str) -> str:
    """Source without its comments, which quote the user's lines."""
    return "\n".join(line.partition("#")[0] for line in source.splitlines())


@pytest.mark.parametrize("f", [lambda x: np.sum(np.exp(x)), lambda x: np.sum(1 / (1 + np.exp(-x)))])
def test_exactly_one_exp(f):
    code = code_of(yota.simplegrad(f, np.ones(1000)).source)
    assert code.count("np.exp(") == 1, code


def test_powers():
    x = np.linspace(0.5, 2.0, 1000)
    for f in (lambda x: np.sum(x**2.0), lambda x: np.sum(x**3), lambda x: np.sum(x**-2)):
        code = code_of(yota.simplegrad(f, x).source)
        assert "log" not in code and "pow" not in code, code
        assert yota.gradcheck(f, x)
    assert "log" not in code_of(yota.simplegrad(lambda x: np.sum(x**2.5), x).source)
    assert yota.gradcheck(lambda x: np.sum(2.0**x), x)
    assert yota.gradcheck(lambda x: np.sum(x**2.5), x)


def polynomial(x):
    return (
        x[2] * x[7] ** 3 - 3 * x[2] * x[7] * x[5] ** 2 - x[0] * x[5] ** 3 + 3 * x[0] * x[5] * x[7] ** 2
        + x[3] * x[4] ** 3 - 3 * x[3] * x[4] * x[6] ** 2 - x[1] * x[6] ** 3 + 3 * x[1] * x[6] * x[4] ** 2
        - 1.2342523
    )  # fmt: skip


def arithmetic(source: str) -> int:
    """Additions, subtractions, multiplications and divisions in the first function of a module."""
    import ast

    module = ast.parse(source)
    function = next(
        item for item in module.body if isinstance(item, ast.FunctionDef) and "numpy" not in item.name.split("_")
    )
    kinds = (ast.Add, ast.Sub, ast.Mult, ast.Div)
    count = sum(isinstance(item, ast.BinOp) and isinstance(item.op, kinds) for item in ast.walk(function))
    count += sum(
        isinstance(item, ast.UnaryOp) and isinstance(item.op, ast.USub) and not isinstance(item.operand, ast.Constant)
        for item in ast.walk(function)
    )
    return count


def test_polynomial_of_eight_variables():
    x = np.random.default_rng(4).standard_normal(8)
    val, g = yota.grad(polynomial, x)
    np.testing.assert_allclose(val, polynomial(x), rtol=1e-14)
    step = [np.imag(polynomial(x + 1e-30j * np.eye(8)[i])) / 1e-30 for i in range(8)]
    np.testing.assert_allclose(g[0], step, rtol=1e-13, atol=1e-13)
    assert "np.multiply" not in g.source
    assert arithmetic(g.source) <= 62, g.source


def test_linear_form_is_never_expanded():
    def f(x):
        l = x[0] + 3 * x[1] + 2 * x[2] + 5 * x[3]  # noqa: E741
        return l**4 - l**2

    x = np.array([0.3, -0.2, 0.5, 0.1])
    val, g = yota.grad(f, x)
    line = x @ [1, 3, 2, 5]
    np.testing.assert_allclose(val, line**4 - line**2)
    np.testing.assert_allclose(g[0], (4 * line**3 - 2 * line) * np.array([1.0, 3, 2, 5]), rtol=1e-13)
    assert arithmetic(g.source) <= 18, g.source


PLAIN = {
    "array of expressions": lambda x: np.sum(np.array([x[0] * x[1], np.sin(x[2])]) ** 2),
    "write into zeros": lambda x: _written(x),
    "repeated indices": lambda x: np.sum(x[np.array([0, 0, 1])] ** 2),
    "in-place add": lambda x: _added(x),
    "loop over elements": lambda x: _looped(x),
    "builtin sum": lambda x: sum(x) ** 2,
    "builtin max": lambda x: max(x) ** 2,
    "reshape": lambda x: np.sum(x.reshape(-1) ** 3),
    "ravel": lambda x: np.sum(np.ravel(x) ** 3),
    "unpacking": lambda x: _product(*x),
    "math": lambda x: math.sin(x[0]) * math.exp(x[1]),
    "r_": lambda x: np.sum(np.r_[x, x[:2], 1.0] ** 2),
    "c_": lambda x: np.sum(np.c_[x, x**2] ** 2),
    "vectorize": lambda x: np.sum(np.vectorize(lambda t: t * t)(x)),
    "item": lambda x: x.item(1) ** 2,
    "tolist": lambda x: sum(v * v for v in x.tolist()),
    "mask": lambda x: np.sum(x[x > 0.5] ** 2),
    "add.at": lambda x: _at(x),
    "outer": lambda x: np.sum(np.multiply.outer(x, x) ** 2),
    "add.reduce": lambda x: np.add.reduce(x**2),
    "cumulative": lambda x: np.sum(np.add.accumulate(x) ** 2),
    "std": lambda x: x.std() + x.var() + x.mean(),
    "clip": lambda x: np.sum(x.clip(0.4, 0.8) * x),
    "take": lambda x: np.sum(x.take([0, 2, 2]) ** 2),
    "sort": lambda x: np.sum(np.sort(x) * np.arange(x.size)),
    "prod": lambda x: np.prod(x),
    "norm": lambda x: np.linalg.norm(x),
    "where": lambda x: np.sum(np.where(x > 0.5, x**2, x**3)),
    "full": lambda x: np.sum(np.full(3, x[0]) * x),
    "cumsum method": lambda x: np.sum(x.cumsum() ** 2),
    "constant output": lambda x: 3.0,
    "linspace": lambda x: np.sum(np.linspace(x[0], x[1], 5) ** 2),
    "float at return": lambda x: float(np.sum(x**2)),
    "view written": lambda x: _view(x),
    "einsum": lambda x: np.einsum("i,j->", x, x),
    "trapezoid": lambda x: np.trapezoid(x**2),
    "maximum": lambda x: np.sum(np.maximum(x, 0.6) ** 2),
}


def _written(x):
    out = np.zeros(3)
    out[1] = x[0] ** 2
    out[0] += x[1]
    return np.sum(out * x)


def _added(x):
    y = x * 2
    y += x
    y[1:] *= x[1:]
    return np.sum(y * y)


def _looped(x):
    s = 0
    for xi in x:
        s = s * xi + xi
    return s


def _product(a, b, *rest):
    return a * b * sum(rest)


def _at(x):
    out = np.zeros(3)
    np.add.at(out, [0, 0, 2], x)
    return np.sum(out**2)


def _view(x):
    y = x.copy().reshape(3, 1)
    z = y.T
    z[0, 1] = x[0] * x[2]
    return np.sum(y**2)


@pytest.mark.parametrize("name", PLAIN)
def test_plain_python(name):
    x = np.array([0.3, 0.7, 1.1])
    f = PLAIN[name]
    for _ in range(2):
        val, g = yota.grad(f, x)
        np.testing.assert_allclose(val, f(x), rtol=1e-13)
    assert yota.gradcheck(f, x)
    assert g[0].shape == (3,) and g[0].dtype == np.float64


def test_isinstance_and_attributes():
    def f(x):
        assert isinstance(x, np.ndarray)
        assert x.shape == (2, 3) and x.ndim == 2 and x.size == 6 and x.dtype == np.float64 and len(x) == 2
        assert x.T.shape == (3, 2) and x.real is not None
        y = x.astype(np.float32).astype(np.float64)
        return (
            np.sum(y.squeeze() * x.swapaxes(0, 1).transpose())
            + x.diagonal().sum()
            + x.trace()
            + x.max() * x.min()
            + x.prod()
        )

    x = np.array([[0.5, 0.25, 2.0], [1.5, 0.75, 1.25]])
    val, g = yota.grad(f, x)
    expected = 2 * x + np.prod(x) / x
    expected[0, 0] += 2
    expected[1, 1] += 2
    expected[0, 2] += x.min()
    expected[0, 1] += x.max()
    np.testing.assert_allclose(g[0], expected)


def test_kahan_and_log1p_keep_their_accuracy():
    def kahan(x):
        s, c = 0.0, 0.0
        for xi in x:
            y = xi - c
            t = s + y
            c = (t - s) - y
            s = t
        return s

    x = np.array([1.0, 1e-16, 1e-16, 1e-16, 1e-16, 1e-16, 1e-16, 1e-16])
    val, g = yota.grad(kahan, x)
    assert val == kahan(x)
    u = np.array([1e-12])

    def log1p(x):
        v = 1 + x
        return np.sum(np.log(v) * x / (v - 1))

    assert yota.grad(log1p, u)[0] == log1p(u)


@pytest.mark.parametrize("n", [2, 10, 100_000])
def test_rosen_untouched(n):
    x = np.random.default_rng(5).uniform(-1, 1, n)
    val, g = yota.grad(scipy.optimize.rosen, x)
    np.testing.assert_allclose(val, scipy.optimize.rosen(x))
    np.testing.assert_allclose(g[0], scipy.optimize.rosen_der(x), rtol=1e-12, atol=1e-10)


def test_minimize():
    found = scipy.optimize.minimize(yota.value_and_grad(scipy.optimize.rosen), np.zeros(5), jac=True, method="BFGS")
    np.testing.assert_allclose(found.x, np.ones(5), atol=1e-4)


def test_unused_arguments_give_exact_zeros():
    val, g = yota.grad(lambda x, y, n: np.sum(x), np.ones(2), np.ones((2, 2)), 3)
    np.testing.assert_array_equal(g[1], np.zeros((2, 2)))
    g[1][0, 0] = 1.0
    assert yota.grad(lambda x: 3.0, 2.0)[1][0] == 0.0
    assert g[2] is None and len(g) == 3
