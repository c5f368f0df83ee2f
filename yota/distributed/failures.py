"""Errors that name the failing chunk of data."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dask.base import get_scheduler
from dask.optimization import cull

from yota.errors import ChunkError, YotaError


def failure(what: str, number: int, blocks: Sequence[Any], error: Exception) -> ChunkError:
    """The error for a chunk whose computation raised an error."""
    shapes = ", ".join(str(getattr(block, "shape", type(block).__name__)) for block in blocks)
    return ChunkError(f"chunk {number} of {what}, with blocks of shape {shapes}: {_said(error)}")


def _said(error: Exception) -> str:
    return str(error) if isinstance(error, YotaError) else f"{type(error).__name__}: {error}"


def of_reading(what: str, graph: Mapping[Any, Any], groups: Mapping[Any, range], error: Exception) -> Exception:
    """The error for chunks that could not be read; ``error`` itself if the chunks are unknown.

    what: names of the data.
    groups: keys of the tasks for chunks, and the chunk numbers.
    """
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
