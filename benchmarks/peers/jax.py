"""JAX: jitted, in 64 bits, on its own arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.peers.peer import Peer
from benchmarks.workload import Workload

__all__ = ["PEER"]


def prepare(workload: Workload) -> Callable[..., Any]:
    import jax

    function = workload.write(jax.numpy)
    if workload.jacobian:
        matrix = jax.jacfwd(function, workload.wrt)
        compiled = jax.jit(lambda *arguments: (function(*arguments), matrix(*arguments)))
    else:
        compiled = jax.jit(jax.value_and_grad(function, workload.wrt))

    def value_and_gradient(*arguments: Any) -> Any:
        result = compiled(*arguments)
        # All results of one computation are ready together.
        result[0].block_until_ready()
        return result

    return value_and_gradient


def place(argument: Any) -> Any:
    import jax

    jax.config.update("jax_enable_x64", True)
    return jax.tree_util.tree_map(jax.numpy.asarray, argument)


PEER = Peer("jax", prepare, package="jax", place=place, fetch=np.asarray)
