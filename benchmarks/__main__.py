"""The command line: ``python -m benchmarks [NAME ...]``."""

from __future__ import annotations

import argparse
import json
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from benchmarks.threads import limit_threads


def main(arguments: list[str] | None = None) -> int:
    """Run what was asked for, print tables, write JSON."""
    options = parse(arguments)
    limit_threads(options.threads)
    # NumPy and its BLAS read the number of threads when they are imported.
    from benchmarks.workloads import WORKLOADS

    if "cuda" in (options.target or ()):
        from benchmarks.workloads.gpu import GPU_WORKLOADS

        WORKLOADS.update(GPU_WORKLOADS)
    if options.list:
        for workload in WORKLOADS.values():
            print(f"{workload.name:20} {workload.title}")
        return 0
    others = ["launches"] if "cuda" in (options.target or ()) else ["overheads"]
    known = [*WORKLOADS, *others, "first", "loops", "solvers"]
    unknown = sorted(set(options.names) - set(known))
    if unknown:
        print(f"no workload {', '.join(unknown)}; there are: {', '.join(known)}", file=sys.stderr)
        return 2
    return run(options, options.names or [*WORKLOADS, *others])


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help="workloads, `overheads`, `launches`, `first`, `loops`, `solvers`; without any all but the last three",
    )
    parser.add_argument("--list", action="store_true", help="list the workloads and stop")
    parser.add_argument("--target", action="append", metavar="TARGET", help="a target of yota; may be repeated")
    parser.add_argument("--peers", metavar="A,B", help="only these peers besides plain and yota")
    parser.add_argument("--repeats", type=int, default=None, help="rounds (default: 15, quick: 3)")
    parser.add_argument("--threads", type=int, default=1, help="threads for everyone; 0: leave as it is (default: 1)")
    parser.add_argument("--quick", action="store_true", help="small arguments, few rounds: does it run at all?")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the results here")
    return parser.parse_args(arguments)


def run(options: argparse.Namespace, names: list[str]) -> int:
    """Measure, print and write; 1 if a workload failed."""
    from benchmarks.bars import judge
    from benchmarks.first import measure_first, show_first
    from benchmarks.launches import measure_launches
    from benchmarks.loops import measure_loops, show_loops
    from benchmarks.machine import describe_gpu, describe_machine
    from benchmarks.overheads import measure_overheads
    from benchmarks.peers import all_peers
    from benchmarks.peers.yota import gpu_obstacle
    from benchmarks.report import show_results
    from benchmarks.runner import Settings, run_workload
    from benchmarks.solvers import measure_solvers, show_solvers
    from benchmarks.workloads import WORKLOADS

    quick = Settings(repeats=3, shortest=0.001, fresh=1, quick=True)
    settings = quick if options.quick else Settings()
    if options.repeats:
        settings = Settings(options.repeats, settings.shortest, settings.fresh, settings.quick)
    peers = all_peers(options.target or ["numpy"])
    if options.peers is not None:
        wanted = {"plain", *options.peers.split(",")}
        peers = [peer for peer in peers if peer.name in wanted or peer.name.startswith("yota")]
    results: dict[str, Any] = {"machine": describe_machine(), "settings": vars_of(settings), "workloads": {}}
    if "cuda" in (options.target or ()):
        results["machine"]["gpu"] = describe_gpu()
    tables: dict[str, tuple[Any, Any]] = {
        "first": (measure_first, show_first),
        "loops": (measure_loops, show_loops),
        "solvers": (lambda: measure_solvers(quick=options.quick), show_solvers),
    }
    failures = 0
    for name in names:
        obstacle = gpu_obstacle() if name == "launches" else None
        if obstacle is not None:
            print(f"skipped launches: {obstacle}", file=sys.stderr)
            continue
        started = time.perf_counter()
        try:
            if name in tables:
                measure, show = tables[name]
                results[name] = measure()
                show(results[name])
            elif name == "overheads":
                results["overheads"] = measure_overheads(peers, settings)
            elif name == "launches":
                results["launches"] = measure_launches(settings)
            else:
                results["workloads"][name] = run_workload(WORKLOADS[name], peers, settings)
        except Exception:  # noqa: BLE001  one workload that fails must not lose the others' numbers
            failures += 1
            traceback.print_exc()
            print(f"{name}: FAILED", file=sys.stderr)
        else:
            print(f"{name}: {time.perf_counter() - started:.1f} s", file=sys.stderr)
    results["bars"] = [] if settings.quick else judge(results)
    machine = results["machine"]
    gpu = f"{machine['gpu']['name']}, " if machine.get("gpu") else ""
    print(f"{gpu}{machine['processor']}, {machine['threads']} thread(s), {machine['python']}, {machine['blas']}")
    show_results(results)
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(results, indent=2) + "\n")
    return 1 if failures else 0


def vars_of(settings: Any) -> dict[str, Any]:
    """The settings as a dictionary."""
    from dataclasses import asdict

    return asdict(settings)


if __name__ == "__main__":
    sys.exit(main())
