"""``yota rules``: lists, searches and shows rules."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from yota.errors import YotaError
from yota.tools.cli import user_function
from yota.tools.cli.generate_command import Rules
from yota.tools.cli.terminal import code, failure, output, remark, status, table, text, working
from yota.tools.cli.user_function import Imports, UsageError, import_modules

_TARGETS = ("numpy", "c", "cuda")
_FAULTS = (YotaError, TypeError, ValueError, ArithmeticError)
"""Errors of what has no code; those of linear algebra are errors of values."""


def rules(
    name: Annotated[
        str,
        typer.Argument(
            help="Name of a primitive, or its function, as in numpy.power.", autocompletion=user_function.primitives
        ),
    ] = "",
    files: Annotated[list[Path], typer.Argument(help="With export: the rule file.", show_default=False)] = [],  # noqa: B006
    search: Annotated[str, typer.Option("--search", "-s", help="Text to search for.")] = "",
    rules: Rules = [],  # noqa: B006
    modules: Imports = [],  # noqa: B006
    to: Annotated[str, typer.Option("--to", help="With export: jax, torch or autograd.")] = "",
    out: Annotated[
        str, typer.Option("--output", "-o", help="With export: file to write; - for standard output.")
    ] = "-",
    force: Annotated[
        bool, typer.Option("--force", help="With export: overwrite a file that yota did not write.")
    ] = False,
    target: Annotated[str, typer.Option("--target", help="Show the code for this target only.")] = "",
    packages: Annotated[bool, typer.Option("--installed", help="List the rule files of installed packages.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """List the rules, search them, or show one.

    A single rule is shown with its source, its worst errors, and its code for each target. With `--rules`, overridden
    rules are marked.

        yota rules
        yota rules --search erf
        yota rules power
        yota rules --rules my.rules
        yota rules bump --rules bumps.rules --import bumps

    List the rule files of installed packages:

        yota rules --installed

    Write the rules of a file that have primals as a module for jax, torch or autograd:

        yota rules export --to jax my.rules -o my_rules.py
    """
    from yota.rules.registry import registry

    if packages:
        return _installed(as_json)

    if name == "export":
        return _export(files, to, out, force)
    if files or to:
        raise UsageError("`yota rules` takes one name; files and --to are for `yota rules export`")
    import_modules(modules)

    shipped = {name for name in registry().names() if not registry().is_user(name)}
    known = registry().copy()
    for path in rules:
        known.load(path)
    if name:
        return _one(known, _primitive(known, name), shipped, target, as_json)
    found = [entry for each in known.names() for entry in _entries(known, each, shipped) if _has(entry, search)]
    if as_json:
        output(found)
    else:
        rows = [[entry["name"], entry["kind"], entry["function"], entry["where"], entry["origin"]] for entry in found]
        table(["name", "kind", "function", "where", "from"], rows)
        text(f"{len(found)} rules")
    return 0


def _installed(as_json: bool) -> int:
    """List rule files of packages, without importing their modules; return 1 if one is broken."""
    from yota.errors import RuleError
    from yota.rules.packages import installed

    found: list[dict[str, Any]] = []
    faults = []
    for each in installed():
        entry = {"package": each.name, "version": each.version, "module": each.module, "file": each.reference}
        try:
            found.append({**entry, "file": str(each.path), "rules": len(each.read())})
        except RuleError as fault:
            found.append({**entry, "rules": None, "fault": str(fault)})
            faults.append(str(fault))
    if as_json:
        output(found)
    else:
        names = ["package", "version", "module", "file", "rules"]
        rows = [["broken" if each[name] is None else str(each[name]) for name in names] for each in found]
        table(names, rows, right=["rules"])
        text(f"{len(found)} rule files of installed packages")
        for message in faults:
            failure(message)
    return 1 if faults else 0


def _entries(known: Any, name: str, shipped: set[str]) -> list[dict[str, str]]:
    origin = "yota"
    if known.is_user(name):
        origin = "overrides yota's" if name in shipped else "user"
    return [
        {
            "name": name,
            "kind": rule.kind,
            "function": rule.target or "its primal",
            "where": f"{rule.file}:{rule.line}",
            "origin": origin,
            "doc": rule.doc,
            "source": rule.source,
        }
        for rule in known.rules(name)
    ]


def _has(entry: dict[str, str], search: str) -> bool:
    return any(search.lower() in entry[key].lower() for key in ("name", "function", "doc", "source"))


def _primitive(known: Any, name: str) -> str:
    if known.knows(name):
        return name
    for each in known.names():
        if any(rule.target == name for rule in known.rules(each)):
            return str(each)
    near = difflib.get_close_matches(name, known.names(), 3)
    hint = f"; near it are {', '.join(near)}" if near else ""
    raise UsageError(f"there is no rule of {name!r}{hint}. `yota rules --search {name}` looks into the texts")


def _one(known: Any, name: str, shipped: set[str], target: str, as_json: bool) -> int:
    from yota.rules.proof.checker import prove

    if target and target not in _TARGETS:
        raise UsageError(f"--target {target} is not known; the targets are: {', '.join(_TARGETS)}")
    entries = _entries(known, name, shipped)
    with working(f"proving {name}"):
        generated = _specimen(known, name, (target,) if target else _TARGETS)
        found = [each for rule in known.rules(name) for each in prove(rule, known)]
    if as_json:
        output({"rules": entries, "proof": [asdict(each) for each in found], "code": generated})
        return 0
    for entry in entries:
        text(f"# {entry['where']} ({entry['origin']})")
        code(entry["source"])
        text("")
    if found:
        text("# Worst errors")
        rows = [
            [each.argument, each.law, each.error, status(each), each.note.removeprefix("not measured: ")]
            for each in found
        ]
        table(["argument", "law", "worst error", "", "note"], rows, right=["worst error"])
        text("")
    for each, written in generated.items():
        text(f"# The code for its value and gradient on the {each} target:")
        code(written, "python" if each == "numpy" else "c")
        text("")
    return 0


def _specimen(known: Any, name: str, targets: Sequence[str]) -> dict[str, str]:
    """The code of value and gradient of ``sum(primitive(...))`` for each target, or why there is none."""
    import numpy as np

    from yota.ir.inputs import Leaf
    from yota.optimize.pipeline import run
    from yota.rules.proof.compiled_rule import operands
    from yota.run.derivatives.inside import record
    from yota.tracing.intercept import recorded
    from yota.transform.reverse.backward import gradient_tape

    rule = known.rules(name)[0]
    if rule.kind == "nodiff":
        return {"numpy": "# Not differentiable: its derivative is zero wherever it has one, and no code is generated."}
    primitive = known.primitive(name)
    values = operands(rule)
    leaves = [
        Leaf(value, position, names, ())
        for position, (names, value) in enumerate(zip(_names(rule, values), values, strict=True))
    ]

    def call(*arguments: Any) -> Any:
        found = recorded(primitive)(*arguments)
        return np.sum(np.real(found[0] if len(rule.results) > 1 else found))

    call.__name__ = name
    try:
        tape = record(call, leaves, tuple, registry=known).tape
        floating = [entry.variable for entry in tape.inputs if tape.types[entry.variable].differentiable]
        planned = run(gradient_tape(tape, floating, known).tape)
    except _FAULTS as fault:
        return {"numpy": f"# No code for operands made up from the pattern: {_line(fault)}"}
    return {target: _written(target, planned) for target in targets}


def _written(target: str, planned: Any) -> str:
    generate = importlib.import_module(f"yota.emit.targets.{target}").generate
    try:
        return str(generate(planned).text)
    except _FAULTS as fault:
        return f"# No code: {_line(fault)}"


def _names(rule: Any, values: list[Any]) -> list[str]:
    names = [parameter.name for parameter in rule.operands]
    return names if len(names) == len(values) else [f"{names[-1]}{position}" for position in range(len(values))]


def _line(fault: BaseException) -> str:
    return " ".join(str(fault).split())


def _export(files: list[Path], library: str, out: str, force: bool) -> int:
    from yota.package.assembly import write
    from yota.package.subject import relative
    from yota.tools.sharing.rule_functions import export

    if len(files) != 1 or not library:
        raise UsageError("an export takes a file and a library: yota rules export --to jax, torch or autograd my.rules")
    if not files[0].exists():
        raise UsageError(f"there is no file {files[0]}")
    command = ["yota", "rules", "export", "--to", library, relative(files[0])]
    shared = export(files[0], library, [*command, "-o", relative(out)] if out != "-" else command)
    for note in shared.notes:
        remark(f"note: {note}")
    if out == "-":
        code(shared.text)
        return 0
    write(Path(out), shared.text, force=force)
    remark(f"{out}: {', '.join(shared.functions)}")
    return 0
