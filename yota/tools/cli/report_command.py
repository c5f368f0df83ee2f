"""``yota report``: writes the tape explorer, one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from yota.tools.cli.generate_command import Arguments, Force, Function, Output, Rules, Strict, Target, Wrt
from yota.tools.cli.terminal import output, remark, text, working
from yota.tools.cli.user_function import function_at, given, load_rule_files

HELP = """
Write the tape explorer: one HTML file that links the source, the tape, the applied rules and the generated code.

Hovering over a line highlights the related lines of all columns.
The file works offline.

    yota report examples/polynomial.py:polynomial --arg "x=float64[8]" -o polynomial.html
    yota report examples/polynomial.py:polynomial --arg "x=float64[8]" --target c -o in_c.html
"""


def report(
    function: Function,
    arg: Arguments = [],  # noqa: B006  (typer reads it, nobody writes it)
    out: Output = "-",
    target: Annotated[Target, typer.Option("--target", help="Target of the code.")] = Target.numpy,
    wrt: Wrt = [],  # noqa: B006
    strict: Strict = False,
    rules: Rules = [],  # noqa: B006
    force: Force = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was done as JSON.")] = False,
) -> int:
    """See `HELP`."""
    from yota.package.files import write
    from yota.tools.report.collect import page

    load_rule_files(rules)
    f = function_at(function)
    with working("tracing and differentiating"):
        found = page(f, given(arg), target=target.value, wrt=tuple(wrt) or None, strict=strict)
    if out == "-":
        output({"html": found}) if as_json else text(found)
        return 0
    write(Path(out), found, force=force)
    if as_json:
        output({"written": [out], "bytes": len(found)})
    else:
        remark(f"{out}: {len(found) // 1000} kB; open it in a browser")
    return 0
