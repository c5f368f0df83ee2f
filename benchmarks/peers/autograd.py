"""autograd: the tape of NumPy calls, interpreted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.peers.peer import Peer
from benchmarks.workload import Workload

__all__ = ["PEER"]


def prepare(workload: Workload) -> Callable[..., Any]:
    import autograd.numpy
    from autograd import jacobian, value_and_grad

    if workload.jacobian:
        function = workload.write(autograd.numpy)
        matrix = jacobian(function, workload.wrt)
        return lambda *arguments: (function(*arguments), matrix(*arguments))
    return value_and_grad(workload.write(autograd.numpy), workload.wrt)


PEER = Peer("autograd", prepare, package="autograd")
