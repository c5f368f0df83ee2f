"""Rules of several results: every stage from the rule to generated code, against closed forms and differences."""

from __future__ import annotations

import subprocess
import sys
import types

import numpy as np
import pytest

import yota
from yota.api.jacobians import hessian, jacobian
from yota.errors import DifferentiationError, RuleError
from yota.ir.types import TupleType
from yota.ir.verify import verify
from yota.rules.registry import registry

RULES = '''
@elementwise("yota_several.sincos")
def sincos(x: Complex) -> (s, c):
    d[s, x] = c
    d[c, x] = -s

@elementwise("yota_several.ratios")
def ratios(a: Real, b: Real(0, oo)) -> (quotient, product, whole):
    d[quotient, a] = 1 / b
    d[quotient, b] = -quotient / b
    d[product, a] = b
    d[product, b] = a
    d[whole, a] = 0
    d[whole, b] = 0

@tensor("yota_several.moments")
def moments(x: Array[n]) -> (mean, scatter_of, count):
    d[x] = broadcast_to(d[mean] / size(x), shape=shape(x)) + 2 * d[scatter_of] * (x - mean)
    d[count] = 0

@tensor("yota_several.parts")
def parts(x: Array[n]) -> (y, residual):
    d[x] = 2 * d[y]
    d[residual] = "its derivative is not known"

@elementwise
def polar_form(x: Real, y: Real) -> (r, phi):
    """The second pair of partials is derived."""
    assert x * x + y * y > 0
    r = hypot(x, y)
    phi = arctan2(y, x)
    d[r, x] = x / r
'''


def sincos(x):
    return np.sin(x), np.cos(x)


def ratios(a, b):
    return [a / b, a * b, np.floor(a)]


def moments(x):
    mean = np.mean(x)
    return mean, np.sum((x - mean) ** 2), len(x)


def parts(x):
    return 2 * x, x - 1


@pytest.fixture(scope="module")
def space():
    module = types.ModuleType("yota_several")
    for function in (sincos, ratios, moments, parts):
        setattr(module, function.__name__, function)
    sys.modules["yota_several"] = module
    module.polar = yota.diffrule(RULES)[-1]
    return module


def total(space):
    def f(x):
        s, c = space.sincos(x)
        return np.sum(s * c)

    return f


X = np.array([0.3, 0.5, -1.2])


@pytest.mark.parametrize("target", ["numpy", "c"])
def test_both_results(space, target):
    value, g = yota.grad(total(space), X, target=target)
    assert value == pytest.approx(np.sum(np.sin(X) * np.cos(X)), rel=1e-15)
    assert g[0] == pytest.approx(np.cos(2 * X), rel=1e-14)


def test_one_result_asks_nothing_of_the_other(space):
    _, g = yota.grad(lambda x: np.sum(space.sincos(x)[0]), X)
    assert g[0].tolist() == np.cos(X).tolist()
    assert "sin(" not in g.source.replace("yota_several.sincos(", "")
    assert g.tape.ops[0].name == "sincos"


def test_result_read_twice_in_parts(space):
    def f(x):
        s, c = space.sincos(x)
        return s[0] * s[1] + s[2] * c[0] + c[0]

    assert yota.gradcheck(f, X)


def test_second_order(space):
    assert hessian(total(space))(X) == pytest.approx(np.diag(-2 * np.sin(2 * X)), rel=1e-14)


def test_a_function_that_returns_both(space):
    rows = jacobian(lambda x: np.concatenate(space.sincos(x)))(X)
    assert rows == pytest.approx(np.vstack([np.diag(np.cos(X)), np.diag(-np.sin(X))]), rel=1e-15)


def test_complex(space):
    z = np.array([0.3 + 0.2j, -0.7 + 1j])
    assert yota.gradcheck(lambda z: np.sum(np.abs(space.sincos(z)[0] + 2j * space.sincos(z)[1]) ** 2), z)


def test_single_precision_stays(space):
    value, g = yota.grad(total(space), X.astype(np.float32))
    assert value.dtype == g[0].dtype == np.float32


def test_broadcast_operands_and_a_list(space):
    def f(a, b):
        quotient, product, whole = space.ratios(a, b)
        return np.sum(quotient * np.exp(product) + whole)

    assert yota.gradcheck(f, np.array([[0.3], [-0.7]]), np.array([1.2, 0.4, 2.0]))


def test_scalars(space):
    value, g = yota.grad(lambda a, b: space.ratios(a, b)[0], 3.0, 4.0)
    assert (value, g[0], g[1]) == (0.75, 0.25, -0.1875)


def test_tensors_with_a_count(space):
    def f(x):
        mean, spread, count = space.moments(x)
        return mean * spread + count

    assert yota.gradcheck(f, X)
    assert yota.gradcheck(lambda x: space.moments(x)[1], X)


def test_zero_and_refused_results(space):
    assert yota.grad(lambda x: np.sum(space.parts(x)[0]), X)[1][0].tolist() == [2, 2, 2]
    with pytest.raises(DifferentiationError, match=r"yota_several.parts's residual has no derivative by x: its deriv"):
        yota.grad(lambda x: np.sum(space.parts(x)[1]), X)


def test_primal_of_several_results(space):
    assert space.polar(3.0, 4.0) == (5.0, np.arctan2(4.0, 3.0))

    def f(x, y):
        r, phi = space.polar(x, y)
        return np.sum(r * phi)

    assert yota.gradcheck(f, X, X[::-1] + 0.1)
    tape = yota.trace(f, X, X + 1)[1]
    assert [op.name for op in tape.ops] == ["polar_form", "item", "item", "multiply", "sum"]
    assert "hypot" in yota.grad(f, X, X + 1)[1].source


def test_the_tape(space):
    _, tape = yota.trace(total(space), X)
    verify(tape)
    assert isinstance(tape.types[tape.ops[0].result], TupleType)
    assert "%2 = sincos(%1)::(float64[3], float64[3])" in str(tape)
    assert "%3 = item(%2, index=0)::float64[3]" in str(tape)
    assert yota.play(tape, X) == np.sum(np.sin(X) * np.cos(X))
    assert "s, c = yota_several.sincos(x)" in yota.grad(total(space), X)[1].source


def test_over_many_points():
    a = np.random.default_rng(0).standard_normal((5, 4, 3))

    def f(a):
        q, r = np.linalg.qr(a)
        u, s, vh = np.linalg.svd(a, full_matrices=False)
        sign, log = np.linalg.slogdet(np.dot(a.T, a))
        return q[0, 0] * r[0, 1] + u[1, 0] * s[2] + vh[0, 1] + log * sign

    # A point at a time, the matrices are multiplied by another routine.
    assert yota.batch(f)(a) == pytest.approx([f(each) for each in a], rel=1e-12)
    gradients = yota.batch(yota.gradient(f))(a)
    assert gradients == pytest.approx(np.array([yota.gradient(f)(each) for each in a]), rel=1e-9)


def test_elementwise_over_many_points():
    points = np.random.default_rng(0).uniform(0.2, 2, (5, 3))

    def f(x):
        fraction, whole = np.modf(x * x[0])
        return np.sum(fraction**2 + whole)

    assert yota.batch(f)(points) == pytest.approx([f(each) for each in points], rel=1e-14)


@pytest.mark.parametrize("used", [(0,), (1,), (0, 1)])
@pytest.mark.parametrize("shape", [(3, 3), (4, 3), (3, 4), (2, 4, 3)])
def test_some_of_the_factors_of_qr(shape, used):
    a = np.random.default_rng(1).standard_normal(shape)
    weights = np.random.default_rng(2).standard_normal((9, 9))

    def f(a):
        factors = np.linalg.qr(a)
        parts = [factors[number] for number in used]
        return sum(np.sum(part * weights[: part.shape[-2], : part.shape[-1]]) for part in parts)

    assert yota.gradcheck(f, a, rtol=1e-5)


@pytest.mark.parametrize("used", [(0, 2), (1,), (0, 1, 2), (0,), (2,)])
@pytest.mark.parametrize("shape", [(3, 3), (4, 3), (3, 4)])
def test_some_of_the_factors_of_svd(shape, used):
    a = np.random.default_rng(1).standard_normal(shape)
    weights = np.random.default_rng(2).standard_normal((9, 9))

    def f(a):
        factors = np.linalg.svd(a, full_matrices=False)
        parts = [np.atleast_2d(factors[number]) for number in used]
        return sum(np.sum(part * weights[: part.shape[-2], : part.shape[-1]]) for part in parts)

    assert yota.gradcheck(f, a, rtol=1e-5)


def test_complex_factors_up_to_their_phase():
    random = np.random.default_rng(3)
    a = random.standard_normal((4, 3)) + 1j * random.standard_normal((4, 3))

    def projector(a):
        u, s, vh = np.linalg.svd(a, full_matrices=False)
        return np.real(np.sum(np.abs(u[:, 0]) ** 2 * np.arange(4.0)) + s[1] * np.real((u @ vh)[0, 1]))

    assert yota.gradcheck(projector, a, rtol=1e-5)
    assert yota.gradcheck(lambda a: np.real(np.linalg.slogdet(a[:3])[0]) + np.linalg.slogdet(a[:3])[1], a)


def test_eigenvalues_alone_need_no_gaps():
    a = np.eye(3)
    _, g = yota.grad(lambda a: np.sum(np.linalg.eigh(a)[0] ** 2), a)
    assert g[0] == pytest.approx(2 * a)
    assert "where" not in g.source


def test_wrong_number_of_results():
    module = types.ModuleType("yota_three")
    module.three = lambda x: (x, x, x)
    sys.modules["yota_three"] = module
    yota.diffrule('@elementwise("yota_three.three")\ndef three(x: Real) -> (a, b):\n    d[a, x] = 1\n    d[b, x] = 1')
    with pytest.raises(
        DifferentiationError, match=r"three gave 3 results, and its rule .* names 2: a, b. Write def th"
    ):
        yota.grad(lambda x: np.sum(module.three(x)[0]), X)


def test_what_is_no_number_among_the_results():
    module = types.ModuleType("yota_status")
    module.status = lambda x: (x, "converged")
    sys.modules["yota_status"] = module
    yota.diffrule('@tensor("yota_status.status")\ndef status(x: Array) -> (y, word):\n    d[x] = d[y]\n    d[word] = 0')
    with pytest.raises(yota.errors.TracingError, match="result 1 of status is a str"):
        yota.grad(lambda x: np.sum(module.status(x)[0]), X)


def test_overriding_a_shipped_rule_of_several_results():
    known = registry().copy()
    known.define('@tensor("numpy.linalg.qr")\ndef qr(a: Array[m, n]) -> (q, r):\n    d[a] = d[q] + matmul(q, d[r])')
    assert known.rules("qr")[0].results == ("q", "r")
    assert known.is_user("qr")


def test_a_wrong_partial_of_the_second_result_is_found():
    text = "@elementwise\ndef pair(x: Real) -> (a, b):\n    a = sin(x)\n    b = cos(x)\n    d[b, x] = a"
    with pytest.raises(RuleError, match=r"d\[b, x\] is not the derivative of pair"):
        registry().copy().define(text)


MODULE = """
def decomposed(a):
    w, v = np.linalg.eig(a)
    q, r = np.linalg.qr(a)
    return np.sum(np.real(w) ** 2) + np.real(v[0, 0]) + q[0, 1] * r[0, 0] + np.sum(np.linalg.lstsq(a, a[0])[0])
"""


def test_a_standalone_module_of_factorisations(tmp_path):
    space = {"np": np}
    exec(MODULE, space)
    a = np.diag([1.0, 2.0, 3.0]) + 0.1 * np.random.default_rng(0).standard_normal((3, 3))
    expected = yota.gradient(space["decomposed"])(a)
    yota.generate(space["decomposed"], (a,)).write(tmp_path / "decomposed.py")
    np.save(tmp_path / "a.npy", a)
    code = """
import sys
sys.path[:0] = PATH
import numpy as np, decomposed
np.save("g.npy", decomposed.decomposed_gradient(np.load("a.npy")))
assert not any(name.startswith("yota") for name in sys.modules)
""".replace("PATH", repr([".", *sys.path]))
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    assert np.load(tmp_path / "g.npy") == pytest.approx(expected, rel=1e-12)
