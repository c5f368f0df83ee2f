"""Random numbers that a function draws while it is traced: a tape would repeat them, so they are refused."""

from __future__ import annotations

import ctypes
import functools
import itertools
import os
import sys
from collections.abc import Callable, Iterable
from typing import Any

from yota.errors import TracingError
from yota.tracing.current import current


def state_of(value: Any) -> Any:
    """What a generator of random numbers, NumPy's or Python's, goes on from; None for anything else."""
    numpy_random, python = sys.modules.get("numpy.random"), sys.modules.get("random")
    if numpy_random is not None:
        if isinstance(value, numpy_random.Generator):
            return value.bit_generator.state
        if isinstance(value, numpy_random.RandomState):
            return value.get_state(legacy=False)
        if isinstance(value, numpy_random.BitGenerator):
            return value.state
    if python is not None and isinstance(value, python.Random) and not isinstance(value, python.SystemRandom):
        return value.getstate()
    return None


def _same(left: Any, right: Any) -> bool:
    if left is None:
        return False
    if isinstance(left, dict):
        return all(_same(value, right.get(key)) for key, value in left.items())
    return bool((left == right).all()) if hasattr(left, "shape") else bool(left == right)


class Draws:
    """Which generators of the function's, or of `random` and `numpy.random`, were drawn from since a moment."""

    def __init__(self, own: Iterable[Any] = ()) -> None:
        self._own = [(generator, state_of(generator)) for generator in own]
        self._common = {name: _mark(generator) for name, generator in _common().items()}

    def own(self) -> str:
        """The kind of a generator of the function's own that was drawn from; empty if none was."""
        drawn = (generator for generator, state in self._own if not _same(state, state_of(generator)))
        return next((f"a captured {type(generator).__name__}" for generator in drawn), "")

    def common(self) -> str:
        """The module whose generator was drawn from; empty if none was."""
        marks = {name: _mark(generator) for name, generator in _common().items()}
        return next((name for name, mark in marks.items() if not _same(self._common.get(name), mark)), "")


def _common() -> dict[str, Any]:
    found: dict[str, Any] = {}
    if "numpy.random" in sys.modules:
        found["np.random"] = sys.modules["numpy.random"].mtrand._rand
    if "random" in sys.modules:
        found["random"] = sys.modules["random"]._inst
    return found


_BYTES = 2500
"""The memory of a Mersenne Twister: 624 words, and how many of them were drawn."""


def _mark(generator: Any) -> Any:
    """What changes with each draw: memory, where it tells, since NumPy takes 0.1 ms to give the state."""
    source = getattr(generator, "_bit_generator", None)
    kinds: Any = type(generator), type(source)
    return _memory(generator, source) if _tells(*kinds) else state_of(generator)


def _memory(generator: Any, source: Any) -> Any:
    """The fields of a generator, and what it keeps elsewhere: its words, or the second number of a normal pair."""
    size = object.__basicsize__
    fields = ctypes.string_at(id(generator) + size, type(generator).__basicsize__ - size)
    return fields, generator.gauss_next if source is None else ctypes.string_at(source.ctypes.state_address, _BYTES)


@functools.cache
def _tells(kind: type, source: type) -> bool:
    """Whether the memory of such a generator changes with each draw, as in each version of Python and NumPy so far."""
    numpy_random, python = sys.modules.get("numpy.random"), sys.modules.get("random")
    of_numpy = numpy_random is not None and (kind, source) == (numpy_random.RandomState, numpy_random.MT19937)
    if not of_numpy and kind is not getattr(python, "Random", None):
        return False
    made: Any = kind(0)
    marks = [_memory(made, getattr(made, "_bit_generator", None)) for _ in range(2)]
    for draw in (made.random, *[made.standard_normal if of_numpy else functools.partial(made.gauss, 0.0, 1.0)] * 4):
        draw()
        marks.append(_memory(made, getattr(made, "_bit_generator", None)))
    return marks[0] == marks[1] and all(before != after for before, after in itertools.pairwise(marks[1:]))


def entropy() -> list[tuple[Any, str, Any]]:
    """``(owner, name, function)``: what generators that nobody has seeded begin from, noting that it ran."""
    found: list[tuple[Any, str, Any]] = [(os, "urandom", _noting(os.urandom, "os.urandom"))]
    seeds: Any = sys.modules.get("numpy.random.bit_generator")
    python = sys.modules.get("random")
    if hasattr(seeds, "randbits"):
        found.append((seeds, "randbits", _noting(seeds.randbits, "a generator of np.random without a seed")))
    if python is not None:
        source = "a generator of random without a seed"
        found.append((python, "_urandom", _noting(os.urandom, source)))
        found.append(
            (python.Random, "seed", _noting(python.Random.seed, source, only=lambda _, a=None, *__, **___: a is None))
        )
    return found


@functools.cache
def _noting(original: Any, source: str, only: Callable[..., bool] | None = None) -> Any:
    original = getattr(original, "__wrapped__", original)

    @functools.wraps(original)
    def call(*args: Any, **keywords: Any) -> Any:
        trace = current()
        if trace is not None and (only is None or only(*args, **keywords)):
            trace.unseeded = trace.unseeded or source
        return original(*args, **keywords)

    return call


def refusal(name: str, source: str) -> TracingError:
    """The error for a function that draws from ``source``."""
    return TracingError(
        f"{name} draws random numbers from {source} while it is traced, and its tape would repeat them in every call. "
        f"Draw them outside and pass them as an argument, or make the generator inside of {name} from a fixed seed: "
        "rng = np.random.default_rng(0)."
    )
