"""The libraries that the shipped rules speak of; what a user's file names as its own is never imported."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from yota._resources import folder
from yota.rules.model import Rule
from yota.rules.registry import Registry
from yota.rules.vocabulary import callees

__all__ = ["import_used", "imported"]


def imported(path: Path, rules: Sequence[Rule]) -> bool:
    """Whether a file is a shipped one; if so, the modules of its functions are imported."""
    if folder("rules") not in path.resolve().parents:
        return False
    modules = {rule.target.rpartition(".")[0] for rule in rules if rule.target is not None}
    if path.resolve().parent.name == "scipy":
        modules.add("scipy.special")
    for module in sorted(modules):
        import_module(module)
    return True


def import_used(rules: Sequence[Rule], known: Registry) -> None:
    """Import the modules of the shipped functions that a user's rules call, and that those call in turn.

    A library that is not installed is left to the findings, which name the function that is missing.
    """
    pending, seen = list(rules), set[str]()
    while pending:
        rule = pending.pop()
        sides = (*rule.primal.values(), *rule.partials.values(), *rule.adjoints.values(), *rule.kinks)
        for name in {each for side in sides for each in callees(side)} - seen:
            seen.add(name)
            if known.knows(name) and not known.is_user(name):
                pending += known.rules(name)
        if rule.target is not None and not known.is_user(rule.name):
            with suppress(ImportError):
                import_module(rule.target.rpartition(".")[0])
