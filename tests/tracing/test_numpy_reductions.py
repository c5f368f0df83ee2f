"""NumPy's reductions, sorts, statistics and differences, with their keywords, against central differences."""

import warnings
from typing import Any

import numpy as np
import pytest

import yota
from tests.tracing.checking import check, compound, real

M = real(3, 4)
P = real(3, 4, low=0.3, high=2.0)
T = real(2, 3, 4)
V = real(6)
Z = compound(3, 4)
NAN = M.copy()
NAN[0, 1] = NAN[2, 3] = NAN[1, 0] = np.nan
MASK = np.array([[True, False, True, True], [False, True, True, False], [True, True, True, True]])
COLUMN = np.array([[True], [False], [True]])
STRIDED = real(6, 8)[::2, ::-2]
SQUARE_WEIGHTS = np.array([0.2, 0.5, 0.1, 1.3])

AXES = [
    ("none", {}),
    ("0", {"axis": 0}),
    ("-1", {"axis": -1}),
    ("tuple", {"axis": (0, -1)}),
    ("keepdims", {"axis": 1, "keepdims": True}),
    ("all keepdims", {"keepdims": True}),
    ("empty tuple", {"axis": ()}),
]

REDUCTIONS = {}
for _label, _keywords in AXES:
    for _name in "sum prod mean max min amax amin var std ptp median nansum nanmean nanmax nanmin nanprod".split():
        if _name in ("ptp", "median") and _keywords.get("axis") == ():
            continue
        REDUCTIONS[f"{_name} {_label}"] = (
            lambda x, name=_name, keywords=_keywords: getattr(np, name)(x, **keywords),
            P,
        )
    for _name in "nanvar nanmedian nanstd".split():
        if _keywords.get("axis") != ():
            REDUCTIONS[f"{_name} {_label}"] = (
                lambda x, name=_name, keywords=_keywords: getattr(np, name)(x, **keywords),
                P,
            )
    for _name in "nansum nanmean nanmax nanmin nanprod nanvar nanstd nanmedian".split():
        if _keywords.get("axis") != ():
            REDUCTIONS[f"{_name} of nan {_label}"] = (
                lambda x, name=_name, keywords=_keywords: getattr(np, name)(np.where(MASK, x, np.nan), **keywords),
                P,
            )

KEYWORDS = {
    "sum where": (lambda x: np.sum(x, axis=1, where=MASK), M),
    "sum where broadcast": (lambda x: np.sum(x, axis=0, where=COLUMN), M),
    "sum initial": (lambda x: np.sum(x, axis=1, initial=2.5), M),
    "sum dtype": (lambda x: np.sum(x, dtype=np.complex128), M),
    "sum complex": (lambda x: np.sum(x, axis=0), Z),
    "sum 0-d": (lambda x: np.sum(x), np.array(1.5)),
    "sum scalar": (lambda x: np.sum(x), 1.5),
    "sum empty": (lambda x: np.sum(x[:0], axis=0) + np.sum(x), M),
    "sum strided": (lambda x: np.sum(x * x, axis=1), STRIDED),
    "sum list": (lambda x: np.sum([x[0], x[1]], axis=0), M),
    "prod where": (lambda x: np.prod(x, axis=1, where=MASK), M),
    "prod initial": (lambda x: np.prod(x, initial=2.0), M),
    "prod complex": (lambda x: np.prod(x, axis=1), Z),
    "prod empty": (lambda x: np.prod(x[:0], axis=0) * x[0], M),
    "mean where": (lambda x: np.mean(x, axis=1, where=MASK), M),
    "mean where broadcast": (lambda x: np.mean(x, axis=0, where=COLUMN, keepdims=True), M),
    "mean dtype": (lambda x: np.mean(x, dtype=np.float64), M),
    "mean complex": (lambda x: np.mean(x, axis=0), Z),
    "max where": (lambda x: np.max(x, axis=1, where=MASK, initial=-9.0), M),
    "max initial": (lambda x: np.max(x, axis=1, initial=0.1), M),
    "max empty initial": (lambda x: np.max(x[:0], axis=0, initial=0.1) + x[0], M),
    "min where": (lambda x: np.min(x, axis=(0, 1), where=MASK, initial=9.0), M),
    "var ddof": (lambda x: np.var(x, axis=0, ddof=1), M),
    "var correction": (lambda x: np.var(x, axis=0, correction=1), M),
    "var mean": (lambda x: np.var(x, axis=0, mean=np.mean(x, axis=0, keepdims=True)), M),
    "var where": (lambda x: np.var(x, axis=1, where=MASK, ddof=1), M),
    "var complex": (lambda x: np.var(x, axis=0), Z),
    "std ddof": (lambda x: np.std(x, axis=(0, 1), ddof=1, keepdims=True), M),
    "std where": (lambda x: np.std(x, axis=1, where=MASK), M),
    "nanvar ddof": (lambda x: np.nanvar(x, axis=1, ddof=1), P),
    "nanstd ddof": (lambda x: np.nanstd(np.where(MASK, x, np.nan), axis=0, ddof=1), P),
    "nanmean where": (lambda x: np.nanmean(x, axis=1, where=MASK), P),
    "nansum initial": (lambda x: np.nansum(x, axis=1, initial=1.5), P),
    "nanmax initial": (lambda x: np.nanmax(x, axis=1, initial=0.5), P),
    "nanmax where": (lambda x: np.nanmax(x, axis=1, initial=-1.0, where=MASK), P),
    "nansum dtype": (lambda x: np.nansum(x, dtype=np.float64), P),
    "nancumsum": (lambda x: np.nancumsum(np.where(MASK, x, np.nan), axis=1), P),
    "nancumprod": (lambda x: np.nancumprod(np.where(MASK, x, np.nan), axis=0), P),
    "nanmean method 0-d": (lambda x: np.nanmean(x), np.array(0.7)),
    "ptp tuple": (lambda x: np.ptp(x, axis=(0, 2)), T),
    "median odd": (lambda x: np.median(x), real(7)),
    "median tuple": (lambda x: np.median(x, axis=(0, 2)), T),
    "median overwrite": (lambda x: np.median(x, axis=-1, overwrite_input=True), M),
    "average": (lambda x: np.average(x, axis=0), M),
    "average weights": (lambda x: np.average(x, axis=1, weights=SQUARE_WEIGHTS), M),
    "average traced weights": (lambda x, w: np.average(x, axis=1, weights=w), M, SQUARE_WEIGHTS),
    "average weights shaped": (lambda x, w: np.average(x, weights=w), M, P),
    "average returned": (lambda x, w: np.average(x, axis=1, weights=w, returned=True), M, SQUARE_WEIGHTS),
    "average keepdims": (lambda x, w: np.average(x, axis=1, weights=w, keepdims=True), M, SQUARE_WEIGHTS),
    "average tuple": (lambda x, w: np.average(x, axis=(1, 2), weights=w), T, P),
    "cumsum flat": (lambda x: np.cumsum(x), M),
    "cumsum axis": (lambda x: np.cumsum(x, axis=-1), M),
    "cumsum dtype": (lambda x: np.cumsum(x, axis=0, dtype=np.complex128), M),
    "cumprod flat": (lambda x: np.cumprod(x), P),
    "cumprod axis": (lambda x: np.cumprod(x, axis=1), M),
    "cumulative_sum": (lambda x: np.cumulative_sum(x, axis=1, include_initial=True), M)
    if hasattr(np, "cumulative_sum")
    else (lambda x: x, M),
    "cumulative_prod": (lambda x: np.cumulative_prod(x, axis=1), M)
    if hasattr(np, "cumulative_prod")
    else (lambda x: x, M),
    "trapezoid": (lambda x: np.trapezoid(x, axis=0), M),
    "trapezoid dx": (lambda x: np.trapezoid(x, dx=0.3), M),
    "trapezoid x": (lambda x, t: np.trapezoid(x, t), M, SQUARE_WEIGHTS),
    "trapezoid x axis": (lambda x, t: np.trapezoid(x, t, axis=0), M, np.array([0.2, 0.5, 0.6])),
    "trapezoid x full": (lambda x, t: np.trapezoid(x, t, axis=1), M, P),
    "diff": (lambda x: np.diff(x), M),
    "diff n": (lambda x: np.diff(x, n=2, axis=0), M),
    "diff n=0": (lambda x: np.diff(x, n=0), M),
    "diff prepend": (lambda x: np.diff(x, prepend=0.5, append=x[:, :1]), M),
    "ediff1d": (lambda x: np.ediff1d(x), M),
    "ediff1d ends": (lambda x, a: np.ediff1d(x, to_begin=a, to_end=[3.0, 1.0]), M, real(2)),
    "gradient": (lambda x: np.gradient(x), V),
    "gradient 2-d": (lambda x: np.gradient(x), M),
    "gradient axis": (lambda x: np.gradient(x, axis=1), M),
    "gradient spacing": (lambda x: np.gradient(x, 0.3, 0.7), M),
    "gradient coordinates": (lambda x: np.gradient(x, np.array([0.0, 0.4, 1.3, 1.5]), axis=1), M),
    "gradient traced coordinates": (lambda x, t: np.gradient(x, t, axis=1), M, np.array([0.0, 0.4, 1.3, 1.5])),
    "gradient traced spacing": (lambda x, h: np.gradient(x, h, axis=1), M, 0.7),
    "gradient edge_order": (lambda x: np.gradient(x, 0.3, axis=1, edge_order=2), M),
    "gradient edge_order x": (lambda x, t: np.gradient(x, t, axis=1, edge_order=2), M, np.array([0.0, 0.4, 1.3, 1.5])),
    "cov": (lambda x: np.cov(x), M),
    "cov y": (lambda x, y: np.cov(x, y), V, real(6, seed=3)),
    "cov rowvar": (lambda x: np.cov(x, rowvar=False), M),
    "cov bias": (lambda x: np.cov(x, bias=True), M),
    "cov ddof": (lambda x: np.cov(x, ddof=0), M),
    "cov fweights": (lambda x: np.cov(x, fweights=[1, 2, 1, 3]), M),
    "cov aweights": (lambda x, w: np.cov(x, aweights=w), M, SQUARE_WEIGHTS),
    "cov both weights": (lambda x: np.cov(x, fweights=[1, 2, 1, 3], aweights=SQUARE_WEIGHTS, ddof=0), M),
    "cov complex": (lambda x: np.cov(x), Z),
    "cov 1-d": (lambda x: np.cov(x), V),
    "corrcoef": (lambda x: np.corrcoef(x), M),
    "corrcoef y": (lambda x, y: np.corrcoef(x, y), V, real(6, seed=3)),
    "corrcoef rowvar": (lambda x: np.corrcoef(x, rowvar=False), M),
    "corrcoef 1-d": (lambda x: np.corrcoef(x) + np.sum(x), V),
    "count_nonzero": (lambda x: np.count_nonzero(x, axis=0) * x, M),
    "argmax": (lambda x: x[np.argmax(x)] * 2.0, V),
    "argmax axis": (lambda x: np.take_along_axis(x, np.argmax(x, axis=1, keepdims=True), 1), M),
    "argmin": (lambda x: x[np.argmin(x)] * 2.0, V),
    "nanargmax": (lambda x: x[np.nanargmax(x)] * 2.0, V),
    "nanargmin": (lambda x: np.take_along_axis(x, np.nanargmin(x, axis=1, keepdims=True), 1), M),
    "all any": (lambda x: np.where(np.all(x < 5, axis=0), x, np.any(x > 0, axis=1, keepdims=True) * x), M),
    "sort": (lambda x: np.sort(x), M),
    "sort axis": (lambda x: np.sort(x, axis=0), M),
    "sort flat": (lambda x: np.sort(x, axis=None), M),
    "sort stable": (lambda x: np.sort(x, kind="stable"), M),
    "sort complex": (lambda x: np.sort(x, axis=0), Z),
    "sort_complex": (lambda x: np.sort_complex(x), compound(5)),
    "argsort": (lambda x: x[np.argsort(-x)], V),
    "lexsort": (lambda x, y: x[np.lexsort((y, x))], V, real(6, seed=3)),
    "partition": (lambda x: np.partition(x, 2, axis=1)[:, 2], M),
    "partition flat": (lambda x: np.partition(x, 5, axis=None)[5], M),
    "argpartition": (lambda x: x[np.argpartition(x, 2)][2], V),
    "msort by method": (lambda x: np.sort(x.T, 0).T, M),
    "add.reduce": (lambda x: np.add.reduce(x, axis=(0, 1)), M),
    "multiply.reduce": (lambda x: np.multiply.reduce(x), M),
    "subtract.reduce": (lambda x: np.subtract.reduce(x, axis=1), M),
    "divide.reduce": (lambda x: np.divide.reduce(x, axis=1), P),
    "power.reduce": (lambda x: np.power.reduce(x, axis=0), P),
    "maximum.reduce": (lambda x: np.maximum.reduce(x, axis=1, initial=0.2), M),
    "minimum.reduce": (lambda x: np.minimum.reduce(x, axis=None), M),
    "fmax.reduce": (lambda x: np.fmax.reduce(x, axis=1), M),
    "fmin.reduce": (lambda x: np.fmin.reduce(x, axis=1, keepdims=True), M),
    "hypot.reduce": (lambda x: np.hypot.reduce(x, axis=1), M),
    "logaddexp.reduce": (lambda x: np.logaddexp.reduce(x), M),
    "logaddexp.reduce axis": (lambda x: np.logaddexp.reduce(x, axis=1, keepdims=True), M),
    "logaddexp.reduce tuple": (lambda x: np.logaddexp.reduce(x, axis=(0, 2)), T),
    "logaddexp.reduce all": (lambda x: np.logaddexp.reduce(x, axis=None), M),
    "logaddexp.reduce initial": (lambda x: np.logaddexp.reduce(x, axis=1, initial=0.5), M),
    "logaddexp.reduce where": (lambda x: np.logaddexp.reduce(x, axis=1, where=MASK), M),
    "logaddexp2.reduce": (lambda x: np.logaddexp2.reduce(x, axis=1), M),
    "add.accumulate": (lambda x: np.add.accumulate(x, axis=1), M),
    "multiply.accumulate": (lambda x: np.multiply.accumulate(x), M),
    "maximum.accumulate": (lambda x: np.maximum.accumulate(x, axis=1), M),
    "minimum.accumulate": (lambda x: np.minimum.accumulate(x, axis=0), M),
    "logaddexp.accumulate": (lambda x: np.logaddexp.accumulate(x, axis=1), M),
    "subtract.accumulate": (lambda x: np.subtract.accumulate(x, axis=1), M),
    "add.reduceat": (lambda x: np.add.reduceat(x, [0, 2, 1], axis=1), M),
    "maximum.reduceat": (lambda x: np.maximum.reduceat(x, [0, 2], axis=1), M),
    "add.outer": (lambda x, y: np.add.outer(x, y), V, M),
    "multiply.outer": (lambda x, y: np.multiply.outer(x, y), M, V),
    "maximum.outer": (lambda x, y: np.maximum.outer(x, y), M, V),
    "logaddexp.outer": (lambda x, y: np.logaddexp.outer(x, y), M, V),
    "digitize": (lambda x: x * np.digitize(x, np.array([-1.0, 0.0, 1.0])), V),
    "searchsorted": (lambda x: x * np.searchsorted(np.array([-1.0, 0.0, 1.0]), x), V),
    "searchsorted right": (lambda x: x * np.searchsorted(np.array([-1.0, 0.0, 1.0]), x, side="right"), V),
    "searchsorted traced": (lambda x, v: v * np.searchsorted(np.sort(x), v), V, real(3, seed=9)),
    "bincount": (lambda w: np.bincount(np.array([0, 2, 1, 2, 5, 0]), weights=w), V),
    "bincount minlength": (lambda w: np.bincount(np.array([0, 2, 1, 2, 1, 0]), w, 7), V),
    "histogram weights": (lambda w: np.histogram(np.arange(6) / 6, bins=3, weights=w)[0], V),
}

METHODS = (
    "inverted_cdf averaged_inverted_cdf closest_observation interpolated_inverted_cdf hazen weibull linear "
    "median_unbiased normal_unbiased lower higher midpoint nearest"
).split()
for _method in METHODS:
    KEYWORDS[f"quantile {_method}"] = (lambda x, m=_method: np.quantile(x, [0.1, 0.37, 0.8], axis=1, method=m), M)
    KEYWORDS[f"percentile {_method}"] = (lambda x, m=_method: np.percentile(x, 63.0, method=m, keepdims=True), M)
    KEYWORDS[f"nanquantile {_method}"] = (
        lambda x, m=_method: np.nanquantile(np.where(MASK, x, np.nan), 0.4, axis=1, method=m),
        M,
    )
KEYWORDS |= {
    "quantile tuple": (lambda x: np.quantile(x, 0.3, axis=(0, 2)), T),
    "quantile ends": (lambda x: np.quantile(x, [0.0, 1.0]), M),
    "quantile traced q": (lambda x, q: np.quantile(x, q), V, 0.33),
    "quantile traced q of one": (
        lambda x, q: np.nanquantile(np.where(np.eye(*x.shape), np.nan, x)[:2], q, axis=0),
        M,
        0.37,
    ),
    "quantile traced qs": (lambda x, q: np.quantile(x, q, axis=1), M, np.array([0.12, 0.7])),
    "quantile weights": (lambda x: np.quantile(x, 0.4, weights=np.arange(1, 7), method="inverted_cdf"), V),
    "quantile many": (lambda x: np.quantile(x, np.array([[0.1, 0.2], [0.6, 0.9]])), V),
    "nanpercentile": (lambda x: np.nanpercentile(np.where(MASK, x, np.nan), [20, 70], axis=0), M),
}


@pytest.mark.parametrize("name", [*REDUCTIONS, *KEYWORDS])
def test_reduction(name):
    check(*(REDUCTIONS | KEYWORDS)[name])


@pytest.mark.parametrize("name", ["mean", "var", "std", "nanmean", "nanvar"])
@pytest.mark.parametrize("count", [50, 70_000])
def test_averages_of_16_bits_are_numpys(name, count):
    """The count of many is past the largest float16, and so may their total be."""
    for x in (np.ones(count, np.float16), (np.arange(count) % 2 * 0.1).astype(np.float16)):
        with np.errstate(all="ignore"):
            expected = getattr(np, name)(x)
            value, slope = yota.value_and_grad(lambda x: getattr(np, name)(x))(x)
        assert value.dtype == slope.dtype == np.float16
        np.testing.assert_array_equal(value, expected)
    assert name not in ("mean", "nanmean") or np.all(np.abs(slope.astype(float) * count - 1) < 0.01)


@pytest.mark.parametrize("axis", [0, 1, -1, (0, 1), None])
def test_medians_of_many_rows_with_gaps_are_found_at_once(axis: Any) -> None:
    x = np.random.default_rng(0).normal(size=(300, 4))
    x[::3, 1], x[7] = np.nan, np.nan
    extent = {0: 4, 1: 300, -1: 300}.get(axis, ()) if isinstance(axis, int) else ()
    weights = np.random.default_rng(1).normal(size=extent)

    def loss(x: Any) -> Any:
        found = np.nanmedian(x, axis=axis)
        return np.sum(np.where(np.isnan(found), 0.0, found) * weights)

    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of the row without numbers
        value, tape = yota.trace(loss, x)
        assert value == loss(x)
        gradient = yota.grad(loss, x)[1][0]
        assert len(tape) < 60
        for place in ((0, 0), (1, 1), (3, 1), (7, 2), (150, 3), (299, 0)):
            shift = np.zeros_like(x)
            shift[place] = 1e-7
            slope = 0.0 if np.isnan(x[place]) else (loss(x + shift) - loss(x - shift)) / 2e-7
            assert gradient[place] == pytest.approx(slope, abs=1e-6)


@pytest.mark.parametrize("function", [np.quantile, np.percentile, np.nanquantile])
def test_quantiles_of_plain_arrays_by_the_probability(function):
    data = np.array([[1, 3, 2, 7], [4, 7, 5, 9]])
    scale = 100.0 if function is np.percentile else 1.0

    def loss(q):
        return np.sum(function(data, scale * q, axis=1) * np.array([1.0, 2.0]))

    assert yota.gradcheck(loss, 0.4)
    found, g = yota.grad(lambda q: np.sum(function([1.0, 2.0, 4.0], scale * q) ** 2), np.array([0.3, 0.9]))
    assert found == pytest.approx(1.6**2 + 3.6**2)
    np.testing.assert_allclose(g[0], [2 * 1.6 * 2, 2 * 3.6 * 4])
