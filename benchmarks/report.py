"""Results as tables: with rich where it is installed, in plain columns elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

__all__ = ["show_results"]

Row = Sequence[str]


def show_results(results: dict[str, Any]) -> None:
    """Print everything that was measured."""
    workloads = results["workloads"]
    columns = list(dict.fromkeys(name for one in workloads.values() for name in one["contenders"]))
    if workloads:
        table("Value and gradient, median of a call", ["workload", *columns], times(workloads, columns, "median"))
        table("The same, in multiples of yota's time", ["workload", *columns], multiples(workloads, columns))
        gradients = [name for name in columns if name != "plain"]
        table("First gradient of a new function", ["workload", *gradients], times(workloads, gradients, "first"))
        show_skipped(workloads)
    if "overheads" in results:
        table("Overheads", ["what", "measured"], overheads(results["overheads"]))
    if "launches" in results:
        rows = [[name, duration(seconds)] for name, seconds in results["launches"].items()]
        table("A gradient of 1,000 numbers on the GPU", ["what", "measured"], rows)
    if results["bars"]:
        table("Promises", ["promise", "measured", "bound", ""], promises(results["bars"]))


def table(title: str, header: Row, rows: Sequence[Row]) -> None:
    """Print one table."""
    if find_spec("rich"):
        from rich.console import Console
        from rich.table import Table

        drawn = Table(title=title, title_justify="left")
        for index, column in enumerate(header):
            drawn.add_column(column, justify="right" if index else "left", no_wrap=True)
        for row in rows:
            drawn.add_row(*row)
        # As wide as it must be: a file has no edge, and a wrapped number cannot be read.
        Console(width=sum(max(map(len, column)) + 3 for column in zip(header, *rows, strict=True)) + 1).print(drawn)
        return
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    print(f"\n{title}")
    for row in (header, *rows):
        cells = [
            cell.rjust(width) if i else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        print("  ".join(cells).rstrip())


def times(workloads: dict[str, Any], columns: list[str], what: str) -> list[Row]:
    """One row of times for each workload."""
    return [
        [name, *(duration(one["contenders"].get(column, {}).get(what)) for column in columns)]
        for name, one in workloads.items()
    ]


def multiples(workloads: dict[str, Any], columns: list[str]) -> list[Row]:
    """One row of ratios for each workload."""
    rows = []
    for name, one in workloads.items():
        contenders = one["contenders"]
        name_of_own = next((column for column in columns if column.startswith("yota") and column in contenders), None)
        if name_of_own is None:
            continue
        own = contenders[name_of_own]["median"]
        rows.append(
            [
                name,
                *(multiple(contenders[column]["median"] / own) if column in contenders else "-" for column in columns),
            ]
        )
    return rows


def overheads(found: dict[str, Any]) -> list[Row]:
    """One row for each overhead."""
    rows: list[Row] = [
        ["cached value_and_grad, polynomial", duration(found["call"]["cached"])],
        ["its generated function", duration(found["call"]["generated"])],
        ["difference", duration(found["call"]["overhead"])],
        *([f"first gradient of {n} scalar ops", duration(t)] for n, t in found["growth"]["seconds"].items()),
        ["ratio", multiple(found["growth"]["ratio"])],
        ["import numpy", duration(found["imports"]["numpy"])],
        ["import yota", duration(found["imports"]["yota"])],
        ["from yota import grad", duration(found["imports"]["grad"])],
        ["ratio", multiple(found["imports"]["ratio"])],
        ["shipped rules", duration(found["rules"]["shipped"])],
        ["shipped rules, each of them parsed", duration(found["rules"]["all"])],
        ["300 rules of a user's, for the first time", duration(found["rules"]["first"])],
        ["300 rules of a user's, proved before", duration(found["rules"]["again"])],
    ]
    for workload, peers in found["cold"].items():
        rows += [[f"empty process to first gradient, {workload}, {peer}", duration(t)] for peer, t in peers.items()]
    return rows


def promises(judged: list[dict[str, Any]]) -> list[Row]:
    """One row for each promise."""
    return [
        [
            one["bar"],
            f"{one['measured']:.3g}",
            f"{'>=' if one['at_least'] else '<='} {one['bound']:g}",
            "kept" if one["kept"] else "MISSED",
        ]
        for one in judged
    ]


def show_skipped(workloads: dict[str, Any]) -> None:
    """Say who did not take part, and why."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for name, one in workloads.items():
        for peer, reason in one["skipped"].items():
            reasons.setdefault((peer, reason), []).append(name)
    for (peer, reason), names in reasons.items():
        where = "all workloads" if len(names) == len(workloads) else ", ".join(names)
        print(f"skipped {peer}: {reason} ({where})")


def duration(seconds: float | None) -> str:
    """Three digits and a unit.

    >>> duration(0.00123)
    '1.23 ms'
    """
    if seconds is None:
        return "-"
    for factor, unit in ((1.0, "s"), (1e3, "ms"), (1e6, "us")):
        if abs(seconds) * factor >= 1.0:
            return f"{seconds * factor:.3g} {unit}" if seconds * factor < 1000 else f"{seconds * factor:.0f} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def multiple(ratio: float) -> str:
    """A ratio with a times sign.

    >>> multiple(2.345)
    '2.35x'
    """
    return f"{ratio:.0f}x" if ratio >= 100 else f"{ratio:.3g}x"
