"""``yota rules``: list and search the rules, or show one with its source and its generated code."""

from __future__ import annotations

import difflib
from typing import Annotated, Any

import typer

from yota.cli import completion
from yota.cli.generate import Rules
from yota.cli.loading import UsageError
from yota.cli.terminal import code, output, table, text

__all__ = ["HELP", "rules"]

HELP = """
List the rules, search them, or show one.

    yota rules                     all of them
    yota rules --search erf        those whose name, function or text has this
    yota rules power               one, with its source and the code generated for it
    yota rules --rules my.rules    with the rules of a file; what they override is marked
"""


def rules(
    name: Annotated[
        str,
        typer.Argument(
            help="Name of a primitive, or its function, as in numpy.power.", autocompletion=completion.primitives
        ),
    ] = "",
    search: Annotated[str, typer.Option("--search", "-s", help="Text to look for.")] = "",
    rules: Rules = [],  # noqa: B006
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """See `HELP`."""
    from yota.rules.registry import registry

    shipped = {name for name in registry().names() if not registry().is_user(name)}
    known = registry().copy()
    for path in rules:
        known.load(path)
    if name:
        return _one(known, _primitive(known, name), shipped, as_json)
    found = [entry for each in known.names() for entry in _entries(known, each, shipped) if _has(entry, search)]
    if as_json:
        output(found)
    else:
        rows = [[entry["name"], entry["kind"], entry["function"], entry["where"], entry["origin"]] for entry in found]
        table(["name", "kind", "function", "where", "from"], rows)
        text(f"{len(found)} rules")
    return 0


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


def _one(known: Any, name: str, shipped: set[str], as_json: bool) -> int:
    from yota.cli.specimen import specimen

    entries = _entries(known, name, shipped)
    generated = specimen(known, name)
    if as_json:
        output({"rules": entries, "code": generated})
        return 0
    for entry in entries:
        text(f"# {entry['where']} ({entry['origin']})")
        code(entry["source"])
        text("")
    text("# The code for its value and gradient on the numpy target:")
    code(generated)
    return 0
