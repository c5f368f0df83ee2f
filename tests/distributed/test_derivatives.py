"""Sums over chunks are those of the whole data, and what goes wrong is named by its chunk."""

from __future__ import annotations

import gc
import inspect
import pickle
import threading
import time
import types
import weakref

import numpy as np
import pytest

import yota
from tests.cuda.device import device, on_device, stand_in  # noqa: F401  (a fixture)
from yota.errors import ArgumentError, ChunkError

dask = pytest.importorskip("dask")
import dask.array as da  # noqa: E402
import dask.bag as db  # noqa: E402
from dask.order import order  # noqa: E402

from yota.distributed import hvp, jacobian, summed, sums, value_and_grad  # noqa: E402

ROWS = 103
GENERATOR = np.random.default_rng(0)
W, V = GENERATOR.normal(size=(2, 3))
DATA = GENERATOR.normal(size=(ROWS, 3))
SIGNS = np.sign(GENERATOR.normal(size=ROWS))
X, Y = da.from_array(DATA, chunks=(20, 3)), da.from_array(SIGNS, chunks=20)


def loss(w, X, y):
    return np.sum(np.logaddexp(0.0, -y * (X @ w)))


def exact(w=W, X=DATA, y=SIGNS):
    """Value and gradient, by hand."""
    margins = y * (X @ w)
    return np.sum(np.log1p(np.exp(-margins))), -X.T @ (y / (1 + np.exp(margins)))


@pytest.fixture(autouse=True)
def in_this_thread():
    with dask.config.set(scheduler="sync"):
        yield


@pytest.fixture(scope="module")
def fg():
    return value_and_grad(loss, over=("X", "y"))


def holds(found, wanted=None):
    value, gradient = wanted or exact()
    np.testing.assert_allclose(found[0], value, rtol=1e-13)
    np.testing.assert_allclose(found[1], gradient, rtol=1e-12)
    assert type(found[1]) is np.ndarray


def delayed(array, size=20):
    return [dask.delayed(array[start : start + size]) for start in range(0, len(array), size)]


def bag(array, size=7):
    return db.from_sequence([array[start : start + size] for start in range(0, len(array), size)], npartitions=4)


def test_data_in_all_forms(fg):
    empty = [dask.delayed(DATA[:0]), *delayed(DATA), dask.delayed(DATA[:0])]
    some = DATA[:, 0] > 0
    holds(fg(W, X, Y))
    holds(fg(W, y=Y, X=X))
    holds(fg(W, X, SIGNS))
    holds(fg(W, X, Y.rechunk(31)))
    holds(fg(W, delayed(DATA), delayed(SIGNS)))
    holds(fg(W, bag(DATA), bag(SIGNS)))
    holds(fg(W, empty, [dask.delayed(SIGNS[:0]), *delayed(SIGNS), dask.delayed(SIGNS[:0])]))
    holds(fg(W, X[X[:, 0] > 0], Y[X[:, 0] > 0]), exact(X=DATA[some], y=SIGNS[some]))
    holds(fg(W, X.rechunk(-1), Y.rechunk(-1)))
    holds(fg.delayed(W, X, Y).compute())
    holds(pickle.loads(pickle.dumps(fg))(W, X, Y))


def test_one_compilation_for_all_sizes(fg, monkeypatch):
    from yota.api import all_sizes as allsizes

    made = []
    monkeypatch.setattr(allsizes, "collected", lambda *_: made.append(1))
    for size in (1, 2, 19, 50):
        holds(fg(W, X.rechunk((size, 3)), Y.rechunk(size)))
    assert not made


def test_tasks_have_names_to_read(fg):
    names = {
        str(key[0] if isinstance(key, tuple) else key).rpartition("-")[0] for key in dict(fg.delayed(W, X, Y).dask)
    }
    assert {"value_and_grad_of_loss", "total_of_loss"} <= names


def test_the_same_bits_in_any_order(fg):
    wanted = fg(W, X, Y)
    with dask.config.set(scheduler="threads", num_workers=3):
        found = fg(W, X, Y)
    assert found[0] == wanted[0]
    assert np.array_equal(found[1], wanted[1])


def test_the_same_bits_however_many_chunks_a_task_has(fg, monkeypatch):
    small = da.from_array(DATA, chunks=(4, 3)), da.from_array(SIGNS, chunks=4)
    wanted = fg(W, *small)
    for most in (1, 2, 16):
        monkeypatch.setattr("yota.distributed.summed._starts", lambda found, _, most=most: in_tasks(found, most))
        fg._forget(None)
        assert len(fg.delayed(W, *small).dask) == -(-26 // most) + 1 + 2 * (most == 1)
        found = fg(W, *small)
        assert found[0] == wanted[0]
        assert np.array_equal(found[1], wanted[1])


def test_the_tasks_of_the_same_data_are_made_once_and_not_kept_longer(fg, monkeypatch):
    def counted(*_):
        raise AssertionError

    blocks, signs = delayed(DATA), delayed(SIGNS)
    holds(fg(W, blocks, signs))
    with monkeypatch.context() as patch:
        patch.setattr("yota.distributed.summed.sources", counted)
        holds(fg(W, [*blocks], signs))
    # Other data of the same names.
    twice = [dask.delayed(lambda each: 2 * each)(each, dask_key_name=f"block-{at}") for at, each in enumerate(blocks)]
    thrice = [dask.delayed(lambda each: 3 * each)(each, dask_key_name=f"block-{at}") for at, each in enumerate(blocks)]
    holds(fg(W, twice, signs), exact(X=2 * DATA))
    holds(fg(W, thrice, signs), exact(X=3 * DATA))
    assert fg._groups is not None
    del thrice[0]
    gc.collect()
    assert fg._groups is None


def find_groups(task):
    return [each for each in task if isinstance(each, sums.Group)] if isinstance(task, tuple) else []


def in_tasks(found, size):
    """Where tasks of ``size`` chunks start."""
    return [*range(0, len(found), size), len(found)]


def test_the_same_bits_where_the_last_tasks_are_smaller(fg, monkeypatch):
    small = da.from_array(DATA, chunks=(2, 3)), da.from_array(SIGNS, chunks=2)
    monkeypatch.setattr("yota.distributed.summed._starts", lambda found, _: in_tasks(found, 1))
    wanted = fg(W, *small)
    monkeypatch.undo()
    for threads in (1, 2, 3, 5):
        monkeypatch.setattr("yota.distributed.summed._threads", lambda threads=threads: threads)
        found = fg(W, *small)
        assert found[0] == wanted[0]
        assert np.array_equal(found[1], wanted[1])
    for threads, sizes in ((2, [32, 32, 8, 8, 4, 4, 4, 4, 2, 2]), (5, [4] * 25)):
        assert np.diff(summed._starts([types.SimpleNamespace(others=frozenset())] * 100, threads)).tolist() == sizes
    for count, threads in np.ndindex(200, 20):
        starts = summed._starts([types.SimpleNamespace(others=frozenset())] * (count + 1), threads + 1)
        sizes = np.diff(starts)
        assert starts[-1] == count + 1
        assert np.all(np.diff(sizes) <= 0)
        assert not any(start % size for start, size in zip(starts, sizes[:-1], strict=False))


def test_dask_runs_the_last_and_smallest_tasks_last(fg, monkeypatch):
    monkeypatch.setattr("yota.distributed.summed._starts", lambda *_: [0, 6, 10, 12])
    graph = dict(fg.delayed(W, da.from_array(DATA[:12], chunks=(1, 3)), da.from_array(SIGNS[:12], chunks=1)).dask)
    places = order(graph)
    groups = {each.first: key for key, task in graph.items() for each in find_groups(task)}
    assert len(groups) == 3
    assert sorted(groups, key=lambda first: places[groups[first]]) == [0, 6, 10]


def test_a_chunk_is_read_once_and_held_alone(fg):
    read = []

    def pair(start):
        assert not any(array() is not None for array in read)
        both = np.column_stack([DATA, SIGNS])[start : start + 4]
        read.append(weakref.ref(both))
        return both

    pairs = [dask.delayed(pair)(start) for start in range(0, ROWS, 4)]
    holds(fg(W, [each[:, :3] for each in pairs], [each[:, 3] for each in pairs]))
    # One is looked at for each argument.
    assert len(read) == len(pairs) + 2
    read.clear()
    array = da.concatenate([da.from_delayed(each, (np.nan, 4), float) for each in pairs])
    holds(fg(W, array[:, :3], array[:, 3] * 1.0))
    assert len(read) == len(pairs)


def test_the_next_chunk_is_read_while_one_is_computed(fg, monkeypatch):
    """A reader that waits: each chunk but the first of a task comes from the thread, unless that cannot read it."""
    threads = []

    def read(array, start, failing):
        time.sleep(0.005)
        threads.append(threading.current_thread())
        if failing and threading.current_thread() is not threading.main_thread():
            raise OSError("only in the thread of the task")
        return array[start : start + 20]

    monkeypatch.setattr("yota.distributed.summed._starts", lambda found, _: in_tasks(found, 4))
    for failing in (False, True):
        blocks = [
            [dask.delayed(read)(array, start, failing) for start in range(0, ROWS, 20)] for array in (DATA, SIGNS)
        ]
        # Types are found before.
        fg.delayed(W, *blocks)
        threads.clear()
        holds(fg(W, *blocks))
        ahead = sum(each is not threading.main_thread() for each in threads)
        assert (ahead, len(threads) - ahead) == ((4, 12) if failing else (8, 4))
    monkeypatch.setattr("yota.distributed.sums._MOST_AHEAD", 100)
    threads.clear()
    holds(fg(W, *blocks))
    assert {*threads} == {threading.main_thread()}


def test_large_arguments_are_sent_once(fg):
    wide = np.ones((40, 20_000))
    blocks = [dask.delayed(wide[start : start + 4]) for start in range(0, 40, 4)]
    found = value_and_grad(lambda w, X: np.sum((X @ w) ** 2), over="X")
    assert len([key for key in dict(found.delayed(np.ones(20_000), blocks).dask) if "arguments" in str(key)]) == 1
    value, gradient = found(np.ones(20_000), blocks)
    assert value == 40 * 20_000**2
    assert np.array_equal(gradient, np.full(20_000, 2.0 * 40 * 20_000))


def test_a_function_with_large_constants_is_sent_once():
    known = np.ones(40_000)
    found = value_and_grad(lambda w, X: np.sum((X @ w) ** 2) * np.sum(known), over="X")
    blocks = [dask.delayed(np.ones((4, 2))) for _ in range(10)]
    assert len([key for key in dict(found.delayed(np.ones(2), blocks).dask) if "arguments" in str(key)]) == 1
    assert found(np.ones(2), blocks)[0] == 160 * 40_000


def test_what_chunks_share_is_made_once(fg):
    centred = X - X.mean(axis=0)
    holds(fg(W, centred, Y), exact(X=DATA - DATA.mean(axis=0)))
    with dask.annotate(retries=3):
        blocks = delayed(DATA)
    holds(fg(W, blocks, delayed(SIGNS)))
    holds(fg(W, X.persist(), Y))


def test_arrays_on_disk(fg, tmp_path):
    pytest.importorskip("zarr")
    for name, array in (("X", DATA), ("y", SIGNS)):
        da.from_array(array, chunks=(20, -1)[: array.ndim]).to_zarr(str(tmp_path / name))
        da.to_npy_stack(tmp_path / f"{name}.npy", da.from_array(array, chunks=(20, -1)[: array.ndim]))
    holds(fg(W, *(da.from_zarr(str(tmp_path / name)) for name in ("X", "y"))))
    holds(fg(W, *(da.from_npy_stack(tmp_path / f"{name}.npy") for name in ("X", "y"))))


def test_the_same_bits_wherever_arrays_lie(fg):
    def shifted(array):
        memory = np.empty(array.nbytes + 1, np.uint8)[1:]
        found = memory.view(array.dtype).reshape(array.shape)
        found[...] = array
        return found

    wanted = fg(W, delayed(DATA), delayed(SIGNS))
    found = fg(shifted(W), *([dask.delayed(shifted)(each) for each in delayed(array)] for array in (DATA, SIGNS)))
    assert found[0] == wanted[0]
    assert np.array_equal(found[1], wanted[1])


def test_means_are_weighted_by_samples():
    def ridge(w, X, y):
        return np.mean((X @ w - y) ** 2) + np.sum(w**2)

    residuals = DATA @ W - SIGNS
    wanted = np.mean(residuals**2) + W @ W, 2 * DATA.T @ residuals / ROWS + 2 * W
    holds(value_and_grad(ridge, over=("X", "y"), reduction="mean")(W, X, Y), wanted)
    with pytest.raises(ChunkError, match=r"chunk 0 .*ridge is no sum over samples.*reduction=\"mean\""):
        value_and_grad(ridge, over=("X", "y"))(W, X, Y)
    with pytest.raises(ArgumentError, match="'sum' or 'mean'"):
        value_and_grad(ridge, over=("X", "y"), reduction="max")


@pytest.mark.parametrize(
    "wrong",
    [
        lambda w, X: np.sum(X @ w) + np.sum(np.abs(w)),
        lambda w, X: np.max(X @ w),
        lambda w, X: np.sum(X @ w) ** 2,
        lambda w, X: np.std(X @ w),
    ],
)
def test_what_is_no_sum_is_refused(wrong):
    with pytest.raises(ChunkError, match="no sum over samples"):
        value_and_grad(wrong, over="X")(W, X)
    value_and_grad(wrong, over="X", check=False)(W, X)


def test_a_penalty_is_found_where_it_counts():
    # At zero it has neither value nor slope.
    penalised = value_and_grad(lambda w, X: np.sum((X @ w) ** 2) + np.sum(w**2), over="X")
    assert penalised(0 * W, X)[0] == 0
    with pytest.raises(ChunkError, match=r"chunk 1 .*no sum over samples"):
        penalised(W, X)


def test_structures_numbers_and_several_arguments():
    def network(p, scale, X, y):
        return np.sum((scale * np.tanh(X @ p["a"]) + p["b"] - y) ** 2)

    p = {"a": W, "b": 0.5}
    wanted = yota.value_and_grad(network, (0, 1))(p, 2.0, DATA, SIGNS)
    value, (by_p, by_scale) = value_and_grad(network, (0, 1), over=(2, -1))(p, 2.0, X, Y)
    np.testing.assert_allclose(value, wanted[0], rtol=1e-13)
    np.testing.assert_allclose(by_p[("a",)], wanted[1][0][("a",)], rtol=1e-12)
    np.testing.assert_allclose([by_p[("b",)], by_scale], [wanted[1][0][("b",)], wanted[1][1]], rtol=1e-12)


def test_what_has_no_form_for_all_sizes():
    def looped(w, X):
        return sum((row @ w) ** 2 for row in X)

    def branching(w, X):
        return np.sum(X @ w) if w[0] > 0 else np.sum((X @ w) ** 2)

    for function in (looped, branching):
        for w in (W, -W):
            wanted = yota.value_and_grad(function)(w, DATA)
            holds(value_and_grad(function, over="X")(w, X), wanted)


def test_what_it_reads_from_outside_may_change():
    scale = [1.0]
    slope = value_and_grad(lambda w, X: scale[0] * np.sum(X @ w), over="X")
    for scale[0] in (1.0, 3.0):
        np.testing.assert_allclose(slope(W, X)[1], scale[0] * DATA.sum(0), rtol=1e-12)


def test_products_with_hessians():
    curvature = np.exp(-SIGNS * (DATA @ W)) / (1 + np.exp(-SIGNS * (DATA @ W))) ** 2
    for wrt in (0, "w", -3):
        found = hvp(loss, wrt, over=("X", "y"))(W, X, Y, V)
        np.testing.assert_allclose(found, DATA.T @ (curvature * (DATA @ V)), rtol=1e-11)
    product = hvp(loss, over=("X", "y"))
    assert str(inspect.signature(product)) == "(w, X, y, v, /)"
    with pytest.raises(ChunkError, match="direction has shape"):
        product(W, X, Y, V[:2])


def test_jacobians_stay_in_chunks():
    def rows(w, X):
        return np.tanh(X @ w)

    found = jacobian(rows, over="X")(W, X)
    assert found.chunks == ((20,) * 5 + (3,), (3,))
    np.testing.assert_allclose(found.compute(), DATA / np.cosh(DATA @ W)[:, None] ** 2, rtol=1e-12)
    for wrong in (lambda w, X: np.cumsum(X @ w), lambda w, X: X.T @ X @ w, lambda w, X: np.sum(X @ w)):
        with pytest.raises(ArgumentError, match="does not compute a row for each sample by itself"):
            jacobian(wrong, over="X")(W, X)


def test_what_stays_in_chunks_is_compiled_once_for_all_sizes(caplog):
    sizes = (20, 17, 33, 0, 30, 1, 2)
    uneven = da.from_array(DATA, chunks=(sizes, 3))
    unknown = uneven[uneven[:, 0] > -np.inf]

    def network(p, scale, X):
        return np.stack([np.tanh(X @ p["a"]), scale * (X @ p["a"]) ** 2], axis=1)

    def both(x, w):
        return np.sum(np.sin(x) * w), {"shared": w**2, "row": x / w}

    p = {"a": W}
    sech, linear = 1 / np.cosh(DATA @ W) ** 2, DATA @ W
    by_a = np.stack([sech[:, None] * DATA, 4.0 * linear[:, None] * DATA], axis=1)
    by_scale = np.stack([np.zeros(ROWS), linear**2], axis=1)
    for points in (uneven, unknown):
        made = [
            jacobian(network, ("p", "scale"), over="X")(p, X=points, scale=2.0),
            yota.batch(both, over="x", out_axes=(0, {"shared": None, "row": 0}))(points, W),
            yota.batch(yota.hessian(lambda x: np.prod(x)))(points),
        ]
        with caplog.at_level("INFO", logger="yota"):
            caplog.clear()
            ((found, scale), (value, parts), curve) = dask.compute(*made, scheduler="sync")
        assert not [each for each in caplog.messages if "compiled" in each]
        np.testing.assert_allclose(found[("a",)], by_a, rtol=1e-12)
        np.testing.assert_allclose(scale, by_scale, rtol=1e-12)
        np.testing.assert_allclose(value, np.sin(DATA) @ W, rtol=1e-12)
        np.testing.assert_allclose(parts["shared"], W**2)
        np.testing.assert_allclose(parts["row"], DATA / W, rtol=1e-12)
        np.testing.assert_allclose(curve[:, 0, 1], DATA[:, 2], rtol=1e-12)
        assert curve.shape == (ROWS, 3, 3)


def test_a_branch_on_points_has_code_for_each_size():
    def point(x):
        return np.sum(x**2) if x[0] > 0 else 3 * np.sum(x)

    signed = np.abs(DATA)
    signed[50:83] *= -1
    wanted = np.where(signed[:, 0] > 0, np.sum(DATA**2, axis=1), 3 * np.sum(signed, axis=1))
    uneven = da.from_array(signed, chunks=((50, 33, 20), 3))
    np.testing.assert_allclose(yota.batch(point)(uneven).compute(scheduler="sync"), wanted, rtol=1e-12)
    single = uneven.astype(np.float32)
    found = yota.batch(lambda x: np.sum(x**2))(single)
    assert found.compute().dtype == found.dtype == np.float32


def test_batches_over_chunks():
    def point(x, w):
        return {"value": np.sum(np.sin(x) * w), "twice": (2 * x,)}

    found = yota.batch(point, over="x")(X, W)
    np.testing.assert_allclose(found["value"].compute(), np.sin(DATA) @ W, rtol=1e-12)
    assert np.array_equal(found["twice"][0].compute(), 2 * DATA)
    slope = yota.batch(yota.gradient(lambda x, w: np.sum(np.sin(x) * w)), over="x")
    np.testing.assert_allclose(slope(X, W).compute(), np.cos(DATA) * W, rtol=1e-12)
    unknown = slope(X[X[:, 0] > 0], W)
    assert np.isnan(unknown.shape[0])
    np.testing.assert_allclose(unknown.compute(), (np.cos(DATA) * W)[DATA[:, 0] > 0], rtol=1e-12)
    along_columns = yota.batch(lambda x, y: x * y, in_axes=-1, out_axes=-1)(X.T, DATA.T)
    assert np.array_equal(along_columns.compute(), DATA.T**2)
    hessian = yota.batch(yota.hessian(lambda x: np.prod(x)))(X).compute()
    assert hessian.shape == (ROWS, 3, 3)
    np.testing.assert_allclose(hessian[:, 0, 1], DATA[:, 2], rtol=1e-12)
    with pytest.raises(ArgumentError, match=r"what is the same for all points is in memory"):
        slope(X, da.from_array(W))


def test_chunks_on_a_gpu(device):  # noqa: F811
    blocks = [[dask.delayed(on_device)(each) for each in delayed(array)] for array in (DATA, SIGNS)]
    slope = value_and_grad(loss, over=("X", "y"))
    holds(slope(W, *blocks))
    assert stand_in().launches
    stand_in().launches.clear()
    holds(slope(W, *(each.map_blocks(on_device, meta=on_device(each._meta)) for each in (X, Y))))
    assert stand_in().launches


def test_not_a_number_stays_in_the_sum(fg):
    bad = DATA.copy()
    bad[50, 1] = np.nan
    value, gradient = fg(W, da.from_array(bad, chunks=(20, 3)), Y)
    assert np.isnan([value, *gradient]).all()


def failing(number):
    if number == 3:
        raise OSError("no such disk")
    return DATA[20 * number : 20 * number + 20]


FAULTS = {
    "another number of samples": (lambda: (X, Y[:50]), ArgumentError, "y has 50 samples in 3 chunks, and X has 103"),
    "unknown sizes": (lambda: (X, Y[Y > 0]), ChunkError, r"chunk \d of X and y, of loss.*\(X: \d+, y: \d+\)"),
    "unknown, not as many": (
        lambda: (X, delayed(SIGNS)[:2]),
        ArgumentError,
        r"unknown number of samples in 2 chunks.*y\.compute_chunk_sizes",
    ),
    "columns": (lambda: (X.rechunk((20, 1)), Y), ArgumentError, r"X = X\.rechunk\(\{1: -1\}\)"),
    "arrays": (lambda: (DATA, SIGNS), ArgumentError, "For arrays in memory: yota.value_and_grad"),
    "an array too short": (lambda: (X, SIGNS[:-1]), ArgumentError, r"y has shape \(102,\), and X has 103 samples"),
    "no samples": (lambda: (X[:0], Y[:0]), ChunkError, "all chunks of X and y, of loss, are empty"),
    "no chunks": (lambda: ([], []), ArgumentError, "X has no chunks"),
    "a number": (lambda: (3, Y), ArgumentError, "argument X is a builtins.int"),
    "a loader that raises": (
        lambda: ([dask.delayed(failing)(number) for number in range(6)], delayed(SIGNS)),
        ChunkError,
        "chunk 3 of the data of loss could not be made: OSError: no such disk",
    ),
    "columns of one chunk": (
        lambda: ([*delayed(DATA)[:5], dask.delayed(DATA[100:, :2])], delayed(SIGNS)),
        ChunkError,
        r"chunk 5 of X and y, of loss, with blocks of shape \(3, 2\), \(3,\)",
    ),
}


def test_readers_that_raise_are_named_where_results_stay_in_chunks():
    blocks = [dask.delayed(failing)(number) for number in range(6)]
    points = da.concatenate([da.from_delayed(each, (20, 3), float) for each in blocks])
    rows = jacobian(lambda w, X: np.tanh(X @ w), over="X")(W, blocks)
    for found in (rows, yota.batch(yota.gradient(lambda x: np.sum(x**3)))(points)):
        with pytest.raises(ChunkError, match=r"chunk 3 of the data of .* could not be made: OSError: no such disk"):
            found.compute()
        np.testing.assert_allclose(found.blocks[1].compute(), found.blocks[:2].compute()[20:])


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_named(fg, name):
    data, kind, pattern = FAULTS[name]
    with pytest.raises(kind, match=pattern):
        fg(W, *data())


def test_wrong_use_is_named(fg):
    with pytest.raises(ArgumentError, match="argument w is in chunks; name it in over="):
        fg(da.from_array(W), X, Y)
    with pytest.raises(ArgumentError, match="over='z' is no argument of this call; it has w, X, y"):
        value_and_grad(loss, over="z")(W, X, Y)
    with pytest.raises(ArgumentError, match="wrt='X' holds samples"):
        value_and_grad(loss, ("w", "X"), over=("X", "y"))(W, X, Y)
