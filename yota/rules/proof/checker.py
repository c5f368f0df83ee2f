"""Proof of rules and of rule files: every law of the language, and everything that numbers can show."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path

import numpy as np

from yota._resources import folder
from yota.errors import RuleError
from yota.rules.algebras.sympy_functions import exactly
from yota.rules.functions import resolve
from yota.rules.language.model import Rule
from yota.rules.language.rule_text import Place, Source
from yota.rules.language.syntax import parse_all
from yota.rules.laws import all_laws as laws
from yota.rules.laws.vocabulary import callees
from yota.rules.loading import excerpts, read_file, shipped
from yota.rules.proof import adjoints, conventions, partials
from yota.rules.proof.adjoints import layouts, second_order
from yota.rules.proof.findings import FAULTS, Finding, Report, failed, finding, unmeasured
from yota.rules.registry import Registry, registry


def imported(path: Path, rules: Sequence[Rule]) -> bool:
    """Whether a file is a shipped one; if so, the modules of its functions are imported."""
    if folder("rules") not in path.resolve().parents:
        return False
    modules = {_module(rule.target) for rule in rules if rule.target is not None}
    if path.resolve().parent.name == "scipy":
        modules.add("scipy.special")
    for module in sorted(modules):
        import_module(module)
    return True


def import_used(rules: Sequence[Rule], known: Registry) -> None:
    """Import the installed modules of shipped functions that a user's rules are for, or call, directly or not."""
    pending, seen = list(rules), set[str]()
    parts = [part for text in shipped(folder("rules")) for part in excerpts(*text)]
    known_modules = {_module(part.target) for part in parts if part.target is not None}
    while pending:
        rule = pending.pop()
        sides = (*rule.primal.values(), *rule.partials.values(), *rule.adjoints.values(), *rule.kinks)
        for name in {each for side in sides for each in callees(side)} - seen:
            seen.add(name)
            if known.knows(name) and not known.is_user(name):
                pending += known.rules(name)
        if rule.target is not None and _module(rule.target) in known_modules:
            with suppress(ImportError):
                import_module(_module(rule.target))


def absent(source: Source, rules: Sequence[Rule]) -> Iterator[RuleError]:
    """The errors of rules whose functions are not there: they cannot be proved, or never fire."""
    for rule in rules:
        if rule.target is None or resolve(rule.target) is not None:
            continue
        module, name = _module(rule.target), rule.target.rpartition(".")[2]
        place = Place(rule.line - 1, 2)
        if module not in sys.modules:
            what = f"`{module}` is not loaded, so that nothing can be proved about this rule"
            yield source.fault(place, what, found=rule.target, write=f"yota check {source.file} --import {module}")
            continue
        (close,) = difflib.get_close_matches(name, vars(sys.modules[module]), 1) or ("...",)
        what = f"`{module}` has no function `{name}`, so that this rule can never fire"
        yield source.fault(place, what, found=rule.target, write=f'@{rule.kind}("{module}.{close}")')


def _module(target: str) -> str:
    return target.rpartition(".")[0]


POINTS = 16
"""Points at which each partial is measured."""


def prove(rule: Rule, known: Registry, points: int = POINTS) -> Iterator[Finding]:
    """Everything that numbers show about ``rule``, which ``known`` holds."""
    if rule.kind == "nodiff":
        return
    if rule.target is not None and resolve(rule.target) is None:
        module = rule.target.rpartition(".")[0]
        yield unmeasured(rule, "", "adjoints", f"{rule.target} is not loaded; --import {module}")
        return
    if rule.linear:
        yield from adjoints.linearity(rule, known)
    if rule.kind == "tensor":
        yield from partials.solved(rule, known, points)
        yield from adjoints.directions(rule, known)
        yield from adjoints.types(rule, known)
        yield from adjoints.code(rule, known)
    else:
        yield from partials.shared(rule, known, points)
        yield from partials.solved(rule, known, points)
        yield from map(partial(_exact, rule, known), partials.formulas(rule, known, points))
        yield from conventions.kinks(rule, known)
        yield from conventions.ends(rule, known)
        yield from partials.generated(rule, known, points)
        yield from partials.generated(rule, known, points, np.float32)
        yield from adjoints.complex_directions(rule, known)
        yield from layouts(rule, known)
    yield from second_order(rule, known)


def _exact(rule: Rule, known: Registry, found: Finding) -> Finding:
    """The finding on a partial; where the formula itself is shown to be right, it says so."""
    if found.law != partials.FORMULA or not found.held or found.note:
        return found
    result, _, name = found.argument.rpartition(" by ")
    if not exactly(rule, result or rule.results[0], name, known):
        return found
    where, _, _ = found.where.partition(",")
    return replace(found, law="formula", error="exact", where=where, measured=0.0)


def prove_file(path: Path, points: int = POINTS, shown: Callable[[Sequence[Rule]], Iterator[Rule]] = iter) -> Report:
    """The report on a rule file, of which nothing is loaded into the registry; ``shown`` may show a progress bar."""
    report = Report(str(path))
    try:
        source, rules, unread = parse_all(read_file(path), str(path))
    except RuleError as fault:
        report.faults.append(str(fault))
        return report
    except OSError as fault:
        report.faults.append(f"{path}: {fault.strerror}")
        return report
    report.rules = len(rules) + len(unread)
    report.faults += map(str, unread)
    shipped = imported(path, rules)
    known = registry() if shipped else registry().with_rules(rules)
    if not shipped:
        import_used(rules, known)
    faults = laws.faults(source, rules, known, None if shipped else registry())
    report.faults += map(str, faults if shipped else (*absent(source, rules), *faults))
    broken = [int(text[len(str(path)) + 1 :].split(":")[0]) for text in report.faults]
    for rule in shown(rules):
        last = rule.line + rule.source.count("\n")
        if any(rule.line - 1 <= line <= last for line in broken):
            continue
        report.findings.append(finding(rule, "", "laws of the language", 0.0, 0.0))
        try:
            report.findings += prove(rule, known, points)
        except FAULTS as fault:
            report.findings.append(failed(rule, "proof", "", fault))
    return report
