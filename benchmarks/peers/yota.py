"""yota, once for each target."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.peers.peer import Peer
from benchmarks.workload import Workload

__all__ = ["yota_peer"]


def prepare(workload: Workload, target: str) -> Callable[..., Any]:
    import yota

    if workload.jacobian:
        assert isinstance(workload.wrt, int)
        return yota.jacobian(workload.write(np), workload.wrt, with_value=True, target=target)
    return yota.value_and_grad(workload.write(np), wrt=workload.wrt, target=target)


def prepare_for_gpu(workload: Workload) -> Callable[..., Any]:
    function = prepare(workload, "cuda")

    def finished(*arguments: Any) -> tuple[float, Any]:
        value, gradient = function(*arguments)
        # The value as a Python number is what waits for the GPU.
        return float(value), gradient

    return finished


def gpu_obstacle() -> str | None:
    from yota.errors import DeviceError
    from yota.runtime import cuda

    try:
        cuda.cupy()
    except DeviceError as error:
        return str(error)
    return None


def to_gpu(value: Any) -> Any:
    import yota

    return yota.to_cuda(value)


def from_gpu(value: Any) -> Any:
    import yota

    return yota.to_cpu(value)


def yota_peer(target: str) -> Peer:
    """The column for one target; NumPy's is plainly ``yota``."""
    if target == "cuda":
        return Peer("yota cuda", prepare_for_gpu, "cupy", to_gpu, from_gpu, obstacle=gpu_obstacle)
    name = "yota" if target == "numpy" else f"yota {target}"
    return Peer(name, partial(prepare, target=target), package="yota")
