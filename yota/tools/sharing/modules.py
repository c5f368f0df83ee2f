"""Modules for other libraries: each rule with a primal becomes a function with that derivative."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import yota
from yota.emit.python.formatting import formatted
from yota.emit.render import render
from yota.errors import ArgumentError, RuleError
from yota.ir.plain_text import docstring, shell, visible
from yota.package.assembly import MARK, tidied
from yota.rules.language.model import Rule
from yota.rules.registry import Registry, registry
from yota.tools.sharing.dialect_printer import FIXED, SEED, Speller, identifier
from yota.tools.sharing.dialects import DIALECTS, Dialect
from yota.tools.sharing.rule_functions import Function, function


@dataclass(frozen=True, slots=True)
class Shared:
    """An exported module, and the rules that it omits."""

    text: str
    functions: tuple[str, ...]
    notes: tuple[str, ...]


def export(path: Path, library: str, command: Sequence[str]) -> Shared:
    """The module for ``library`` with the rules of a file.

    library: ``"jax"``, ``"torch"`` or ``"autograd"``.
    command: the command that generates the module, for its header.
    Raises ArgumentError if the library is unknown, or no rule of the file has a primal.
    Raises RuleError if a rule is wrong, or the library lacks a function of it.
    """
    dialect = DIALECTS.get(library)
    if dialect is None:
        raise ArgumentError(f"rules are exported to {', '.join(DIALECTS)}, not to {library!r}")
    known = registry().copy()
    rules = known.load(path)
    wanted = [rule for rule in rules if rule.primal]
    notes = [f"{rule.name} is left out: it has no primal" for rule in rules if not rule.primal]
    if not wanted:
        raise ArgumentError(f"{path} has no rule with a primal, which is what can be exported")
    origin = f"{MARK}{yota.__version__} from {visible(path.name)}."
    functions, macros, imports = _functions(wanted, known, dialect)
    plan = {
        "banner": (f"{origin} Do not edit: change the rules, then run", "#", f"#     {shell(command)}"),
        "summary": docstring(f"Rules of {path.name} for {library}."),
        "imports": imports,
        "exports": ", ".join(sorted(f'"{identifier(rule.name)}"' for rule in wanted)),
        "functions": functions,
        "elementwise": any(each.elementwise for each in functions),
        "tensor": not all(each.elementwise for each in functions),
        "macros": sorted(macros),
        "seed": SEED,
    }
    text = formatted(render(f"sharing/{library}.py.jinja", **plan))
    return Shared(tidied(text), tuple(identifier(rule.name) for rule in wanted), tuple(notes))


def _functions(
    wanted: Sequence[Rule], known: Registry, dialect: Dialect
) -> tuple[list[Function], set[str], list[list[str]]]:
    """The functions of the rules, preceded by functions that they call, and their imports and macros."""
    found: dict[str, Function] = {}
    macros: set[str] = set()
    uses_math = False
    taken: set[str] = set()
    pending = [*wanted]
    while pending:
        rule = pending.pop(0)
        if rule.name in found:
            raise RuleError(
                f"{rule.file}:{rule.line}: the rule of {rule.name} cannot be exported to {dialect.name}: "
                "there are several of that name\nwrite: one rule, or names of their own"
            )
        spelling = Speller(dialect, rule, known)
        stem = rule.name.strip("_")
        # Names that differ in case or underscores give one name of a class.
        while _plain(stem) in {_plain(each.stem) for each in found.values()}:
            stem += "2"
        found[rule.name] = function(rule, known, spelling, stem, taken)
        taken.add(identifier(rule.name))
        macros |= spelling.macros
        uses_math |= spelling.math
        queued = {each.name for each in pending} | found.keys()
        pending += [known.rules(name)[0] for name in spelling.functions if name not in queued]
    taken |= {f"_{name}" for name in (*macros, *FIXED)}
    bodies = " ".join(
        f"{' '.join(each.primals)} {' '.join(slope.text for slope in each.slopes)}" for each in found.values()
    )
    uses_math |= "extent" in macros
    return list(found.values()), macros, _imports(found.values(), bodies, dialect, uses_math)


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def _imports(functions: Iterable[Function], bodies: str, dialect: Dialect, uses_math: bool) -> list[list[str]]:
    standard = ["import functools"] if dialect.name == "jax" and any(each.statics for each in functions) else []
    standard += ["import math"] if uses_math else []
    makers = {f"defvjp{'_argnum' if each.variadic else ''}" for each in functions}
    optional = {"special": "special." in bodies, "make_vjp": "_contraction(" in bodies}
    others = [
        line.format(", ".join(sorted(makers))) for name, line in dialect.imports.items() if optional.get(name, True)
    ]
    return [section for section in (standard, others) if section]
