"""NumPy's Fourier transforms, polynomials, interpolation and special functions, against central differences."""

import numpy as np
import pytest
import scipy.interpolate
import scipy.signal
from numpy.polynomial import Polynomial, polynomial

import yota
from tests.tracing.checking import check, compound, real

M = real(3, 4)
T = real(2, 3, 4)
V = real(6)
ODD = real(5)
Z = compound(3, 4)
CV = compound(5)
POINTS = np.array([0.0, 0.7, 1.1, 2.5, 3.0])
LEVELS = real(5, seed=4)
X = np.array([-0.4, 0.3, 0.9, 2.2, 2.9, 3.7])

FOURIER = {}
for _name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    for _norm in (None, "ortho", "forward"):
        _data = M if _name in ("rfft", "ihfft") else Z
        for _label, _keywords in (
            ("", {}),
            ("axis", {"axis": 0}),
            ("short", {"n": 3}),
            ("long", {"n": 7, "axis": -1}),
            ("long even", {"n": 8, "axis": 0}),
            ("one", {"n": 1}),
        ):
            FOURIER[f"{_name} {_norm} {_label}"] = (
                lambda x, f=_name, k=_keywords, norm=_norm: getattr(np.fft, f)(x, norm=norm, **k),
                _data,
            )
for _name in ("fft", "ifft"):
    FOURIER[f"{_name} of real"] = (lambda x, f=_name: getattr(np.fft, f)(x), M)
for _name in ("irfft", "hfft"):
    FOURIER[f"{_name} of real"] = (lambda x, f=_name: getattr(np.fft, f)(x), M)
for _name in ("fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn"):
    _data = T if _name.startswith("rfft") else compound(2, 3, 4)
    for _label, _keywords in (
        ("", {}),
        ("axes", {"axes": (0, 1)}),
        ("s", {"s": (4, 3), "axes": (-2, -1)}),
        ("ortho", {"norm": "ortho", "axes": (1, 0)}),
        ("forward", {"norm": "forward"}),
    ):
        FOURIER[f"{_name} {_label}"] = (lambda x, f=_name, k=_keywords: getattr(np.fft, f)(x, **k), _data)
FOURIER |= {
    "fftn one axis": (lambda x: np.fft.fftn(x, axes=(1,)), T),
    "fftshift": (lambda x: np.fft.fftshift(x), T),
    "fftshift axis": (lambda x: np.fft.fftshift(x, axes=1), T),
    "ifftshift": (lambda x: np.fft.ifftshift(x, axes=(0, 2)), T),
    "fftfreq": (lambda x: np.fft.fft(x) * np.fft.fftfreq(6), V),
    "rfftfreq": (lambda x: np.fft.rfft(x) * np.fft.rfftfreq(6), V),
    "filter": (lambda x: np.fft.irfft(np.fft.rfft(x) * np.exp(-np.arange(4)), 6), V),
    "power spectrum": (lambda x: np.abs(np.fft.rfft(x)) ** 2, V),
}

SIGNALS = {
    "interp": (lambda x: np.interp(x, POINTS, LEVELS), X),
    "interp levels": (lambda x, f: np.interp(x, POINTS, f), X, LEVELS),
    "interp points": (lambda x, p, f: np.interp(x, p, f), X, POINTS, LEVELS),
    "interp ends": (lambda x, a, b: np.interp(x, POINTS, LEVELS, left=a, right=b), X, 1.5, -0.5),
    "interp scalar": (lambda x: np.interp(x, POINTS, LEVELS), 0.9),
    "interp table": (lambda x: np.interp(np.reshape(x, (2, 3)), POINTS, LEVELS), X),
    "interp period": (lambda x, f: np.interp(x, POINTS, f, period=3.3), X, LEVELS),
    "interp complex": (lambda x, f: np.interp(x, POINTS, f), X, CV),
    "interp one": (lambda x, f: np.interp(x, np.array([1.0]), f), X, np.array([2.0])),
    "sinc": (lambda x: np.sinc(x), np.array([-1.3, -0.2, 1e-9, 0.0, 1e-3, 0.7, 5.2])),
    "i0": (lambda x: np.i0(x), np.array([-9.3, -0.2, 0.4, 3.0, 11.0])),
    "heaviside": (lambda x, h: np.heaviside(x, h) * x, V, 0.5),
    "unwrap": (lambda x: np.unwrap(x), np.array([0.1, 2.0, 5.9, 0.3, -6.0, 12.0])),
    "unwrap axis": (lambda x: np.unwrap(4 * x, axis=0, discont=3.5), M),
    "unwrap period": (lambda x: np.unwrap(4 * x, period=3.0), M),
    "ldexp": (lambda x: np.ldexp(x, np.array([0, 1, 2, -1, 3, 1])), V),
    "blackman": (lambda x: x * np.blackman(6), V),
    "kaiser": (lambda x: x * np.kaiser(6, 3.0), V),
    "poly": (lambda x: np.poly(x), real(4)),
    "poly of a matrix": (lambda x: np.poly(x), real(3, 3)),
    "poly of a matrix without a basis of eigenvectors": (lambda x: np.poly(x), np.array([[-2.0, -1.0], [1.0, 0.0]])),
    "polyval": (lambda p, x: np.polyval(p, x), real(4), M),
    "polyder": (lambda p: np.polyder(p), V),
    "polyder m": (lambda p: np.polyder(p, 2), V),
    "polyint": (lambda p: np.polyint(p), V),
    "polyint k": (lambda p: np.polyint(p, 2, k=[1.0, 2.0]), V),
    "polyadd": (lambda p, q: np.polyadd(p, q), V, real(4)),
    "polysub": (lambda p, q: np.polysub(p, q), V, real(4)),
    "polymul": (lambda p, q: np.polymul(p, q), V, real(4)),
    "polydiv": (lambda p, q: np.polydiv(p, q), V, real(3)),
    "polyfit": (lambda x, y: np.polyfit(x, y, 2), POINTS, LEVELS),
    "polyfit w": (lambda y, w: np.polyfit(POINTS, y, 2, w=w), LEVELS, np.array([1.0, 2.0, 0.5, 1.5, 1.0])),
    "polyfit many": (lambda y: np.polyfit(POINTS, y, 1), real(5, 2)),
    "polyfit cov": (lambda y: np.polyfit(POINTS, y, 2, cov=True), LEVELS),
    "polyfit cov unscaled": (lambda y: np.polyfit(POINTS, y, 2, cov="unscaled"), LEVELS),
    "polyfit full": (lambda y: np.polyfit(POINTS, y, 2, full=True)[:2], LEVELS),
    "roots": (lambda p: np.sort_complex(np.roots(p)), np.array([1.0, -6.2, 11.1, -6.05])),
    "vander product": (lambda c, x: np.vander(x, 4) @ c, real(4), LEVELS),
}
for _mode in ("full", "same", "valid"):
    for _label, _pair in (
        ("long", (real(7), real(3))),
        ("short", (real(3), real(7))),
        ("even", (real(6), real(4))),
        ("equal", (real(5), real(5, seed=1))),
        ("short even", (real(4), real(7))),
        ("complex", (compound(6), compound(3))),
        ("mixed", (real(3), compound(6))),
    ):
        SIGNALS[f"convolve {_mode} {_label}"] = (lambda a, v, m=_mode: np.convolve(a, v, mode=m), *_pair)
        SIGNALS[f"correlate {_mode} {_label}"] = (lambda a, v, m=_mode: np.correlate(a, v, mode=m), *_pair)

COEFFICIENTS = real(4)
BASES = {
    "polynomial": "poly",
    "chebyshev": "cheb",
    "legendre": "leg",
    "hermite": "herm",
    "hermite_e": "herme",
    "laguerre": "lag",
}
POLYNOMIALS = {}
for _module, _short in BASES.items():
    _space = getattr(np.polynomial, _module)
    for _suffix, _case in {
        "val": (lambda x, c, f: f(x, c), M, COEFFICIENTS),
        "val tensor": (lambda x, c, f: f(x, c), V, real(4, 2)),
        "val2d": (lambda x, c, f: f(x, x, c), V, M),
        "grid2d": (lambda x, c, f: f(x, x[:2], c), V, M),
        "der": (lambda x, c, f: f(c) + 0 * x[0], V, COEFFICIENTS),
        "int": (lambda x, c, f: f(c) + 0 * x[0], V, COEFFICIENTS),
        "vander": (lambda x, c, f: f(x, 3) @ c, V, COEFFICIENTS),
        "add": (lambda x, c, f: f(x, c), V, COEFFICIENTS),
        "mul": (lambda x, c, f: f(x, c), real(3), COEFFICIENTS),
    }.items():
        _function = getattr(_space, _short + _suffix.split()[0])
        POLYNOMIALS[f"{_module} {_suffix}"] = (lambda x, c, case=_case[0], f=_function: case(x, c, f), *_case[1:])
    _kind = getattr(np.polynomial, {"hermite_e": "HermiteE"}.get(_module, _module.capitalize()))
    POLYNOMIALS[f"{_module} class"] = (lambda x, kind=_kind: kind([1.0, -2.0, 0.5, 0.3])(x), M)
    POLYNOMIALS[f"{_module} class domain"] = (lambda x, k=_kind: k([1.0, -2.0, 0.5], domain=[-2, 3]).deriv()(x), V)
    POLYNOMIALS[f"{_module} class coefficients"] = (lambda x, c, kind=_kind: kind(c)(x), V, COEFFICIENTS)


@pytest.mark.parametrize("name", FOURIER)
def test_fourier(name):
    check(*FOURIER[name])


@pytest.mark.parametrize("name", SIGNALS)
def test_signal(name):
    check(*SIGNALS[name])


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomial(name):
    check(*POLYNOMIALS[name])


ENDS = {
    "poly1d": (lambda c: np.poly1d(c)(1.5), [0.0, 1.0, 2.0]),
    "sum of poly1d": (lambda c: (np.poly1d(c) + np.poly1d([1.0, 1.0]))(1.5), [-1.0, 2.0]),
    "polymul": (lambda c: np.polyval(np.polymul(c, [1.0, 1.0]), 1.5), [0.0, 2.0]),
    "Polynomial": (lambda c: (np.polynomial.Polynomial(c) + np.polynomial.Polynomial([1.0, 2, 3]))(1.5), [1.0, 2, -3]),
    "Chebyshev": (lambda c: (np.polynomial.Chebyshev(c) * np.polynomial.Chebyshev([1.0, 2]))(1.5), [1.0, 2.0, 0.0]),
    "roots": (lambda c: np.roots(c) @ np.array([1.0, 2.0, 3.0]), [1.0, 3.0, 1.0, 0.0]),
    "lagrange": (lambda y: scipy.interpolate.lagrange([0, 1, 2], y)(1.5), [0.0, 1.0, 2.0]),
    "tf2zpk": (lambda b: np.sum(np.abs(scipy.signal.tf2zpk(b, [1.0, 0.2])[0]) ** 2), [1.0, 2.0, 0.0]),
    "tf2ss": (lambda b: np.sum(scipy.signal.tf2ss(b, [1.0, 0.2, 3.0])[2] ** 2), [0.0, 2.0, 1.0]),
    "residue": (lambda b: np.sum(np.abs(scipy.signal.residue(b, [1.0, 0.2, 3.0])[0]) ** 2), [0.0, 2.0, 1.0]),
}


@pytest.mark.filterwarnings("ignore:Badly conditioned")
@pytest.mark.parametrize("name", ENDS)
def test_coefficients_that_are_zero_have_slopes(name):
    function, given = ENDS[name]
    found = yota.gradient(function)(np.array(given))
    for place, step in enumerate(1e-6 * np.eye(len(given))):
        ends = [function(np.array(given) + sign * step) for sign in (1, -1)]
        assert found[place] == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-6, abs=1e-8)


def test_zeros_that_stay_are_no_coefficients():
    assert yota.gradient(lambda a: np.sum(np.roots([0.0, 1.0, a, 0.0])))(3.0) == pytest.approx(-1.0)
    assert yota.trace(lambda a: np.polymul(np.array([0.0, a]), [1.0, 2.0]), 3.0)[0].shape == (2,)
    with pytest.raises(yota.errors.TracingError, match=r"np.roots\(p\[1:\]\)"):
        yota.grad(lambda c: np.sum(np.roots(c)), np.array([0.0, 1.0, 3.0]))


@pytest.mark.parametrize("order", [1, 2])
def test_gradient_by_points_that_are_evenly_spaced(order):
    levels, even = real(4, 5), np.arange(4) * 0.5

    def f(x):
        return np.gradient(levels, x, X[:5], edge_order=order)

    check(f, even)
    assert yota.value_and_grad(lambda x: np.sum(f(x)[0]))(even)[0] == pytest.approx(np.sum(f(even)[0]), rel=1e-12)
    check(lambda x: np.gradient(x**2, x, edge_order=order), even, second=True)


CUT = {
    "products with 0": lambda c: (0.0 * Polynomial([c, 2 * c]) * Polynomial([c, 1.0]) + c).coef,
    "convolutions with 0": lambda c: polynomial.polymul([0.0 * c, 0.0], [c, c]),
    "sums of constants": lambda c: polynomial.polyadd([c, 1.0], [1.0, -1.0]),
    "first coefficients": lambda c: np.poly1d([0.0 * c, c, 1.0]).coeffs,
    "lists of coefficients": lambda c: np.polymul([0.0 * c, c], [c, 1.0]),
}


@pytest.mark.parametrize("name", CUT)
def test_coefficients_that_no_argument_changes_from_0_are_cut_off(name):
    f, c = CUT[name], 1.3
    found, wanted = yota.trace(f, c)[0], f(c)
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted)
    check(f, c)


SECOND = {
    "fft": (lambda x: np.abs(np.fft.fft(x)) ** 3, V),
    "rfft": (lambda x: np.abs(np.fft.rfft(x, 5)) ** 3, V),
    "irfft": (lambda x: np.fft.irfft(np.exp(np.fft.rfft(x))), V),
    "convolve": (lambda x: np.convolve(x, x * x, "same"), V),
    "correlate": (lambda x: np.correlate(x, x * x, "full"), V),
    "interp": (lambda f: np.interp(X, POINTS, f**2), LEVELS),
    "sinc": (lambda x: np.sinc(x), np.array([-1.3, -0.2, 1e-9, 0.0, 1e-3, 0.7, 5.2])),
    "polyfit": (lambda y: np.polyfit(POINTS, np.exp(y), 2), LEVELS),
}


@pytest.mark.parametrize("name", SECOND)
def test_second_order(name):
    check(*SECOND[name], second=True)


@pytest.mark.parametrize("x", [0.0, 1e-300, 1e-12, 1e-8, 1e-5, 1e-3, 0.1, 0.31, 0.32, 1.5, 20.25])
def test_the_slope_of_sinc_keeps_its_digits(x):
    import mpmath

    with mpmath.workdps(60):
        exact = mpmath.diff(lambda t: mpmath.sincpi(t), mpmath.mpf(x)) if x > 1e-200 else -(mpmath.pi**2) * x / 3
        found = yota.grad(np.sinc, x)[1][0]
        assert abs(found - exact) <= 4e-15 * abs(exact) + 4e-16 * abs(x)
