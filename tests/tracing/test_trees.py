"""Neighbours of traced points by trees of SciPy's, against extrapolated differences."""

import numpy as np
import pytest
from scipy.spatial import KDTree, cKDTree

import yota
from yota.errors import TracingError

RANDOM = np.random.default_rng(0)
X, Q, OTHER = RANDOM.uniform(0, 3, (12, 3)), RANDOM.uniform(0, 3, (5, 3)), RANDOM.uniform(0, 3, (12, 3))
BOXED = KDTree(Q, boxsize=[3.5, 0, 4])


def of_pairs(x):
    return sum(np.linalg.norm(x[i] - x[j]) ** 3 for i, j in KDTree(x).query_pairs(1.2))


def in_balls(x):
    found = cKDTree(x, copy_data=True).query_ball_point(x, 1.3)
    return sum((i + 1) * np.sum((x[i] - x[j]) ** 2) for i, places in enumerate(found) for j in places)


def of_another_tree(x):
    found = KDTree(Q).query_ball_tree(KDTree(x), 1.2)
    return sum(np.sum((x[j] - Q[i]) ** 2) for i, places in enumerate(found) for j in places)


def within(x):
    distances, places = KDTree(x).query(Q, k=4, distance_upper_bound=1.2)
    return np.sum(np.where(places < len(x), distances, 0.0) ** 2)


FUNCTIONS = {
    "pairs": of_pairs,
    "balls": in_balls,
    "another tree": of_another_tree,
    "counts": lambda x: KDTree(x).count_neighbors(KDTree(Q), 1.2) * np.sum(x),
    "distances": lambda x: np.sum(cKDTree(x).query(Q, k=3)[0] * np.array([1.0, 2.0, 3.0])),
    "distances of the points themselves": lambda x: np.sum(KDTree(x).query(x, k=[1, 3])[0] ** 2),
    "places": lambda x: np.sum(np.sin(x[cKDTree(x).query(Q, p=1)[1]])),
    "bound": within,
    "plain points": lambda x: np.sum(cKDTree(Q).query(x, k=2)[0] ** 2) + len(cKDTree(Q).query_ball_point(x[0], 1.5)),
    "box": lambda x: np.sum(KDTree(x % 3.0, boxsize=3.0).query(Q, k=2)[0]),
    "plain tree in a box": lambda x: np.sum(BOXED.query(x)[0] ** 2),
    "data": lambda x: np.sum(KDTree(x).data ** 2 + KDTree(x).maxes) * isinstance(cKDTree(x), cKDTree),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_neighbours(name):
    """Other points have other neighbours, for which the function is recorded anew where it lists them."""
    function = FUNCTIONS[name]
    fg = yota.value_and_grad(function)
    assert yota.gradient(function, strict=True)(X) == pytest.approx(fg(X)[1], rel=1e-12)
    for x in (X, OTHER):
        value, slopes = fg(x)
        assert value == pytest.approx(function(x), rel=1e-13)
        for place in ((0, 0), (3, 1), (7, 2), (10, 1)):
            unit = np.zeros_like(x)
            unit[place] = 1.0
            wide, near = ((function(x + h * unit) - function(x - h * unit)) / (2 * h) for h in (1e-4, 5e-5))
            assert slopes[place] == pytest.approx((4 * near - wide) / 3, rel=1e-6, abs=1e-7)


def test_what_trees_do_not_tell():
    functions = (
        lambda x: KDTree(x).indices[0] * x,
        lambda x: KDTree(x).query(Q, p=x[0, 0])[0],
        lambda x: KDTree(x).sparse_distance_matrix(KDTree(Q), 1.0).toarray(),
        lambda x: KDTree(Q).sparse_distance_matrix(KDTree(x), 1.0).toarray(),
    )
    for function in functions:
        with pytest.raises(TracingError, match=r"attribute indices|by traced numbers|sparse_distance_matrix"):
            yota.gradient(lambda x: np.sum(function(x)))(X)  # noqa: B023
