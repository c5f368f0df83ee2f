"""Who takes part on a GPU besides yota and JAX: compiled PyTorch, and what a person writes with CuPy or in CUDA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.peers.peer import Peer, specific_text
from benchmarks.peers.torch import TorchAsNumPy
from benchmarks.peers.torch import place as torch_place
from benchmarks.peers.yota import from_gpu, gpu_obstacle, to_gpu
from benchmarks.workload import Workload, flatten

__all__ = ["FUSED", "HAND_CUDA", "JAX", "TORCH_COMPILED"]


def prepare_torch(workload: Workload) -> Callable[..., Any]:
    import torch

    function = torch.compile(workload.write(TorchAsNumPy()), dynamic=False)

    def value_and_gradient(*arguments: Any) -> Any:
        inputs = [leaf for position in workload.positions for leaf in flatten(arguments[position])]
        for leaf in inputs:
            leaf.requires_grad_(True)
        value = function(*arguments)
        found = torch.autograd.grad(value, inputs)
        # The value as a Python number is what waits for the GPU; the gradient comes after it on the same stream.
        if value.is_cuda:
            torch.cuda.synchronize()
        return float(value.detach()), found

    return value_and_gradient


def place_torch(argument: Any) -> Any:
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    if isinstance(argument, dict):
        return {key: place_torch(value) for key, value in argument.items()}
    if isinstance(argument, list):
        return [place_torch(value) for value in argument]
    return torch_place(argument).to(device)


def fetch_torch(array: Any) -> Any:
    return array if isinstance(array, float) else np.asarray(array.detach().cpu())


def no_device_of_torch() -> str | None:
    import torch

    return None if torch.cuda.is_available() else "PyTorch finds no GPU"


def no_device_of_jax() -> str | None:
    import jax

    try:
        jax.devices("gpu")
    except RuntimeError as error:
        return f"JAX finds no GPU: {str(error).splitlines()[0]}"
    return None


def _jax() -> Peer:
    from dataclasses import replace

    from benchmarks.peers import jax

    return replace(jax.PEER, obstacle=no_device_of_jax, large=True)


JAX = _jax()
TORCH_COMPILED = Peer(
    "torch compiled", prepare_torch, "torch", place_torch, fetch_torch, obstacle=no_device_of_torch, large=True
)
FUSED = Peer("cupy fuse", specific_text("cupy fuse"), "cupy", to_gpu, from_gpu, obstacle=gpu_obstacle, large=True)
HAND_CUDA = Peer("hand cuda", specific_text("hand cuda"), "cupy", to_gpu, from_gpu, obstacle=gpu_obstacle, large=True)
