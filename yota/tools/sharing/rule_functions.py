"""Modules for other libraries: each rule with a primal becomes a function with that derivative."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yota
from yota.emit.numpy_literals import tuple_text
from yota.emit.python.formatting import formatted
from yota.emit.render import render
from yota.errors import ArgumentError, RuleError
from yota.ir.plain_text import docstring, shell, visible
from yota.package.assembly import MARK, tidied
from yota.rules.language.model import Expression, Literal, Parameter, Rule, is_zero, refusal
from yota.rules.registry import Registry, registry
from yota.tools.sharing.dialects import FIXED, LIBRARIES, SEED, Dialect, Speller, dialect_of, identifier


@dataclass(frozen=True, slots=True)
class Slope:
    """A partial of the result with the adjoint ``seed``, by one operand; for a tensor rule, its adjoint."""

    operand: str
    position: int
    seed: str
    text: str


@dataclass(frozen=True, slots=True)
class Function:
    """A rule as input of its template.

    loop: the index in formulas of a variadic operand's adjoint.
    stem: stem of the names of companion functions.
    taken: names of functions of the same module, which companions must not use.
    """

    name: str
    elementwise: bool
    summary: str
    operands: tuple[str, ...]
    variadic: bool
    statics: tuple[str, ...]
    defaults: Mapping[str, str]
    results: tuple[str, ...]
    seeds: tuple[str, ...]
    primals: tuple[str, ...]
    slopes: tuple[Slope, ...]
    loop: str
    stem: str
    taken: Container[str]

    @property
    def parameters(self) -> str:
        """The parameters of the function with their defaults, static ones last."""
        given = self.defaults
        names = (*self.starred, *self.statics)
        return ", ".join(f"{name}={given[name]}" if name in given else name for name in names)

    @property
    def starred(self) -> tuple[str, ...]:
        """The operands as parameters, or as forwarded arguments."""
        return (*self.plain_operands, f"*{self.operands[-1]}") if self.variadic else self.operands

    @property
    def plain_operands(self) -> tuple[str, ...]:
        """The operands that are single arrays."""
        return self.operands[:-1] if self.variadic else self.operands

    @property
    def arguments(self) -> str:
        """Arguments that forward all parameters by position, a variadic one as a tuple."""
        return ", ".join([*self.operands, *self.statics])

    @property
    def leading(self) -> str:
        """All parameters by position, a variadic one last, as parameters or as arguments."""
        return ", ".join([*self.plain_operands, *self.statics, *self.starred[len(self.plain_operands) :]])

    @property
    def received(self) -> str:
        """All parameters as an assignment target of a sequence, a variadic one last."""
        return self.leading if self.variadic or "," in self.leading else f"{self.leading},"

    @property
    def places(self) -> str:
        """Positions of the static parameters, as a tuple."""
        return tuple_text(range(len(self.operands), len(self.operands) + len(self.statics)))

    @property
    def inner(self) -> str:
        """The name of the function that the library differentiates: the function itself if no parameter is variadic."""
        return self.companion("inner") if self.variadic else self.name

    @property
    def class_name(self) -> str:
        """The name of the function's class."""
        return self._free("_" + "".join(part.capitalize() for part in self.stem.split("_")))

    def companion(self, ending: str) -> str:
        """The name of a companion function."""
        return self._free(f"_{self.stem}_{ending}")

    def _free(self, name: str) -> str:
        while name in self.taken:
            name += "_"
        return name

    def by(self, operand: str) -> tuple[Slope, ...]:
        """The derivatives by an operand; empty if they are zero."""
        return tuple(slope for slope in self.slopes if slope.operand == operand)

    @property
    def spread(self) -> Slope | None:
        """The adjoint of one item of a variadic operand, if there is one."""
        return next(iter(self.by(self.operands[-1])), None) if self.variadic else None

    def adjoint(self, operand: str, nothing: str) -> str:
        """The adjoint of an operand, an iterator for a variadic one; ``nothing`` if it is zero."""
        if self.variadic and operand == self.operands[-1]:
            made = f"by_item, range(len({operand}))" if self.spread else f"{nothing.removesuffix('({})')}, {operand}"
            return f"map({made})"
        return self.item(operand, nothing)

    def item(self, operand: str, nothing: str) -> str:
        """The adjoint of an operand, or of the item `loop` of a variadic operand."""
        name = f"{operand}[{self.loop}]" if self.variadic and operand == self.operands[-1] else operand
        if not self.by(operand):
            return nothing.format(name)
        if self.elementwise:
            return " + ".join(f"_pulled({each.seed}, {each.text}, {operand})" for each in self.by(operand))
        return f"_cotangent({name}, {self.by(operand)[0].text})"

    @property
    def tangents(self) -> tuple[str, ...]:
        """The tangent of each result, from ``tangents`` of the operands."""
        found = []
        for result, seed in zip(self.results, self.seeds, strict=True):
            terms = [f"({each.text}) * tangents[{each.position}]" for each in self.slopes if each.seed == seed]
            found.append(f"_tangent({result}, {' + '.join(terms) or '0'})")
        return tuple(found)


def function(rule: Rule, known: Registry, spelling: Speller, stem: str, taken: Container[str]) -> Function:
    """The function of a rule."""
    return Function(
        identifier(rule.name),
        rule.kind == "elementwise",
        docstring(rule.doc) or f"The rule of {identifier(rule.name)}.",
        tuple(spelling.local(each.name) for each in rule.operands),
        any(each.variadic for each in rule.operands),
        tuple(spelling.local(each.name) for each in rule.keywords),
        _defaults(rule, spelling),
        tuple(spelling.local(each) for each in rule.results),
        tuple(spelling.seed(each) for each in rule.results),
        tuple(spelling.text(rule.primal[each]) for each in rule.results),
        _slopes(rule, known, spelling),
        spelling.local(rule.loop) if rule.loop else "i",
        stem,
        taken,
    )


def _defaults(rule: Rule, spelling: Speller) -> dict[str, str]:
    """Defaults by name; Python allows no parameter without a default after one with a default."""
    taking = rule.keywords if any(each.default is None for each in rule.keywords) else rule.parameters
    return {spelling.local(each.name): spelling.text(_default(each)) for each in taking if each.default is not None}


def _default(parameter: Parameter) -> Expression:
    """The default of a parameter; that of a real operand is a float, because libraries differentiate only floats."""
    default, domain = parameter.default, parameter.domain
    assert default is not None
    if domain is None or domain.kind in ("integer", "boolean") or not isinstance(default, Literal):
        return default
    return Literal(float(default.value)) if isinstance(default.value, int) else default


def _slopes(rule: Rule, known: Registry, spelling: Speller) -> tuple[Slope, ...]:
    found = []
    for position, operand in enumerate(rule.operands):
        if operand.domain is not None and operand.domain.kind in ("integer", "boolean"):
            continue
        name = spelling.local(operand.name)
        if rule.kind == "elementwise":
            parts = [(spelling.seed(each), known.partial(rule, operand.name, each)) for each in rule.results]
        else:
            parts = [(SEED, rule.adjoints[operand.name])]
        for seed, written in parts:
            reason = refusal(written)
            if reason is not None:
                raise RuleError(
                    f"{rule.file}:{rule.line}: the rule of {rule.name} cannot be exported to {spelling.dialect.name}: "
                    f"it has no derivative by {operand.name} ({reason})\n"
                    f"write: the derivative, or {operand.name}: Integer"
                )
            if not is_zero(written):
                found.append(Slope(name, position, seed, spelling.text(written)))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Shared:
    """An exported module, and the rules that it omits."""

    text: str
    functions: tuple[str, ...]
    notes: tuple[str, ...]


def export(path: Path, library: str, command: Sequence[str]) -> Shared:
    """The module for ``library`` (JAX, PyTorch or autograd) with the rules of a file; its header shows ``command``."""
    if library not in LIBRARIES:
        raise ArgumentError(f"rules are exported to {', '.join(LIBRARIES)}, not to {library!r}")
    dialect = dialect_of(library)
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
