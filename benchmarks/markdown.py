"""Tables of a README from written results: ``python -m benchmarks.markdown results.json``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.report import duration, multiple

__all__ = ["markdown"]

OTHERS = ("autograd", "jax", "torch", "casadi", "numba", "hand")


def markdown(results: dict[str, Any]) -> str:
    """Times of yota's value and gradient; those of the function alone and of everyone else in multiples of them."""
    workloads = results["workloads"]
    found = {name: None for one in workloads.values() for name in one["contenders"]}
    first, *more = [name for name in found if name.startswith("yota")]
    others = ["plain", *more, *(name for name in OTHERS if name in found)]
    header = ["workload", first, *("function alone" if name == "plain" else name for name in others)]
    rows = [header, ["---", *["---:"] * (len(header) - 1)]]
    for one in workloads.values():
        contenders = one["contenders"]
        own = contenders[first]["median"]
        cells = [multiple(contenders[name]["median"] / own) if name in contenders else "" for name in others]
        rows.append([one["title"].replace("*", r"\*"), duration(own), *cells])
    machine = results["machine"]
    packages = ", ".join(f"{name} {version}" for name, version in machine["packages"].items())
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return f"{table}\n\n{machine['processor']}, {machine['threads']} thread(s), {machine['python']}; {packages}."


if __name__ == "__main__":
    print(markdown(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))))
