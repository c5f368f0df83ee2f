"""``yota check``: verifies rule files."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from yota.tools.cli.terminal import failure, output, remark, status, steps, table, text
from yota.tools.cli.user_function import Imports, UsageError, import_modules

if TYPE_CHECKING:
    from yota.rules.proof.findings import Report


def check(
    files: Annotated[list[Path], typer.Argument(help="Rule files, or folders of them.", show_default=False)],
    modules: Imports = [],  # noqa: B006
    points: Annotated[int, typer.Option("--points", min=1, max=1000, help="Points for each partial.")] = 16,
    every: Annotated[bool, typer.Option("--all", help="Also list the laws that hold.")] = False,
    planted: Annotated[bool, typer.Option("--mutants", help="Insert faults and count those found.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Verify the rules of a file.

    yota checks the laws of the rule language. It compares each partial with its function as a formula ("exact" if that
    succeeds, else with 50 digits), and as generated code in double and single precision. It checks each adjoint along
    random directions, with its shape and dtype. It also checks kinks, broadcasting, empty and strided operands, and
    second order.

        yota check my.rules
        yota check my.rules --import mypkg
        yota check my.rules --mutants

    yota looks functions up in imported modules. A rule file imports only modules of the shipped rules; `--import` adds
    others. `--mutants` inserts faults into the rules and counts those that the checks miss. The error of a partial may
    be 8 units in the last place for NumPy functions, and 1e-12 for others. The rule's docstring may allow more and give
    the reason, as in "Within 1e-9: the terms cancel near 1." The exit code is 1 if a rule is wrong or its function is
    missing; errors give the place and the correction.
    """
    from yota.rules.proof.checker import prove_file

    import_modules(modules)
    missing = [str(path) for path in files if not path.exists()]
    if missing:
        raise UsageError(f"there is no file {missing[0]}")
    if planted:
        return _mutants(_expanded(files), as_json)
    reports = [prove_file(path, points, lambda rules: steps(rules, "proving")) for path in _expanded(files)]
    if as_json:
        output([report.data() for report in reports])
    else:
        for report in reports:
            _print(report, every)
    return 0 if all(report.held for report in reports) else 1


def _expanded(files: list[Path]) -> list[Path]:
    found = [each for path in files for each in (sorted(path.rglob("*.rules")) if path.is_dir() else [path])]
    if not found:
        raise UsageError("there is no *.rules file in that folder")
    return found


def _print(report: Report, every: bool) -> None:
    for fault in report.faults:
        failure(fault)
    rows = [
        [each.rule, each.argument, each.law, each.error, each.where, status(each)]
        for each in report.findings
        if each.status == "wrong" or (each.error and (every or each.law not in _QUIET))
    ]
    if rows:
        table(["rule", "argument", "law", "worst error", "where", ""], rows, right=["worst error"])
    count = Counter(each.status for each in report.findings)
    rules = "1 rule" if report.rules == 1 else f"{report.rules} rules"
    text(f"{report.file}: {rules}; {count['held']} laws hold, {count['not measured']} could not be measured")
    text(f"{len(report.faults)} faults of the language, {count['wrong']} of mathematics")
    notes = dict.fromkeys(f"{each.rule}: {each.note}" for each in report.findings if each.note)
    for note in notes:
        remark(note)


_QUIET = ("laws of the language", "adjoint, shape and dtype")
"""Laws without an error to show."""


def _mutants(files: list[Path], as_json: bool) -> int:
    from yota.rules.proof.mutants import survey

    surveys = [survey(path, lambda rules: steps(rules, "planting")) for path in files]
    if as_json:
        output([each.data() for each in surveys])
    else:
        rows = [
            [str(each.file), str(each.planted), str(each.found), str(len(each.same)), f"{each.share:.1f} %"]
            for each in surveys
        ]
        table(["file", "planted", "found", "without effect", "found of those with effect"], rows)
        for each in surveys:
            for mutant, reason in each.same.items():
                remark(f"without effect: {mutant}: {reason}")
            for missed in each.missed:
                failure(f"not found: {missed}")
    return 0 if all(not each.missed for each in surveys) else 1
