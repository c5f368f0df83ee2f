"""Distances, rotations and interpolation of SciPy: values are SciPy's, slopes those of differences, twice."""

import numpy as np
import pytest
import scipy.fft
import scipy.interpolate as ip
import scipy.linalg as la
import scipy.ndimage as nd
import scipy.spatial.distance as di
import scipy.special as sp
from scipy.sparse.linalg import spsolve
from scipy.spatial.transform import Rotation, Slerp

import yota
from tests.tracing.checking import check
from yota.errors import TracingError

RANDOM = np.random.default_rng(3)
X, Y = RANDOM.uniform(0.3, 0.9, (4, 3)), RANDOM.uniform(0.3, 0.9, (5, 3))
AT = np.array([0.31, 1.24, 0.05, 1.9])
KNOTS, VALUES = np.array([0.0, 0.4, 0.7, 1.1, 1.6, 2.0]), RANDOM.standard_normal(6)
TABLE = RANDOM.standard_normal((5, 6))
GRID = np.arange(5.0), np.arange(6.0)
PLACES = np.array([[0.3, 1.2], [2.4, 4.1], [3.3, 0.6]])
BAND = np.array([[0.0, 0.4, 0.5, 0.3], [3.0, 2.5, 2.8, 3.2], [0.3, 0.6, 0.2, 0.0]])
METRICS = "sqeuclidean cityblock chebyshev seuclidean cosine correlation canberra braycurtis mahalanobis jensenshannon"


@pytest.mark.parametrize("metric", METRICS.split())
def test_metrics(metric):
    check(lambda x, y: di.cdist(x, y, metric), X, Y)
    np.testing.assert_allclose(yota.trace(lambda x: di.pdist(x, metric), X)[0], di.pdist(X, metric), rtol=1e-12)


def test_distances():
    check(lambda x: di.squareform(di.pdist(x)), X, second=True)
    check(lambda x, y: di.cdist(x, y, "minkowski", p=3, w=[1.0, 2.0, 0.5]), X, Y)
    check(lambda x, y: di.cdist(x, y, lambda u, v: np.sum((u - v) ** 4)), X, Y[:2])
    # Of points that coincide the slope is that of a norm.
    assert np.all(yota.gradient(lambda x: np.sum(di.cdist(x, X)))(X.copy()) < np.inf)
    with pytest.raises(TracingError, match="hamming"):
        yota.gradient(lambda x: np.sum(di.pdist(x, "hamming")))(X)


@pytest.mark.parametrize(
    "form",
    [
        lambda x, y, at: ip.CubicSpline(x, y)(at),
        lambda x, y, at: ip.CubicSpline(x, y, bc_type="natural")(at, 1),
        lambda x, y, at: ip.CubicSpline(x, y).antiderivative(2)(at),
        lambda x, y, at: ip.CubicSpline(x, y).integrate(at[0], at[3]),
        lambda x, y, at: ip.PchipInterpolator(x, y)(at),
        lambda x, y, at: ip.interp1d(x, y, kind="quadratic")(at),
        lambda x, y, at: ip.make_interp_spline(x, y, bc_type="clamped")(at),
        lambda x, y, at: ip.make_lsq_spline(x, y, np.r_[[x[0]] * 4, [x[-1]] * 4])(at),
        lambda x, y, at: ip.splev(at, ip.splrep(x, y), der=2),
        lambda x, y, at: ip.splint(at[0], at[1], ip.splrep(x, y)),
        lambda x, y, at: ip.BPoly.from_derivatives(x[:2], np.reshape(y[:4], (2, 2)))(at[:1], 1),
        lambda x, y, at: ip.BarycentricInterpolator(x, y)(at),
        lambda x, y, at: ip.LSQUnivariateSpline(x, y, [1.0], k=2)(at),
        lambda x, y, at: ip.LSQUnivariateSpline(x, y, [1.0], k=2).antiderivative()(at),
        lambda x, y, at: ip.UnivariateSpline(x, y, s=0).antiderivative().derivative()(at),
        lambda x, y, at: ip.spalde(at[0], ip.splrep(x, y)),
        lambda x, y, at: ip.RBFInterpolator(x[:, None], y)(at[:, None]),
    ],
)
def test_splines(form):
    check(form, KNOTS, VALUES, AT, rtol=1e-5)


def test_the_nearest_place_of_a_grid():
    grid, values = np.arange(4.0), np.arange(16.0).reshape(4, 4) ** 2

    def nearest(x, values):
        return ip.RegularGridInterpolator((grid, grid), values, method="nearest")(x)

    x = np.array([[0.4, 2.6], [1.7, 0.2]])
    check(nearest, x, values)
    assert not np.any(yota.gradient(lambda x: np.sum(nearest(x, values)))(x))


@pytest.mark.parametrize("method", ["slinear", "cubic", "quintic"])
def test_splines_on_a_grid_by_iteration(method):
    """The value has the error of SciPy's iteration, and the derivative is that of the spline without it."""
    grid, x = np.linspace(0.0, 3.0, 7), np.array([[0.4, 2.6], [1.7, 0.2]])

    def at(values, **options):
        return np.sum(ip.RegularGridInterpolator((grid, grid), values, method=method, **options)(x) ** 2)

    values = np.outer(np.sin(grid), np.cos(grid)) + 0.3
    value, slope = yota.value_and_grad(at, strict=True)(values)
    assert value == pytest.approx(at(values), rel=1e-13)
    exact = yota.gradient(lambda values: at(values, solver=spsolve))(values)
    np.testing.assert_allclose(slope, exact, atol=1e-4 * np.max(np.abs(exact)))
    unit = np.cos(np.arange(49.0)).reshape(7, 7)
    step = (at(values + 0.01 * unit, solver=spsolve) - at(values - 0.01 * unit, solver=spsolve)) / 0.02
    assert np.sum(slope * unit) == pytest.approx(step, rel=1e-3)
    interpolated = yota.batch(at)(np.stack([values, values**2]))
    np.testing.assert_allclose(interpolated, [at(values), at(values**2)], rtol=1e-13)
    with pytest.raises(TracingError, match="by iteration"):
        yota.gradient(lambda g: ip.RegularGridInterpolator((g, g), values, method=method)(x).sum())(grid)


def test_points_outside_of_a_grid():
    """The function has no source, from which it could be traced instead."""
    known = {"np": np, "ip": ip, "grid": np.arange(4.0)}
    call = "ip.interpn((grid, grid), values, x, 'linear', bounds_error=False, fill_value=fill)"
    exec(f"def outside(x, values, fill=None): return {call}", known)
    outside = known["outside"]
    x, values = np.array([[0.4, 3.6], [-0.7, 0.2], [1.5, 1.25]]), np.arange(16.0).reshape(4, 4) ** 2
    check(outside, x, values)
    slope = yota.gradient(lambda x: np.sum(outside(x, values, -2.0)))(x)
    assert not np.any(slope[:2])
    np.testing.assert_allclose(slope[2:], yota.gradient(lambda x: np.sum(outside(x, values)))(x)[2:])


def test_monotone_splines_of_flat_data():
    """SciPy divides by flat slopes, and leaves out what that gives."""
    x, y = np.arange(7.0), np.array([0.0, 1.0, 1.0, 1.0, 2.5, 3.0, 2.0])

    def curves(scale):
        both = ip.PchipInterpolator(x, np.outer(y, scale))(AT + 1.0)
        return np.append(both, ip.PchipInterpolator(x[4:6], y[4:6] * scale[0])(4.5))

    check(curves, np.array([0.7, 1.2]), rtol=1e-6, second=True)
    on_grid = yota.gradient(lambda c: ip.interpn((x,), c * y, [1.5, 2.5, 3.25], method="pchip").sum())(1.0)
    assert on_grid == pytest.approx(ip.PchipInterpolator(x, y)([1.5, 2.5, 3.25]).sum(), rel=1e-14)


@pytest.mark.parametrize("options", [{"lam": 0.1}, {}])
def test_smoothing_splines(options):
    x, noise = np.linspace(0.0, 3.0, 9), np.cos(9 * np.arange(9.0))

    def spline(y, w, at):
        return ip.make_smoothing_spline(x, y, w=w, **options)(at)

    check(spline, np.sin(x) + 0.2 * noise, 1.5 + 0.5 * noise, AT, rtol=1e-5)
    with pytest.raises(TracingError, match="pattern"):
        yota.gradient(lambda x: np.sum(ip.make_smoothing_spline(x, noise, **options)(AT)))(x)


def test_second_order_of_a_spline():
    check(lambda x, y: ip.CubicSpline(x, y)(AT), KNOTS, VALUES, second=True)


@pytest.mark.parametrize(
    "form",
    [
        lambda z, p: ip.RegularGridInterpolator(GRID, z)(p),
        lambda z, p: ip.RectBivariateSpline(*GRID, z)(p[:, 0], p[:, 1], dx=1, grid=False),
        lambda z, p: ip.RectBivariateSpline(*GRID, z)(1.5, 2.5),
        lambda z, p: ip.NdBSpline((np.arange(9.0), np.arange(10.0)), z, 3, extrapolate=True)(p),
    ],
)
def test_tables(form):
    check(form, TABLE, PLACES)


def test_legendre_functions():
    x = np.array([-0.6, 0.1, 0.7])
    check(lambda x: sp.legendre_p_all(3, x), x)
    check(lambda x: sp.assoc_legendre_p_all(3, 2, x), x)
    check(lambda x: sp.sph_legendre_p(3, 1, x), x + 1)
    check(lambda x, y: sp.sph_harm_y_all(2, 1, x, y), x + 1, x[::-1] + 0.2)
    check(sp.elliprg, x + 1, x + 0.8, x[::-1] + 2)


def test_rotations():
    turns, ends = RANDOM.standard_normal((3, 3)), RANDOM.standard_normal(3)
    check(lambda v, x: Rotation.from_rotvec(v).apply(x), turns, X[:3], second=True)
    check(lambda a: Rotation.from_euler("xyz", a).as_quat(), turns)
    check(lambda v, t: Slerp([0.0, 1.0, 2.0], Rotation.from_rotvec(v))(t).as_rotvec(), turns, np.array([0.3, 1.4]))
    check(lambda v, w: (Rotation.from_rotvec(v) * Rotation.from_mrp(w)).as_euler("ZYX"), turns, 0.2 * ends)


def test_fourier_filters():
    wave = np.fft.rfft2(TABLE)
    check(lambda s, w: nd.fourier_gaussian(w, s, n=6), np.array([0.7, 1.2]), wave)
    check(lambda s: nd.fourier_shift(wave, s, 6), np.array([0.7, 1.2]))
    check(lambda s: nd.fourier_ellipsoid(np.fft.fft2(TABLE), s), np.array([2.0, 1.5]))
    check(lambda x: (scipy.fft.hfftn(x, norm="forward"), scipy.fft.ihfft2(TABLE * x.shape[0])), wave)


def test_banded_systems():
    check(lambda ab, b: la.solve_banded((1, 1), ab, b), BAND, BAND[1])
    check(lambda ab, b: la.solveh_banded(ab, b, lower=True), BAND[1:], BAND[1], second=True)
    check(lambda ab, b: la.cho_solve_banded((la.cholesky_banded(ab), False), b), BAND[:2], BAND[1])


def test_linear_interpolation_between_points_that_move():
    points, values = RANDOM.random((12, 2)), RANDOM.standard_normal(12)
    at = np.array([[0.5, 0.5], [0.4, 0.6], [5.0, 5.0], [0.3, 0.45]])
    check(lambda p, v, x: ip.griddata(p, v, x, fill_value=0.3), points, values, at, second=True)
    check(lambda x, v: ip.griddata(points, v, tuple(x.T), fill_value=0.3, rescale=True) ** 2, at, values, second=True)
    check(lambda p, v: ip.LinearNDInterpolator(p, v, fill_value=1.0)(at[0]), points, np.stack([values, values**2], 1))
    slope = yota.gradient(lambda p, x: np.sum(ip.LinearNDInterpolator(p, values)(x)), wrt=(0, 1))
    for place in ([0.45, 0.55], [0.6, 0.4]):  # in a triangle of its own, without another recording
        shares = np.linalg.inv(np.c_[points[_corners(points, place)], np.ones(3)]).T @ [*place, 1.0]
        plane = np.linalg.solve(np.c_[points[_corners(points, place)], np.ones(3)], values[_corners(points, place)])
        by_points, by_place = slope(points, np.array(place))
        np.testing.assert_allclose(by_place, plane[:2], rtol=1e-9)
        np.testing.assert_allclose(by_points[_corners(points, place)], -np.outer(shares, plane[:2]), rtol=1e-9)
    check(lambda x: ip.NearestNDInterpolator(points * [1, 9], values, rescale=True)(x) * x[0, 0], at)
    with pytest.raises(TracingError, match="rescale"):
        yota.gradient(lambda p: np.sum(ip.griddata(p, values, at[:2], rescale=True)))(points)


def _corners(points, place):
    made = scipy.spatial.Delaunay(points)
    return made.simplices[made.find_simplex(place)]


def test_compiled_code_that_holds_nothing_traced_gets_plain_arrays():
    points = RANDOM.random((9, 2))
    with pytest.raises(TracingError):
        yota.gradient(lambda c, x: np.sum(ip.griddata(points, np.arange(9) * c, x, "cubic")))(0.7, PLACES / 9)
    points[:4] = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
    check(lambda v, x: ip.griddata(points, v, x), np.arange(9.0), PLACES / 5)
    check(lambda v, x: ip.griddata(np.array(points.tolist()), v, x), np.arange(9.0), PLACES / 5)
    check(lambda v: ip.griddata(points, v, PLACES / 3, fill_value=0.5), np.arange(9.0))
    check(lambda x: x[:, 0] * ip.CubicSpline(KNOTS, VALUES)(AT), X)
