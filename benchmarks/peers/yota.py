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

    return yota.value_and_grad(workload.write(np), wrt=workload.wrt, target=target)


def yota_peer(target: str) -> Peer:
    """The column for one target; NumPy's is plainly ``yota``."""
    name = "yota" if target == "numpy" else f"yota {target}"
    return Peer(name, partial(prepare, target=target), package="yota")
