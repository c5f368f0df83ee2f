"""Sums over chunks: compilation, tasks and errors."""

from __future__ import annotations

import contextlib
import math
import operator
import time
import weakref
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import dask
from dask.base import get_scheduler
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph
from dask.system import CPU_COUNT

from yota.api import gradients
from yota.api.freezing import freeze, pickled
from yota.distributed.block_tasks import Source, sources
from yota.distributed.chunks import Call, Chunked, aligned, beyond, described, later, of_reading, taken, task_name
from yota.distributed.sums import Group, Packed, Work, added, finished, known, of_group
from yota.errors import ArgumentError
from yota.ir.callables import Derived, Recipe, name_of
from yota.ir.specs import Array
from yota.package.examples import spec_of
from yota.run.arguments import names_of
from yota.run.gradient_layout import Wrt
from yota.run.machine.cache import Table
from yota.structures import flatten

Over = int | str | tuple[int | str, ...]
_FAN = 16
"""Number of sums that one task adds: a power of two."""
_MOST, _FEWEST = 32, 2
"""Largest number of chunks in one task, and smallest where tasks become smaller: powers of two."""
_ASKED_AGAIN = 5.0
"""Seconds after which a cluster may have other workers."""
_known_threads: weakref.WeakKeyDictionary[Any, tuple[float, int]] = weakref.WeakKeyDictionary()
_MOST_COPIED = 1 << 16
"""Largest number of bytes of functions and arguments that each task has for itself."""


_Tasks = tuple[Work, Any, dict[Any, Any], HighLevelGraph, list[Any], Sequence[int]]
"""The work, and its key, of a sum, its graph and that of the data; the keys of at most `_FAN` parts, from one of the
last numbers of chunks to the next."""


class Summed(Derived):
    """A sum over chunks; for the options see `yota.distributed.value_and_grad`."""

    def __init__(
        self,
        recipe: Recipe,
        function: Callable[..., Any],
        wrt: Wrt,
        what: str,
        *,
        over: Over,
        reduction: str,
        target: str,
        strict: bool,
        check: bool,
        with_value: bool = True,
    ) -> None:
        super().__init__(recipe, recipe[1][0], what)
        if reduction not in ("sum", "mean"):
            raise ArgumentError(f"reduction={reduction!r} is not known; it is 'sum' or 'mean'")
        self._function, self._wrt, self._over, self._is_mean = function, wrt, over, reduction == "mean"
        self._target, self._strict, self._check, self._with_value = target, strict, check, with_value
        self._calls = 0
        self._groups: Any = None
        self._known, self._likes = Table(most=16), Table(most=16)
        self._name = f"{recipe[0].__name__}_of_{self.__name__}"

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """The sum, as NumPy arrays."""
        work, _, tasks, base, results, starts = self._tasks(args, kwargs)
        graph = beyond(base, results[0][0], tasks)
        try:
            # Frames that Dask would remove from a traceback identify the failed task.
            with dask.config.set({"admin.traceback.shorten": ()}):
                parts = get_scheduler(cls=Delayed)(graph, results)
            return finished(work, parts, starts)
        except Exception as error:
            groups = {key: task[2] for key, task in tasks.items() if isinstance(task, tuple) and task[0] is of_group}
            ranges = {key: range(group.first, group.first + len(group.sources.value)) for key, group in groups.items()}
            named = of_reading(f"the data of {self.__name__}", graph, ranges, error)
            if named is error:
                raise
            raise named from error

    def delayed(self, /, *args: Any, **kwargs: Any) -> Any:
        """The sum as a Dask object to compute later."""
        _, given, tasks, base, results, starts = self._tasks(args, kwargs)
        return later(f"total_of_{self.__name__}", tasks, (finished, given, results, starts), base)

    def _tasks(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Tasks:
        data, call = taken(self.__wrapped__, self._over, args, kwargs)
        chunks = aligned([(name, value) for name, _, value in data])
        names, places = tuple(name for name, *_ in data), tuple(place for _, place, _ in data)
        refuse(self.__wrapped__, self._wrt, places, len(args))
        functions = self._compiled(call, chunks, places)
        shared, name = task_name("arguments"), task_name(self._name)
        work = Work(functions, self.__name__, names, places, call, self._is_mean, self._with_value)
        # A task of its own costs more time than to send what is small with each of the others.
        size = len(functions) + sum(getattr(leaf, "nbytes", 0) for _, leaf in flatten([call.args, call.kwargs]))
        graph: dict[Any, Any] = {shared: work} if size > _MOST_COPIED else {}
        given: Any = shared if graph else work
        groups, base, starts = self._grouped(chunks)
        checked = self._checked(chunks) if self._check else -1
        level: list[Any] = []
        for first, (packed, others) in zip(starts, groups, strict=False):
            # Dask runs the last keys first, in the order of text; the small tasks at the end are to run last.
            key = name, f"{starts[-1] - first:0{len(str(starts[-1]))}}"
            graph[key] = (of_group, given, Group(first, packed, others, checked), *others)
            level.append(key)
        if len(level) <= _FAN:
            return work, given, graph, base, level, starts
        while len(level) > _FAN:
            sums = task_name(f"sum_of_{self.__name__}")
            several = [level[start : start + _FAN] for start in range(0, len(level), _FAN)]
            level = [(sums, number) for number in range(len(several))]
            graph |= {key: (added, each) for key, each in zip(level, several, strict=True)}
        return work, given, graph, base, level, ()

    def _grouped(self, chunks: Sequence[Chunked]) -> tuple[list[tuple[Packed, tuple[Any, ...]]], Any, list[int]]:
        """The chunks of each task, with the keys that they need; the shared tasks; and the first chunk of each task.

        Kept for further calls with the same data, as in an optimization, as long as the data exist.
        """
        data = [each for given in chunks for each in given.collections]
        key = [given.keys for given in chunks], _threads()
        known: Any = self._groups
        if known is None or known[0] != key or not all(map(operator.is_, (each() for each in known[1]), data)):
            found, base = sources(chunks)
            starts = _starts(found, key[1])
            groups = []
            for first, stop in pairwise(starts):
                several = tuple(found[first:stop])
                groups.append((Packed(several), tuple(frozenset().union(*(each.others for each in several)))))
            # Persisted data would stay in the memory of the cluster.
            known = key, [weakref.ref(each, self._forget) for each in data], (groups, base, starts)
            self._groups = known
        return known[2]  # type: ignore[no-any-return]

    def _forget(self, _: Any) -> None:
        self._groups = None

    def _checked(self, chunks: Sequence[Chunked]) -> int:
        """The chunk to check: a different one at each call, among those that may have several samples."""
        some = [number for number, rows in enumerate(chunks[0].rows) if rows is None or rows > 1]
        self._calls += 1
        return some[(self._calls - 1) % len(some)] if some else -1

    def _compiled(self, call: Call, chunks: Sequence[Chunked], places: Sequence[int | str]) -> bytes:
        """The pickled functions for such arguments: one for chunks, one for the samples of the check."""
        likes = []
        for each in chunks:
            # Blocks of unknown type are computed once.
            data = each.name, each.keys
            if data not in self._likes:
                self._likes.insert(data, described(each))
            likes.append(self._likes[data])
        specs: Any
        try:
            args, kwargs = call.filled(places, [Array(like.name, ("N", *shape)) for like, shape, _ in likes])
            args = [each if isinstance(each, Array) else spec_of(each) for each in args]
            named = {name: each if isinstance(each, Array) else spec_of(each) for name, each in kwargs.items()}
            specs = {**dict(zip(names_of(self.__wrapped__, len(args)), args, strict=True)), **named} if named else args
        except ArgumentError:
            specs = None
        on_device = any(place for *_, place in likes)
        # Functions that are pickled by value may have changed since.
        key = str(specs), str(likes), pickled(self._function)
        if specs is None or key not in self._known:
            self._known.insert(key, self._functions(specs, on_device))
        found: bytes = self._known[key]
        return found

    def _functions(self, specs: Any, on_device: bool) -> bytes:
        small: Any = None
        if specs is not None:
            with contextlib.suppress(ArgumentError):
                small = gradients.value_and_grad(self._function, self._wrt, strict=self._strict, args=specs)
        if small is not None:
            # Other chunks may take other branches.
            small = None if small.tape.guards else frozen(small)
        function = small
        if small is None or on_device or self._target != "numpy":
            function = gradients.value_and_grad(self._function, self._wrt, target=self._target, strict=self._strict)
            small = small or gradients.value_and_grad(self._function, self._wrt)
        functions = pickled((function, small))
        known(functions, (function, small))
        return functions


def _starts(found: Sequence[Source], threads: int) -> list[int]:
    """The first chunk of each task, and the number of chunks. Tasks have powers of two of chunks, the last ones fewer.

    So there are several tasks for each thread, and all threads end at about the same time. Blocks from other tasks
    would all have to be in memory at once.
    """
    count = len(found)
    if any(each.others != found[0].others for each in found):
        return list(range(count + 1))
    starts = [0]
    while starts[-1] < count and len(starts) <= _FAN:
        rest = count - starts[-1]
        size = max(_power_of_two(2 * rest // (3 * threads)), _FEWEST)
        # One task of this size for each thread.
        starts += [min(starts[-1] + size * each, count) for each in range(1, min(threads, -(-rest // size)) + 1)]
    if len(starts) - 1 <= _FAN and starts[-1] == count > _FEWEST * threads:
        return starts
    return [*range(0, count, _power_of_two(count // (4 * threads))), count]


def _power_of_two(most: int) -> int:
    """The largest power of two up to ``most`` and `_MOST`."""
    return 1 << max(min(most, _MOST).bit_length() - 1, 0)


def _threads() -> int:
    """Total number of worker threads; for some seconds as it was, since each question costs milliseconds."""
    client: Any = getattr(get_scheduler(), "__self__", None)
    if not hasattr(client, "nthreads") or client.asynchronous:
        return int(CPU_COUNT)
    asked, found = _known_threads.get(client, (-math.inf, 0))
    if time.monotonic() - asked > _ASKED_AGAIN:
        found = sum(map(int, client.nthreads().values())) or 1
        _known_threads[client] = time.monotonic(), found
    return found


def refuse(function: Callable[..., Any], wrt: Wrt, places: Sequence[int | str], count: int) -> None:
    """Raise ArgumentError if ``wrt`` names an argument that holds samples."""
    names = names_of(function, count)
    several = (wrt,) if isinstance(wrt, (int, str)) else range(count) if wrt is None else wrt
    for each in several:
        place = names.index(each) if each in names else each % count if isinstance(each, int) and count else each
        if place in places:
            raise ArgumentError(
                f"wrt={each!r} holds samples; differentiate by what all of them share. By each sample: "
                f"yota.batch(yota.gradient({name_of(function)}))"
            )


def frozen(function: Any) -> Any:
    """The function with its code, if that can be pickled."""
    try:
        return freeze(function)
    except ArgumentError:
        return function
