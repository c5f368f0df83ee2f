"""Special functions that mpmath lacks or is slow at: every partial against differences; ends; what is refused."""

from __future__ import annotations

import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest
import scipy.special
import scipy.special as sc

import yota
from tests.generated import loaded
from yota.errors import DifferentiationError
from yota.rules.language.model import Call, Domain, Literal, refusal
from yota.rules.laws.sampling import points, statics
from yota.rules.laws.trials import direction_error
from yota.rules.registry import registry

REGISTRY = registry()
FILES = [f"special_{name}.rules" for name in ("several", "waves", "distributions", "inverses", "kelvin", "shapes")]
RULES = [rule for name in REGISTRY.names() for rule in REGISTRY.rules(name) if rule.file in FILES]
MOVING = [rule for rule in RULES if any(refusal(each) is None for each in rule.partials.values())]
# Polynomials piece by piece, or roots to so many digits: differences tell no more.
COARSE = {"it2j0y0": 1e-4, "itj0y0": 1e-2, "it2struve0": 1e-4, "kei": 1e-5, "ker": 1e-5, "itairy": 1e-5}
INVERSES = 2e-5
# Where SciPy's own function is not what it should be at the points that the domain gives.
INSIDE = {
    "pdtrik": {"m": (5.0, 9.0), "p": (0.1, 0.9)},
    **{name: {"p": (0.1, 0.9), "a": (1.0, 9.0), "b": (1.0, 9.0)} for name in ("chdtri", "fdtri", "gdtrib", "stdtrit")},
    "ncfdtri": {"a": (2.0, 9.0), "b": (4.0, 9.0)},
    "chndtrinc": {"x": (9.0, 12.0), "v": (1.0, 3.0), "p": (0.1, 0.5)},
    "nrdtrisd": {"p": (0.6, 1.0)},
    "nbdtrik": {"p": (0.6, 0.9), "n": (2.0, 9.0), "q": (0.2, 0.6)},
    "nbdtrin": {"k": (1.0, 9.0), "p": (0.1, 0.9), "q": (0.2, 0.8)},
    "besselpoly": {"a": (0.0, 3.0)},
    "stdtridf": {"p": (0.76, 0.8), "t": (1.05, 1.2)},
}


def within(rule):
    """The rule with the inner domains."""
    inner = INSIDE.get(rule.name, {})

    def made(parameter):
        if parameter.name not in inner:
            return parameter
        return replace(parameter, domain=Domain(parameter.domain.kind, *inner[parameter.name]))

    return replace(rule, parameters=tuple(map(made, rule.parameters)))


def worst(rule, count=4, enough=math.inf):
    """The largest error at some points; the first above ``enough`` if there is one."""
    keywords = {name: value.value for name, value in statics(rule).items()}
    function = REGISTRY.primitive(rule.name).function
    moving = [
        number
        for number, each in enumerate(rule.operands)
        if each.moves and any(refusal(REGISTRY.partial(rule, each.name, result)) is None for result in rule.results)
    ]
    found = []
    for point in points(within(rule), REGISTRY, 3 * count):
        values = {name: np.array([value]) if isinstance(value, float) else value for name, value in point.items()}
        if "cv" in values:
            value = getattr(sc, rule.name[:3] + "_cv")(*(values[name] for name in ("m", "n", "c")))
            values["cv"] = np.asarray(value, float)
        with np.errstate(all="ignore"):
            results = np.atleast_1d(function(*values.values(), **keywords))
        if np.all(np.abs(results) < 1e99) and len(found) < count:
            given = list(values.values())
            found.append(max(direction_error(rule, each, given, keywords, REGISTRY, seed=1) for each in moving))
            if found[-1] > enough:
                break
    assert found, "SciPy has no value at any of the points"
    return max(found)


def tolerance(rule):
    return COARSE.get(rule.name, INVERSES)


@pytest.mark.parametrize("rule", MOVING, ids=lambda rule: rule.name)
def test_against_differences(rule):
    assert worst(rule) < tolerance(rule)


@pytest.mark.parametrize("rule", MOVING, ids=lambda rule: rule.name)
def test_a_wrong_partial_is_found(rule):
    for pair, expression in rule.partials.items():
        if refusal(expression) is not None or expression == Literal(0):
            continue
        factor = 2 if rule.name == "radian" else 1.1 if rule.name in COARSE else 1.01
        planted = replace(rule, partials={**rule.partials, pair: Call("multiply", (Literal(factor), expression))})
        assert worst(planted, 8, tolerance(rule)) > tolerance(rule), pair


ARGUMENTS = {1: (1.3,), 2: (2.0, 0.4), 3: (2.0, 3.0, 0.4), 4: (1.0, 2.0, 1.5, 0.4), 5: (1.0, 2.0, 1.5, 6.2, 0.4)}
# What SciPy takes an argument of another kind for.
OTHERS = {"obl_rad1": (1.0, 2.0, 1.5, 1.4), "pro_rad1": (1.0, 2.0, 1.5, 1.4), "nrdtrisd": (-1.0, 0.7, 2.0)}


@pytest.mark.parametrize(
    "name", sorted(name for name in dir(sc) if isinstance(getattr(sc, name), np.ufunc) and not name.startswith("_"))
)
def test_every_ufunc_is_right_or_refused(name):
    """By each argument: the derivative that differences show, exactly zero by design, or an error that says why."""
    ufunc = getattr(sc, name)
    known = REGISTRY.find(ufunc)
    assert known is not None, f"scipy.special.{name} has no rule"
    rule = REGISTRY.rules(known.name)[0]
    assert len(rule.results) == ufunc.nout
    assert len(rule.operands) == ufunc.nin
    for parameter in rule.operands:
        assert parameter.domain.kind in ("real", "complex", "integer")
        for result in rule.results:
            if parameter.domain.kind != "integer":
                REGISTRY.partial(rule, parameter.name, result)


mp = pytest.importorskip("mpmath")


def relative(found, exact):
    return float(abs((mp.mpf(float(found)) - exact) / exact))


# Compiled once, called at many points.
GAMMA_BY_A = yota.gradient(lambda a, x: sc.gammainc(a, x), wrt=0)
BETA_BY_SHAPES = yota.gradient(lambda a, b, x: sc.betainc(a, b, x), wrt=(0, 1))


@pytest.mark.parametrize("number", range(24))
def test_incomplete_functions_by_their_shapes_to_50_digits(number):
    """From far below to far above the middle of the distribution, for small and for large shapes."""
    random = np.random.default_rng(number)
    a, b = map(float, 10 ** random.uniform(-1.5, 2.3, 2))
    with mp.workdps(50):
        x = a * math.exp(random.normal() / (1 + math.sqrt(a)) * 3)
        exact = mp.diff(lambda s: mp.gammainc(s, 0, mp.mpf(x), regularized=True), mp.mpf(a))
        if abs(exact) > 1e-30:
            assert relative(GAMMA_BY_A(a, x), exact) < 2e-12
        x = min(max(a / (a + b) * math.exp(random.normal() / (1 + math.sqrt(a + b)) * 3), 1e-9), 1 - 1e-9)
        by_a, by_b = BETA_BY_SHAPES(a, b, x)
        exact = mp.diff(lambda s: mp.betainc(s, mp.mpf(b), 0, mp.mpf(x), regularized=True), mp.mpf(a))
        if abs(exact) > 1e-30:
            assert relative(by_a, exact) < 2e-10
        exact = mp.diff(lambda s: mp.betainc(mp.mpf(a), s, 0, mp.mpf(x), regularized=True), mp.mpf(b))
        if abs(exact) > 1e-30:
            assert relative(by_b, exact) < 2e-10


@pytest.mark.parametrize(
    "function",
    [
        lambda a, x: sc.gammainc(a, x * 3) + sc.gammaincc(2 * a, x),
        lambda a, x: sc.betainc(a, 2.0, x) * sc.betainc(1.5, a, x),
        lambda a, x: sc.stdtr(3 * a, x),
        lambda a, x: sc.gammaincinv(a, x) + sc.betaincinv(a, 1.3, x) + sc.chdtri(2 + a, x),
    ],
)
def test_shapes_and_arguments_together(function):
    a, x = np.array([[0.4], [2.7], [30.0]]), np.array([0.2, 0.55, 0.8])
    assert yota.gradcheck(lambda a, x: np.sum(np.sin(function(a, x))), a, x, rtol=1e-5)


def test_a_shape_at_the_ends():
    for x, expected in ((0.0, 0.0), (np.inf, 0.0)):
        assert yota.grad(lambda a: sc.gammainc(a, x), 1.5)[1][0] == expected  # noqa: B023
    for x in (0.0, 1.0):
        assert yota.grad(lambda a: sc.betainc(a, 2.0, x) + sc.betainc(2.0, a, x), 1.5)[1][0] == 0  # noqa: B023
    _, g = yota.grad(lambda a, x: np.sum(sc.gammainc(a, x)), np.full(5000, 1.5), np.linspace(0, 9, 5000))
    assert np.all(g[0] <= 0) and g[0][0] == 0


def test_shapes_in_a_standalone_module():
    def shape(p):
        return sc.gammainc(p[0], 1.3) + sc.betainc(p[0], p[1], 0.4)

    text = str(yota.generate(shape, (np.array([2.5, 1.5]),), with_=("gradient", "hessian"), name="shape"))
    assert "yota.ir" not in text
    module, p = loaded(text), np.array([2.5, 1.5])
    np.testing.assert_allclose(module.shape_gradient(p), yota.gradient(shape)(p), rtol=1e-13)
    np.testing.assert_allclose(module.shape_hessian(p), yota.hessian(shape)(p), rtol=1e-13)


def _ratio(mp, a, b, x):
    return mp.betainc(a, b, 0, x, regularized=True)


def _voigt(mp, x, s, g):
    z = (x + 1j * g) / (s * mp.sqrt(2))
    return mp.re(mp.exp(-z * z) * mp.erfc(-1j * z)) / (s * mp.sqrt(2 * mp.pi))


@pytest.mark.parametrize(
    ("ufunc", "exact", "point"),
    [
        *[
            (sc.gammainc, lambda mp, a, x: mp.gammainc(a, 0, x, regularized=True), each)
            for each in [(0.3, 1e-4), (36.0, 8.4), (2.5, 2.2), (80.0, 157.0)]
        ],
        *[
            (sc.betainc, _ratio, each)
            for each in [(0.6, 92.0, 0.19), (35.0, 0.4, 0.02), (2.5, 3.5, 0.4), (64.0, 0.87, 0.9999999)]
        ],
        (sc.fdtr, lambda mp, a, b, x: _ratio(mp, a / 2, b / 2, a * x / (a * x + b)), (3.0, 7.0, 1.3)),
        (sc.stdtr, lambda mp, v, t: 1 - _ratio(mp, v / 2, mp.mpf(0.5), v / (v + t * t)) / 2, (3.0, 1.7)),
        *[(sc.voigt_profile, _voigt, each) for each in [(0.3, 0.5, 0.7), (30.0, 0.4, 1.0), (-2.0, 1.5, 0.02)]],
    ],
)
def test_second_derivatives_by_parameters_in_fifty_digits(ufunc, exact, point):
    found = yota.hessian(lambda p: ufunc(*[p[k] for k in range(len(point))]))(np.array(point))
    with mpmath.workdps(50):
        for k in range(len(point)):
            for j in range(k + 1):
                orders = [int(n == k) + int(n == j) for n in range(len(point))]
                known = float(mpmath.diff(lambda *given: exact(mpmath.mp, *given), point, tuple(orders)))
                within = 1e-10 if ufunc is sc.voigt_profile else 1e-12
                assert found[k, j] == pytest.approx(known, rel=within)
                assert found[j, k] == pytest.approx(known, rel=within)


def test_third_derivatives_by_shapes_are_refused():
    with pytest.raises(DifferentiationError, match="the third derivative of an incomplete function by its shapes"):
        yota.grad(yota.gradient(yota.gradient(lambda a: sc.gammainc(a, 1.3))), 2.5)


@pytest.mark.parametrize(("name", "parameter"), [("pbdv", 0), ("mathieu_cem", 1), ("obl_rad2", 3), ("bdtrik", 0)])
def test_a_partial_without_closed_form_is_refused(name, parameter):
    ufunc = getattr(scipy.special, name)
    arguments = list(ARGUMENTS[ufunc.nin])

    def loss(p):
        found = ufunc(*arguments[:parameter], p, *arguments[parameter + 1 :])
        return found[0] if ufunc.nout > 1 else found

    with pytest.raises(DifferentiationError, match=rf"scipy.special.{name}.* has no derivative by "):
        yota.grad(loss, arguments[parameter])


def test_whole_orders_are_refused():
    with pytest.raises(DifferentiationError, match="mathieu_cem has no derivative by m, which ranges over integers"):
        yota.grad(lambda m: sc.mathieu_cem(m, 1.0, 30.0)[0], 2.0)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: sc.airy(x)[0] * sc.airy(x)[3],
        lambda x: sc.ellipj(x, 0.3)[0] + sc.ellipj(x, 0.5)[3],
        lambda x: sc.fresnel(x)[1] ** 2 + sc.fresnel(x)[0],
        lambda x: sc.sici(x)[0] + sc.sici(x)[1] + sc.shichi(x)[0],
        lambda x: np.abs(sc.kelvin(x)[0]) ** 2 + np.imag(sc.modfresnelp(x)[1]),
        lambda x: sc.it2i0k0(x)[0] + sc.iti0k0(x)[1],
        lambda x: np.modf(x * 3.3)[0] ** 2 + np.frexp(x)[0] * np.divmod(x, 0.7)[1],
        lambda x: np.abs(sc.airy(x + 0.5j)[1]) ** 2,
    ],
)
@pytest.mark.parametrize("order", [1, 2])
def test_both_orders(function, order):
    x = np.array([0.61, 1.17, 1.83])

    def loss(x):
        return np.sum(np.sin(function(x)))

    assert yota.gradcheck(loss if order == 1 else lambda x: np.sum(yota.gradient(loss)(x) ** 2), x, rtol=1e-5)


@pytest.mark.parametrize(
    ("function", "x", "expected"),
    [
        (lambda x: sc.sici(x)[0], 0.0, 1.0),
        (lambda x: sc.shichi(x)[0], 0.0, 1.0),
        (lambda x: sc.ellipj(x, 0.0)[0], 1.0, math.cos(1.0)),
        (lambda m: sc.ellipj(1.0, m)[3], 0.0, -(1 - math.sin(1.0) * math.cos(1.0)) / 4),
        (lambda m: sc.ellipj(30.0, m)[3], 0.6, -12.4969214),
        (lambda x: sc.it2j0y0(x)[0], 1e-6, 2.5e-7),
        (lambda x: sc.wofz(x), 1e6, 0.0),
        (lambda x: np.modf(x)[0], -2.5, 1.0),
        (lambda x: np.modf(x)[1], -2.5, 0.0),
        (lambda x: np.frexp(x)[0], 6.0, 0.125),
        (lambda x: np.divmod(x, 0.5)[1], 1.3, 1.0),
        (lambda p: np.divmod(1.3, p)[1], 0.5, -2.0),
    ],
)
def test_limits(function, x, expected):
    assert yota.grad(lambda x: np.real(function(x)), x)[1][0] == pytest.approx(expected, rel=1e-6, abs=1e-10)


@pytest.mark.parametrize(
    ("function", "point", "exact"),
    [
        (lambda p: sc.powm1(p[0], p[1]), (2.0, 0.0), [[0, 0.5], [0.5, math.log(2) ** 2]]),
        (lambda p: sc.xlogy(p[0], p[1]), (0.0, 1.5), [[0, 1 / 1.5], [1 / 1.5, 0]]),
        (lambda p: sc.xlog1py(p[0], p[1]), (0.0, 1.5), [[0, 0.4], [0.4, 0]]),
        (lambda p: sc.rgamma(p[0]), (0.0,), [[2 * np.euler_gamma]]),
        (lambda p: sc.rgamma(p[0]), (-1.0,), [[2 * (1 - np.euler_gamma)]]),
        (lambda p: sc.it2i0k0(p[0])[0], (1.0,), [[sc.i1(1.0) - sc.i0(1.0) + 1]]),
        (lambda p: sc.it2j0y0(p[0])[0], (1.0,), [[sc.j1(1.0) + sc.j0(1.0) - 1]]),
        # exp(-x) * (I0 + I0'' - 2 * I1), where I0'' = I0 - I1 / x.
        *[(lambda p: sc.i0e(p[0]), (x,), [[2 * (sc.i0e(x) - sc.i1e(x)) - sc.i1e(x) / x]]) for x in (3.0, 7.0, 20.0)],
    ],
)
def test_second_derivatives_where_branches_meet(function, point, exact):
    np.testing.assert_allclose(yota.hessian(function)(np.array(point)), exact, rtol=1e-11, atol=1e-14)
