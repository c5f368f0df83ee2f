"""scipy.linalg, scipy.signal and scipy.ndimage: values are SciPy's, gradients those of differences."""

import re
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg as la
import scipy.ndimage as nd
import scipy.signal as sg
import scipy.spatial.distance as di
import scipy.spatial.transform as tr
import scipy.special as sp
import scipy.stats as st
from scipy import optimize as opt
from scipy.cluster import hierarchy as hc
from scipy.cluster import vq
from scipy.spatial import KDTree

import yota
from yota.errors import DifferentiationError, TracingError

RANDOM = np.random.default_rng(0)
A, B, Q, V = (RANDOM.standard_normal(shape) for shape in ((4, 4), (3, 3), (4, 3), 4))
WEIGHTS = RANDOM.standard_normal((4, 4))
POSITIVE = A @ A.T + 3 * np.eye(4)
IMAGE, KERNEL = RANDOM.standard_normal((6, 7)), RANDOM.standard_normal((3, 4))
TARGET = np.zeros((6, 7))
PLACES = np.array([[0.3, 2.6, 4.99, -1.2, 3.1], [1.1, 5.7, 0.2, 3.3, 6.4]])


def check(loss, *args):
    assert yota.gradcheck(loss, *args, directions=1)
    assert yota.grad(loss, *args)[0] == pytest.approx(loss(*args), rel=1e-11)


@pytest.mark.parametrize("unit", [True, False])
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("trans", [0, 1, "C"])
def test_solve_triangular(trans, lower, unit):
    for right in (V, Q):
        check(lambda a, b: np.sum(la.solve_triangular(a, b, trans, lower, unit) ** 2), A + 3 * np.eye(4), right)


@pytest.mark.parametrize(
    ("loss", "args"),
    [
        (lambda a, b: np.sum(la.cho_solve(la.cho_factor(a + a.T), b) ** 2), (POSITIVE, V)),
        (lambda a, b: np.sum(la.cho_solve(la.cho_factor(a + a.T, lower=True), b) ** 2), (POSITIVE, Q)),
        (lambda a: np.sum(WEIGHTS * la.cholesky(a + a.T)), (POSITIVE,)),
        (lambda a: np.sum(WEIGHTS * la.expm(a)), (A,)),
        (lambda a: np.sum(WEIGHTS * la.sqrtm(a)), (POSITIVE + 0.1 * A,)),
        (lambda a: np.sum(WEIGHTS * la.logm(a)), (POSITIVE + 0.1 * A,)),
        (lambda a, b, q: np.sum(la.solve_sylvester(a, b, q) ** 2), (A + 3 * np.eye(4), B + 3 * np.eye(3), Q)),
        (lambda a, b: np.sum(la.block_diag(a, b, V) ** 3), (A, B)),
        (lambda c, r: np.sum((la.toeplitz(c, r) @ np.ones(3)) * WEIGHTS[0]), (V, Q[0])),
        (lambda c: np.sum(la.toeplitz(c) * WEIGHTS), (V,)),
        (lambda c: np.sum(la.circulant(c) * WEIGHTS) + np.sum(la.hankel(c) * WEIGHTS), (V,)),
        (lambda c, r: np.sum((la.hankel(c, r) @ np.ones(3)) * WEIGHTS[0]), (V, Q[0])),
        (lambda a: np.sum(la.eigh(a + a.T)[0] ** 3) + np.abs(la.eigh(a + a.T)[1][0, 1]), (A,)),
        (lambda a: np.sum(la.eigh(a + a.T, lower=False, eigvals_only=True) ** 3) + la.eigvalsh(a @ a.T)[0], (A,)),
        (lambda a: np.sum(np.abs(la.eigvals(a)) ** 3) + np.abs(la.eig(a)[1][0, 0]) ** 2, (A,)),
        (lambda q: np.sum(np.abs(la.svd(q, full_matrices=False)[0])) + la.svdvals(q)[1], (Q,)),
        (lambda a: np.sum(np.abs(la.svd(a)[2])) + la.svd(a, compute_uv=False)[0], (A,)),
        (lambda q: np.sum(la.qr(q, mode="economic")[0][:3] @ la.qr(q, mode="economic")[1]), (Q,)),
        (lambda a: np.sum(WEIGHTS * la.qr(a)[1]), (A,)),
        (lambda q: np.sum(la.svd(q)[1] ** 3) + np.sum(la.qr(q, mode="r", pivoting=True)[0] ** 3), (Q,)),
        (lambda q: np.sum(la.svd(q)[2] ** 3) + np.sum(la.qr(q)[1] ** 3), (Q,)),
        (lambda q: np.sum(la.pinv(q) ** 3), (Q,)),
        (lambda a: np.sum(WEIGHTS * la.qr(a, pivoting=True)[0]) + np.sum(la.rq(a[:2], mode="economic")[1] ** 3), (A,)),
        (lambda a: np.sum(WEIGHTS * la.signm(a)) + np.sum(la.fractional_matrix_power(a, 0.4)), (POSITIVE + 0.1 * A,)),
        (lambda a: np.sum(la.svdvals(np.stack([a, a @ a])) ** 3) + la.lu(np.stack([a, a @ a]))[2][1, 0, 1], (A,)),
        (lambda a: np.sum(la.cho_factor(a + a.T)[0] * WEIGHTS) + np.sum(la.funm(a, np.exp)), (POSITIVE,)),
        (lambda a: np.sum(WEIGHTS * la.cholesky(np.triu(a + a.T))), (POSITIVE,)),
        (lambda a: np.sum(WEIGHTS * la.hessenberg(a, calc_q=True)[1]) + np.sum(WEIGHTS * la.hessenberg(a)), (A,)),
        (lambda a: np.sum(np.real(la.hessenberg(a + 1j * a.T, True)[1] * (WEIGHTS + 1j * WEIGHTS.T))), (A,)),
        (lambda a: np.sum(WEIGHTS * np.abs(la.eig(a, left=True, right=False)[1]) ** 2), (A,)),
        (
            lambda a: np.sum(WEIGHTS * np.real(la.eig(a, left=True)[1].conj().T @ la.eig(a, left=True)[2]) ** 2),
            (POSITIVE + 0.1 * A,),
        ),
        (lambda a, b: la.solve(a, b, assume_a="pos")[0] * la.cholesky(a)[0, 0] + la.solve(V[:1], b)[0], (1.5, 0.7)),
    ],
)
def test_matrices(loss, args):
    check(loss, *args)


@pytest.mark.parametrize("shape", [(4, 4), (4, 2), (2, 4), (1, 3), (3, 1)])
@pytest.mark.parametrize("turn", [1, 1j])
def test_elimination(shape, turn):
    a = WEIGHTS[: shape[0], : shape[1]] + turn * A[: shape[0], : shape[1]]

    def weighed(*arrays):
        return sum(np.sum(np.real((1 - 0.3j) * each) * WEIGHTS[: each.shape[0], : each.shape[1]]) for each in arrays)

    for form in (la.lu, lambda a: la.lu(a, permute_l=True), lambda a: la.lu(a)[1:2], lambda a: la.lu(a)[2:]):
        check(lambda a: weighed(*form(a)), a)  # noqa: B023
    check(lambda a: weighed(la.lu_factor(a)[0]), a)


@pytest.mark.parametrize("trans", [0, 1, 2])
def test_systems_by_elimination(trans):
    for right in (V, Q):
        check(lambda a, b: np.sum(la.lu_solve(la.lu_factor(a), b, trans) ** 2), A, right)
    factors, swaps = la.lu_factor(A)
    check(lambda lu, b: np.sum(la.lu_solve((lu, swaps), b, trans) ** 2), factors, V)
    slope = yota.value_and_grad(lambda a: np.sum(la.lu_solve(la.lu_factor(a), V, trans)))
    for other in (A, A[::-1], A[[2, 0, 3, 1]]):
        # Other matrices have their rows in another order.
        assert slope(other)[0] == pytest.approx(np.sum(la.solve(other.T if trans else other, V)), rel=1e-9)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("name", ["convolve", "fftconvolve", "correlate"])
def test_convolutions(name, mode):
    for left, right in ((7, 4), ((5, 6), (3, 2)), (3, 5)):
        a, v = RANDOM.standard_normal(left), RANDOM.standard_normal(right)
        weights = RANDOM.standard_normal(getattr(sg, name)(a, v, mode).shape)
        check(lambda a, v: np.sum(weights * getattr(sg, name)(a, v, mode) ** 2), a, v)  # noqa: B023


@pytest.mark.parametrize("axis", [0, -1])
def test_lfilter(axis):
    x = RANDOM.standard_normal((3, 9))
    b, a = np.array([1.0, 0.4, 0.2]), np.array([1.3, -0.5, 0.1, 0.05])
    check(lambda b, a, x: np.sum(sg.lfilter(b, a, x, axis=axis) ** 2), b, a, x)


@pytest.mark.parametrize("mode", ["reflect", "mirror", "nearest", "wrap", "constant"])
def test_neighbourhoods(mode):
    for name in ("convolve", "correlate"):
        for origin in (0, -1, (1, 0)):
            check(lambda i, k: np.sum(getattr(nd, name)(i, k, mode=mode, cval=0.3, origin=origin) ** 2), IMAGE, KERNEL)  # noqa: B023
    check(lambda i: np.sum(nd.gaussian_filter(i, (0.8, 1.4), mode=mode, cval=0.2) ** 2), IMAGE)


def test_width_of_a_gaussian_filter():
    check(lambda i, s: np.sum(nd.gaussian_filter(i, s) ** 2), IMAGE, 1.1)


def test_filters_write_into_arrays_of_the_function():
    check(lambda i: np.sum(nd.gaussian_filter(i, 1.0, output=np.zeros(IMAGE.shape)) ** 2), IMAGE)
    check(lambda i: np.sum(nd.grey_erosion(i, structure=KERNEL) + nd.white_tophat(i, 3)), IMAGE)


@pytest.mark.parametrize("name", ["gaussian_filter", "shift", "minimum_filter"])
def test_filters_do_not_write_into_plain_arrays(name):
    with pytest.raises(ValueError, match="inside of the function"):
        yota.grad(lambda i: np.sum(getattr(nd, name)(i, 2, output=TARGET) + TARGET), IMAGE)


def test_resampling_with_a_window():
    check(lambda x: np.sum(sg.resample(x, 4, window="hann") ** 2), IMAGE)


def test_kernels_of_a_fixed_image():
    check(lambda k, s: np.sum(nd.convolve(IMAGE, k) ** 2 + nd.gaussian_filter(IMAGE, s)), KERNEL, 1.1)


MODES = "nearest wrap reflect mirror constant grid-wrap grid-constant"


@pytest.mark.parametrize("mode", MODES.split())
def test_images_between_pixels(mode):
    for order in (1, 3):
        check(lambda i, c: np.sum(nd.map_coordinates(i, c, order=order, mode=mode, cval=0.7) ** 2), IMAGE, PLACES)  # noqa: B023
    for form in (
        lambda i: nd.shift(i, (0.3, -1.2), order=2, mode=mode, cval=0.4),
        lambda i: nd.zoom(i, (1.4, 0.6), order=4, mode=mode, grid_mode="grid" in mode),
        lambda i: nd.affine_transform(i, [[0.9, 0.2], [-0.1, 1.1]], (0.3, -0.4), order=5, mode=mode),
    ):
        np.testing.assert_allclose(yota.trace(form, IMAGE)[0], form(IMAGE), rtol=1e-9, atol=1e-10)
    check(lambda angle: np.sum(nd.rotate(IMAGE, angle, reshape=False, mode=mode) ** 2), 12.3)


def test_functions_of_neighbourhoods():
    def spread(values, power, scale=1.0):
        return scale * np.sum((values - values[0]) ** power)

    shape = np.array([[1, 0, 1], [0, 1, 0]])
    for keywords in ({"size": (2, 3)}, {"footprint": shape, "mode": "constant", "cval": 0.3}):
        keywords |= {"extra_arguments": (3,), "extra_keywords": {"scale": 0.5}}
        check(lambda i: np.sum(nd.generic_filter(i, spread, **keywords) ** 2), IMAGE)  # noqa: B023
    check(lambda i: np.sum(nd.generic_filter(i, np.sum, 2, axes=(1,)) ** 2), IMAGE)


def test_grey_morphology():
    for form in (nd.grey_opening, nd.grey_closing, nd.white_tophat, nd.morphological_gradient):
        check(lambda i: np.sum(form(i, size=(2, 3)) ** 2), IMAGE)  # noqa: B023


@pytest.mark.parametrize(
    ("loss", "text"),
    [
        (lambda x: np.sum(sg.upfirdn([1.0, 2.0], x, mode="line")), "zeros outside"),
        (lambda x: np.sum(la.hessenberg(la.hessenberg(x[:6, :6]))), "is reduced already"),
        (lambda x: np.sum(la.qz(x[:6, :6], x[:6, :6])[0]), r"LAPACK's gges.* is not recorded\.[\s\S]*@nodiff"),
        (lambda x: np.sum(la.toeplitz(x)), "several axes"),
        (
            lambda x: np.sum(la.eigh(x[:6, :6], subset_by_index=[0, 1])[0]),
            r"with a subset of eigenvectors is not recorded\.[\s\S]*\n@tensor\(.scipy.linalg.eigh.\)",
        ),
        (lambda x: np.sum(la.svd(x.T)[0]), "nothing determines"),
        (lambda x: np.sum(la.qr(x.T)[0]), "nothing determines"),
        (lambda x: np.sum(la.inv(x[:6, :6], assume_a="banded")), "assume_a='banded' is not recorded"),
    ],
)
def test_refusals(loss, text):
    with pytest.raises((TracingError, DifferentiationError), match=text):
        yota.grad(loss, IMAGE)


def test_generated_code_calls_scipy_by_its_names():
    _, g = yota.grad(lambda a: np.sum(la.expm(a)), A)
    assert "import scipy.linalg" in g.source and "scipy.linalg.expm(" in g.source


@pytest.mark.parametrize(
    ("f", "x", "slope", "curvature"),
    [
        (lambda x: sp.expn(0, x), 1.5, -2.5 / 2.25 * np.exp(-1.5), (1 / 1.5 + 2 / 1.5**2 + 2 / 1.5**3) * np.exp(-1.5)),
        (sp.spence, 1.0, -1.0, 0.5),
        (lambda x: sp.diric(x, 2), 0.0, 0.0, -1 / 4),
        (lambda x: sp.diric(x, 2), 2 * np.pi, 0.0, 1 / 4),
        (lambda x: sp.diric(x, 5), -2 * np.pi, 0.0, -2.0),
    ],
)
def test_slopes_where_formulas_have_a_hole(f, x, slope, curvature):
    assert yota.gradient(f)(x) == pytest.approx(slope, rel=1e-12, abs=1e-12)
    assert yota.hessian(f)(x) == pytest.approx(curvature, rel=1e-9, abs=1e-9)
    assert yota.gradient(st.dgamma.median)(1.5) == 0.0


def test_coefficients_of_filters_that_are_set_one_by_one():
    """SciPy writes into its own arrays if they say that they can be written."""

    def coefficients(quality):
        return sg.iircomb(20.0, quality, ftype="notch", fs=200.0)

    def loss(quality):
        b, a = coefficients(quality)
        return b @ np.arange(11.0) + a @ np.arange(11.0, 22.0)

    np.testing.assert_array_equal(yota.trace(coefficients, 30.0)[0][1], coefficients(30.0)[1])
    check(loss, 30.0)
    # Where numbers come back in plain arrays alone.
    check(lambda quality: np.concatenate(coefficients(quality)) @ np.arange(22.0), 30.0)


@pytest.mark.parametrize("form", [sp.riccati_jn, sp.riccati_yn])
def test_functions_of_all_orders(form):
    found = yota.trace(lambda x: form(3, x), 2.3)[0]
    np.testing.assert_allclose(found, form(3, 2.3), rtol=1e-13)
    check(lambda x: np.sum(form(3, x)[0] * np.arange(4.0)) + np.sum(form(0, x)[1]), 2.3)


def test_systems_in_state_space():
    rest = np.array([[1.0], [0.0]]), np.array([[1.0, 2.0]]), np.array([[0.5]])
    # The matrix has no basis of eigenvectors.
    a = np.array([[-2.0, -1.0], [1.0, 0.0]])
    check(lambda a: sg.ss2tf(a, *rest)[0][0] @ np.array([1.0, 2.0, 4.0]), a)
    zeros, _, gain = yota.trace(lambda a: sg.ss2zpk(a, *rest), a)[0]
    assert (np.shape(zeros), np.shape(gain)) == ((2,), ())
    check(lambda a: np.sum(sg.dstep((0.1 * a, *rest, 0.5), n=5)[1][0] ** 2), a)


CALLS = Path(__file__).with_name("scipy.calls").read_text(encoding="utf-8").strip().split("\n\n")
TREE = KDTree(np.arange(12.0).reshape(4, 3) % 5)
LINE, TALL = RANDOM.standard_normal(12), RANDOM.standard_normal((5, 6))
ARGUMENTS = {
    "a": A + 3 * np.eye(4),
    "p": POSITIVE,
    "q": Q,
    "v": V,
    "w": RANDOM.standard_normal(4),
    "line": LINE,
    "image": TALL,
    "z": TALL[0] + 1j * TALL[1],
    "h": RANDOM.uniform(1.2, 3.0, (3, 4)),
    "g": RANDOM.uniform(0.2, 0.9, (3, 4)),
    "unit": np.random.default_rng(5).uniform(0.1, 0.9, (4, 3)),
}


def outcome(call, names, given):
    modules = {
        "np": np,
        "la": la,
        "nd": nd,
        "sg": sg,
        "st": st,
        "di": di,
        "tr": tr,
        "tree": TREE,
        "ms": st.mstats,
        "vq": vq,
        "hc": hc,
        "opt": opt,
        "sp": sp,
    }
    result = eval(call, {**modules, **dict(zip(names, given, strict=True))})
    return result[0] if isinstance(result, tuple) else result


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("number", range(len(CALLS)))
def test_calls(number):
    """Calls with their keywords: values and dtypes in double and single precision, and a slope along one direction."""
    for call in filter(None, re.split(r";\s*", CALLS[number])):
        names = [name for name in ARGUMENTS if re.search(rf"\b{name}\b", call)]
        double = [ARGUMENTS[name] for name in names]
        for given in ([np.asfortranarray(each) for each in double], [single(each) for each in double]):
            wanted = np.asarray(outcome(call, names, given))
            found = np.asarray(yota.trace(lambda *each: outcome(call, names, each), *given)[0])  # noqa: B023
            assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape), call
            tolerance = 1e-10 if given[0].dtype.itemsize >= 8 and given[0].dtype != np.complex64 else 2e-4
            np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance, err_msg=call)
        shape = np.shape(outcome(call, names, double))
        weights = np.cos(np.arange(np.prod(shape, dtype=int)).reshape(shape))

        def loss(*each, call=call, names=names, weights=weights):
            result = outcome(call, names, each)
            return np.sum(weights * (np.real(result) + 0.5 * np.imag(result)))

        slopes = yota.grad(loss, *double)[1]
        ways = [np.sin(np.arange(each.size) + 1.0).reshape(each.shape) for each in double]
        ways = [way + way.T if name == "p" else way for name, way in zip(names, ways, strict=True)]
        high, low = (
            loss(*(each + step * way for each, way in zip(double, ways, strict=True))) for step in (1e-6, -1e-6)
        )
        total = sum(np.sum(np.real(np.conj(slope) * way)) for slope, way in zip(slopes, ways, strict=True))
        assert total == pytest.approx((high - low) / 2e-6, rel=2e-5, abs=2e-5), call


def single(array):
    return array.astype(np.complex64 if array.dtype.kind == "c" else np.float32)


def test_masked_arrays_are_refused():
    masked = np.ma.array(V, mask=[0, 0, 1, 0])
    with pytest.raises(TracingError, match="masked array"):
        yota.grad(lambda v: st.mstats.pearsonr(masked, v)[0], V**2)


@pytest.mark.parametrize("a", [-0.5, 0.0, 0.5, 1.0])
def test_equal_parameters_of_jacobis_nodes_have_slopes_of_their_own(a):
    weights = np.array([1.0, -2.0, 3.0])
    for part in (0, 1):

        def loss(a, b, part=part):
            return np.sum(weights * sp.roots_jacobi(3, a, b)[part])

        value, found = yota.grad(loss, a, a)
        h = 1e-3
        assert value == pytest.approx(loss(a, a), rel=1e-11)
        for slope, (left, right) in zip(found, ((1, 0), (0, 1)), strict=True):
            ends = [loss(a + k * h * left, a + k * h * right) for k in (-2, -1, 1, 2)]
            assert slope == pytest.approx((ends[0] - 8 * ends[1] + 8 * ends[2] - ends[3]) / (12 * h), rel=1e-7)


def test_pivots_that_are_arguments_are_a_guard():
    b = np.arange(1.0, 5.0)
    lu, swaps = la.lu_factor(A + 3 * np.eye(4))
    value, slopes = yota.value_and_grad(lambda lu, swaps: np.sum(la.lu_solve((lu, swaps), b)), wrt="lu")(lu, swaps)
    assert value == pytest.approx(np.sum(la.lu_solve((lu, swaps), b)), rel=1e-12)
    step = 1e-6 * np.cos(np.arange(16.0)).reshape(4, 4)
    ahead, behind = (np.sum(la.lu_solve((lu + sign * step, swaps), b)) for sign in (1, -1))
    assert np.sum(slopes * step) == pytest.approx((ahead - behind) / 2, rel=1e-6)


def test_counts_in_bins_of_two_axes():
    edges = [[0.0, 0.5, 1.0], [2.0, 2.5, 3.0]]

    def counted(x, y):
        return st.binned_statistic_2d(x, y, x * y, "mean", bins=edges).statistic[0, 0]

    x, y = np.array([0.1, 0.2, 0.1, 0.6]), np.array([2.1, 2.6, 2.3, 2.2])
    assert counted(x, y) == pytest.approx((0.21 + 0.23) / 2)
    np.testing.assert_allclose(yota.gradient(counted)(x, y), [1.05, 0, 1.15, 0])
