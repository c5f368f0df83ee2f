"""Hypergeometric functions by their parameters, against 50 digits; elsewhere they are refused."""

import mpmath
import numpy as np
import pytest
import scipy.special as sc
from scipy import stats

import yota
from yota.errors import DifferentiationError

EXACT = {"hyp0f1": mpmath.hyp0f1, "hyp1f1": mpmath.hyp1f1, "hyp2f1": mpmath.hyp2f1, "hyperu": mpmath.hyperu}
POINTS = [
    ("hyp2f1", (0.7, 1.3, 2.9, 0.4)),
    ("hyp2f1", (2.7, 0.3, 0.9, -40.0)),
    ("hyp2f1", (0.2, 60.0, 75.0, 0.99)),
    ("hyp2f1", (3.5, -1.2, 4.0, 0.3)),
    ("hyp1f1", (0.4, 2.2, 3.0)),
    ("hyp1f1", (30.0, 31.5, -12.0)),
    ("hyperu", (0.3, -1.7, 2.0)),
    ("hyperu", (4.0, 2.5, 0.05)),
    ("hyp2f1", (0.3, 5000.0, 9000.0, 0.5)),
    ("hyp2f1", (700.0, 30.0, 900.0, -0.7)),
    ("hyp1f1", (500.0, 1000.0, 1.0)),
    ("hyp1f1", (2.0, 5.0, 400.0)),
    ("hyperu", (300.0, 2.0, 3.0)),
    ("hyperu", (0.11, 1.5, 200.0)),
    ("hyp1f1", (0.06, 0.12, 2.0)),
    ("hyp0f1", (1.6, 3.0)),
    ("hyp0f1", (2.5, -4.0)),
]


@pytest.mark.parametrize(("name", "point"), POINTS)
def test_by_each_argument(name, point):
    value, g = yota.value_and_grad(getattr(sc, name), wrt=tuple(range(len(point))))(*point)
    with mpmath.workdps(50):
        exact = EXACT[name]
        assert value == pytest.approx(float(exact(*point)), rel=1e-11)
        for place, found in enumerate(g):
            slope = mpmath.diff(lambda s: exact(*point[:place], s, *point[place + 1 :]), point[place])  # noqa: B023
            assert found == pytest.approx(float(slope), rel=1e-10)


def test_sums_that_end():
    assert yota.gradcheck(lambda b, c, x: sc.hyp2f1(-3, b, c, x) + sc.hyp1f1(-2, c, x), 0.4, 1.7, 5.0)


def test_arrays():
    a, z = np.array([0.4, 1.2]), np.array([[0.3], [-0.6]])

    def loss(a, z):
        return np.sum(np.sin(sc.hyp2f1(1.4, a, a + 1, z) * sc.hyp1f1(a, 3.0, z)))

    assert yota.gradcheck(loss, a, z)
    assert yota.gradcheck(lambda a, z: np.sum(stats.gausshyper.logpdf([0.2, 0.7], a, 1.3, 2.0, z)), 0.8, 0.5)


@pytest.mark.parametrize(
    ("name", "point"),
    [
        ("hyp2f1", (1.0, 0.55, 1.45, -0.3 + 0.8j)),
        ("hyp2f1", (2.5, 0.6, 0.4, -0.3 + 0.2j)),
        ("hyp1f1", (0.6, 1.7, 2 - 9j)),
        ("hyp0f1", (1.7, 0.3 - 2j)),
    ],
)
def test_complex_arguments(name, point):
    *parameters, z = point

    def part(turn, *given):
        *parameters, x, y = given
        return (turn * getattr(sc, name)(*parameters, x + 1j * y)).real

    for turn in (1, 1j):
        found = yota.gradient(part, wrt=tuple(range(1, len(point) + 2)))(turn, *parameters, z.real, z.imag)
        assert part(turn, *parameters, z.real, z.imag) == pytest.approx(
            float((turn * mpmath.mpmathify(EXACT[name](*point))).real), rel=1e-11
        )
        with mpmath.workdps(50):
            exact = EXACT[name]
            slopes = [
                mpmath.diff(lambda s: exact(*point[:place], s, *point[place + 1 :]), point[place])  # noqa: B023
                for place in range(len(point))
            ]
        slopes.append(1j * slopes[-1])
        assert found == pytest.approx([float((turn * slope).real) for slope in slopes], rel=1e-9)


@pytest.mark.parametrize("point", [(0.7, 1.3, 0.5, 0.95), (0.7, -1.3, 0.5, -1.4), (1e9, 0.4, 0.9, 0.1)])
def test_where_there_is_no_integral_the_rule_says_so(point):
    with pytest.raises(DifferentiationError, match="no closed form"):
        yota.grad(lambda *given: sc.hyp2f1(*given), *point)


@pytest.mark.parametrize("x", [1.4, 3.0, 20.0])
def test_the_zeta_function_less_1(x):
    value, g = yota.value_and_grad(sc.zetac)(x)
    with mpmath.workdps(50):
        assert value == pytest.approx(float(mpmath.zeta(x, 2)), rel=1e-13)
        assert g == pytest.approx(float(mpmath.zeta(x, 2, 1)), rel=1e-12)
