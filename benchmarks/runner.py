"""Run one workload: prepare the contenders, compare their gradients, then time them in turn."""

from __future__ import annotations

import copy
import statistics
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.peers import Peer
from benchmarks.timing import Call, interleave, seconds
from benchmarks.workload import Workload, flatten

__all__ = ["Settings", "WrongGradientError", "run_workload"]

# Largest difference of two gradients, measured against the largest component, by the bytes of a number.
TOLERANCE = {8: 1e-9, 4: 2e-4}


class WrongGradientError(AssertionError):
    """Two contenders disagree: nothing is timed."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How to measure.

    Parameters
    ----------
    repeats
        Rounds of the round robin.
    shortest
        Seconds that one sample lasts at least.
    fresh
        How often the first gradient is measured; not at all at 0.
    quick
        Whether to use small arguments.
    """

    repeats: int = 15
    shortest: float = 0.02
    fresh: int = 3
    quick: bool = False


def run_workload(workload: Workload, peers: list[Peer], settings: Settings) -> dict[str, Any]:
    """Measure all peers on one workload; those that cannot take part are listed with the reason."""
    arguments = workload.arguments(settings.quick)
    calls: dict[str, Call] = {}
    skipped: dict[str, str] = {}
    first: dict[str, float] = {}
    for peer in peers:
        call = prepare(peer, workload, arguments, settings)
        if isinstance(call, str):
            skipped[peer.name] = call
            continue
        calls[peer.name] = call
        if peer.differentiates and settings.fresh:
            first[peer.name] = first_gradient(peer, workload, arguments, settings.fresh)
    compare({peer: calls[peer.name]() for peer in peers if peer.name in calls}, workload)
    timings = interleave(calls, settings.repeats, settings.shortest)
    return {
        "title": workload.title,
        "single": workload.single,
        "skipped": skipped,
        "contenders": {name: {**timing.as_dictionary(), "first": first.get(name)} for name, timing in timings.items()},
    }


def prepare(peer: Peer, workload: Workload, arguments: tuple[Any, ...], settings: Settings) -> Call | str:
    """The peer's call with arguments of its own, or why there is none."""
    if workload.large and not peer.large and not settings.quick:
        return "has no GPU to do this on"
    if peer.absent:
        return peer.absent
    placed = tuple(peer.place(copy.deepcopy(argument)) for argument in arguments)
    function = peer.prepare(workload)
    return "has no version of this workload" if function is None else Call(function, placed)


def first_gradient(peer: Peer, workload: Workload, arguments: tuple[Any, ...], fresh: int) -> float:
    """Median time from a function never seen before to its first gradient.

    The library itself is warm: importing it, and what it does once for each process, is measured elsewhere.
    """
    placed = tuple(peer.place(argument) for argument in arguments)

    def whole() -> None:
        function = peer.prepare(workload)
        assert function is not None
        function(*placed)

    whole()
    return statistics.median(seconds(whole) for _ in range(fresh))


def compare(results: dict[Peer, Any], workload: Workload) -> None:
    """Demand one value and one gradient from all; yota's own is the one that the others are compared with."""
    normal = {peer: normalise(peer, result) for peer, result in results.items()}
    differentiating = [peer for peer in normal if peer.differentiates]
    if not differentiating:
        return
    value, gradient = normal[differentiating[0]]
    for peer, (other_value, other_gradient) in normal.items():
        agree(workload, f"value of {peer.name}", value, other_value)
        if not peer.differentiates:
            continue
        if len(gradient) != len(other_gradient):
            raise WrongGradientError(f"{workload.name}: {peer.name} gives {len(other_gradient)} arrays")
        for one, other in zip(gradient, other_gradient, strict=True):
            agree(workload, f"gradient of {peer.name}", one, other)


def normalise(peer: Peer, result: Any) -> tuple[np.ndarray, list[np.ndarray]]:
    """Value and gradient as NumPy arrays."""
    value, gradient = result if peer.differentiates else (result, ())
    return np.asarray(peer.fetch(value)), [np.asarray(peer.fetch(array)) for array in flatten(gradient)]


def agree(workload: Workload, what: str, expected: np.ndarray, found: np.ndarray) -> None:
    """Demand equality up to rounding."""
    if expected.shape != found.shape:
        raise WrongGradientError(f"{workload.name}: {what} has shape {found.shape}, expected {expected.shape}")
    scale = float(np.max(np.abs(expected), initial=0.0)) or 1.0
    difference = float(np.max(np.abs(expected - found), initial=0.0)) / scale
    if not difference <= TOLERANCE[min(expected.dtype.itemsize, found.dtype.itemsize)]:
        raise WrongGradientError(f"{workload.name}: {what} differs by {difference:.1e}")
