"""The function itself, without its gradient: what all ratios are measured against."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.peers.peer import Peer
from benchmarks.workload import Workload

__all__ = ["PEER"]


def prepare(workload: Workload) -> Callable[..., Any]:
    return workload.write(np)


PEER = Peer("plain", prepare, differentiates=False)
