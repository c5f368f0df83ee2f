"""yota, once for each target."""

from __future__ import annotations

import itertools
import types
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.peers.peer import Peer
from benchmarks.workload import Workload

__all__ = ["from_gpu", "gpu_obstacle", "to_gpu", "yota_peer"]

_NUMBERS = itertools.count()


def prepare(workload: Workload, target: str) -> Callable[..., Any]:
    import yota

    function = unseen(workload.write(np))
    if workload.jacobian:
        assert isinstance(workload.wrt, int)
        return yota.jacobian(function, workload.wrt, with_value=True, target=target)
    return yota.value_and_grad(function, wrt=workload.wrt, target=target)


def unseen(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function by a name of its own, so that no compiled file is found in the cache."""
    if not isinstance(function, types.FunctionType):
        return function
    name = f"{function.__name__}_{next(_NUMBERS)}"
    found = types.FunctionType(
        function.__code__, function.__globals__, name, function.__defaults__, function.__closure__
    )
    found.__kwdefaults__ = function.__kwdefaults__
    return found


def prepare_for_gpu(workload: Workload) -> Callable[..., Any]:
    function = prepare(workload, "cuda")

    def finished(*arguments: Any) -> tuple[Any, Any]:
        value, gradient = function(*arguments)
        # The value in main memory is what waits for the GPU.
        return (from_gpu(value) if workload.jacobian else float(value)), gradient

    return finished


def gpu_obstacle() -> str | None:
    from yota.errors import DeviceError
    from yota.run.machine import cupy as cuda

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
        return Peer("yota cuda", prepare_for_gpu, "cupy", to_gpu, from_gpu, obstacle=gpu_obstacle, large=True)
    name = "yota" if target == "numpy" else f"yota {target}"
    return Peer(name, partial(prepare, target=target), package="yota")
