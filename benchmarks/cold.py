"""In a process of its own: ``python -m benchmarks.cold PEER WORKLOAD`` prints the seconds to the first gradient."""

import time

START = time.perf_counter()


def main() -> None:
    import sys

    from benchmarks.peers import all_peers
    from benchmarks.workloads import WORKLOADS

    name, workload = sys.argv[1], WORKLOADS[sys.argv[2]]
    targets = ["numpy", *([name.removeprefix("yota ")] if name.startswith("yota ") else [])]
    peer = next(peer for peer in all_peers(targets) if peer.name == name)
    arguments = [peer.place(argument) for argument in workload.arguments(False)]
    function = peer.prepare(workload)
    assert function is not None
    function(*arguments)
    print(time.perf_counter() - START)


if __name__ == "__main__":
    main()
