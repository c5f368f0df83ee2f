"""``yota show``: shows each stage of a function's compilation."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any

import typer

from yota.tools.cli.generate_command import Arguments, Function, Rules, Strict, Wrt
from yota.tools.cli.terminal import code, output, remark, text, working
from yota.tools.cli.user_function import function_at, given, load_rule_files

HELP = """
Show a stage of a function's compilation.

`trace` is the tape of the function, `reverse` the tape with its adjoints, and `passes` the tape after all passes.
`plan` is the input of the templates, and `source` is the code. Named sizes have small values.

    yota show examples/polynomial.py:polynomial --arg "x=float64[8]" --stage trace
"""


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
    """See `HELP`."""
    from yota.ir.op_counts import operations
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
