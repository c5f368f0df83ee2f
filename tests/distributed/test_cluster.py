"""A cluster of processes: the same bits, with a worker killed too; nothing is traced there; errors name chunks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.processes import in_new_process

pytest.importorskip("dask")
pytest.importorskip("distributed")

PROGRAM = """
import os, re, signal
import dask, dask.array as da, numpy as np
import yota
from distributed import Client, LocalCluster
from yota.distributed import sums, value_and_grad

def loss(w, X, y):
    return np.sum(np.logaddexp(0.0, -y * (X @ w)))

def block(number, marker=""):
    if marker and number == 5 and not os.path.exists(marker):
        if marker != "always":
            open(marker, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    if not marker and number == 7:
        raise OSError(f"no disk {number}")
    return np.random.default_rng(number).normal(size=(200 + number, 3))

def signs(number):
    return np.sign(np.random.default_rng(100 + number).normal(size=200 + number))

def reasons():
    return {each.why for function, _ in sums._loaded.values() for each in function.info().compilations}

def fill_disk():
    def write(*_):
        raise OSError(28, "No space left on device")
    from yota.run.machine.store import Store
    Store.write = write

def same(one, other):
    return one[0] == other[0] and np.array_equal(one[1], other[1])

if __name__ == "__main__":
    w, marker = np.array([0.5, -1.0, 2.0]), os.path.abspath("killed")
    X = [dask.delayed(block)(number, __file__) for number in range(24)]
    y = [dask.delayed(signs)(number) for number in range(24)]
    fg = value_and_grad(loss, over=("X", "y"))
    near = fg(w, X, y)
    dask.config.set({"distributed.logging.distributed": "critical"})
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster) as client:
        client.run(os.environ.__setitem__, "YOTA_CACHE_DIR", os.path.abspath("of-workers"))
        client.run(fill_disk)
        # Of the same number of threads there are the same bits; workers have one each.
        wanted = fg(w, X, y)
        assert np.allclose(wanted[0], near[0], rtol=1e-14), (wanted, near)
        assert np.allclose(wanted[1], near[1], rtol=1e-12), (wanted, near)
        found = client.run(reasons)
        assert all("frozen" in why for whys in found.values() for why in whys) and any(found.values()), found
        print("nothing traced")
        try:
            fg(w, [dask.delayed(block)(number) for number in range(24)], y)
        except yota.errors.ChunkError as fault:
            print(fault)
        assert same(fg(w, [dask.delayed(block)(number, marker) for number in range(24)], y), wanted)
        assert os.path.exists(marker)
        print("killed")
        held = client.persist(X)
        assert same(fg(w, held, y), wanted)
        scale = da.from_array(np.arange(6.0), chunks=2)
        print(yota.batch(lambda x: x**2)(scale).compute().tolist())
        cluster.scheduler.allowed_failures = 0
        try:
            fg(w, [dask.delayed(block)(number, "always") for number in range(24)], y)
        except yota.errors.ChunkError as fault:
            print(re.sub(r"[0-9]+( to [0-9]+)?", "N", str(fault)).partition(": Attempted")[0])
"""


def test_a_cluster_of_processes(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("YOTA_CACHE", "on")
    monkeypatch.setenv("YOTA_CACHE_DIR", str(tmp_path / "cache"))
    assert in_new_process(tmp_path, PROGRAM, timeout=280).splitlines() == [
        "nothing traced",
        "chunk 7 of the data of loss could not be made: OSError: no disk 7",
        "killed",
        "[0.0, 1.0, 4.0, 9.0, 16.0, 25.0]",
        # Which of the tasks that the worker had killed it cannot be told.
        "chunk N of the data of loss could not be made: KilledWorker",
    ]
