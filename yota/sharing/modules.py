"""Modules for other libraries: each rule with a primal as a function that the library differentiates by the rule."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import yota
from yota.codegen.render import render
from yota.errors import ArgumentError, RuleError
from yota.generation.assembly import MARK
from yota.generation.formatting import formatted
from yota.generation.plain import docstring, shell, visible
from yota.rules.model import Expression, Literal, Rule, refusal
from yota.rules.registry import Registry, registry
from yota.sharing.dialects import DIALECTS, Dialect
from yota.sharing.spelling import SEED, Spelling, identifier

__all__ = ["Shared", "export"]


@dataclass(frozen=True, slots=True)
class Shared:
    """An exported module, and what it leaves out."""

    text: str
    functions: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Slope:
    """A derivative by one operand: its name, its position, and the formula."""

    operand: str
    position: int
    text: str


@dataclass(frozen=True, slots=True)
class _Function:
    """A rule, as its template needs it."""

    name: str
    elementwise: bool
    summary: str
    operands: tuple[str, ...]
    statics: tuple[str, ...]
    defaults: tuple[str, ...]
    result: str
    primal: str
    slopes: tuple[_Slope, ...]
    class_name: str

    @property
    def plain(self) -> str:
        """The name without what marks it as the module's own."""
        return self.name.strip("_")

    @property
    def parameters(self) -> str:
        """The parameters of the function, those with defaults last."""
        keywords = [
            f"{name}={value}" if value else name for name, value in zip(self.statics, self.defaults, strict=True)
        ]
        return ", ".join([*self.operands, *keywords])

    @property
    def arguments(self) -> str:
        """Arguments that pass all parameters on."""
        return ", ".join([*self.operands, *self.statics])

    @property
    def places(self) -> str:
        """Positions of the static parameters, as a tuple."""
        places = range(len(self.operands), len(self.operands) + len(self.statics))
        return f"({', '.join(map(str, places))}{',' if len(self.statics) == 1 else ''})"

    def by(self, operand: str) -> _Slope | None:
        """The derivative by an operand, or None where it is zero."""
        return next((slope for slope in self.slopes if slope.operand == operand), None)


def export(path: Path, library: str, command: Sequence[str]) -> Shared:
    """The module for ``library`` with the rules of a file.

    Parameters
    ----------
    path
        A rule file.
    library
        ``"jax"``, ``"torch"`` or ``"autograd"``.
    command
        What was typed to make it, for the banner.

    Raises
    ------
    ArgumentError
        If the library is not known, or no rule of the file has a primal.
    RuleError
        If a rule is wrong, or the library lacks what it needs.
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
    functions, macros, imports = _functions(wanted, known, dialect)
    plan = {
        "banner": _banner(path, command),
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
    return Shared(_spaced(text), tuple(identifier(rule.name) for rule in wanted), tuple(notes))


def _banner(path: Path, command: Sequence[str]) -> tuple[str, ...]:
    origin = f"{MARK}{yota.__version__} from {visible(path.name)}."
    return (f"{origin} Do not edit: change the rules, then run", "#", f"#     {shell(command)}")


def _functions(
    wanted: Sequence[Rule], known: Registry, dialect: Dialect
) -> tuple[list[_Function], set[str], list[list[str]]]:
    """The functions of the rules, with those that they call before them; and what they need."""
    found: dict[str, _Function] = {}
    macros: set[str] = set()
    uses_math = False
    pending = [*wanted]
    while pending:
        rule = pending.pop(0)
        if rule.name in found:
            raise RuleError(
                f"{rule.file}:{rule.line}: the rule of {rule.name} cannot be exported to {dialect.name}: "
                "there are several of that name\nwrite: one rule, or names of their own"
            )
        spelling = Spelling(dialect, rule, known)
        found[rule.name] = _function(rule, known, spelling)
        macros |= spelling.macros
        uses_math |= spelling.math
        queued = {each.name for each in pending} | found.keys()
        pending += [known.rules(name)[0] for name in spelling.functions if name not in queued]
    bodies = " ".join(f"{each.primal} {' '.join(slope.text for slope in each.slopes)}" for each in found.values())
    return list(found.values()), macros, _imports(found.values(), bodies, dialect, uses_math)


def _function(rule: Rule, known: Registry, spelling: Spelling) -> _Function:
    if len(rule.results) > 1 or any(each.variadic for each in rule.operands):
        what = "several results" if len(rule.results) > 1 else "a variadic parameter"
        raise RuleError(
            f"{rule.file}:{rule.line}: the rule of {rule.name} cannot be exported to {spelling.dialect.name}: it has "
            f"{what}\nwrite: a rule for each"
        )
    result = rule.results[0]
    slopes = []
    for position, operand in enumerate(rule.operands):
        if operand.domain is not None and operand.domain.kind in ("integer", "boolean"):
            continue
        written = known.partial(rule, operand.name) if rule.kind == "elementwise" else rule.adjoints[operand.name]
        reason = refusal(written)
        if reason is not None:
            raise RuleError(
                f"{rule.file}:{rule.line}: the rule of {rule.name} cannot be exported to {spelling.dialect.name}: it "
                f"has no derivative by {operand.name} ({reason})\nwrite: the derivative, or {operand.name}: Integer"
            )
        if not _is_zero(written):
            slopes.append(_Slope(identifier(operand.name), position, spelling.text(written)))
    name = identifier(rule.name)
    return _Function(
        name,
        rule.kind == "elementwise",
        docstring(rule.doc) or f"The rule of {name}.",
        tuple(identifier(each.name) for each in rule.operands),
        tuple(identifier(each.name) for each in rule.keywords),
        tuple("" if each.default is None else spelling.text(each.default) for each in rule.keywords),
        identifier(result),
        spelling.text(rule.primal[result]),
        tuple(slopes),
        "_" + "".join(part.capitalize() for part in name.strip("_").split("_")),
    )


def _is_zero(expression: Expression) -> bool:
    return isinstance(expression, Literal) and type(expression.value) in (int, float) and expression.value == 0


def _imports(functions: Iterable[_Function], bodies: str, dialect: Dialect, uses_math: bool) -> list[list[str]]:
    standard = ["import functools"] if dialect.name == "jax" and any(each.statics for each in functions) else []
    standard += ["import math"] if uses_math else []
    others = [line for name, line in dialect.imports.items() if name != "special" or "special." in bodies]
    return [section for section in (standard, others) if section]


def _spaced(text: str) -> str:
    """Two blank lines between definitions, one elsewhere, none at the ends."""
    lines: list[str] = []
    blank = 0
    for line in text.split("\n"):
        if not line:
            blank += 1
            continue
        if lines and blank:
            top = line.startswith(("def ", "class ", "@"))
            after = lines[-1].startswith(" ") and not line.startswith(" ")
            lines += ["", ""] if top or after else [""]
        blank = 0
        lines.append(line)
    return "\n".join(lines) + "\n"
