"""Code of the workers: value and gradient of each chunk, the check of the loss, and sums."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import Any

import numpy as np

from yota.api.freezing import pickled
from yota.distributed.block_tasks import Source
from yota.distributed.chunks import Call, failure, joined, rows_of, unmade
from yota.errors import ArgumentError, ChunkError
from yota.run.device import to_cpu
from yota.run.machine.cache import Table
from yota.structures import flatten, is_leaf, mapped, rebuild

Part = tuple[int, Any]
"""Number of samples, and value and gradient."""

_NONE: Mapping[tuple[int, int], Part | None] = MappingProxyType({})
_CHECKED = 4
"""Number of samples on which each call checks that the loss is a sum."""
_MOST_AHEAD = 1 << 25
"""Bytes of a chunk during whose computation the next one may be read: few beside a worker's memory."""
_WAITS = 1e-3
"""Seconds that reading a chunk waits, for a disk or a network, from which on reading ahead is worth a thread."""


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """The computation for each chunk.

    functions: the pickled compiled function, or for sums two: one for chunks, one for the samples of a check.
    call: the arguments that all chunks share.
    """

    functions: bytes
    title: str
    names: tuple[str, ...]
    places: tuple[int | str, ...]
    call: Call
    is_mean: bool = False
    with_value: bool = True

    def read(self, number: int, blocks: Callable[[], list[Any]]) -> list[Any]:
        """The blocks of a chunk. Raises ChunkError, which names the chunk, if anything fails."""
        try:
            return blocks()
        except Exception as error:
            raise unmade(number, f"the data of {self.title}", error) from error

    def of(self, number: int, blocks: Sequence[Any], use: Callable[[Sequence[Any]], Any]) -> Any:
        """The result of ``use`` for the blocks, as arrays. Raises ChunkError, which names the chunk, if that fails."""
        try:
            blocks = tuple(map(joined, blocks))
            return use(blocks)
        except Exception as error:
            raise failure(f"{' and '.join(self.names)}, of {self.title}", number, blocks, error) from error


class Packed:
    """A value that is unpickled where it is read: a scheduler only passes bytes on."""

    def __init__(self, value: Any) -> None:
        self._value, self._bytes = value, b""

    def __getstate__(self) -> bytes:
        self._bytes = self._bytes or pickled(self._value)
        return self._bytes

    def __setstate__(self, state: bytes) -> None:
        self._value, self._bytes = None, state

    @property
    def value(self) -> Any:
        """The value."""
        if self._value is None:
            self._value = pickle.loads(self._bytes)
        return self._value


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Adjacent chunks for one task: the number of the first, the source of each, and the keys of other results."""

    first: int
    sources: Packed
    others: tuple[Any, ...]
    checked: int = -1

    def values(self, given: Sequence[Any]) -> dict[Any, Any]:
        """The results of other tasks by key."""
        return dict(zip(self.others, given, strict=True))


_loaded = Table(most=64)


def known(functions: bytes, value: Any = None) -> Any:
    """Unpickle an object once in a process; return ``value`` itself in the process that pickled it."""
    found = _loaded.get(functions)
    if found is None:
        with _loaded.lock:
            found = _loaded.get(functions) or value or pickle.loads(functions)
            _loaded.insert(functions, found)
    return found


def of_group(work: Work, group: Group, *given: Any) -> Part | None:
    """The sum over some chunks, one after the other."""
    with ThreadPoolExecutor(1) as thread:
        sources = group.sources.value
        reading = _Reading(sources, group.values(given), thread)

        def part(place: int) -> Part | None:
            number = group.first + place
            blocks = work.read(number, lambda: reading.blocks(place))
            found: Part | None = work.of(
                number, blocks, lambda arrays: _of_chunk(work, number == group.checked, arrays)
            )
            return found

        return _tree(part, 0, len(sources))


class _Reading:
    """The blocks of one chunk after the other; where reading waits for a disk, a thread reads the next ones ahead."""

    _waits = False

    def __init__(self, sources: Sequence[Source], values: Mapping[Any, Any], thread: ThreadPoolExecutor) -> None:
        self._sources, self._values, self._thread = sources, values, thread
        self._ahead: Future[list[Any]] | None = None

    def blocks(self, place: int) -> list[Any]:
        """The blocks of a chunk, which is the next one."""
        ahead, self._ahead = self._ahead, None
        # What cannot be read in another thread is read in this one, which also raises the error.
        found = self._read(place) if ahead is None or ahead.exception() else ahead.result()
        size = sum(getattr(block, "nbytes", 0) for block in found)
        if self._waits and size <= _MOST_AHEAD and place + 1 < len(self._sources):
            self._ahead = self._thread.submit(self._read, place + 1)
        return found

    def _read(self, place: int) -> list[Any]:
        start = time.perf_counter() - time.thread_time()
        found = self._sources[place].blocks(self._values)
        self._waits = time.perf_counter() - time.thread_time() - start > _WAITS
        return found


def _of_chunk(work: Work, is_checked: bool, blocks: Sequence[Any]) -> Part | None:
    """Number of samples, value and gradient of a chunk; None if there are no samples."""
    rows = rows_of(work.names, blocks)
    if not rows:
        return None
    function, small = known(work.functions)
    args, kwargs = work.call.filled(work.places, blocks)
    found = to_cpu(function(*args, **kwargs))
    if is_checked and rows > 1:
        _check(work, small, [to_cpu(_spread(block)) for block in blocks])
    return rows, mapped(found, lambda part: _typed(part * rows, part)) if work.is_mean else found


def _spread(block: Any) -> Any:
    """A few samples distributed over a block."""
    return block[np.unique(np.linspace(0, len(block) - 1, _CHECKED).astype(int))]


def _check(work: Work, function: Callable[..., Any], blocks: Sequence[Any]) -> None:
    """Compare the loss of some samples with the combined losses of two parts of them."""

    def of(part: slice) -> list[Any]:
        args, kwargs = work.call.filled(work.places, [block[part] for block in blocks])
        return [each for _, each in flatten(function(*args, **kwargs)) if is_leaf(each)]

    count = len(blocks[0])
    weights = (1 / count, 1 - 1 / count) if work.is_mean else (1.0, 1.0)
    for whole, one, other in zip(of(slice(None)), of(slice(1)), of(slice(1, None)), strict=True):
        one, other = one * weights[0], other * weights[1]
        scale = np.max(np.abs([whole, one, other]), initial=0.0)
        precision = np.sqrt(np.finfo(np.asarray(whole).dtype).eps)
        if np.isfinite(scale) and np.max(np.abs(whole - (one + other)), initial=0.0) > 10 * precision * scale:
            kind = "mean" if work.is_mean else "sum"
            raise ArgumentError(
                f"{work.title} is no {kind} over samples: {count} of them give {np.ravel(whole)[0]:.6g}, and "
                f"{np.ravel(one + other)[0]:.6g} in two parts. A term that counts once, such as a penalty, is added "
                "outside: its own yota.value_and_grad. "
                + ("" if work.is_mean else 'For a mean over samples: reduction="mean". ')
                + "If all this is rounding: check=False"
            )


def added(parts: Sequence[Part | None], starts: Sequence[int] = ()) -> Part | None:
    """The sum of the results of groups of chunks, all of one size, or from one of ``starts`` to the next."""
    if not starts:
        return _tree(parts.__getitem__, 0, len(parts))
    known = dict(zip(pairwise(starts), parts, strict=True))
    return _tree(parts.__getitem__, 0, starts[-1], known)


def _tree(
    part: Callable[[int], Part | None], start: int, stop: int, known: Mapping[tuple[int, int], Part | None] = _NONE
) -> Part | None:
    """Pairwise sum of some parts; the tree does not depend on how many are added together."""
    if (start, stop) in known:
        return known[start, stop]
    if stop - start == 1:
        return part(start)
    middle = start + (1 << (stop - start - 1).bit_length() - 1)
    return _plus(_tree(part, start, middle, known), _tree(part, middle, stop, known))


def _plus(one: Part | None, other: Part | None) -> Part | None:
    if one is None or other is None:
        return one or other
    others = (part for _, part in flatten(other[1]) if is_leaf(part))
    leaves = [_typed(part + next(others), part) for _, part in flatten(one[1]) if is_leaf(part)]
    return one[0] + other[0], rebuild(one[1], iter(leaves))


def _typed(value: Any, like: Any) -> Any:
    """``value`` as an array if ``like`` is one, also with zero axes."""
    return np.asarray(value) if isinstance(like, np.ndarray) else value


def finished(work: Work, parts: Sequence[Part | None], starts: Sequence[int] = ()) -> Any:
    """The caller's result from the sum over all chunks; for ``starts`` see `added`."""
    total = added(parts, starts)
    if total is None:
        raise ChunkError(f"all chunks of {' and '.join(work.names)}, of {work.title}, are empty")
    rows, found = total
    found = mapped(found, lambda part: _typed(part / rows, part)) if work.is_mean else found
    return found if work.with_value else found[1]
