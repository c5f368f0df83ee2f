"""The table of a README from written results: ``python -m benchmarks.markdown results.json``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.report import duration, multiple

__all__ = ["markdown"]

OTHERS = ("autograd", "jax", "torch", "casadi", "numba", "hand")


def markdown(results: dict[str, Any]) -> str:
    """Times of the plain function and of yota's value and gradient, and everyone else's in multiples of the latter."""
    workloads = results["workloads"]
    others = [name for name in OTHERS if any(name in one["contenders"] for one in workloads.values())]
    rows = [
        ["workload", "function alone", "yota, value and gradient", "ratio", *others],
        ["---", *["---:"] * (3 + len(others))],
    ]
    for one in workloads.values():
        contenders = one["contenders"]
        plain, own = contenders["plain"]["median"], contenders["yota"]["median"]
        cells = [multiple(contenders[name]["median"] / own) if name in contenders else "" for name in others]
        rows.append([one["title"], duration(plain), duration(own), multiple(own / plain), *cells])
    machine = results["machine"]
    packages = ", ".join(f"{name} {version}" for name, version in machine["packages"].items())
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return f"{table}\n\n{machine['processor']}, {machine['threads']} thread(s), {machine['python']}; {packages}."


if __name__ == "__main__":
    print(markdown(json.loads(Path(sys.argv[1]).read_text())))
