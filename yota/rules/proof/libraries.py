"""The functions that rules name: those of the shipped rules are imported, what only a user's file names never is."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from yota._resources import folder
from yota.errors import RuleError
from yota.rules.functions import resolve
from yota.rules.language.model import Rule
from yota.rules.language.rule_text import Place, Source
from yota.rules.laws.vocabulary import callees
from yota.rules.loading import excerpts, shipped
from yota.rules.registry import Registry


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
    """Import the modules of shipped functions that a user's rules are for, or call, and that those call in turn.

    A library that is not installed is left to `absent`.
    """
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
