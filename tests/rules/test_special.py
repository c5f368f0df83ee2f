"""SciPy's special functions: limits at the ends of their domains, refusals. Their proofs are in tests/proof."""

import math

import mpmath
import numpy as np
import pytest
import scipy.special
import scipy.special as sc

import yota
from yota.errors import DifferentiationError, TracingError
from yota.rules.laws.trials import partial
from yota.rules.registry import registry

REGISTRY = registry()


@pytest.mark.parametrize(
    ("name", "parameter", "point", "expected"),
    [
        ("erfcx", "x", (1e9,), -1 / (math.sqrt(math.pi) * 1e18)),
        ("dawsn", "x", (1e9,), -0.5e-18),
        ("log_ndtr", "x", (-1e9,), 1e9),
        ("_hazard", "x", (-1e9,), -1.0),
        ("rgamma", "x", (0.0,), 1.0),
        ("rgamma", "x", (-3.0,), -6.0),
        ("gammainc", "x", (1.0, 0.0), 1.0),
        ("gammainc", "x", (2.0, 0.0), 0.0),
        ("gammainc", "x", (0.5, 0.0), math.inf),
        ("gammainc", "x", (1e8, 1e8), 3.989422801e-05),
        ("betainc", "x", (1.0, 1.0, 0.0), 1.0),
        ("betainc", "x", (2.0, 3.0, 1.0), 0.0),
        ("betaln", "a", (1e10, 1e-10), -1e-20),
        ("kl_div", "z", (0.0, 0.0), 1.0),
        ("rel_entr", "z", (0.0, 0.0), 0.0),
        ("xlog1py", "z", (0.0, -1.0), 0.0),
        ("boxcox", "p", (math.e, 0.0), 0.5),
        ("inv_boxcox", "p", (2.0, 0.0), -2 * math.exp(2.0)),
        ("jv", "x", (0.0, 0.0), 0.0),
        ("jv", "x", (1.0, 0.0), 0.5),
        ("iv", "x", (1.0, 0.0), 0.5),
        ("i1e", "x", (0.0,), 0.5),
        ("i0e", "x", (1e8,), -1.9947114e-13),
        ("k0e", "x", (1e8,), -6.2665707e-13),
        ("spherical_jn", "x", (1, 0.0), 1 / 3),
        ("ellipk", "m", (0.0,), math.pi / 8),
        ("ellipe", "m", (0.0,), -math.pi / 8),
        ("ellipkinc", "m", (0.5 * math.pi, 0.0), math.pi / 8),
        ("eval_legendre", "x", (4, 1.0), 10.0),
        ("eval_chebyt", "x", (5, 1.0), 25.0),
        ("lambertw", "x", (0.0,), 1.0),
        ("spence", "x", (1.0,), -1.0),
        ("exprel", "x", (0.0,), 0.5),
        ("pseudo_huber", "r", (1e-200, 1.0), 1e-200),
        ("cosm1", "x", (1e-8,), -1e-8),
        ("powm1", "p", (0.0, 2.0), 0.0),
    ],
)
def test_limits(name, parameter, point, expected):
    rule = REGISTRY.rules(name)[0]
    names = dict(zip((operand.name for operand in rule.operands), point, strict=True))
    names = {key: value if isinstance(value, int) else np.float64(value) for key, value in names.items()}
    assert complex(partial(rule, parameter, names, REGISTRY)) == pytest.approx(expected, rel=1e-8, abs=1e-300)


REFUSED = [
    ("struve", "v", "order"),
    ("besselpoly", "k", "exponent"),
]


@pytest.mark.parametrize(("name", "parameter", "reason"), REFUSED)
def test_a_partial_without_closed_form_is_refused(name, parameter, reason):
    rule = REGISTRY.rules(name)[0]
    position = [operand.name for operand in rule.operands].index(parameter)
    rest = [0.5] * len(rule.operands)

    def loss(p):
        return getattr(scipy.special, name)(*rest[:position], p, *rest[position + 1 :])

    with pytest.raises(DifferentiationError) as caught:
        yota.grad(loss, 1.5)
    message = str(caught.value)
    assert message.startswith(f"scipy.special.{name} has no derivative by {parameter}: ") and reason in message
    assert f"({rule.file}:" in message and f"Keep {parameter} constant" in message
    assert "diffrule" not in message


def test_an_order_that_is_whole_is_refused():
    with pytest.raises(DifferentiationError, match="has no derivative by n, which ranges over integers"):
        yota.grad(lambda n: scipy.special.eval_legendre(n, 0.3), 2.0)
    with pytest.raises(TracingError, match=r"order of scipy\.special\.polygamma"):
        yota.grad(lambda n: scipy.special.polygamma(n, 0.3), 2.0)


FORMS = [
    ("zeta", lambda x: sc.zeta(3, x)),
    ("zeta by its exponent", lambda x: sc.zeta(x + 1.5, 2.3)),
    ("polygamma", lambda x: sc.polygamma(0, x) + sc.polygamma(2, x)),
    ("polygamma of arrays", lambda x: np.sum(sc.polygamma(np.arange(3)[:, None], x), axis=0)),
    ("multigammaln", lambda x: sc.multigammaln(x[0] + 2, 3)),
    ("comb", lambda x: sc.comb(5.0, x) + sc.comb(4.0, x, repetition=True) + sc.perm(x + 4, 2)),
    ("factorial", lambda x: sc.factorial(x)),
    ("lambertw", lambda x: sc.lambertw(x).real + sc.lambertw(-0.1 * x, -1).imag),
    ("sph_harm_y", lambda x: np.abs(sc.sph_harm_y(3, 1, x, 2 * x) + sc.sph_harm_y(2, -1, -x, x)) ** 2),
    ("sph_harm_y of orders beyond", lambda x: x + np.abs(sc.sph_harm_y([1, 2, 0, 1], [[2], [-3]], x[0], x[1])).sum()),
    ("spherical_jn", lambda x: sc.spherical_jn(2, x) + sc.spherical_jn(0, x, derivative=True)),
    ("spherical_yn", lambda x: sc.spherical_yn(2, x) + sc.spherical_yn(1, x, True)),
    ("spherical_in", lambda x: sc.spherical_in(2, x) + sc.spherical_in(1, x, True)),
    ("spherical_kn", lambda x: sc.spherical_kn(2, x) + sc.spherical_kn(1, x, True)),
    ("spherical_yn", lambda x: sc.spherical_yn(2.7, x)),
    ("hankel", lambda x: np.abs(sc.hankel1(0.4, x)) ** 2 + sc.hankel2(1, x).imag),
    ("hermite", lambda x: sc.eval_hermite(3, x) + sc.eval_hermitenorm(0, x)),
    ("digamma", lambda x: sc.digamma(x) + sc.jn(2, x)),
    ("complex", lambda x: np.abs(sc.loggamma(x + 1j) * sc.erf(x - 0.5j) * sc.gamma(1 + 1j * x))),
]


@pytest.mark.parametrize(("name", "function"), FORMS, ids=[name for name, _ in FORMS])
@pytest.mark.parametrize("count", [3, 40])
def test_forms(name, function, count):
    if name.startswith("sph_harm_y") and not hasattr(sc, "sph_harm_y"):
        pytest.skip("SciPy has it since 1.15")
    x = np.linspace(0.6, 2.1, count)

    def loss(x):
        return np.sum(np.sin(function(x)))

    assert yota.gradcheck(loss, x)
    assert yota.grad(loss, x)[0] == pytest.approx(loss(x), rel=1e-12)


SECOND = [
    ("dawsn", lambda x: sc.dawsn(x), (0.4, 1.7, 30.0)),
    ("erfcx", lambda x: sc.erfcx(x), (-0.4, 1.7, 30.0)),
    ("log_ndtr", lambda x: sc.log_ndtr(x), (-30.0, -0.4, 1.7)),
    ("ellipk", lambda x: sc.ellipk(x), (-3.0, 0.4, 0.9)),
    ("i0e", lambda x: sc.i0e(x), (0.4, 1.7, 300.0)),
    ("k1e", lambda x: sc.k1e(x), (0.4, 1.7, 300.0)),
    ("betaln", lambda x: sc.betaln(x, 2 * x), (0.4, 1.7, 30.0)),
    ("binom", lambda x: sc.binom(x + 3, x), (0.4, 1.7, 30.0)),
    ("betainc", lambda x: sc.betainc(3.0, 40.0, x), (0.04, 0.17, 0.6)),
    ("gammainc", lambda x: sc.gammainc(3.0, x), (0.04, 1.7, 6.0)),
    ("inv_boxcox", lambda x: sc.inv_boxcox(x, 0.3 * x), (1e-3, 0.4, 1.7)),
    ("eval_jacobi", lambda x: sc.eval_jacobi(4, 0.3, 1.2, x), (-0.7, 0.1, 0.999)),
]


@pytest.mark.parametrize(("name", "function", "places"), SECOND, ids=[name for name, _, _ in SECOND])
def test_second_order(name, function, places):
    x = np.array(places)
    slope = yota.gradient(lambda x: np.sum(function(x)))
    step = 1e-4 * x

    def total(x, slope=slope):
        return np.sum(slope(x))

    found = yota.grad(total, x)[1][0]
    assert np.allclose(found, (slope(x + step) - slope(x - step)) / (2 * step), rtol=1e-5)


def test_single_precision_stays():
    x = np.linspace(0.3, 0.9, 7, dtype=np.float32)
    _, g = yota.grad(lambda x: np.sum(sc.betaln(x, 2 * x) + sc.dawsn(x) + sc.eval_legendre(3, x) + sc.ellipk(x)), x)
    assert g[0].dtype == np.float32


@pytest.mark.parametrize(("name", "kind", "least"), [("i0e", "besseli", 20.5), ("k0e", "besselk", 3.5)])
def test_slopes_of_scaled_bessel_functions_keep_their_digits(name, kind, least):
    x = np.append(np.geomspace(least, 90.0, 9), 1e4)
    slopes = yota.gradient(lambda x: np.sum(getattr(sc, name)(x)))(x)
    with mpmath.workdps(40):
        bessel = getattr(mpmath, kind)
        orders = [[bessel(order, mpmath.mpf(each)) for order in (0, 1)] for each in x]
        scales = [mpmath.exp(-each if name == "i0e" else mpmath.mpf(each)) for each in x]
        exact = [-float(abs(one - zero) * scale) for (zero, one), scale in zip(orders, scales, strict=True)]
    np.testing.assert_array_max_ulp(slopes, np.array(exact), 8)
