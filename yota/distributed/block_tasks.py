"""The tasks that produce the blocks of a chunk; tasks for one chunk only run inside its own task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph

from yota.distributed.chunks import Chunked


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """How the blocks of one chunk are produced.

    tasks: key and task in execution order, each with the keys of results that are not needed afterwards.
    others: keys of results that other chunks need too, or that are already in worker memory.
    """

    keys: tuple[Any, ...]
    tasks: tuple[tuple[Any, Any, tuple[Any, ...]], ...]
    others: frozenset[Any]

    def blocks(self, given: Mapping[Any, Any]) -> list[Any]:
        """The blocks; ``given`` has the results of other tasks."""
        values = {key: given[key] for key in self.others}
        for key, task, done in self.tasks:
            values[key] = task(values)
            for each in done:
                del values[each]
        return [values[key] for key in self.keys]


def sources(chunks: Sequence[Chunked]) -> tuple[list[Source], HighLevelGraph]:
    """The source of each chunk, and the graph of the shared tasks.

    A task that only one chunk needs belongs to that chunk, which reads its blocks when it needs them. So a worker
    holds one chunk for each of its threads.
    """
    graphs = _optimized([each for given in chunks for each in given.collections])
    layers = {name: layer for graph in graphs for name, layer in graph.layers.items()}.values()
    tasks = {key: task for layer in layers for key, task in layer.items()}
    # Annotations determine where and how a task runs.
    apart = {key for layer in layers if layer.annotations for key in layer}
    used = Counter(key for task in tasks.values() for key in getattr(task, "dependencies", tasks))
    used.update(key for given in chunks for key in given.keys)
    inside = {key: task for key, task in tasks.items() if key not in apart and _runs_inside(task)}
    found = [_source(keys, inside, used) for keys in zip(*(given.keys for given in chunks), strict=True)]
    return found, HighLevelGraph.merge(*graphs) if any(each.others for each in found) else HighLevelGraph({}, {})


def _optimized(collections: Sequence[Any]) -> list[HighLevelGraph]:
    """Graphs merged so that shared parts of several collections run once; graphs of delayed blocks stay unchanged."""
    kinds: dict[type, list[Any]] = {}
    for each in collections:
        kinds.setdefault(type(each), []).append(each)
    graphs = [each.__dask_graph__() for each in kinds.pop(Delayed, [])]
    for several in kinds.values():
        graph = HighLevelGraph.merge(*(each.__dask_graph__() for each in several))
        graphs.append(several[0].__dask_optimize__(graph, [each.__dask_keys__() for each in several]))
    return [graph if isinstance(graph, HighLevelGraph) else HighLevelGraph.merge(graph) for graph in graphs]


def _runs_inside(task: Any) -> bool:
    """Whether a graph entry is a task or data that can run inside another task."""
    return callable(task) and hasattr(task, "dependencies") and not getattr(task, "is_coro", False)


def _source(keys: tuple[Any, ...], inside: Mapping[Any, Any], used: Mapping[Any, int]) -> Source:
    seen: Counter[Any] = Counter()
    needed, order = list(keys), []
    while needed:
        key = needed.pop()
        seen[key] += 1
        # All tasks that need it belong to this chunk.
        if seen[key] == used[key] and key in inside:
            order.append(key)
            needed.extend(inside[key].dependencies)
    tasks, later = [], set(keys)
    for key in order:
        tasks.append((key, inside[key], tuple(inside[key].dependencies - later)))
        later |= inside[key].dependencies
    return Source(keys, tuple(reversed(tasks)), frozenset(seen.keys() - set(order)))
