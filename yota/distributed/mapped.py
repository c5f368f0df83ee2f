"""Functions of each chunk with chunked results: Jacobians, and `yota.batch` over Dask arrays."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np
from dask.highlevelgraph import HighLevelGraph

from yota.api import gradients
from yota.api.freezing import pickled
from yota.distributed.block_tasks import sources
from yota.distributed.chunks import Call, Chunked, aligned, beyond, described, task_name
from yota.distributed.summed import frozen
from yota.distributed.sums import Group, Packed, Work, known
from yota.errors import ArgumentError
from yota.ir.inputs import Leaf
from yota.ir.specs import Array
from yota.package.examples import spec_of
from yota.run.arguments import names_of
from yota.structures import flatten, is_leaf, rebuild

_FEW = 2
"""Largest number of chunk sizes for each of which code is compiled: it is faster than code for all sizes."""


def over_points(batched: Any, function: Callable[..., Any], args: Sequence[Any]) -> Any:
    """The results of a batched function for Dask arrays, as Dask arrays; None if no argument is one."""
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


@dataclass(frozen=True, slots=True, eq=False)
class _AnySize:
    """A batched function compiled once for all numbers of points: the derivative of sum(seeds * results) by seeds.

    compiled: value and gradient by the seeds, which are its first arguments.
    place: an argument with points.
    likes: shape, without the axis of points, dtype, and whether there are points, of each result.
    """

    compiled: Callable[..., Any]
    place: int
    likes: tuple[tuple[tuple[int, ...], np.dtype[Any], bool], ...]

    def __call__(self, *args: Any) -> Any:
        rows = (len(args[self.place]),)
        seeds = [
            np.zeros(1, dtype)[0]
            if not (shape or points)
            else np.broadcast_to(np.zeros(1, dtype)[0], rows * points + shape)
            for shape, dtype, points in self.likes
        ]
        return self.compiled(*seeds, *args)[1]


def _for_all_sizes(
    function: Any, call: Call, places: Sequence[Any], chunks: Sequence[Chunked], like: Any, axes: Sequence[int | None]
) -> Any:
    """``function`` compiled once for chunks of any size, if there are several and there is such code; else itself."""
    sizes = set(chunks[0].rows)
    target, parts = function.form.target, [part for _, part in _arrays(like)]
    if None not in sizes and len(sizes) <= _FEW:
        return function
    if target.name != "numpy" or target.strict or {*axes} - {0, None} or any(part.dtype.kind != "f" for part in parts):
        return function
    count = len(parts)

    def total(*given: Any) -> Any:
        found = [part for _, part in flatten(function(*given[count:])) if is_leaf(part)]
        return sum(np.sum(seed * part) for seed, part in zip(given[:count], found, strict=True))

    likes = tuple(
        (part.shape[axis is not None :], part.dtype, axis is not None) for part, axis in zip(parts, axes, strict=True)
    )
    found = [described(each) for each in chunks]
    if any(on_device for *_, on_device in found):
        return function
    with contextlib.suppress(ArgumentError):
        points = [Array(dtype.name, ("N", *shape)) for dtype, shape, _ in found]
        args, _ = call.filled(places, points)
        seeds = [Array(dtype.name, ("N",) * points + shape) for shape, dtype, points in likes]
        specs = [*seeds, *(each if isinstance(each, Array) else spec_of(each) for each in args)]
        compiled: Any = gradients.value_and_grad(total, tuple(range(count)), args=specs)
        # Other chunks may take other branches.
        if not compiled.tape.guards:
            return _AnySize(frozen(compiled), places[0], likes)
    return function


def mapped_over(
    title: str,
    function: Any,
    call: Call,
    data: Sequence[tuple[str, Any, Any]],
    chunks: Sequence[Chunked],
    like: Any,
    axes: Sequence[int | None],
) -> Any:
    """The results of a function for each chunk, as Dask arrays.

    function: a batched function of positional arguments.
    call, data: the arguments, as `taken` gives them.
    chunks: the arguments with points.
    like: sample results.
    axes: axis of the points in each result; None for shared results.
    """
    names, places, _ = zip(*data, strict=True)
    function = _for_all_sizes(function, call, places, chunks, like, axes)
    shared, name, functions = task_name("arguments"), task_name(title.replace(" ", "_")), pickled(function)
    known(functions, function)
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
        args, _ = work.call.filled(work.places, arrays)
        return [part for _, part in flatten(known(work.functions)(*args)) if is_leaf(part)]

    (source,) = group.sources.value
    blocks = work.read(group.first, lambda: source.blocks(group.values(given)))
    found: list[Any] = work.of(group.first, blocks, use)
    return found
