"""PyTorch: eager, in 64 bits, on its own tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.peers.peer import Peer
from benchmarks.workload import Workload, flatten

__all__ = ["PEER"]


class TorchAsNumPy:
    """The few NumPy spellings in the workloads that PyTorch spells otherwise."""

    def __getattr__(self, name: str) -> Any:
        import torch

        return getattr(torch, name)

    @staticmethod
    def max(a: Any, axis: int, keepdims: bool = False) -> Any:
        return a.amax(dim=axis, keepdim=keepdims)

    @staticmethod
    def maximum(a: Any, other: float) -> Any:
        return a.clamp(min=other)

    @staticmethod
    def concatenate(arrays: Any, axis: int = 0) -> Any:
        import torch

        return torch.cat(arrays, dim=axis)


def prepare(workload: Workload) -> Callable[..., Any]:
    import torch

    function = workload.write(TorchAsNumPy())
    if workload.jacobian:
        return lambda x: (function(x), torch.autograd.functional.jacobian(function, x))

    def value_and_gradient(*arguments: Any) -> Any:
        inputs = [leaf for position in workload.positions for leaf in flatten(arguments[position])]
        for leaf in inputs:
            leaf.requires_grad_(True)
        value = function(*arguments)
        return value.detach(), torch.autograd.grad(value, inputs)

    return value_and_gradient


def place(argument: Any) -> Any:
    import torch

    if isinstance(argument, dict):
        return {key: place(value) for key, value in argument.items()}
    if isinstance(argument, list):
        return [place(value) for value in argument]
    return torch.tensor(argument)


def fetch(array: Any) -> Any:
    return array.numpy()


PEER = Peer("torch", prepare, package="torch", place=place, fetch=fetch)
