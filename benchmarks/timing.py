"""Time several calls against each other: in turn, many times over, by their medians."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from timeit import Timer
from typing import Any

__all__ = ["Call", "Timing", "interleave", "seconds"]


@dataclass(frozen=True, slots=True)
class Call:
    """A call to time; kept apart from its arguments so that nothing but the call is timed."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]

    def __call__(self) -> Any:
        return self.function(*self.arguments)

    def timer(self) -> Timer:
        """A loop over the bare call."""
        names = [f"a{i}" for i in range(len(self.arguments))]
        scope = {"function": self.function, **dict(zip(names, self.arguments, strict=True))}
        return Timer(f"function({', '.join(names)})", globals=scope)


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of one call, over all repeats."""

    samples: tuple[float, ...]
    loops: int

    @property
    def median(self) -> float:
        return statistics.median(self.samples)

    def as_dictionary(self) -> dict[str, Any]:
        return {
            "median": self.median,
            "minimum": min(self.samples),
            "maximum": max(self.samples),
            "loops": self.loops,
            "repeats": len(self.samples),
        }


def interleave(calls: Mapping[str, Call], repeats: int, shortest: float) -> dict[str, Timing]:
    """Time each call ``repeats`` times in round robin, each time in a loop of at least ``shortest`` seconds.

    What the machine does meanwhile hits all of them alike; the order turns by one place each round.
    """
    timers = {name: call.timer() for name, call in calls.items()}
    loops = {name: calibrate(timer, shortest) for name, timer in timers.items()}
    samples: dict[str, list[float]] = {name: [] for name in calls}
    names = list(calls)
    with collector_paused():
        for turn in range(repeats):
            first = turn % max(len(names), 1)
            for name in names[first:] + names[:first]:
                samples[name].append(timers[name].timeit(loops[name]) / loops[name])
            gc.collect()
    return {name: Timing(tuple(samples[name]), loops[name]) for name in names}


def calibrate(timer: Timer, shortest: float) -> int:
    """How many calls fill ``shortest`` seconds; the first calls, which may compile, do not count."""
    timer.timeit(3)
    loops = 1
    while (elapsed := timer.timeit(loops)) < shortest:
        loops = max(2 * loops, int(loops * min(shortest / max(elapsed, 1e-9), 100.0)))
    return loops


def seconds(action: Callable[[], Any]) -> float:
    """Time of one call."""
    with collector_paused():
        start = time.perf_counter()
        action()
        return time.perf_counter() - start


@contextmanager
def collector_paused() -> Iterator[None]:
    """No garbage collection inside, as in ``timeit``."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
