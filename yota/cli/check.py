"""``yota check``: prove rule files."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Annotated, Any

import typer

from yota.cli.loading import UsageError
from yota.cli.terminal import failure, output, remark, table, text

__all__ = ["HELP", "check"]

HELP = """
Prove the rules of a file: the laws of the language, each partial against its primal at 50 digits, each adjoint
along random directions.

    yota check my.rules
    yota check my.rules --import mypkg      where the rules are of functions in mypkg

Functions are looked up among the modules that are imported; a rule file never imports one. Exit code 1 if a rule is
wrong; errors say where, and how to mend it.
"""


def check(
    files: Annotated[list[Path], typer.Argument(help="Rule files, or folders of them.", show_default=False)],
    modules: Annotated[list[str], typer.Option("--import", help="Module to import first; may be repeated.")] = [],  # noqa: B006
    ulps: Annotated[float, typer.Option("--ulps", help="Largest error of a partial.")] = 4096.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """See `HELP`."""
    from yota.cli.proof import proved

    for module in modules:
        try:
            importlib.import_module(module)
        except ModuleNotFoundError:
            raise UsageError(f"--import {module}: there is no such module here") from None
    missing = [str(path) for path in files if not path.exists()]
    if missing:
        raise UsageError(f"there is no file {missing[0]}")
    reports = [proved(path, ulps) for path in _expanded(files)]
    wrong = any(report["faults"] or any(not row["held"] for row in report["rows"]) for report in reports)
    if as_json:
        output(reports)
    else:
        for report in reports:
            _print(report)
    return 1 if wrong else 0


def _expanded(files: list[Path]) -> list[Path]:
    found = [each for path in files for each in (sorted(path.rglob("*.rules")) if path.is_dir() else [path])]
    if not found:
        raise UsageError("there is no *.rules file in that folder")
    return found


def _print(report: dict[str, Any]) -> None:
    for fault in report["faults"]:
        failure(fault)
    if report["rows"]:
        columns = ["rule", "argument", "law", "worst error", "where", ""]
        rows = [
            [row["rule"], row["argument"], row["law"], row["error"], row["where"], "held" if row["held"] else "!wrong"]
            for row in report["rows"]
        ]
        table(columns, rows, right=["worst error"])
    count = len({(row["rule"], row["where"]) for row in report["rows"]})
    text(f"{report['file']}: {count} rules, {len(report['faults'])} faults")
    if report["unproved"]:
        remark(f"not tried: {'; '.join(report['unproved'])}")
