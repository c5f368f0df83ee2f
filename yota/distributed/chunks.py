"""Arguments in chunks along samples: Dask arrays, bags of arrays, or delayed blocks; errors that name a chunk."""

from __future__ import annotations

import itertools
import math
import traceback
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.base import get_scheduler
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph
from dask.optimization import cull

from yota.errors import ArgumentError, ChunkError, YotaError
from yota.run.arguments import names_of
from yota.run.device import to_cuda
from yota.structures import is_on_device, mapped

Place = int | str
Like = tuple[np.dtype[Any], tuple[int, ...], bool]
"""Dtype, shape without the sample axis, and whether arrays are on a GPU."""
_FIRST: Mapping[str, int] = {}


@dataclass(frozen=True, slots=True, eq=False)
class Chunked:
    """One argument in chunks.

    keys: keys of its blocks in the graph.
    rows: number of samples of each block; None if unknown before it is read.
    collections: the Dask collections of the blocks.
    """

    name: str
    keys: tuple[Any, ...]
    rows: tuple[int | None, ...]
    collections: tuple[Any, ...] = ()
    like: Like | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """The arguments that all chunks share; arguments with samples are None."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def filled(self, places: Sequence[Place], blocks: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
        """The arguments for one chunk, all on the GPU if its blocks are."""
        place_in_memory = _on_device if any(map(is_on_device, blocks)) else in_line
        args, kwargs = mapped([*self.args], place_in_memory), mapped({**self.kwargs}, place_in_memory)
        for place, block in zip(places, blocks, strict=True):
            if isinstance(place, int):
                args[place] = block
            else:
                kwargs[place] = block
        return args, kwargs


def _on_device(value: Any) -> Any:
    return to_cuda(value) if isinstance(value, np.ndarray) and value.ndim else value


def taken(
    function: Callable[..., Any], over: Place | tuple[Place, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[list[tuple[str, Place, Any]], Call]:
    """Name, position and value of the arguments with samples, and all other arguments."""
    names = names_of(function, len(args))
    places: dict[str, Place] = {
        **{name: number for number, name in enumerate(names)},
        **{name: name for name in kwargs},
    }
    wanted = over if isinstance(over, tuple) else (over,)
    found = [names[each] if isinstance(each, int) and -len(args) <= each < len(args) else each for each in wanted]
    values = {**dict(zip(names, args, strict=True)), **kwargs}
    for each in found:
        if each not in places:
            raise ArgumentError(f"over={each!r} is no argument of this call; it has {', '.join(places)}")
    for name, value in values.items():
        if name not in found and dask.is_dask_collection(value):
            raise ArgumentError(f"argument {name} is in chunks; name it in over=, or pass {name}.compute()")
    data = [(name, places[name], values[name]) for name in places if name in found]
    rest = Call(
        tuple(None if name in found else value for name, value in zip(names, args, strict=True)),
        {name: None if name in found else value for name, value in kwargs.items()},
    )
    return data, rest


def aligned(arguments: Sequence[tuple[str, Any]], axes: Mapping[str, int] = _FIRST) -> list[Chunked]:
    """Arguments with equal chunks of the same samples, along ``axes``, by default the first axis."""
    lead = next(((name, value) for name, value in arguments if not isinstance(value, np.ndarray)), None)
    if lead is None:
        listed = " and ".join(name for name, _ in arguments)
        raise ArgumentError(
            f"{listed} are NumPy arrays; yota.distributed takes Dask arrays, bags of arrays or lists of delayed "
            "blocks. For arrays in memory: yota.value_and_grad"
        )
    first = _chunked(*lead, axes.get(lead[0], 0))
    if not first.keys:
        raise ArgumentError(f"argument {first.name} has no chunks")
    return [
        first if name == first.name else _beside(first, name, value, axes.get(name, 0)) for name, value in arguments
    ]


def _chunked(name: str, value: Any, axis: int = 0) -> Chunked:
    if isinstance(value, (list, tuple)) and all(isinstance(each, Delayed) for each in value):
        return Chunked(name, tuple(each.key for each in value), (None,) * len(value), tuple(value))
    kind = f"{type(value).__module__}.{type(value).__name__}"
    if not dask.is_dask_collection(value) or not kind.startswith(("dask.array.", "dask.bag.")):
        raise ArgumentError(
            f"argument {name} is a {kind}; it holds samples, so pass a Dask array, a bag of arrays, or a list of "
            "delayed blocks. Of a data frame: frame.to_dask_array(lengths=True)"
        )
    if kind.startswith("dask.bag."):
        return Chunked(name, tuple(value.__dask_keys__()), (None,) * value.npartitions, (value,))
    if not value.ndim:
        raise ArgumentError(f"argument {name} is a Dask array without axes; samples are along the first axis")
    split = [each for each in range(value.ndim) if each != axis and value.numblocks[each] > 1]
    if split:
        whole = ", ".join(f"{each}: -1" for each in split)
        raise ArgumentError(
            f"argument {name} is chunked along axis {split[0]}; chunks are along samples, axis {axis}, alone: "
            f"{name} = {name}.rechunk({{{whole}}})"
        )
    rows = tuple(None if math.isnan(each) else int(each) for each in value.chunks[axis])
    keys = tuple((value.name, *(number * (each == axis) for each in range(value.ndim))) for number in range(len(rows)))
    return Chunked(name, keys, rows, (value,), _like(value))


def _beside(first: Chunked, name: str, value: Any, axis: int) -> Chunked:
    """Another argument, in the chunks of the first one."""
    known = sum(map(int, first.rows)) if None not in first.rows else None  # type: ignore[arg-type]
    if isinstance(value, np.ndarray):
        if known is None or value.shape[axis : axis + 1] != (known,):
            raise ArgumentError(f"argument {name} has shape {value.shape}, and {first.name} has {_total(first.rows)}")
        sizes = tuple(first.rows if each == axis else size for each, size in enumerate(value.shape))
        return _chunked(name, da.from_array(value, sizes, name=False), axis)
    found = _chunked(name, value, axis)
    total = sum(map(int, found.rows)) if None not in found.rows else None  # type: ignore[arg-type]
    if found.rows == first.rows or (len(found.rows) == len(first.rows) and None in (known, total)):
        # Chunks of unknown sizes are checked when they are read.
        return found
    if known is not None and known == total:
        return _chunked(name, value.rechunk({axis: first.rows}), axis)
    raise ArgumentError(
        f"argument {name} has {_total(found.rows)} in {len(found.rows)} chunks, and {first.name} has "
        f"{_total(first.rows)} in {len(first.rows)}; they must have the same samples. For unknown sizes: "
        f"{name}.compute_chunk_sizes()"
    )


def _total(rows: Sequence[int | None]) -> str:
    return "an unknown number of samples" if None in rows else f"{sum(map(int, rows))} samples"  # type: ignore[arg-type]


def described(given: Chunked) -> Like:
    """Dtype, shape and device of blocks; if unknown, the first block with samples is computed."""
    if given.like is not None and not any(map(math.isnan, given.like[1])):
        return given.like
    base = HighLevelGraph.merge(*(each.__dask_graph__() for each in given.collections))
    for number, key in enumerate(given.keys):
        look = later(f"look_at_{given.name}", {}, (_seen, key), base)
        try:
            found = look.compute()
        except Exception as error:
            raise unmade(number, given.name, error) from error
        if found is not None:
            return found  # type: ignore[no-any-return]
    raise ArgumentError(f"argument {given.name} has no samples: its {len(given.keys)} chunks are empty")


def _seen(block: Any) -> Like | None:
    found = joined(block)
    return None if found is None or not len(found) else _like(found)


def _like(array: Any) -> Like:
    return array.dtype, array.shape[1:], is_on_device(getattr(array, "_meta", array))


def joined(block: Any) -> Any:
    """A block as one array; a partition of a bag is a sequence of arrays. None if there are none."""
    if isinstance(block, np.ndarray) or is_on_device(block):
        return in_line(block)
    if isinstance(block, (list, tuple, Iterator, itertools.chain)):
        arrays = list(map(np.asarray, block))
        return np.concatenate(arrays) if arrays else None
    return np.asarray(block)


def in_line(value: Any) -> Any:
    """An aligned array: unaligned arrays, as from a network, would give other bits in products."""
    return np.require(value, requirements="A") if type(value) is np.ndarray else value


def rows_of(names: Sequence[str], blocks: Sequence[Any]) -> int:
    """Number of samples of all blocks of a chunk. Raises ArgumentError if the numbers differ."""
    counts = [0 if block is None else len(block) if block.ndim else -1 for block in blocks]
    if len(set(counts)) > 1 or -1 in counts:
        listed = ", ".join(f"{name}: {count}" for name, count in zip(names, counts, strict=True))
        raise ArgumentError(f"numbers of samples differ ({listed}); chunks must have the same samples")
    return counts[0]


def later(what: str, graph: dict[Any, Any], task: tuple[Any, ...], base: HighLevelGraph) -> Delayed:
    """The result of a task that depends on other tasks and graphs."""
    name = task_name(what)
    return Delayed(name, beyond(base, name, {**graph, name: task}))


def beyond(base: HighLevelGraph, name: str, layer: Mapping[Any, Any]) -> HighLevelGraph:
    """A graph with one more layer."""
    return HighLevelGraph({**base.layers, name: layer}, {**base.dependencies, name: {*base.layers}})


def task_name(what: str) -> str:
    """A task name; dashboards show it without the part after the hyphen."""
    return f"{what.replace('-', '_')}-{uuid.uuid4().hex}"


def failure(what: str, number: int, blocks: Sequence[Any], error: Exception) -> ChunkError:
    """The error for a chunk whose computation raised an error."""
    shapes = ", ".join(str(getattr(block, "shape", type(block).__name__)) for block in blocks)
    return ChunkError(f"chunk {number} of {what}, with blocks of shape {shapes}: {_said(error)}")


def _said(error: Exception) -> str:
    return str(error) if isinstance(error, YotaError) else f"{type(error).__name__}: {error}"


def of_reading(what: str, graph: Mapping[Any, Any], groups: Mapping[Any, range], error: Exception) -> Exception:
    """The error for chunks that could not be read; ``error`` itself if the chunks are unknown."""
    failed = next((key for key in _failed(error) if key in graph), None)
    if isinstance(error, YotaError) or failed is None:
        return error
    tasks = dict(graph)
    found = [numbers for key, numbers in groups.items() if failed == key or failed in cull(tasks, [key])[0]]
    if len(found) != 1:
        return error
    first, last = found[0][0], found[0][-1]
    return unmade(first if first == last else f"{first} to {last}", what, error)


def unmade(number: int | str, what: str, error: Exception) -> ChunkError:
    """The error for a chunk of data that could not be read."""
    return ChunkError(f"chunk {number} of {what} could not be made: {_said(error)}")


def _failed(error: Exception) -> Iterator[Any]:
    """Keys of failed tasks."""
    # `distributed` names the task that killed several workers in this way.
    yield getattr(error, "task", None)
    client: Any = getattr(get_scheduler(), "__self__", None)
    if hasattr(client, "run_on_scheduler"):
        yield from client.run_on_scheduler(_erred)
    for frame, _ in traceback.walk_tb(error.__traceback__):
        # Dask's own schedulers use this name for the function that runs a task.
        if frame.f_code.co_name == "execute_task" and "key" in frame.f_locals:
            yield frame.f_locals["key"]


def _erred(dask_scheduler: Any) -> list[Any]:
    return [task.key for task in getattr(dask_scheduler, "erred_tasks", ())]
