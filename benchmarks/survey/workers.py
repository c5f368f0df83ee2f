"""Examines the functions of packages in processes of their own, with a limit of time for each."""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

__all__ = ["survey"]

_AGAIN = ("wrong", "nan", "refused", "slow", "failed", "unknown")
"""What is examined again on demand."""
_PATIENCE = 1800.0
"""Seconds of the wall clock after which a process is ended."""


def survey(names: list[str], jobs: int, state: Path, again: bool = False) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """What becomes of each function; what the state holds is not examined again, or only where it is right."""
    done = read_state(state)
    if again:
        done = {name: found for name, found in done.items() if not any(each["kind"] in _AGAIN for each in found)}
    for name in names:
        if name in done:
            yield name, done[name]
    left = [name for name in names if name not in done]
    state.parent.mkdir(parents=True, exist_ok=True)
    with state.open("a", encoding="utf-8") as file:
        for name, found in _examined(left, jobs):
            file.write(json.dumps({"name": name, "found": found}) + "\n")
            file.flush()
            yield name, found


def read_state(state: Path) -> dict[str, list[dict[str, Any]]]:
    """What was examined before, by name; a later line counts."""
    found: dict[str, list[dict[str, Any]]] = {}
    if state.exists():
        for line in state.read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            found[entry["name"]] = entry["found"]
    return found


def _examined(names: list[str], jobs: int) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    context = multiprocessing.get_context("spawn")
    rest = list(reversed(names))
    workers: dict[Any, tuple[Any, str, float]] = {}

    def start() -> tuple[Any, Any]:
        ours, theirs = context.Pipe()
        process = context.Process(target=_work, args=(theirs,), daemon=True)
        process.start()
        theirs.close()
        return ours, process

    def give(pipe: Any, process: Any) -> None:
        if rest:
            name = rest.pop()
            pipe.send(name)
            workers[pipe] = (process, name, time.monotonic() + _PATIENCE)
        else:
            pipe.close()
            process.terminate()

    for _ in range(min(jobs, len(rest))):
        give(*start())
    while workers:
        for pipe in wait(list(workers), timeout=1.0):
            process, name, _ = workers.pop(pipe)
            try:
                found = pipe.recv()
            except (EOFError, ConnectionError):
                yield (
                    name,
                    [
                        {
                            "name": name,
                            "text": "",
                            "kind": "slow",
                            "detail": "the process ended",
                        }
                    ],
                )
                give(*start())
                continue
            yield name, found
            give(pipe, process)
        for pipe, (process, name, end) in list(workers.items()):
            if time.monotonic() > end:
                process.kill()
                del workers[pipe]
                yield (
                    name,
                    [{"name": name, "text": "", "kind": "slow", "detail": "no end"}],
                )
                give(*start())


def _work(pipe: Any) -> None:
    os.environ["YOTA_PROGRESS"] = "off"
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    from benchmarks.survey.functions import outcomes

    folder = tempfile.mkdtemp()
    os.chdir(folder)
    sys.stdin.close()
    while True:
        try:
            name = pipe.recv()
        except EOFError:
            return
        pipe.send([asdict(each) for each in outcomes(name)])
