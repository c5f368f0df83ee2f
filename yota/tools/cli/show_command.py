"""``yota show`` shows each stage of a function's compilation, ``yota report`` writes the tape explorer."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from yota.tools.cli.generate_command import Arguments, Force, Function, Output, Rules, Strict, Target, Wrt
from yota.tools.cli.terminal import code, output, remark, text, working
from yota.tools.cli.user_function import function_at, given, load_rule_files


class Stage(str, Enum):
    """A stage of the compilation."""

    trace = "trace"
    reverse = "reverse"
    passes = "passes"
    plan = "plan"
    source = "source"


def show(
    function: Function,
    arg: Arguments = [],  # noqa: B006
    stage: Annotated[Stage, typer.Option("--stage", "-s", help="Which stage to show.")] = Stage.source,
    wrt: Wrt = [],  # noqa: B006
    strict: Strict = False,
    rules: Rules = [],  # noqa: B006
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON, with the number of operations.")] = False,
) -> int:
    """Show a stage of a function's compilation.

    `trace` is the tape of the function, `reverse` the tape with its adjoints, and `passes` the tape after all passes.
    `plan` is the input of the templates, and `source` is the code. Named sizes have small values.

        yota show examples/polynomial.py:polynomial --arg "x=float64[8]" --stage trace
    """
    from yota.ir.printing import operations
    from yota.package.subject import call_of, subject_of

    load_rule_files(rules)
    f = function_at(function)
    with working("tracing and differentiating"):
        call, sizes = call_of(f, given(arg)).at_some_size()
        subject = subject_of(call, tuple(wrt) or None, sizes)
        tape = subject.tape if stage is Stage.trace else _differentiated(subject)
        if stage is Stage.trace or stage is Stage.reverse:
            found = str(tape)
        else:
            found, tape = _generated(subject.valued(tape, strict), stage, strict)
    if sizes:
        remark(f"shown at {', '.join(f'{name} = {size}' for name, size in sizes.items())}")
    if as_json:
        output({"stage": stage.value, "text": found, "operations": operations(tape)})
    elif stage is Stage.plan or stage is Stage.source:
        code(found)
    else:
        text(found)
    return 0


def _differentiated(subject: Any) -> Any:
    from yota.rules.registry import registry
    from yota.transform.reverse.backward import gradient_tape

    variables = [subject.tape.inputs[leaf].variable for leaf in subject.layout.wanted]
    return gradient_tape(subject.tape, variables, registry()).tape


def _generated(tape: Any, stage: Stage, strict: bool) -> tuple[str, Any]:
    from yota.emit.targets import numpy
    from yota.optimize.pipeline import run

    tape = run(tape, strict=strict)
    if stage is Stage.passes:
        return str(tape), tape
    if stage is Stage.source:
        return numpy.generate(tape, strict=strict).text, tape
    from rich.pretty import pretty_repr

    return pretty_repr(numpy.plan(tape, strict=strict), max_width=120), tape


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
    """Write the tape explorer: one HTML file that links the source, the tape, the applied rules and the generated code.

    Hovering over a line highlights the related lines of all columns.
    The file works offline.

        yota report examples/polynomial.py:polynomial --arg "x=float64[8]" -o polynomial.html
        yota report examples/polynomial.py:polynomial --arg "x=float64[8]" --target c -o in_c.html
    """
    from yota.package.assembly import write
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
