"""Sums over chunks: what is compiled for them, the tasks, and the errors."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import dask

from yota.compilation.arguments import names_of
from yota.compilation.layout import Wrt
from yota.derivatives import gradients
from yota.distributed.chunks import Call, Chunked, aligned, described, inlined, later, taken, task_name
from yota.distributed.failures import of_reading
from yota.distributed.sums import Work, added, finished, known, of_chunk
from yota.errors import ArgumentError
from yota.freezing import freeze, pickled
from yota.generation.examples import spec_of
from yota.ir.callables import Derived, Recipe, name_of
from yota.runtime.cache import Table
from yota.specs import Array

__all__ = ["Over", "Summed", "refuse"]

Over = int | str | tuple[int | str, ...]
_FAN = 8
"""How many sums are added at once."""


class Summed(Derived):
    """A sum over chunks.

    Parameters
    ----------
    recipe, what
        See `Derived`.
    function
        What is differentiated.
    wrt, over, reduction, target, strict, check
        See `yota.distributed.value_and_grad`.
    with_value
        Whether to give the value too.
    """

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
        self._known, self._likes = Table(most=16), Table(most=16)
        self._tasks = f"{recipe[0].__name__}_of_{self.__name__}"

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """The sum, in NumPy arrays."""
        found = self.delayed(*args, **kwargs)
        try:
            # What Dask would leave out of a traceback tells which task failed.
            with dask.config.set({"admin.traceback.shorten": ()}):
                return found.compute()
        except Exception as error:
            graph = found.__dask_graph__()
            chunks = sorted(key for key in graph if isinstance(key, tuple) and str(key[0]).startswith(self._tasks))
            named = of_reading(f"the data of {self.__name__}", graph, chunks, error)
            if named is error:
                raise
            raise named from error

    def delayed(self, /, *args: Any, **kwargs: Any) -> Any:
        """The same for Dask to compute later."""
        data, call = taken(self.__wrapped__, self._over, args, kwargs)
        chunks = aligned([(name, value) for name, _, value in data])
        names, places = tuple(name for name, *_ in data), tuple(place for _, place, _ in data)
        refuse(self.__wrapped__, self._wrt, places, len(args))
        work = Work(self._compiled(call, chunks, places), self.__name__, names, places, self._is_mean)
        checked = self._checked(chunks) if self._check else -1
        graph: dict[Any, Any] = {key: block for each in chunks for key, block in each.graph}
        function, shared, name = (task_name(each) for each in ("compiled", "arguments", self._tasks))
        graph |= {function: work, shared: call}
        made = inlined([each.collections for each in chunks], [key for each in chunks for key in each.keys])
        level = [(name, number) for number in range(len(chunks[0].keys))]
        for (_, number), keys in zip(level, zip(*(each.keys for each in chunks), strict=True), strict=True):
            graph[name, number] = (
                of_chunk,
                function,
                shared,
                number,
                number == checked,
                *(made.get(key, key) for key in keys),
            )
        while len(level) > 1:
            sums = task_name(f"sum_of_{self.__name__}")
            groups = [level[start : start + _FAN] for start in range(0, len(level), _FAN)]
            level = [(sums, number) for number in range(len(groups))]
            graph |= {key: (added, group) for key, group in zip(level, groups, strict=True)}
        sources = [source for each in chunks for source in each.collections]
        found = later(f"total_of_{self.__name__}", graph, (finished, function, level[0]), sources)
        return found if self._with_value else found[1]

    def _checked(self, chunks: Sequence[Chunked]) -> int:
        """The chunk to check: another one at each call, of those that may have several samples."""
        some = [number for number, rows in enumerate(chunks[0].rows) if rows is None or rows > 1]
        self._calls += 1
        return some[(self._calls - 1) % len(some)] if some else -1

    def _compiled(self, call: Call, chunks: Sequence[Chunked], places: Sequence[int | str]) -> bytes:
        """The pickled functions for such arguments: that for chunks, and that for a few samples."""
        likes = []
        for each in chunks:
            # What has to be looked at is so once.
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
        # What goes by value may have changed since.
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
            # Branches go another way for another chunk.
            small = None if small.tape.guards else _frozen(small)
        function = small
        if small is None or on_device or self._target != "numpy":
            function = gradients.value_and_grad(self._function, self._wrt, target=self._target, strict=self._strict)
            small = small or gradients.value_and_grad(self._function, self._wrt)
        functions = pickled((function, small))
        known(functions, (function, small))
        return functions


def refuse(function: Callable[..., Any], wrt: Wrt, places: Sequence[int | str], count: int) -> None:
    """Refuse derivatives by data.

    Raises
    ------
    ArgumentError
        If ``wrt`` names an argument that holds samples.
    """
    names = names_of(function, count)
    several = (wrt,) if isinstance(wrt, (int, str)) else range(count) if wrt is None else wrt
    for each in several:
        place = names.index(each) if each in names else each % count if isinstance(each, int) and count else each
        if place in places:
            raise ArgumentError(
                f"wrt={each!r} holds samples; differentiate by what all of them share. By each sample: "
                f"yota.batch(yota.gradient({name_of(function)}))"
            )


def _frozen(function: Any) -> Any:
    """The function with its code, if that can go to other processes."""
    try:
        return freeze(function)
    except ArgumentError:
        return function
