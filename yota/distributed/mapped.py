"""Functions of each chunk with chunked results: Jacobians, and `yota.batch` over Dask arrays."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import dask.array as da
import numpy as np
from dask.highlevelgraph import HighLevelGraph

from yota.api.freezing import pickled
from yota.distributed.block_tasks import sources
from yota.distributed.chunks import Call, Chunked, aligned, beyond, task_name
from yota.distributed.sums import Group, Packed, Work, known
from yota.errors import ArgumentError
from yota.ir.inputs import Leaf
from yota.run.arguments import names_of
from yota.structures import flatten, is_leaf, rebuild


def over_points(batched: Any, function: Callable[..., Any], args: Sequence[Any]) -> Any:
    """The results of a batched function for Dask arrays, as Dask arrays; None if no argument is one.

    Raises ArgumentError if points are in chunks of different sizes, or in other containers.
    """
    if not any(isinstance(each, da.Array) for each in args):
        return None
    data, axes, rest, empty = [], {}, list(args), list(args)
    for place, (name, value) in enumerate(zip(names_of(function, len(args)), args, strict=True)):
        found = [batched.form.axis_of(Leaf(part, place, name, path), len(args)) for path, part in _arrays(value)]
        if isinstance(value, (da.Array, np.ndarray)) and found[0] is not None:
            axes[name], rest[place] = found[0], None
            data.append((name, place, value))
            empty[place] = np.zeros([0 if axis == found[0] else n for axis, n in enumerate(value.shape)], value.dtype)
        elif isinstance(value, da.Array) or any(axis is not None for axis in found):
            raise ArgumentError(
                f"argument {name}: beside Dask arrays, points are in Dask or NumPy arrays; what is the same for all "
                f"points is in memory, as {name}.compute() gives it"
            )
    like = batched(*empty)
    outer = [_within(batched.form.out_axis_of(path), np.ndim(part)) for path, part in _arrays(like)]
    chunks = aligned([(name, value) for name, _, value in data], axes)
    return mapped_over(f"batch of {batched.__name__}", batched, Call(tuple(rest), {}), data, chunks, like, outer)


def _within(axis: int | None, ndim: int) -> int | None:
    return None if axis is None else axis % ndim


def _arrays(value: Any) -> list[tuple[Any, Any]]:
    if isinstance(value, da.Array):
        return [((), value)]
    return [(path, part) for path, part in flatten(value) if is_leaf(part)]


def mapped_over(
    title: str,
    function: Callable[..., Any],
    call: Call,
    data: Sequence[tuple[str, Any, Any]],
    chunks: Sequence[Chunked],
    like: Any,
    axes: Sequence[int | None],
) -> Any:
    """The results of a function for each chunk, as Dask arrays.

    call, data: the arguments, as `taken` gives them.
    chunks: the arguments with points.
    like: sample results.
    axes: axis of the points in each result; None for shared results.
    """
    shared, name, functions = task_name("arguments"), task_name(title.replace(" ", "_")), pickled(function)
    known(functions, function)
    names, places, _ = zip(*data, strict=True)
    graph: dict[Any, Any] = {shared: Work(functions, title, names, places, call)}
    found, given = sources(chunks)
    for number, source in enumerate(found):
        group = Group(number, Packed((source,)), tuple(source.others))
        graph[name, number] = (_of_chunk, shared, group, *group.others)
    base = beyond(given, name, graph)
    parts = zip([part for _, part in _arrays(like)], axes, strict=True)
    return rebuild(like, iter([_array(base, name, number, *each, chunks[0]) for number, each in enumerate(parts)]))


def _array(base: HighLevelGraph, name: str, number: int, part: Any, axis: int | None, lead: Chunked) -> Any:
    """One array of the results, in chunks."""
    label = task_name("part")
    shape = np.shape(part)
    count = 1 if axis is None else len(lead.keys)
    keys = [(label, *(each if other == axis else 0 for other in range(len(shape)))) for each in range(count)]
    graph = {key: (operator.getitem, (name, each), number) for each, key in enumerate(keys)}
    rows = tuple(np.nan if each is None else each for each in lead.rows)
    chunks = tuple(rows if other == axis else (extent,) for other, extent in enumerate(shape))
    return da.Array(beyond(base, label, graph), label, chunks, dtype=part.dtype)


def _of_chunk(work: Work, group: Group, *given: Any) -> list[Any]:
    def use(arrays: Sequence[Any]) -> list[Any]:
        args, kwargs = work.call.filled(work.places, arrays)
        return [part for _, part in flatten(known(work.functions)(*args, **kwargs)) if is_leaf(part)]

    (source,) = group.sources.value
    blocks = work.read(group.first, lambda: source.blocks(group.values(given)))
    found: list[Any] = work.of(group.first, blocks, use)
    return found
