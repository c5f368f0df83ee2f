"""Distances, rotations and clusters: metrics by their formulas, rotations by SciPy's own Python code."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import yota.ir.linkages  # noqa: F401  (a rule calls its function)
from yota.tracing.forms import Trace, is_tracer, np, original, records


def _cosine(u: Any, v: Any) -> Any:
    sizes = np.linalg.norm(u, axis=-1) * np.linalg.norm(v, axis=-1)
    return 1 - np.sum(u * v, axis=-1) / sizes


def _canberra(u: Any, v: Any) -> Any:
    size = np.abs(u) + np.abs(v)
    return np.sum(np.where(size == 0, 0.0, np.abs(u - v) / np.where(size == 0, 1.0, size)), axis=-1)


def _minkowski(u: Any, v: Any, p: Any = 2.0, w: Any = None) -> Any:
    return np.linalg.norm(u - v if w is None else np.asarray(w) ** (1 / p) * (u - v), p, axis=-1)


def _jensenshannon(u: Any, v: Any, base: Any = None) -> Any:
    rel_entr = sys.modules["scipy.special"].rel_entr
    u, v = (each / np.sum(each, axis=-1, keepdims=True) for each in (u, v))
    middle = (u + v) / 2
    total = np.sum(rel_entr(u, middle) + rel_entr(v, middle), axis=-1) / 2
    return np.sqrt(total if base is None else total / np.log(base))


_METRICS: dict[str, Callable[..., Any]] = {
    "euclidean": lambda u, v: np.linalg.norm(u - v, axis=-1),
    "sqeuclidean": lambda u, v: np.sum((u - v) ** 2, axis=-1),
    "cityblock": lambda u, v: np.sum(np.abs(u - v), axis=-1),
    "chebyshev": lambda u, v: np.max(np.abs(u - v), axis=-1),
    "minkowski": _minkowski,
    "seuclidean": lambda u, v, V: np.sqrt(np.sum((u - v) ** 2 / V, axis=-1)),
    "cosine": _cosine,
    "correlation": lambda u, v: _cosine(*(each - np.mean(each, axis=-1, keepdims=True) for each in (u, v))),
    "canberra": _canberra,
    "braycurtis": lambda u, v: np.sum(np.abs(u - v), axis=-1) / np.sum(np.abs(u + v), axis=-1),
    "mahalanobis": lambda u, v, VI: np.sqrt(np.sum(np.matmul(u - v, VI) * (u - v), axis=-1)),
    "jensenshannon": _jensenshannon,
}
"""Of arrays whose last axes are points, by the names of SciPy's metrics."""


def _between(trace: Trace, metric: Any, points: Any, keywords: dict[str, Any], rows: Any, others: Any) -> Any:
    """Distances between pairs of ``rows`` and ``others``; ``points`` are all there are."""
    distance = sys.modules["scipy.spatial.distance"]
    if keywords.pop("out", None) is not None:
        raise trace.refuse("distances with out= are not recorded.", "Leave it out.")
    if isinstance(metric, str):
        known = vars(distance)["_METRIC_ALIAS"].get(metric.lower().removeprefix("test_"))
        if known is None:
            raise ValueError(f"Unknown Distance Metric: {metric}")
        name = known.canonical_name
        if name not in _METRICS:
            raise trace.refuse(f"the metric {name!r} counts, and has no derivative.", "Choose another metric.")
        keywords = _completed(name, points, keywords)
        if keywords.get("w") is None or name == "minkowski":
            keywords = {key: value for key, value in keywords.items() if value is not None}
            return _METRICS[name](rows, others, **keywords)
        metric = known.dist_func
    rows, others = np.broadcast_arrays(rows, others)
    shape, extent = rows.shape[:-1], rows.shape[-1]
    pairs = zip(np.reshape(rows, (-1, extent)), np.reshape(others, (-1, extent)), strict=True)
    found = [metric(row, other, **keywords) for row, other in pairs]
    return np.reshape(np.stack(found), shape) if found else np.zeros(shape)


def _completed(name: str, points: Any, keywords: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a metric, with those that are estimated from all points."""
    if name == "seuclidean" and keywords.get("V") is None:
        return {**keywords, "V": np.var(points, axis=0, ddof=1)}
    if name == "mahalanobis" and keywords.get("VI") is None:
        return {**keywords, "VI": np.linalg.inv(np.atleast_2d(np.cov(points.T))).T}
    return keywords


def _points(trace: Trace, value: Any, name: str) -> Any:
    found = trace.traced(value)
    if found.ndim != 2:
        raise ValueError(f"{name} must be a 2-dimensional array.")
    return found if found.dtype.kind == "c" else found.astype(float, copy=False)


@records("scipy.spatial.distance", "cdist")
def _cdist(trace: Trace, XA: Any, XB: Any, metric: Any = "euclidean", **keywords: Any) -> Any:
    first, last = _points(trace, XA, "XA"), _points(trace, XB, "XB")
    if first.shape[1] != last.shape[1]:
        raise ValueError("XA and XB must have the same number of columns (i.e. feature dimension.)")
    points = np.concatenate([first, last])
    return _between(trace, metric, points, keywords, first[:, None, :], last[None, :, :])


@records("scipy.spatial.distance", "pdist")
def _pdist(trace: Trace, X: Any, metric: Any = "euclidean", **keywords: Any) -> Any:
    points = _points(trace, X, "X")
    rows, others = np.triu_indices(len(points), 1)
    return _between(trace, metric, points, keywords, points[rows], points[others])


@records("scipy.spatial.distance", "squareform")
def _squareform(trace: Trace, X: Any, force: str, checks: bool) -> Any:
    """Between the distances of all pairs and their symmetric matrix."""
    x = trace.traced(X)
    # SciPy's function says what is no such thing.
    plain = sys.modules["scipy.spatial.distance"].squareform
    like = getattr(plain, "__wrapped__", plain)(np.copy(trace.values[trace.lift(x)]), force, checks)
    if like.ndim == x.ndim:
        return x
    if x.ndim == 2:
        return x[np.triu_indices(len(x), 1)]
    rows, others = np.triu_indices(len(like), 1)
    places = np.zeros(like.shape, dtype=int)
    places[rows, others] = places[others, rows] = np.arange(1, x.size + 1)
    return np.concatenate([np.zeros(1, x.dtype), x])[places]


@records("scipy.cluster.vq", "vq")
def _quantized(trace: Trace, obs: Any, code_book: Any, check_finite: bool = True) -> Any:
    """The nearest of some points, and how far it is."""
    points, centres = trace.traced(obs), trace.traced(code_book)
    apart = _cdist(trace, *(each.reshape(len(each), -1) for each in (points, centres)))
    nearest = np.min(apart, axis=1)
    single = points.dtype == centres.dtype == "float32"
    return np.argmin(apart, axis=1), nearest.astype("float32") if single else nearest


@records("scipy.spatial.distance", "directed_hausdorff")
def _hausdorff(trace: Trace, u: Any, v: Any, **_: Any) -> Any:
    apart = _cdist(trace, u, v)
    nearest = np.min(apart, axis=1)
    place = np.argmax(nearest)
    return np.max(nearest), place, np.argmin(apart, axis=1)[place]


_SHARED = "apply from_matrix inv mean pow setitem "
for _kind, _names in {
    "rotation": "align_vectors approx_equal as_davenport as_euler as_matrix as_mrp as_quat as_rotvec compose_quat "
    "from_davenport from_euler from_mrp from_quat from_rotvec magnitude reduce",
    "rigid_transform": "as_dual_quat as_exp_coords compose_transforms from_dual_quat from_exp_coords from_rotation "
    "from_translation normalize_dual_quaternion",
}.items():

    @records(f"scipy.spatial.transform._{_kind}_cy", *(_SHARED + _names).split(), named=True)
    def _written(name: str, trace: Trace, *args: Any, kind: str = _kind, **keywords: Any) -> Any:
        """The form of a function of quaternions or transforms, which computes in double precision."""
        given = (each.astype(float) if is_tracer(each) and each.dtype == "float32" else each for each in args)
        return getattr(sys.modules[f"scipy.spatial.transform._{kind}_xp"], name)(*given, **keywords)


@records("scipy.cluster.hierarchy", "linkage")
def _linkage(trace: Trace, y: Any, method: str, metric: Any, optimal_ordering: bool) -> Any:
    """The merges of SciPy, with heights by the distances of all pairs."""
    distance = sys.modules["scipy.spatial.distance"]
    y = trace.traced(y).astype(float)
    y = distance.pdist(y, metric) if y.ndim == 2 else y
    z = trace.ruled("_linkage", y, method=method, optimal_ordering=bool(optimal_ordering))
    left, right = trace.ruled("_merged", z, halves=method in ("weighted", "median"))
    apart = distance.squareform(y)
    if method in ("single", "complete"):
        pairs = (left[:, :, None] > 0) & (right[:, None, :] > 0)
        extreme, outside = (np.min, np.inf) if method == "single" else (np.max, -np.inf)
        heights = extreme(np.where(pairs, apart, outside), axis=(1, 2))
    elif method in ("average", "weighted"):
        heights = np.sum(left @ apart * right, axis=1)
    else:
        # The square of the distance of two centres, by those of the points (Lance and Williams 1967).
        between = left - right
        squares = -np.sum(between @ apart**2 * between, axis=1) / 2
        if method == "ward":
            sizes = [np.sum(each > 0, axis=1) for each in (left, right)]
            squares = squares * 2 * sizes[0] * sizes[1] / (sizes[0] + sizes[1])
        heights = np.sqrt(squares)
    return np.stack([z[:, 0], z[:, 1], heights, z[:, 3]], axis=1)


@records("scipy.optimize._isotonic", "pava")
def _pooled(trace: Trace, x: Any, w: Any, r: Any) -> Any:
    """Means of blocks of neighbours; the conditions under which the blocks are those of the solution are guards."""
    x, w = trace.traced(x), trace.traced(w)
    plain = original(sys.modules["scipy.optimize._isotonic"].pava)
    _, _, ends, count = plain(np.array(x._value()), np.array(w._value()), np.array(r))
    starts, sizes = ends[:count], np.diff(ends[: count + 1])
    sums = np.add.reduceat(w, starts)
    means = np.add.reduceat(w * x, starts) / sums
    found = np.repeat(means, sizes)
    inside = np.delete(np.cumsum(w * (x - found)), ends[1 : count + 1] - 1)
    bool(np.all(np.diff(means) > 0) & np.all(inside >= 0))
    return found, sums, ends, count
