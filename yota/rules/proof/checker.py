"""Proof of rules and of rule files: every law of the language, and everything that numbers can show."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from yota.errors import RuleError
from yota.rules.algebras.sympy_functions import exactly
from yota.rules.functions import resolve
from yota.rules.language.model import Rule
from yota.rules.language.syntax import parse_all
from yota.rules.laws import all_laws as laws
from yota.rules.loading import read_file
from yota.rules.proof import adjoints, conventions, partials
from yota.rules.proof import value_forms as forms
from yota.rules.proof.findings import FAULTS, Finding, Report, failed, finding, unmeasured
from yota.rules.proof.generated_code import layouts, second_order
from yota.rules.proof.libraries import absent, import_used, imported
from yota.rules.registry import Registry, registry

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
        yield from forms.solved(rule, known, points)
        yield from adjoints.directions(rule, known)
        yield from adjoints.types(rule, known)
        yield from adjoints.code(rule, known)
    else:
        yield from forms.shared(rule, known, points)
        yield from forms.solved(rule, known, points)
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
    """The report on one rule file.

    path: the file; nothing in it is loaded into the registry of this process.
    points: points at which each partial is measured.
    shown: gives the rules one after the other while they are proved, perhaps with a progress bar.
    """
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
